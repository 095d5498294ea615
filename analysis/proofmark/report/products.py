"""The files that the kit writes from the raw outputs of a run, and their comparison with new ones.

People read these files, so a signature must be of the files that the raw outputs give. The same
run, time, language and versions give the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from proofmark.common.files import read_json, sha256_of
from proofmark.common.strict_model import StrictModel
from proofmark.common.translation import in_language, language
from proofmark.judge.judging import read_and_judge, write_results
from proofmark.judge.written import refuse_unfinished
from proofmark.report.run_data import RunData, gather
from proofmark.report.write import Made, versions, write_page, write_summary
from proofmark.runs.anchors import Compared
from proofmark.runs.answer import answer
from proofmark.runs.checksums import checksums_of, with_summary
from proofmark.runs.folder_sums import NOT_LISTED
from proofmark.runs.nodes import node_file, node_text, probed_nodes
from proofmark.runs.run import Run
from proofmark.runs.run_files import RunFiles


class Products(StrictModel):
    """The answer about the products of a run, as its raw outputs give them now.

    Attributes:
        digests: the SHA-256 of each product, by its path in the folder of the run.
        unknown: why they cannot be written again; empty if they can.
    """

    digests: dict[str, str] = {}
    unknown: str = ""


@dataclass(frozen=True)
class Written:
    """The products that were written.

    Attributes:
        run_data: what the report was written from.
        pages: the report, and the summary if it was written.
        sums: the SHA-256 of each file of the run, by its path in the folder, if the summary was
            written; else None.
    """

    run_data: RunData
    pages: tuple[Path, ...]
    sums: Mapping[str, str] | None = None


def write_products(run: Run, *, summary: bool) -> Written:
    """Write all products of `run` into its folder, in the current language.

    An old summary is replaced too: it would state another verdict than the new report. A rolling
    run is reported many times: its report keeps its time until the verdict differs.

    Args:
        run: the run.
        summary: whether a summary is written if there is none.

    Raises:
        BadInput: a file of the run is damaged, or a product cannot be written.
    """
    files = run.files
    old = sha256_of(files.verdict) if run.plan.rolling and files.verdict.is_file() else ""
    return _write(run, files, summary=summary or _has_summary(files), old=old)


def _same_time(files: RunFiles, old: str) -> datetime | None:
    """Return the time of the report if its verdict, with the digest `old`, is the one now."""
    if not old or sha256_of(files.verdict) != old or not files.made.is_file():
        return None
    made = read_json(files.made, Made)
    same = (made.language, made.versions) == (language(), versions())
    return made.written if same else None


def _has_summary(files: RunFiles) -> bool:
    return any(each.exists() for each in files.summary)


def _write(
    run: Run, target: RunFiles, written: datetime | None = None, *, summary: bool, old: str = ""
) -> Written:
    records, verdict = read_and_judge(run)
    write_results(run, records, verdict, target)
    run_data = gather(run, verdict, written or _same_time(target, old))
    page = write_page(run_data, target)
    if not summary:
        return Written(run_data, (page,))
    sums = checksums_of(run.folder)
    if target.folder != run.folder:
        sums = dict(sorted({**sums, **checksums_of(target.folder)}.items()))
    pages = page, *write_summary(run_data, sums, target)
    return Written(run_data, pages, with_summary(target.folder, sums))


def products_of(run: Run) -> Products:
    """Return the products of `run`, written again in another folder from its raw outputs.

    Raises:
        BadInput: the run is unfinished, or a file of it is damaged.
    """
    if not run.files.made.is_file():
        return Products(unknown=f"{run.files.made.name}: no such file")
    made, here = read_json(run.files.made, Made), versions()
    other = [f"{name} {each}" for name, each in made.versions.items() if here.get(name) != each]
    if other or made.versions.keys() != here.keys():
        mine = ", ".join(f"{name} {each}" for name, each in here.items())
        return Products(unknown=f"written by {', '.join(other)}; here are {mine}")
    with TemporaryDirectory(prefix="proofmark-") as folder, in_language(made.language):
        target = RunFiles(Path(folder).resolve())
        again = _write(run, target, made.written, summary=_has_summary(run.files))
        refuse_unfinished(run, again.run_data.verdict)
        written = {path for path in target.folder.rglob("*") if path.is_file()}
        digests = {target.link(path): sha256_of(path) for path in sorted(written)}
    for host, node in probed_nodes(run).items():
        name = run.files.link(node_file(run, host))
        digests[name] = sha256(node_text(node).encode()).hexdigest()
    return Products(digests=digests)


def compare_products(folder: Path, sums: Mapping[str, str]) -> Compared:
    """Compare the products in `folder` with those that its raw outputs give.

    A process of the owner writes them again, without the rights of root.

    Args:
        folder: the run, an absolute path without links.
        sums: the SHA-256 of each file of the run, by its path in the folder.

    Raises:
        BadInput: the run is unfinished, or damaged.
    """
    made = answer(folder, products_of, Products)
    if made.unknown:
        return Compared(unknown=f"the report and its files: not written again: {made.unknown}")
    notes = (f"{name}: not compared, because the kit does not write it" for name in _others(sums))
    return Compared(tuple(_differing(made.digests, sums)), tuple(notes))


def _differing(made: Mapping[str, str], present: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each product that is not what the raw outputs give."""
    files = RunFiles(Path())
    folders = (files.plots.name, files.nodes.name)
    for name, digest in made.items():
        if name not in present:
            yield f"{name}: missing"
        elif present[name] != digest:
            yield f"{name}: another content than that of the outputs of the run"
    for name in present:
        if name not in made and name.partition("/")[0] in folders:
            yield f"{name}: no such file is made from the outputs of the run"


def _others(present: Mapping[str, str]) -> Iterator[str]:
    """Yield the files and folders at the top of the run that are none of the kit."""
    known = RunFiles(Path()).top_names() | NOT_LISTED
    tops = dict.fromkeys(name.partition("/")[0] for name in present)
    yield from (each for each in tops if each not in known)

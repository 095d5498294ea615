"""The files that the kit makes from the evidence of a run, and their comparison with new ones.

People read these files, so a signature must be of the files that the evidence gives. The same
evidence, time, language and versions give the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from proofmark.common.errors import bad_input
from proofmark.common.files import copy_whole, is_regular, read_json, sha256_of
from proofmark.common.translation import in_language, language
from proofmark.judge.judging import Judged, judged, write_results
from proofmark.judge.verdict import Verdict
from proofmark.records.stored_readings import Readings, store, stored_or_read
from proofmark.report.run_data import RunData, gather
from proofmark.report.write import Made, versions, write_page
from proofmark.runs.run import Run
from proofmark.runs.run_files import RunFiles


@dataclass(frozen=True)
class Written:
    """The products that were written.

    Attributes:
        run_data: what the report was written from.
        page: the report.
    """

    run_data: RunData
    page: Path

    @property
    def verdict(self) -> Verdict:
        """The verdict of the run."""
        return self.run_data.verdict


def write_products(run: Run) -> Written:
    """Write all products of `run` into its acceptance folder, in the current language.

    A rolling run is reported many times: its report keeps its time until the verdict differs.

    Raises:
        BadInput: a file of the run is damaged, or a product cannot be written.
    """
    files = run.products
    old = sha256_of(files.verdict) if run.plan.rolling and files.verdict.is_file() else ""
    found = judged(run, stored_or_read)
    store(run, Readings(found.records, found.nodes))
    return _write(run, found, files, old=old)


def write_again(run: Run, made: Made, target: RunFiles) -> Written:
    """Write the products of `run` as `made` states into the folder of `target`."""
    copied = run.products.waivers
    if is_regular(copied) and target.folder != copied.parent:
        copy_whole(copied, target.waivers)
    with in_language(made.language):
        return _write(run, judged(run), target, made.written)


def made_of(files: RunFiles) -> Made:
    """Return how the products in a folder were written.

    Raises:
        BadInput: there is no report, or the file is damaged.
    """
    if not files.made.is_file():
        raise bad_input(files.made, "", "no such file", "a run with a report: proofmark report RUN")
    return read_json(files.made, Made)


def other_versions(made: Made) -> str:
    """Return with which versions other than those here products were written; may be empty."""
    here = versions()
    names = sorted({*made.versions, *here})
    other = [name for name in names if made.versions.get(name) != here.get(name)]
    return ", ".join(f"{name} {made.versions.get(name, '–')}" for name in other)


def differences(run: Run, made: Made) -> Iterator[str]:
    """Yield a line for each product of `run` that is not what its evidence gives."""
    with TemporaryDirectory(prefix="proofmark-") as folder:
        target = RunFiles(Path(folder).resolve())
        write_again(run, made, target)
        yield from differing(target.folder, run.products)


def differing(folder: Path, products: RunFiles) -> Iterator[str]:
    """Yield a line for each product that differs from the one in `folder`, written just now."""
    written = {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}
    for name in sorted(written):
        path, right = products.folder / name, folder / name
        if not is_regular(path):
            yield f"{name}: missing"
        elif path.stat().st_size != right.stat().st_size or sha256_of(path) != sha256_of(right):
            yield f"{name}: another content than that of the evidence"
    for path in sorted(products.plots.glob("*")):
        if path.relative_to(products.folder) not in written:
            yield f"{path.relative_to(products.folder)}: no such file is made from the evidence"


def _same_time(files: RunFiles, old: str) -> datetime | None:
    """Return the time of the report if its verdict, with the digest `old`, is the one now."""
    if not old or sha256_of(files.verdict) != old or not files.made.is_file():
        return None
    made = read_json(files.made, Made)
    same = (made.language, made.versions) == (language(), versions())
    return made.written if same else None


def _write(
    run: Run,
    found: Judged,
    target: RunFiles,
    written: datetime | None = None,
    *,
    old: str = "",
) -> Written:
    claims = write_results(run, found.records, found.verdict, target)
    time = written or _same_time(target, old)
    run_data = gather(run, found.verdict, time, found.nodes, claims)
    return Written(run_data, write_page(run_data, target))

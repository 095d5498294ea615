"""The files that the kit makes from the evidence of a run, and their comparison with new ones.

People read these files, so a signature must be of the files that the evidence gives. The same
evidence, time, language and versions give the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from filecmp import cmp
from importlib.metadata import version
from pathlib import Path

from proofmark import RELEASES, __version__
from proofmark.common.errors import bad_input
from proofmark.common.files import (
    exists,
    is_regular,
    read_json,
    sha256_of,
    write_atomic,
    write_atomic_bytes,
)
from proofmark.common.message import Message
from proofmark.common.shared_models import StrictModel
from proofmark.common.translation import in_language, language
from proofmark.judge.judging import Judged, judged, write_results
from proofmark.judge.verdict import Verdict
from proofmark.plan.kinds import kind_of
from proofmark.records.stored_readings import store, stored_or_read
from proofmark.report.render import page, view
from proofmark.report.run_data import RunData, gather
from proofmark.runs.run import Run
from proofmark.runs.run_files import RunFiles

LIBRARIES = ("jinja2", "matplotlib", "numpy", "polars")
"""The libraries whose version changes the bytes of a file of the report."""


class Made(StrictModel):
    """``report.json``: how the files of a report were written."""

    written: datetime
    language: str
    versions: dict[str, str]


def versions() -> dict[str, str]:
    """Return the versions of the kit and of the libraries that write a report."""
    return {"proofmark": __version__, **{name: version(name) for name in LIBRARIES}}


def write_page(run_data: RunData, target: RunFiles | None = None) -> Path:
    """Write ``report.html``, ``report.json`` and ``figures/`` of a run.

    With SOURCE_DATE_EPOCH set, the same run gives the same bytes.
    """
    files = target or run_data.run.products
    content = view(run_data, files)
    write_plot_files(files.plots, content.plot_files)
    write_atomic(files.report, page("report.html", content, "style.css"))
    made = Made(written=run_data.written, language=language(), versions=versions())
    write_atomic(files.made, made.model_dump_json(indent=1) + "\n")
    return files.report


def write_plot_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write the plot files into `folder`, and remove the plots of an earlier report."""
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        if path.suffix in (".svg", ".png", ".csv") and path.name not in files:
            path.unlink()
    for name, content in files.items():
        write_atomic_bytes(folder / name, content)


_VERSION = re.compile(
    r"(\d+!)?\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?(\+[a-z0-9]+([.][a-z0-9]+)*)?",
    re.ASCII,
)
"""A version in the normal form of PEP 440."""


@dataclass(frozen=True)
class Written:
    """The products that were written."""

    run_data: RunData
    page: Path

    @property
    def verdict(self) -> Verdict:
        """The verdict of the run."""
        return self.run_data.verdict


def write_products(run: Run) -> Written:
    """Write all products of `run` into its acceptance folder, in the current language.

    A run that nodes join is reported many times: its report keeps its time until the verdict
    differs.

    Raises:
        BadInput: a file of the run is damaged, or a product cannot be written.
    """
    files = run.products
    old = (
        sha256_of(files.verdict)
        if kind_of(run.plan).nodes_arrive and files.verdict.is_file()
        else ""
    )
    found = judged(run, stored_or_read)
    store(run, found.records)
    return _write(run, found, files, old=old)


def write_again(run: Run, made: Made, target: RunFiles) -> Written:
    """Write the products of `run` as `made` states into the folder of `target`."""
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
    """Return with which versions other than those here products were written; may be empty.

    Raises:
        BadInput: the kit never had that release, or a version is none of PEP 440.
    """
    here = versions()
    kit = made.versions.get("proofmark", "")
    if kit not in RELEASES:
        accepted = f"a release that this kit knows: {', '.join(RELEASES)}"
        raise bad_input("proofmark", "versions", kit or "nothing", accepted)
    for name, release in made.versions.items():
        if name not in here or not _VERSION.fullmatch(release):
            accepted = f"versions as 1.2.3 of {', '.join(here)}"
            raise bad_input("proofmark", "versions", f"{name} {release}", accepted)
    other = [name for name, version in here.items() if made.versions.get(name) != version]
    return ", ".join(f"{name} {made.versions.get(name, '–')}" for name in other)


def differing(signed: Path, names: Iterable[str], folder: Path) -> Iterator[Message]:
    """Yield each product in `folder`, a run or an acceptance, that is not the one in `signed`.

    Files of other lengths are not read.
    """
    products, known = RunFiles(folder), set(names)
    for name in sorted(known):
        path = folder / name
        if not is_regular(path):
            yield Message("product-missing", name=name)
        elif not cmp(path, signed / name, shallow=False):
            yield Message("product-other", name=name)
    for path in sorted(products.plots.glob("*")):
        if exists(path) and products.link(path) not in known:
            yield Message("product-not-made", name=products.link(path))


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
    write_results(run, found.records, found.verdict, target)
    time = written or _same_time(target, old)
    run_data = gather(run, found.verdict, time, found.nodes)
    return Written(run_data, write_page(run_data, target))

"""Opens the folder of a run. Nothing in it is overwritten."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import RootModel

from proofmark.cases.loading import load_benchmarks
from proofmark.cases.models import Benchmarks
from proofmark.common.errors import bad_input
from proofmark.common.files import read_json, write_whole
from proofmark.common.strict_model import OLD_KEYS, STORED
from proofmark.plan.plan import Plan
from proofmark.runs.files import RunFiles
from proofmark.runs.format import format_of
from proofmark.site.inventory import Site


@dataclass(frozen=True)
class Run:
    """The folder of a run, and its plan."""

    folder: Path
    plan: Plan

    @property
    def id(self) -> str:
        """The name of the folder."""
        return self.folder.name

    @property
    def files(self) -> RunFiles:
        """The files in the folder."""
        return RunFiles(self.folder)


def open_run(folder: Path) -> Run:
    """Open the run in `folder` (``runs/latest`` is followed).

    Raises:
        BadInput: `folder` is not a run, is of a later version, or has an unreadable plan.
    """
    resolved = folder.resolve()
    files = RunFiles(resolved)
    if not files.plan.is_file():
        newest = sorted(path.name for path in folder.parent.glob("*Z-*"))[-3:]
        raise bad_input("RUN", "", f"{folder}: not a run", ", ".join(newest) or "a run's folder")
    plan = read_json(files.plan, Plan, _context(resolved))
    known = {"allowed_modes": _entered(files), "not_needed": _not_needed(files)}
    return Run(resolved, plan.model_copy(update=known))


def enter_mode(run: Run, mode: str) -> None:
    """Allow `run` to enter `mode`. Its steps are expected from now on."""
    known = _entered(run.files)
    if mode not in known:
        write_whole(run.files.entered, "".join(f"{each}\n" for each in [*known, mode]))


def leave_out(run: Run, not_needed: Mapping[str, str]) -> Run:
    """Write the steps that are not needed, with their reasons; return the run without them.

    An existing file stays, because the programs of a run do not change.

    Raises:
        BadInput: the file cannot be written, or it is damaged.
    """
    path = run.files.not_needed
    if not path.exists():
        write_whole(path, json.dumps(dict(not_needed), indent=1) + "\n")
    return open_run(run.folder)


def _not_needed(files: RunFiles) -> dict[str, str]:
    path = files.not_needed
    return read_json(path, _Reasons).root if path.exists() else {}


class _Reasons(RootModel[dict[str, str]]):
    """Reasons by id of the step."""


def _entered(files: RunFiles) -> list[str]:
    try:
        return files.entered.read_text().split()
    except FileNotFoundError:
        return []


def benchmarks_of(run: Run) -> Benchmarks:
    """Return the cases of `run`, as they were at its start."""
    return load_benchmarks(run.files.benchmarks, _context(run.folder) or STORED)


def site_of(run: Run) -> Site:
    """Return the site of `run`, as it was at its start."""
    return read_json(run.files.site, Site, _context(run.folder))


def _context(folder: Path) -> dict[str, bool] | None:
    """Return the context in which the files of the run in `folder` are read."""
    return OLD_KEYS if format_of(folder) == 1 else None

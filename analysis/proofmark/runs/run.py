"""The folder of a run: made once, gone on with, never overwritten."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TextIO

from pydantic import RootModel

from proofmark.cases.loading import load_benchmarks
from proofmark.cases.models import SUITES_FILE, Benchmarks
from proofmark.common.errors import BadInput, bad_input
from proofmark.common.files import read_json, write_whole
from proofmark.plan.plan import Plan
from proofmark.runs.files import RunFiles
from proofmark.site.inventory import Site

LATEST = "latest"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class Run:
    """A run's folder and its plan."""

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
        BadInput: there is no run, or its plan cannot be read.
    """
    resolved = folder.resolve()
    files = RunFiles(resolved)
    if not files.plan.is_file():
        there = sorted(path.name for path in folder.parent.glob("*Z-*"))[-3:]
        raise bad_input("RUN", "", f"{folder}: no run there", ", ".join(there) or "a run's folder")
    plan = read_json(files.plan, Plan)
    known = {"entered": _entered(files), "not_needed": _not_needed(files)}
    return Run(resolved, plan.model_copy(update=known))


def enter_mode(run: Run, mode: str) -> None:
    """Note that `run` may enter `mode`: from now on its steps are expected."""
    known = _entered(run.files)
    if mode not in known:
        write_whole(run.files.entered, "".join(f"{each}\n" for each in [*known, mode]))


def leave_out(run: Run, not_needed: Mapping[str, str]) -> Run:
    """Note the steps of `run` that are not needed, each with the reason; return it without them.

    What has been written once stays: the programs of a run do not change.

    Raises:
        BadInput: it cannot be written, or it is damaged.
    """
    path = run.files.not_needed
    if not path.exists():
        write_whole(path, json.dumps(dict(not_needed), indent=1) + "\n")
    return open_run(run.folder)


def _not_needed(files: RunFiles) -> dict[str, str]:
    path = files.not_needed
    return read_json(path, _Reasons).root if path.exists() else {}


class _Reasons(RootModel[dict[str, str]]):
    """Steps by id, each with a reason."""


def _entered(files: RunFiles) -> list[str]:
    try:
        return files.entered.read_text().split()
    except FileNotFoundError:
        return []


def benchmarks_of(run: Run) -> Benchmarks:
    """Return the cases as they were when the run was planned."""
    return load_benchmarks(run.files.benchmarks)


def site_of(run: Run) -> Site:
    """Return the site as it was when the run was planned."""
    return read_json(run.files.site, Site)


def start_or_continue(
    root: Path,
    plan: Plan,
    benchmarks: Benchmarks,
    site: Site,
    probe: str,
    *,
    run_id: str | None = None,
    fresh: bool = False,
) -> tuple[Run, bool]:
    """Return the run to work on, and whether it is an earlier one gone on with.

    Without `run_id` that is the newest unfinished run of equal plan digest, unless `fresh`.

    Raises:
        BadInput: `run_id` is no name or belongs to another plan, or somebody is running that run
            now.
    """
    if run_id is not None and (not _NAME.fullmatch(run_id) or run_id == LATEST):
        accepted = "letters, digits, dots, dashes and underscores"
        raise bad_input("run_id", "", repr(run_id), f"a name of {accepted}")
    root.mkdir(parents=True, exist_ok=True)
    earlier = root / run_id if run_id else (None if fresh else _unfinished(root, plan.digest))
    if earlier is not None and RunFiles(earlier).plan.exists():
        if fresh:
            raise bad_input("run_id", "", f"{run_id}: exists, with fresh=true", "a new run id")
        run = open_run(earlier)
        if run.plan.digest != plan.digest:
            found = f"{run.id}: exists, with another plan (digest {run.plan.digest[:12]})"
            raise bad_input("run_id", "", found, f"a new run id (digest {plan.digest[:12]})")
        with lock(run):
            point_latest(root, run)
        return run, True
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    limit = re.sub(r"[^A-Za-z0-9._-]+", "_", site.limit)
    folder = root / (run_id or f"{stamp}-{limit}-{plan.suite}")
    _write_new(folder, plan, benchmarks, site, probe)
    run = Run(folder.resolve(), plan)
    point_latest(root, run)
    return run, False


def _write_new(folder: Path, plan: Plan, benchmarks: Benchmarks, site: Site, probe: str) -> None:
    """Write a run's inputs under another name; its own name makes it a run."""
    with TemporaryDirectory(prefix=".new-", dir=folder.parent) as new:
        made = Path(new) / folder.name
        _write_inputs(made, plan, benchmarks, site, probe)
        try:
            made.rename(folder)
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
                raise
            found = f"{folder.name}: exists already"
            raise bad_input("run_id", "", found, "a new run id") from None


def _write_inputs(folder: Path, plan: Plan, benchmarks: Benchmarks, site: Site, probe: str) -> None:
    files = RunFiles(folder)
    files.benchmarks.mkdir(parents=True)
    for path in [benchmarks.folder / SUITES_FILE, *benchmarks.folder.glob("*.yml")]:
        shutil.copyfile(path, files.benchmarks / path.name)
    files.site.write_text(site.model_dump_json(indent=1) + "\n")
    files.facts_probe.write_text(probe)
    _keep_topologies(files.inventory, site)
    write_whole(files.plan, json.dumps(plan.model_dump(mode="json"), indent=1) + "\n")


def _keep_topologies(folder: Path, site: Site) -> None:
    partition = site.partition
    told = [each.topology for each in partition.modes.values()]
    if partition.hardware != "discovered":
        told.append(partition.hardware.topology)
    for name in dict.fromkeys(filter(None, told)):
        if name.endswith(".xml") and (site.facts / name).is_file():
            target = folder / "group_vars" / site.partition_name / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(site.facts / name, target)


def _unfinished(root: Path, digest: str) -> Path | None:
    """Return the newest run of this digest that lacks a verdict or the result of a step."""
    for folder in sorted(root.glob("*Z-*"), reverse=True):
        try:
            run = open_run(folder)
        except BadInput:
            continue  # of another version, or damaged: none to go on with
        if run.plan.digest == digest and not _finished(run):
            return folder
    return None


def _finished(run: Run) -> bool:
    """Tell whether `run` has a verdict on all its steps; one may be asked for half-way."""
    have = all(run.files.step(each.id).exit_code.exists() for each in run.plan.steps_to_run())
    return have and run.files.verdict.exists()


def point_latest(root: Path, run: Run) -> None:
    """Let ``runs/latest`` name `run`."""
    fresh = root / f".latest-{os.getpid()}"
    fresh.symlink_to(run.id)
    fresh.rename(root / LATEST)


@contextmanager
def lock(run: Run) -> Iterator[None]:
    """Hold `run` for this process; the lock ends with the process, however it ends.

    Raises:
        BadInput: another process holds it.
    """
    with run.files.lock.open("a+") as file:
        if not _taken(file, fcntl.LOCK_EX):
            file.seek(0)
            found = f"{run.id}: in use by {file.read().strip() or 'another process'}"
            accepted = "one at a time; another run id or fresh=true starts a run of its own"
            raise bad_input("run_id", "", found, accepted)
        if os.geteuid() == 0:
            # Modes are set by root, steps run as the run user: both hold the run, in turn.
            owner = run.folder.stat()
            os.chown(file.fileno(), owner.st_uid, owner.st_gid)
        file.truncate(0)
        file.write(f"process {os.getpid()} on {os.uname().nodename}\n")
        file.flush()
        yield


def is_locked(run: Run) -> bool:
    """Tell whether some process holds `run`; writes nothing."""
    try:
        with run.files.lock.open() as file:
            return not _taken(file, fcntl.LOCK_SH)
    except FileNotFoundError:
        return False


def _taken(file: TextIO, kind: int) -> bool:
    """Take a lock, if need be at the second try: who only asks holds it for an instant."""
    for pause in (0.1, 0.0):
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            time.sleep(pause)
    return False

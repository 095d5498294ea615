"""Starts a run, or continues an earlier run of the same plan."""

from __future__ import annotations

import errno
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from proofmark.cases.suite import Benchmarks
from proofmark.cases.vocabulary import SUITES_FILE
from proofmark.common.errors import BadInput, bad_input
from proofmark.common.files import new_folder, write_atomic
from proofmark.common.progress_lines import say
from proofmark.common.trust import refuse_untrusted
from proofmark.plan.kinds import kind_of
from proofmark.plan.plan import Plan
from proofmark.runs.acceptance import signed_folders
from proofmark.runs.attempts import has_result
from proofmark.runs.identity import write_identity
from proofmark.runs.run import LATEST, Run, add_growth, is_reserved, link_path, open_run, point
from proofmark.runs.run_files import RunFiles, make_work_folder
from proofmark.runs.state import lock
from proofmark.runs.step_state import pending, repeats_of_job
from proofmark.site.accepted_baseline import copy_baseline
from proofmark.site.inventory import Site

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class RunInputs:
    """What a run measures, and where.

    `probe` is the output of ``probe.sh`` on this machine; empty if nothing was probed.
    """

    plan: Plan
    benchmarks: Benchmarks
    site: Site
    probe: str


@dataclass(frozen=True)
class Copied:
    """What a new run copies, beside its inputs.

    Attributes:
        baseline: the folder of the accepted runs; None: none.
        further: the texts of further inputs, by their path below the folder of the inputs.
    """

    baseline: Path | None = None
    further: Mapping[str, str] = field(default_factory=dict)


NOTHING_COPIED = Copied()


def start_or_continue(
    root: Path,
    inputs: RunInputs,
    copied: Copied = NOTHING_COPIED,
    *,
    run_id: str | None = None,
    fresh: bool = False,
    link: str = LATEST,
) -> tuple[Run, bool]:
    """Return the run to work on, and whether it is an earlier one.

    Without `run_id` and `fresh`, the newest unfinished run with the same plan digest is continued.
    A run that grows is continued until it is signed. Its kind says what the plan adds to it.
    A new run gets a copy of `copied`. A continued run keeps its own copies.

    Args:
        run_id: the name of the run; None: one from the time.
        link: the kind of the link of the site that points to the run; empty: no link is moved.

    Raises:
        BadInput: `run_id` is not a name, it belongs to another plan, or another process works on
            that run.
    """
    plan, site = inputs.plan, inputs.site
    check_run_id(run_id)
    earlier = root / run_id if run_id else (None if fresh else _unfinished(root, plan.digest))
    if earlier is not None and RunFiles(earlier).plan.exists():
        if fresh:
            raise bad_input("run_id", "", f"{run_id}: exists, with fresh=true", "a new run id")
        run = open_run(earlier)
        joined = _join(run, plan, site)
        if joined is None:
            found = f"{run.id}: exists, with another plan (digest {run.plan.digest[:12]})"
            raise bad_input("run_id", "", found, f"a new run id (digest {plan.digest[:12]})")
        run = joined
        with lock(run.folder):
            _point(root, link, site.name, run.id)
        return run, True

    def write(made: Path) -> str:
        write_inputs(made, inputs, copied.baseline)
        for name, text in copied.further.items():
            path = RunFiles(made).inputs / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return make_work_folder(made, site).name

    folder = make_run(root, run_id or "", new_run_id(site, plan), write)
    run = open_run(folder)
    _point(root, link, site.name, run.id)
    return run, False


def _join(run: Run, plan: Plan, site: Site) -> Run | None:
    """Return `run` with what `plan` adds to it; None if it is the plan of another run.

    Raises:
        BadInput: another process works on the run.
    """
    kind = kind_of(run.plan)
    part = kind.joining(run.plan, plan, site)
    if part is None or not kind.nodes_arrive:
        return None if part is None else run
    with lock(run.folder):
        run = open_run(run.folder)
        part = kind.joining(run.plan, plan, site)
        if not part or not any(group.jobs for group in part):
            return run
        add_growth(run.folder, part, site)
        return open_run(run.folder)


def _point(root: Path, link: str, site: str, run: str) -> None:
    if link and (problem := point(link_path(root, link, site), run)):
        say(problem)


def check_run_id(run_id: str | None) -> None:
    """Refuse a run id that is not the name of a folder; None is accepted.

    Raises:
        BadInput: `run_id` is not a name.
    """
    if run_id is not None and (not _NAME.fullmatch(run_id) or is_reserved(run_id)):
        accepted = "a name of letters, digits, dots, dashes and underscores, and not of a link"
        raise bad_input("run_id", "", repr(run_id), accepted)


def new_run_id(site: Site, plan: Plan) -> str:
    """Return the id of a run that starts now: ``<UTC>-<limit>-<suite>``."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    limit = re.sub(r"[^A-Za-z0-9._-]+", "_", site.limit)
    return f"{stamp}-{limit}-{plan.suite}"


def make_run(root: Path, run_id: str, made_id: str, write: Callable[[Path], str]) -> Path:
    """Make a run whose contents `write` creates, and return its folder.

    Args:
        run_id: its id; empty: `made_id`, with a number if another run has it. Two sites may have
            partitions of one name, and start in one second.
        write: makes the folder that it gets with its content; returns the user who starts the
            programs.

    Raises:
        BadInput: the run `run_id` exists; or as `write`.
    """
    for number in count(1):
        folder = root / (run_id or (made_id if number == 1 else f"{made_id}-{number}"))
        if folder.exists() and not run_id:
            continue
        try:
            new_run(folder, write)
        except BadInput:
            if run_id or not folder.exists():
                raise
        else:
            return folder
    raise AssertionError("count() has no end")


def new_run(folder: Path, write: Callable[[Path], str]) -> None:
    """Make a run whose contents `write` creates in a temporary folder, so that no run is partial.

    Args:
        write: see `make_run`. Then ``run.json`` is written.

    Raises:
        BadInput: `folder` exists, or another user could change it; or as `write`.
    """
    parent = folder.parent
    with new_folder(parent, shared=True):
        refuse_untrusted(parent, "a folder of runs in which only this user and root can write")
        with TemporaryDirectory(prefix=".new-", dir=parent) as new:
            made = Path(new) / folder.name
            write_identity(made, write(made))
            try:
                made.rename(folder)
            except OSError as error:
                if error.errno not in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
                    raise
                found = f"{folder.name}: exists"
                raise bad_input("run_id", "", found, "a new run id") from None


def write_inputs(folder: Path, inputs: RunInputs, baseline: Path | None = None) -> None:
    """Create `folder` with the plan and the inputs of a run.

    `baseline` is the folder of the accepted runs to compare with.
    """
    files, benchmarks, site = RunFiles(folder), inputs.benchmarks, inputs.site
    files.benchmarks.mkdir(parents=True)
    if baseline is not None:
        copy_baseline(baseline, files.baseline)
    for path in [benchmarks.folder / SUITES_FILE, *benchmarks.folder.glob("*.yml")]:
        shutil.copyfile(path, files.benchmarks / path.name)
    known = site.inventory.is_dir()  # hosts of others need no site
    place = site.inventory.absolute() if known else site.inventory
    files.site.write_text(
        site.model_copy(update={"inventory": place}).model_dump_json(indent=1) + "\n"
    )
    files.facts_probe.write_text(inputs.probe)
    _keep_topologies(files.inventory, site)
    write_atomic(files.plan, inputs.plan.model_dump_json(indent=1) + "\n")


def _keep_topologies(folder: Path, site: Site) -> None:
    partition = site.partition
    topologies = [mode.topology for mode in partition.modes.values()]
    topologies.append(partition.node.topology)
    for name in dict.fromkeys(filter(None, topologies)):
        if name.endswith(".xml") and (site.facts / name).is_file():
            target = folder / "group_vars" / site.partition_name / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(site.facts / name, target)


def _unfinished(root: Path, digest: str) -> Path | None:
    """Return the newest run with this digest that lacks a verdict or the result of a step."""
    for folder in sorted(root.glob("*Z-*"), reverse=True):
        try:
            run = open_run(folder)
        except BadInput:
            continue  # a damaged run, or one of a later version
        if run.plan.digest == digest and not _finished(run):
            return folder
    return None


def _finished(run: Run) -> bool:
    """Return whether `run` has all results and a verdict, and no disturbed step waits.

    A partial run may have a verdict. A run that grows is continued until it is signed.
    """
    if kind_of(run.plan).grows:
        return bool(signed_folders(run.folder))
    have = all(has_result(run.files.step(each.id)) for each in run.plan.steps_to_run())
    if not have or not run.files.verdict.exists():
        return False
    jobs = run.plan.jobs_to_run()
    return not any(pending(repeats_of_job(run.files, job.id).values()) for job in jobs)

"""``status``: the progress of a run and of its steps, and its end."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from proofmark.cli.command import with_link
from proofmark.cli.output import print_json, print_line, print_table
from proofmark.cli.plan import plan_summary
from proofmark.common.kit import kit_folder
from proofmark.common.text import duration
from proofmark.runs.progress import (
    Progress,
    case_progress,
    other_modes,
    progress,
    span,
    unfinished_jobs,
)
from proofmark.runs.run import Run, newest_run, open_run, with_decisions
from proofmark.runs.state import is_locked
from proofmark.runs.step_state import EXECUTIONS, GAVE_UP, RUNNING, Repeat, StepState
from proofmark.site.inventory import choose_inventory

MOST_LINES = 5
"""The largest number of running steps, jobs or damaged steps that are listed."""


def status(options: Namespace) -> int:
    """Print the progress of a run; with ``--watch``, each change until the run ends.

    Raises:
        BadInput: the site of ``--newest-of`` has no run, or as `open_run`.
    """
    folder = options.folder
    if options.newest_of:
        site = choose_inventory(options.newest_of, kit_folder).folder.name
        folder = with_link(newest_run(folder, site))
    run = open_run(folder)
    if options.plan:
        print_json({**plan_summary(run.plan), "folder": f"{run.folder}"})
        return 0
    if options.watch and not options.json:
        return _watch(run)
    active = is_locked(run.folder)
    current = progress(run, active=active)
    if options.json:
        print_json(_as_json(run, current))
        return 0
    print_line(f"{run.id}: {current.line()}")
    print_line("")
    _print_steps(run, current.steps) if options.steps else _print_cases(run, current)
    print_line("")
    for line in _lines(run, current, time.time()):
        print_line(line)
    return 0


def _watch(run: Run) -> int:
    """Print the line of the progress at each change until the run ends."""
    current = said = None
    while True:
        active = is_locked(run.folder)
        current = progress(run, active=active, before=current)
        if said is None or current.line(current) != said.line(said):
            print_line(f"{run.id}: {current.line(said)}")
            said = current
        if not active:
            return 0
        time.sleep(1)
        run = with_decisions(run)


def _print_cases(run: Run, current: Progress) -> None:
    headers = ("mode", "case", "steps", "done", "failed", "running", "waiting", "measured", "left")
    rows = []
    for each in case_progress(run, current):
        counts = (each.steps, each.done, each.failed, each.running, each.waiting)
        times = (duration(each.measured_s), duration(each.left_s))
        rows.append((each.mode, each.case, *map(str, counts), *times))
    print_table(headers, rows)
    for mode, steps in other_modes(run).items():
        print_line(f"{steps} steps need mode {mode}: a confirmed reboot, or NOT RUN")
    if left_out := len(run.plan.not_needed):
        print_line(f"{left_out} steps are not needed: the plan has the reasons")


def _print_steps(run: Run, states: Iterable[StepState]) -> None:
    modes: dict[str, str] = {}
    for group in run.plan.groups:
        modes |= {step.id: group.mode for step in group.steps()}
    headers = ("step", "mode", "nodes", "state", "exit code", "started", "time", "expected")
    rows = [
        (
            *(each.step.id, modes[each.step.id], str(len(each.step.nodes)), each.state),
            "–" if each.rc is None else str(each.rc),
            "–" if each.started is None else _utc(each.started),
            "–" if each.seconds is None else duration(each.seconds),
            duration(each.step.wall_s),
        )
        for each in states
    ]
    print_table(headers, rows)


def _lines(run: Run, current: Progress, now: float) -> Iterator[str]:
    """Yield the lines below the tables: what runs, what is damaged, and the end."""
    yield from _some(_running(each, now) for each in current.running)
    yield from _some(_repeat(each, current) for each in current.pending_repeats)
    if left := [each.step for each in current.repeats if each.state == GAVE_UP]:
        yield f"disturbed in all executions: {_names(left)}"
    if current.disturbed_by:
        yield f"disturbed by: {current.disturbed_by}"
    if stopped := [each.step.id for each in current.steps if each.state == "interrupted"]:
        yield f"interrupted: {_names(stopped)}; the same command runs them again"
    yield from _some(f"job {job}: {state}" for job, state in unfinished_jobs(run, current).items())
    yield from _some(
        f"damaged: {each.step.id}: {each.problem}" for each in current.steps if each.problem
    )
    yield _end(current, now)


def _some(lines: Iterable[str]) -> Iterator[str]:
    """Yield the first `MOST_LINES` lines, and the number of the others."""
    rest = iter(lines)
    yield from islice(rest, MOST_LINES)
    if more := sum(1 for _ in rest):
        yield f"and {more} more"


def _names(steps: Sequence[str]) -> str:
    more = f" and {len(steps) - MOST_LINES} more" if len(steps) > MOST_LINES else ""
    return ", ".join(steps[:MOST_LINES]) + more


def _running(state: StepState, now: float) -> str:
    expected = f"expected {duration(state.step.wall_s)}"
    if state.started is None:
        return f"running: {state.step.id}, {expected}"
    since = f"since {_utc(state.started)} ({duration(max(0.0, now - state.started))})"
    return f"running: {state.step.id} {since}, {expected}"


def _repeat(each: Repeat, current: Progress) -> str:
    """Return that a disturbed step is repeated, or will be."""
    seconds = {state.step.id: state.seconds or state.step.wall_s for state in current.steps}
    what = f"{each.step}: execution {each.execution} of at most {EXECUTIONS}"
    runs = each.state == RUNNING and current.active
    took = duration(seconds.get(each.step, 0.0))
    return f"repeated because of a disturbance: {what} {'runs' if runs else 'waits'}, about {took}"


def _end(current: Progress, now: float) -> str:
    """Return when the run ended, or when it will end."""
    if current.complete and not current.active:
        known = span(current)
        if known is None:
            return "ended: no result has its time"
        return f"ended: {_utc(known[1])}, {duration(known[1] - known[0])} after the first start"
    about = f"{_utc(now + current.left_s)}, in {duration(current.left_s)}"
    start = "end" if current.active else "end, if the run continues now"
    return f"{start}: about {about}, without the time in a queue"


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _as_json(run: Run, current: Progress) -> dict[str, Any]:
    known = span(current)
    finished = current.complete and not current.active
    return {
        "run": run.id,
        "active": current.active,
        "done": current.done,
        "failed": current.failed,
        "steps": len(current.steps),
        "left_s": current.left_s,
        "end": None if finished else _utc(time.time() + current.left_s),
        "ended": _utc(known[1]) if finished and known else None,
        "cases": [asdict(each) for each in case_progress(run, current)],
        "other_modes": other_modes(run),
        "jobs": unfinished_jobs(run, current),
        "running": [
            {"step": each.step.id, "since": each.started and _utc(each.started)}
            for each in current.running
        ],
        "repeats": [asdict(each) for each in current.repeats],
        "disturbed_by": current.disturbed_by,
        "damaged": {each.step.id: each.problem for each in current.steps if each.problem},
        "states": {each.step.id: each.state for each in current.steps},
    }

"""The cost of a plan from the measured durations of its steps in earlier runs.

The measured cost is printed with the plan and is not part of it. The digest of a plan must not
change with earlier runs.
"""

from __future__ import annotations

import filecmp
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from proofmark.common.errors import BadInput
from proofmark.plan.plan import Plan, Step
from proofmark.plan.totals import expected_s
from proofmark.runs.attempts import attempts
from proofmark.runs.run import Run, open_run, site_of
from proofmark.runs.run_files import RunFiles
from proofmark.runs.step_state import state_of
from proofmark.site.partition import PREDICTED

MOST_EARLIER = 3
"""The number of earlier runs of a plan whose durations are read: the newest ones."""


@dataclass(frozen=True)
class MeasuredCost:
    """The cost of a plan. `steps` of its steps have a median duration from `runs` earlier runs.

    Attributes:
        seconds: the median duration of these steps in seconds, by id.
    """

    steps: int
    runs: int
    wall_s: float
    node_hours: float
    seconds: Mapping[str, float] = field(default_factory=dict)


def measured_cost(plan: Plan, runs: Path) -> MeasuredCost:
    """Return the cost of `plan` from the runs in `runs` on the same site and partition.

    Two steps are the same if they differ only in number, repeat, names of nodes, CPUs and expected
    cost. Failed executions do not count. Predicted runs do not count either: their steps
    took the time of a computation.
    """
    took: dict[str, list[float]] = {}
    used: set[str] = set()
    steps, identities = list(_steps(plan)), list[str]()
    for run in _earlier_runs(plan, runs):
        # A plan without earlier runs needs none: those of a large plan take a second.
        identities = identities or [_identity(mode, step) for mode, step, _ in steps]
        wanted = {*identities}
        for mode, step, _ in _steps(run.plan):
            if (identity := _identity(mode, step)) not in wanted:
                continue
            for name in step.folders():
                for attempt in attempts(run.files.step(name).folder):
                    if attempt.rc == 0:
                        took.setdefault(identity, []).append(attempt.seconds)
                        used.add(run.folder.name)
    known = {
        step.id: median(took[identity])
        for identity, (_, step, _) in zip(identities, steps, strict=False)
        if identity in took
    }
    wall = node_seconds = 0.0
    for _, step, nodes in steps:
        took_s = expected_s(step, known)
        wall += took_s
        node_seconds += took_s * nodes
    hours = round(node_seconds / 3600, 4)
    return MeasuredCost(len(known), len(used), round(wall, 1), hours, known)


def _earlier_runs(plan: Plan, runs: Path) -> Iterator[Run]:
    """Yield the runs in `runs` on the site and the partition of `plan`, without predicted ones."""
    for folder in sorted(path.parent for path in runs.glob("*/plan.json")):
        if folder.is_symlink():
            continue
        try:
            run = open_run(folder)
            same = (run.plan.site, run.plan.partition) == (plan.site, plan.partition)
            if same and site_of(run).partition.origin != PREDICTED:
                yield run
        except (BadInput, OSError, ValueError):
            continue  # a damaged run, or one of a later version


def earlier_seconds(run: Run) -> dict[str, float]:
    """Return the median seconds of steps in the newest earlier runs of the same plan, by id.

    The runs are beside `run`, and their ``plan.json`` is the same, byte for byte. Failed results do
    not count.
    """
    took: dict[str, list[float]] = {}
    for folder in _same_plan(run)[:MOST_EARLIER]:
        for step in run.plan.steps_to_run():
            state = state_of(RunFiles(folder).step(step.id), step, active=False)
            if state.rc == 0 and state.seconds is not None:
                took.setdefault(step.id, []).append(state.seconds)
    return {step: median(seconds) for step, seconds in took.items()}


def _same_plan(run: Run) -> list[Path]:
    """Return the folders of the earlier runs of the plan of `run`, the newest first."""
    found = []
    for path in run.folder.parent.glob("*/plan.json"):
        folder = path.parent
        try:
            if folder.name < run.id and not folder.is_symlink():
                same = path.is_file() and filecmp.cmp(path, run.files.plan, shallow=False)
                found += [folder] if same else []
        except OSError:
            continue  # a folder of another user
    return sorted(found, reverse=True)


def _steps(plan: Plan) -> Iterator[tuple[str, Step, int]]:
    for group in plan.groups:
        for job in group.jobs:
            for step in job.steps:
                yield group.mode, step, len(job.nodes)


def _identity(mode: str, step: Step) -> str:
    excluded = {"id", "repeat", "nodes", "seconds", "timeout", "cpus", "pairing", "round"}
    facts = step.model_dump(mode="json", exclude=excluded)
    measured = step.round.measured if step.round else ""
    return json.dumps([mode, len(step.nodes), facts, measured], sort_keys=True)

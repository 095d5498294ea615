"""What the plan wants measured and what was: holes, doubles, and what waits for another mode."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from proofmark.common.nodesets import folded
from proofmark.plan.plan import Plan


@dataclass(frozen=True)
class Coverage:
    """What the plan wants measured and what was, and figures that came twice.

    Counted are steps; a step that each node measures by itself counts once a node. `missing` names
    the steps, and of such a step the nodes. `not_run` are steps that the plan holds for another
    mode of the machine: nobody expects them of this run, and they are listed. `stopped` are jobs
    that ended before their steps had, each with the reason. `not_needed` are steps whose command
    another step of the run has, each with the reason.
    """

    expected: int
    measured: int
    duplicate: int
    missing: tuple[str, ...]
    not_run: tuple[str, ...] = ()
    stopped: tuple[str, ...] = ()
    not_needed: tuple[str, ...] = ()


def coverage(
    plan: Plan, seen: Collection[str], duplicate: int, stopped: Sequence[str] = ()
) -> Coverage:
    """Hold what was read against what was planned.

    Args:
        plan: of the run.
        seen: the steps that gave anything, as records name them.
        duplicate: figures that one execution gave twice.
        stopped: jobs that ended early; passed on.
    """
    expected = measured = 0
    missing: list[str] = []
    for step in plan.steps_to_run():
        folders = step.folders()
        lacking = [folder for folder in folders if folder not in seen]
        expected += len(folders)
        measured += len(folders) - len(lacking)
        if lacking and step.scope == "job":
            missing.append(f"{step.id}: {folded(step.nodes)}" if len(step.nodes) > 1 else step.id)
        elif lacking:
            instances = step.instances()
            hosts = {host for folder in lacking for host in instances[folder.partition("/")[2]]}
            missing.append(f"{step.id}: {folded(hosts)}")
    there = {group.mode for group in plan.to_run()}
    not_run = tuple(
        f"{step.id}: NOT RUN: needs mode {group.mode}"
        for group in plan.needed()
        if group.mode not in there
        for job in group.jobs
        for step in job.steps
    )
    not_needed = tuple(f"{step}: NOT NEEDED: {why}" for step, why in plan.not_needed.items())
    found = (expected, measured, duplicate, tuple(missing), not_run, tuple(stopped), not_needed)
    return Coverage(*found)

"""Which planned steps were measured, missing, measured twice, or not run."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from proofmark.common.nodesets import folded
from proofmark.plan.plan import Plan

_LISTED = 20
"""The largest number of pairs of a round that are named."""


@dataclass(frozen=True)
class Coverage:
    """The planned steps of a run, and which of them were measured.

    A step that each node measures by itself counts once for each node.

    Attributes:
        expected: the number of planned steps.
        measured: the number of steps with a record.
        duplicate: the number of figures that one execution gave twice.
        missing: the steps without a record, with their nodes.
        not_run: the steps that need another mode of the machine. They are not expected.
        stopped: the jobs that ended before their last step, each with the reason.
        not_needed: the steps whose command another step of the run has, each with the reason.
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
    """Return the coverage of a plan.

    Args:
        plan: the plan of the run.
        seen: the steps with a record, as records name them.
        duplicate: the number of figures that one execution gave twice.
        stopped: the jobs that ended early, each with the reason.
    """
    expected = measured = 0
    missing: list[str] = []
    for step in plan.steps_to_run():
        folders = step.folders()
        unseen = [folder for folder in folders if folder not in seen]
        expected += len(folders)
        measured += len(folders) - len(unseen)
        if unseen and step.scope == "job":
            missing.append(f"{step.id}: {folded(step.nodes)}" if len(step.nodes) > 1 else step.id)
        elif unseen and step.round:
            pairs = [folder.partition("/")[2] for folder in unseen]
            more = f" and {len(pairs) - _LISTED} more pairs" if len(pairs) > _LISTED else ""
            missing.append(f"{step.id}: {', '.join(pairs[:_LISTED])}{more}")
        elif unseen:
            instances = step.instances()
            hosts = {host for folder in unseen for host in instances[folder.partition("/")[2]]}
            missing.append(f"{step.id}: {folded(hosts)}")
    modes = {group.mode for group in plan.to_run()}
    not_run = tuple(
        f"{step.id}: NOT RUN: needs mode {group.mode}"
        for group in plan.needed()
        if group.mode not in modes
        for job in group.jobs
        for step in job.steps
    )
    not_needed = tuple(f"{step}: NOT NEEDED: {why}" for step, why in plan.not_needed.items())
    return Coverage(
        expected=expected,
        measured=measured,
        duplicate=duplicate,
        missing=tuple(missing),
        not_run=not_run,
        stopped=tuple(stopped),
        not_needed=not_needed,
    )

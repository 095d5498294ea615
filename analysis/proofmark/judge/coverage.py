"""Which planned steps were measured, missing, measured twice, or not run."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from proofmark.common.message import Message
from proofmark.common.nodesets import folded
from proofmark.plan.plan import Plan, Step
from proofmark.plan.step import StepInstance

_LISTED = 20
"""The largest number of pairs of a round that are named."""


@dataclass(frozen=True)
class Uncovered:
    """A planned step without a complete measurement.

    Attributes:
        step: the id of the step.
        message: the step, its nodes, and why it has no measurement.
        nodes: its nodes without a measurement; empty if that is not the reason.
        mode: the mode of the machine that it needs; empty if that is not the reason.
    """

    step: str
    message: Message
    nodes: tuple[str, ...] = ()
    mode: str = ""


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
    missing: tuple[Uncovered, ...]
    not_run: tuple[Uncovered, ...] = ()
    stopped: tuple[Message, ...] = ()
    not_needed: tuple[Uncovered, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
        lists = ("missing", "not_run", "not_needed")
        return {
            **vars(self),
            **{name: [each.message for each in getattr(self, name)] for name in lists},
        }


def _of_other_modes(plan: Plan) -> Iterator[Uncovered]:
    """Yield the steps of modes that the run may not enter."""
    modes = {group.mode for group in plan.to_run()}
    for group in plan.needed():
        if group.mode not in modes:
            for job in group.jobs:
                for step in job.steps:
                    reason = Message("mode-missing", step=step.id, mode=group.mode)
                    yield Uncovered(step.id, reason, mode=group.mode)


def coverage(
    plan: Plan, seen: Collection[str], duplicate: int, stopped: Sequence[Message] = ()
) -> Coverage:
    """Return the coverage of a plan.

    Args:
        plan: the plan of the run.
        seen: the steps with a record, as records name them.
        duplicate: the number of figures that one execution gave twice.
        stopped: the jobs that ended early, each with the reason.
    """
    expected = measured = 0
    missing: list[Uncovered] = []
    for step in plan.steps_to_run():
        instances = step.instances()
        unseen = {each: nodes for each, nodes in instances.items() if str(each) not in seen}
        expected += len(instances)
        measured += len(instances) - len(unseen)
        if unseen:
            missing.append(_missing(step, unseen))
    not_needed = tuple(
        Uncovered(step, Message("step-not-needed", step=step, reason=why))
        for step, why in plan.not_needed.items()
    )
    return Coverage(
        expected=expected,
        measured=measured,
        duplicate=duplicate,
        missing=tuple(missing),
        not_run=tuple(_of_other_modes(plan)),
        stopped=tuple(stopped),
        not_needed=not_needed,
    )


def _missing(step: Step, unseen: Mapping[StepInstance, Sequence[str]]) -> Uncovered:
    """Return a step without a record of the instances `unseen`, with their nodes."""
    nodes = dict.fromkeys(chain.from_iterable(unseen.values()))
    pairs = [each.name for each in unseen] if step.round else []
    shown = ", ".join(pairs[:_LISTED]) if pairs else folded(nodes)
    message = Message("not-measured-on", step=step.id, nodes=shown)
    if step.scope == "job" and len(step.nodes) < 2:
        message = Message("not-measured-step", step=step.id)
    elif (more := len(pairs) - _LISTED) > 0:
        message = Message("not-measured-pairs", step=step.id, nodes=shown, count=more)
    return Uncovered(step.id, message, tuple(nodes))

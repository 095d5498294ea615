"""Which planned steps were measured, and whether a run lacks nodes.

Figures at full scale of a run that lacks nodes have a label (docs/design/cases.md).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from proofmark.common.host_names import HostTable
from proofmark.common.message import Message
from proofmark.common.nodesets import folded, hosts_of_nodes
from proofmark.plan.plan import Plan, Step
from proofmark.plan.step import StepInstance
from proofmark.runs.job_folder import StoppedJob

MAX_PAIRS_NAMED = 20
"""The largest number of pairs of a round that are named."""


@dataclass(frozen=True)
class Uncovered:
    """A planned step without a complete measurement.

    Attributes:
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
        duplicate: the number of figures that one execution gave twice.
        missing: the steps without a record, with their nodes.
        not_run: the steps that need another mode of the machine. They are not expected.
        stopped_jobs: the jobs that ended before their last step.
        not_needed: the steps whose command another step of the run has, each with the reason.
    """

    expected: int
    measured: int
    duplicate: int
    missing: tuple[Uncovered, ...]
    not_run: tuple[Uncovered, ...] = ()
    stopped_jobs: tuple[StoppedJob, ...] = ()
    not_needed: tuple[Uncovered, ...] = ()

    @property
    def stopped(self) -> tuple[Message, ...]:
        """What is wrong with each of these jobs."""
        return tuple(each.message for each in self.stopped_jobs)

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
        return {
            "expected": self.expected,
            "measured": self.measured,
            "duplicate": self.duplicate,
            "missing": [each.message for each in self.missing],
            "not_run": [each.message for each in self.not_run],
            "stopped": list(self.stopped),
            "not_needed": [each.message for each in self.not_needed],
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
    plan: Plan, seen: Collection[str], duplicate: int, stopped: Sequence[StoppedJob] = ()
) -> Coverage:
    """Return which planned steps have a measurement.

    Args:
        seen: the steps with a record, as records name them.
        duplicate: the number of figures that one execution gave twice.
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
        stopped_jobs=tuple(stopped),
        not_needed=not_needed,
    )


def _missing(step: Step, unseen: Mapping[StepInstance, Sequence[str]]) -> Uncovered:
    """Return a step without a record of the instances `unseen`, with their nodes."""
    nodes = dict.fromkeys(chain.from_iterable(unseen.values()))
    pairs = [each.name for each in unseen] if step.round else []
    shown = ", ".join(pairs[:MAX_PAIRS_NAMED]) if pairs else folded(nodes)
    message = Message("not-measured-on", step=step.id, nodes=shown)
    if step.scope == "job" and len(step.nodes) < 2:
        message = Message("not-measured-step", step=step.id)
    elif (more := len(pairs) - MAX_PAIRS_NAMED) > 0:
        message = Message("not-measured-pairs", step=step.id, nodes=shown, count=more)
    return Uncovered(step.id, message, tuple(nodes))


MOST_NAMED = 10
"""The largest number of nodes that a limit of Ansible excludes by name."""


@dataclass(frozen=True)
class Degraded:
    """A run with figures of fewer nodes than intended.

    Attributes:
        steps: the label of each step that was to measure all nodes of the partition together.
        limit: the value of ``-l`` for a run without the missing nodes, which a planned step needs;
            empty if no step needs them.
    """

    nodes: int
    of: int
    missing: tuple[str, ...] = ()
    steps: Mapping[str, Message] = field(default_factory=dict)
    limit: str = ""

    @property
    def label(self) -> Message:
        """The label of the run: ``degraded: 8,301 of 8,305 nodes``."""
        return label(self.nodes, self.of)

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
        return {
            "label": self.label,
            "nodes": self.nodes,
            "of": self.of,
            "missing": folded(self.missing),
            "limit": self.limit,
        }


def label(nodes: int, of: int) -> Message:
    """Return the label of a figure or a run of `nodes` nodes."""
    return Message("degraded", nodes=f"{nodes:,}", all=f"{of:,}")


def degraded(
    plan: Plan, partition: Collection[str], measured: Iterable[str], missing_steps: Collection[str]
) -> Degraded | None:
    """Return what a run lacks; None if it lacks nothing, or if nothing was measured.

    All nodes of the partition are intended if the suite uses them on a run without a limit. Else
    the planned nodes are.

    Args:
        measured: the nodes with a result, as records name them.
    """
    planned = plan.nodes_to_run()
    intended = list(partition) if plan.fewer_nodes else planned
    table = HostTable.of(intended)
    seen = table.found(hosts_of_nodes(measured))
    missing = tuple(node for node in intended if node not in seen)
    if len(missing) == len(intended):
        return None
    largest = _largest_steps(plan)
    sizes = [len(intended) - len(missing), *(size for size, _ in largest.values())]
    if min(sizes) == len(intended):
        return None
    lost = set(missing) & set(planned)
    blocked = any(
        step.id in missing_steps and step.scope == "job" and len(step.nodes) > 1
        for step in plan.steps_to_run()
        if lost.intersection(step.nodes)
    )
    labels: dict[str, Message] = {}
    for case, (size, steps) in largest.items():
        labels |= dict.fromkeys(steps, label(size, plan.fewer_nodes[case]))
    without = ":".join([plan.partition, *(f"!{node}" for node in missing)])
    return Degraded(
        nodes=min(sizes),
        of=len(intended),
        missing=missing,
        steps=labels,
        limit=without if blocked and len(missing) <= MOST_NAMED else "",
    )


def _largest_steps(plan: Plan) -> dict[str, tuple[int, list[str]]]:
    """Return the largest steps of each case that lost nodes, with their number of nodes.

    Only steps whose nodes measure together count, on more than one node.
    """
    largest: dict[str, tuple[int, list[str]]] = {}
    for step in plan.steps():
        if step.case not in plan.fewer_nodes or step.scope != "job" or len(step.nodes) < 2:
            continue
        size, steps = largest.get(step.case, (0, []))
        if len(step.nodes) > size:
            largest[step.case] = (len(step.nodes), [step.id])
        elif len(step.nodes) == size:
            steps.append(step.id)
    return largest

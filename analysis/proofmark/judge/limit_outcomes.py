"""Which planned steps were measured, and what each limit and reference of a run judged.

A run can lack nodes of the partition. Its figures at full scale then have a label
(docs/design/cases.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from proofmark.cases.reference import Reference
from proofmark.common.grouping import gathered
from proofmark.common.host_names import HostTable
from proofmark.common.message import Message, joined
from proofmark.common.nodesets import folded, hosts_of, hosts_of_nodes
from proofmark.judge.aggregate import Aggregates
from proofmark.judge.contract_items import (
    NO_EVIDENCE,
    ItemEvidence,
    ItemOutcome,
    enough_nodes,
    excused,
    judged_figure,
    measured_together,
    nodes_met,
    worst_figure,
)
from proofmark.judge.evidence import Evidence
from proofmark.judge.references.judgement import (
    Bounds,
    ByReference,
    CaseReference,
    JudgedFigure,
    Judgement,
    applies,
    applying_references,
    judging_bounds,
)
from proofmark.plan.kinds import kind_of
from proofmark.plan.plan import Plan, Step
from proofmark.plan.selection import possible_steps
from proofmark.plan.step import StepInstance
from proofmark.records.columns import VIRTUAL
from proofmark.runs.job_folder import StoppedJob
from proofmark.site.contract_document import ContractItem

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
    """Return the coverage of a plan.

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
    planned = dict.fromkeys(chain.from_iterable(step.nodes for step in plan.steps_to_run()))
    intended = list(partition) if plan.fewer_nodes else list(planned)
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
    """Return the largest steps of each case with fewer nodes, and their number of nodes.

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


@dataclass(frozen=True)
class LimitOutcome(ItemOutcome):
    """What a limit of the contract, or a reference of a case, judged.

    Attributes:
        steps: the number of planned steps whose figures it can select; 0 if it is not for the
            suite.
        checked: the number of them that are not virtual: the speed of virtual nodes fails no floor.
        accepted: the bounds that judged its figures, or that would judge them, without repetition;
            empty for a typical value that no figure was compared with.
        not_evaluated: why it did not judge other planned figures, with their nodes; empty for a
            reference that is no limit of the contract.
        nodes: the number of nodes, or pairs, that meet an item of the contract, and of all nodes.
        excused: the figures that miss the item and fail no acceptance.
    """

    item: ContractItem | None
    of: CaseReference
    steps: int
    outcomes: Mapping[str, int]
    compared: int
    checked: int
    invalid: int
    accepted: tuple[Bounds, ...]
    worst: JudgedFigure | None
    not_evaluated: tuple[Message, ...] = ()
    nodes: tuple[int, int] = (0, 0)
    excused: tuple[JudgedFigure, ...] = ()
    evidence: ItemEvidence = NO_EVIDENCE

    @property
    def missing_keys(self) -> Iterator[str]:
        """The keys of the inventory that would enable a judgement of each figure without one."""
        return (each.missing_key for _, each in self.evidence.judgements)

    @property
    def case(self) -> str:
        """The case of the figures."""
        return self.of.case

    @property
    def reference(self) -> Reference:
        """The limit or reference."""
        return self.of.reference

    @property
    def of_contract(self) -> bool:
        """Whether it is a limit of the contract."""
        return self.kind == "contract"

    @property
    def kind(self) -> str:
        """The kind of the limit or reference."""
        return self.reference.kind

    @property
    def judged(self) -> int:
        """The number of figures that are PASS or FAIL by it, or that a floor could have failed."""
        if self.kind == "floor":
            return self.checked
        return self.outcomes.get("PASS", 0) + self.outcomes.get("FAIL", 0)

    @property
    def outcome(self) -> str:
        """The worst of the outcomes of its figures, one of the four words."""
        if self.outcomes.get("FAIL") and not (self.item and enough_nodes(self.item, *self.nodes)):
            return "FAIL"
        if self.invalid:
            return "INVALID"
        open_ = self.outcomes.get("UNJUDGED") or self.not_evaluated
        return "UNJUDGED" if open_ or not self.judged else "PASS"

    @property
    def name(self) -> str:
        """The item, or case, metric, the other conditions, and the source."""
        if self.item:
            return super().name
        reference = self.reference
        where = [f"{key}={value}" for key, value in reference.where.items()]
        where += [f"mode={reference.mode}"] if reference.mode else []
        return " ".join([self.case, reference.metric, *where, f"({reference.source})"])

    @property
    def excuses(self) -> tuple[Message, ...]:
        """The figures that miss it and fail no acceptance, each with its node."""
        return tuple(each.excused(self.item.number) for each in self.excused if self.item)

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
        stored: dict[str, Any] = {"limit": self.name}
        if self.item:
            stored |= self.item.model_dump(include={"number", "text", "phase", "severity"})
            stored["nodes_met"], stored["nodes"] = self.nodes
        if self.excused and self.item:
            stored["excused"] = [
                {
                    **{"node": each.node, "step": each.steps[0], "figure": each.name},
                    **{"value": each.value, "unit": each.unit, "item": self.item.number},
                    **each.reason.as_json("reason"),
                }
                for each in self.excused
            ]
        stored["outcome"] = self.outcome
        stored["compared"] = self.compared
        stored["not_evaluated"] = list(self.not_evaluated)
        return stored


def limit_outcomes(
    evidence: Evidence, covered: Coverage, judged: ByReference
) -> tuple[LimitOutcome, ...]:
    """Return the outcomes of all limits of the contract, then of the references for the plan."""
    references = evidence.references
    invalid = _invalid(evidence.figures, references)
    found = []

    figures = evidence.figures
    virtual = [each.origin in VIRTUAL for each in figures.records.measurands]

    for each in references:
        steps = possible_steps(each.reference, each.case, evidence.plan, evidence.benchmarks)
        contract = each.reference.kind == "contract"
        if not steps and not contract:
            continue
        judgements = judged.get(each, ())
        of_planned = contract and bool(steps)
        item = each.reference if isinstance(each.reference, ContractItem) else None
        about = NO_EVIDENCE
        if of_planned:
            running = [step for step in evidence.plan.steps_to_run() if step.id in steps]
            together = frozenset(
                step.id
                for step in running
                if measured_together(step, evidence.plan, evidence.benchmarks)
            )
            rows = _rows(each, figures)
            about = ItemEvidence(
                judgements=judgements,
                invalid=invalid[each],
                rows=rows,
                steps=running,
                together=together,
            )
        worst = worst_figure(item, about, figures) if item else None
        excuses = excused({each: judgements}, figures) if item else ()
        found.append(
            LimitOutcome(
                item=item,
                of=each,
                steps=len(steps),
                outcomes=Counter(judgement.outcome for _, judgement in judgements),
                compared=sum(judgement.evaluated for _, judgement in judgements),
                checked=sum(
                    each.evaluated and not virtual[figures.measurand[figure]]
                    for figure, each in judgements
                ),
                invalid=len(invalid[each]),
                accepted=_accepted(each.reference, evidence, judgements),
                worst=worst,
                not_evaluated=tuple(_open(about, set(steps), evidence, covered))
                if of_planned
                else (),
                nodes=nodes_met((int(figures.node[at]), one.outcome) for at, one in judgements)
                if item
                else (0, 0),
                excused=tuple(
                    judged_figure(item, figures, at, stated, about)
                    for at, _, stated in excuses
                    if item
                ),
                evidence=about,
            )
        )
    return tuple(sorted(found, key=lambda each: not each.of_contract))


def _accepted(
    reference: Reference, evidence: Evidence, judgements: Sequence[tuple[int, Judgement]]
) -> tuple[Bounds, ...]:
    """Return the bounds that judged figures; without figures those that would judge them."""
    found = dict.fromkeys(judgement.bounds for _, judgement in judgements if judgement.evaluated)
    if not found:
        found = {judging_bounds(reference, evidence.judge_expected.tolerance): None}
    return tuple(bounds for bounds in found if bounds.known)


def _invalid(
    figures: Aggregates, references: Sequence[CaseReference]
) -> dict[CaseReference, list[int]]:
    invalid: dict[CaseReference, list[int]] = {each: [] for each in references}
    of_measurand = gathered(
        (int(figures.measurand[figure]), figure)
        for figure in np.flatnonzero(~figures.valid).tolist()
    )
    for measurand, applying in applying_references(figures.records, references):
        for each in applying:
            invalid[each] += of_measurand.get(measurand, [])
    return invalid


def _open(
    of_item: ItemEvidence, ids: Collection[str], evidence: Evidence, covered: Coverage
) -> Iterator[Message]:
    """Yield why a limit did not judge planned figures, each reason with its nodes."""
    figures, running, rows = evidence.figures, of_item.steps, of_item.rows
    hosts: dict[Message, set[str]] = {}
    for figure, answer in of_item.judgements:
        if answer.outcome == "UNJUDGED":
            node = figures.node_of(figure)
            reason = answer.reason.without_nodes([node])
            hosts.setdefault(reason, set()).update(hosts_of(node))
    if not kind_of(evidence.plan).executed:
        if without := _nodes_without_row(rows, running):
            hosts.setdefault(Message("rows-missing"), set()).update(without)
    else:
        seen = {execution.step for execution in figures.records.executions}
        for folder, nodes in _without_row(rows, running, seen):
            hosts.setdefault(Message("row-missing", step=folder), set()).update(nodes)
    for reason, lacking in hosts.items():
        yield Message("limit-open-on", text=reason, nodes=folded(lacking))
    if not running and not any(answer.evaluated for _, answer in of_item.judgements):
        left_out = (*covered.not_run, *covered.not_needed)
        why = [each.message for each in left_out if each.step in ids]
        yield joined([Message("step-missing"), *why[:1]])


def _without_row(
    rows: Mapping[str, set[int]], steps: Sequence[Step], seen: Collection[str]
) -> Iterator[tuple[str, list[str]]]:
    """Yield the measured steps that lack a row, with their nodes.

    A row that one node printed is expected of all nodes of the step.
    """
    for step in steps:
        measured = {each: nodes for each, nodes in step.instances().items() if str(each) in seen}
        expected = set().union(*(rows.get(str(each), set()) for each in measured))
        lacking: list[str] = []
        for each, nodes in measured.items():
            found = rows.get(str(each))
            if not found or not expected <= found:
                lacking += nodes
        if lacking:
            yield step.id, lacking


def _nodes_without_row(rows: Mapping[str, set[int]], steps: Sequence[Step]) -> set[str]:
    """Return the nodes of outputs that nobody planned which have no row in any of `steps`.

    A folder of others has outputs with other parameters too. One row of a node is enough.
    """
    having: set[str] = set()
    every: set[str] = set()
    for step in steps:
        for instance, nodes in step.instances().items():
            every.update(nodes)
            if str(instance) in rows:
                having.update(nodes)
    return every - having


def _rows(of: CaseReference, figures: Aggregates) -> dict[str, set[int]]:
    """Return the numbers of the measurands that a reference is for, by the printing step."""
    records = figures.records
    chosen = [
        number
        for number in range(len(records.measurands))
        if applies(of.reference, records.of_measurand(number), of.judged_with)
    ]
    places = np.flatnonzero(np.isin(records.measurand, chosen))
    rows: dict[str, set[int]] = {}
    for execution, measurand in zip(
        records.execution[places].tolist(), records.measurand[places].tolist(), strict=True
    ):
        rows.setdefault(records.executions[execution].step, set()).add(measurand)
    return rows

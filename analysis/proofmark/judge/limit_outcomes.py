"""What each limit of the contract and each reference of a run judged, and what it did not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from proofmark.cases.reference import Reference
from proofmark.common.message import Message, joined
from proofmark.common.nodesets import folded, hosts_of
from proofmark.judge.aggregate import Aggregates
from proofmark.judge.contract_rules import Excused, enough_nodes, excused_figures, nodes_met
from proofmark.judge.coverage import Coverage
from proofmark.judge.evidence import Evidence
from proofmark.judge.item_figures import (
    NO_EVIDENCE,
    ItemEvidence,
    WorstFigure,
    measured_together,
    worst_figure,
)
from proofmark.judge.references.judgement import (
    Bounds,
    CaseReference,
    Judgement,
    applies,
    applying_references,
    judging_bounds,
)
from proofmark.plan.plan import Step
from proofmark.plan.selection import possible_steps
from proofmark.records.columns import VIRTUAL
from proofmark.runs.waivers import Waiver
from proofmark.site.contract_document import ContractItem

Judged = Mapping[CaseReference, Sequence[tuple[int, Judgement]]]
"""The figures to which a reference applies, each with its judgement."""


@dataclass(frozen=True)
class LimitOutcome:
    """What a limit of the contract, or a reference of a case, judged.

    Attributes:
        of: the limit or reference, with its case.
        steps: the number of planned steps whose figures it can select; 0 if it is not for the
            suite.
        outcomes: the number of valid figures by the outcome of their judgement.
        compared: the number of figures that were compared with it.
        checked: the number of them that are not virtual: the speed of virtual nodes fails no floor.
        invalid: the number of INVALID figures that it would judge.
        accepted: the bounds that judged its figures, or that would judge them, without repetition;
            empty for a typical value that no figure was compared with.
        worst: its worst figure; None if none was compared.
        not_evaluated: why it did not judge other planned figures, with their nodes; empty for a
            reference that is no limit of the contract.
        nodes: the number of nodes, or pairs, that meet an item of the contract, and of all nodes.
        waiver: of the item; None if no party waived it.
        excused: the figures that miss the item and fail no acceptance.
        evidence: what the run has for an item of the contract.
    """

    of: CaseReference
    steps: int
    outcomes: Mapping[str, int]
    compared: int
    checked: int
    invalid: int
    accepted: tuple[Bounds, ...]
    worst: WorstFigure | None
    not_evaluated: tuple[Message, ...] = ()
    nodes: tuple[int, int] = (0, 0)
    waiver: Waiver | None = None
    excused: tuple[Excused, ...] = ()
    evidence: ItemEvidence = NO_EVIDENCE

    @property
    def item(self) -> ContractItem | None:
        """The item of the contract; None for a reference of a case."""
        return self.reference if isinstance(self.reference, ContractItem) else None

    @property
    def missed(self) -> Mapping[str, Message]:
        """No further text: its figures have their own rows and reasons."""
        return {}

    @property
    def worst_value(self) -> float | None:
        """The value of its worst figure; None if none was compared."""
        return self.worst.value if self.worst else None

    @property
    def binding(self) -> bool:
        """Whether the acceptance needs it: an item that is minor or waived is only stated."""
        return not self.waiver and not (self.item and self.item.severity == "minor")

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
            return f"{self.item.number} {self.item.text}"
        reference = self.reference
        where = [f"{key}={value}" for key, value in reference.where.items()]
        where += [f"mode={reference.mode}"] if reference.mode else []
        return " ".join([self.case, reference.metric, *where, f"({reference.source})"])

    @property
    def messages(self) -> tuple[Message, ...]:
        """Each reason of `not_evaluated` with the name of the limit."""
        return tuple(Message("limit-open", limit=self.name, text=why) for why in self.not_evaluated)

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
        stored: dict[str, Any] = {"limit": self.name}
        if self.item:
            stored |= self.item.model_dump(include={"number", "text", "phase", "severity"})
            stored["nodes_met"], stored["nodes"] = self.nodes
        if self.waiver:
            stored["waiver"] = self.waiver.model_dump(mode="json")
        if self.excused:
            stored["excused"] = [each.as_json() for each in self.excused]
        stored["outcome"] = self.outcome
        stored["compared"] = self.compared
        stored["not_evaluated"] = list(self.not_evaluated)
        return stored


def limit_outcomes(
    evidence: Evidence, covered: Coverage, judged: Judged
) -> tuple[LimitOutcome, ...]:
    """Return the outcomes of all limits of the contract, then of the references for the plan.

    Args:
        judged: the figures that each limit applies to.
    """
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
            about = ItemEvidence(judgements, invalid[each], rows, running, together)
        found.append(
            LimitOutcome(
                each,
                len(steps),
                Counter(judgement.outcome for _, judgement in judgements),
                sum(judgement.evaluated for _, judgement in judgements),
                sum(
                    each.evaluated and not virtual[figures.measurand[figure]]
                    for figure, each in judgements
                ),
                len(invalid[each]),
                _accepted(each.reference, evidence, judgements),
                worst_figure(evidence.figures, judgements),
                tuple(_open(about, set(steps), evidence, covered)) if of_planned else (),
                nodes_met(judgements, evidence.figures) if item else (0, 0),
                evidence.waivers.get(item.number) if item else None,
                tuple(excused_figures(each, judgements, evidence.figures, evidence.waivers)),
                about,
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
    """Return the INVALID figures to which each reference applies."""
    invalid: dict[CaseReference, list[int]] = {each: [] for each in references}
    of_measurand: dict[int, list[int]] = {}
    for figure in np.flatnonzero(~figures.valid).tolist():
        of_measurand.setdefault(int(figures.measurand[figure]), []).append(figure)
    for measurand, applying in applying_references(figures.records, references):
        for each in applying:
            invalid[each] += of_measurand.get(measurand, [])
    return invalid


def _open(
    of_item: ItemEvidence, ids: Collection[str], evidence: Evidence, covered: Coverage
) -> Iterator[Message]:
    """Yield why a limit did not judge planned figures, each reason with its nodes.

    Args:
        of_item: what the run has for the limit.
        ids: the planned steps whose figures it can select.
    """
    figures, running, rows = evidence.figures, of_item.steps, of_item.rows
    hosts: dict[Message, set[str]] = {}
    for figure, answer in of_item.judgements:
        if answer.outcome == "UNJUDGED":
            node = figures.records.nodes[figures.node[figure]]
            reason = answer.reason.without_nodes([node])
            hosts.setdefault(reason, set()).update(hosts_of(node))
    if evidence.plan.imported:
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
    """Return the nodes of imported outputs that have no row in any of `steps`.

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

"""The limits of a run: the rules that apply them, and what each judged.

A limit is an item of the contract or a reference of a case. Its worst figure is nearest to it, or
misses it most.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import chain
from math import ceil, inf
from statistics import fmean, stdev
from typing import Any

import numpy as np

from proofmark.cases.case import NODES_EACH
from proofmark.cases.reference import Reference
from proofmark.cases.suite import Benchmarks
from proofmark.common.grouping import gathered
from proofmark.common.message import Message, joined
from proofmark.common.nodesets import folded, hosts_of
from proofmark.common.text import percent
from proofmark.judge.aggregate import Aggregates
from proofmark.judge.confidence import repeats_agree
from proofmark.judge.coverage import Coverage
from proofmark.judge.evidence import Evidence
from proofmark.judge.references.figure_comparison import Figure
from proofmark.judge.references.judgement import (
    Bounds,
    ByReference,
    CaseReference,
    FigureScope,
    JudgedFigure,
    Judgement,
    applies,
    applying_references,
    judging_bounds,
)
from proofmark.plan.kinds import kind_of
from proofmark.plan.plan import Plan, Step
from proofmark.plan.selection import figures_of_plan, possible_steps
from proofmark.plan.step import COUNTED, StepInstance
from proofmark.records.columns import VIRTUAL
from proofmark.site.contract_document import ContractItem, Item

WORST = ("FAIL", "INVALID", "UNJUDGED", "PASS")
"""The four words, the worst first."""


def compared_with(reference: Reference, figure: Figure) -> Figure:
    """Return `figure` with the repeat that the item compares.

    The best or the worst of the repeats is what the contract is about: its noise is no doubt.

    Args:
        reference: a limit or reference; all but the items of a contract compare the median.
    """
    if not isinstance(reference, ContractItem) or reference.of == "median":
        return figure
    value = compared_value(reference, figure.value, figure.values)
    return figure._replace(value=value, values=(value,), repeats={})


def compared_value(item: ContractItem, median: float, values: Sequence[float]) -> float:
    """Return the value of a figure that an item compares."""
    if item.of == "median":
        return median
    largest = (item.of == "best") == (item.at_least is not None)
    return (max if largest else min)(values)


def clear_miss(of: CaseReference, material: float) -> float:
    """Return the part of a limit by which a repeat misses it clearly.

    The best and the worst of the repeats are compared as the contract says, without the others.
    """
    item = of.reference
    return inf if isinstance(item, ContractItem) and item.of != "median" else material


def with_repeats(reference: Reference, values: Sequence[float], judged: Judgement) -> Judgement:
    """Return a judgement by what an item requires of the repeats: their number and scatter.

    The coefficient of variation is the standard deviation of the sample ÷ its mean.
    """
    if not isinstance(reference, ContractItem):
        return judged
    needed = reference.runs_needed
    if len(values) < needed and judged.outcome == "PASS":
        reason = Message("item-runs", text=judged.reason, runs=len(values), needed=needed)
        return replace(judged, outcome="UNJUDGED", reason=reason)
    scatter = reference.scatter
    if scatter is None or len(values) < scatter.runs:
        return judged
    found = 100 * stdev(values) / abs(fmean(values)) if any(values) else 0.0
    about: dict[str, str | int] = {
        "scatter": f"{found:.3g}",
        "most": f"{scatter.cov_percent:g}",
        "runs": len(values),
    }
    if found <= scatter.cov_percent:
        return replace(judged, reason=Message("item-scatter-met", text=judged.reason, **about))
    reason = Message("item-scatter", text=judged.reason, **about)
    return replace(judged, outcome="FAIL", reason=reason)


def nodes_met(figures: Iterable[tuple[str | int, str]]) -> tuple[int, int]:
    """Return the number of nodes, or pairs, whose figures all meet an item, and of all nodes."""
    by_node: dict[str | int, bool] = {}
    for node, outcome in figures:
        by_node[node] = by_node.get(node, True) and outcome == "PASS"
    return sum(by_node.values()), len(by_node)


def enough_nodes(item: Item, met: int, total: int) -> bool:
    """Return whether the share of nodes that an item requires meets it."""
    return item.nodes < 1 and met >= ceil(Fraction(str(item.nodes)) * total) > 0


def _excuse(
    of: CaseReference,
    judged: Sequence[tuple[int, Judgement]],
    figures: Aggregates,
) -> tuple[str, Mapping[str, str | int]] | None:
    """Return the message why missed figures of a limit fail no acceptance; None if they do."""
    item = of.reference
    if not isinstance(item, ContractItem):
        return None
    met, total = nodes_met((int(figures.node[figure]), one.outcome) for figure, one in judged)
    if enough_nodes(item, met, total):
        return "item-share", {"met": met, "total": total, "share": percent(item.nodes)}
    return ("item-minor", {"number": item.number}) if item.severity == "minor" else None


def with_misses(
    by_item: dict[CaseReference, list[tuple[int, Judgement]]],
    of_figure: dict[int, tuple[Judgement, ...]],
    figures: Aggregates,
) -> None:
    """Make open misses of a limit a FAIL, where no further repeat of one node decides.

    The nodes are repeats of the machine: they can agree that its level misses the limit. And a
    miss can fail no acceptance: a share of other nodes meets the item, or the item is minor.
    """
    for of, judged in by_item.items():
        misses = [place for place, (_, one) in enumerate(judged) if one.is_open]
        if not misses:
            continue
        excused = _excuse(of, judged, figures) is not None
        groups = gathered((int(figures.measurand[figure]), one) for figure, one in judged)
        agreed = {number for number, group in groups.items() if _agreed(group)}
        for place in misses:
            figure, one = judged[place]
            if excused or int(figures.measurand[figure]) in agreed:
                missed = replace(one, outcome="FAIL")
                judged[place] = figure, missed
                answers = of_figure[figure]
                of_figure[figure] = tuple(missed if each is one else each for each in answers)


def _agreed(judged: Sequence[Judgement]) -> bool:
    """Return whether several nodes show that the whole machine misses a limit."""
    ratios = [one.ratio for one in judged if one.ratio is not None]
    return len(ratios) > 1 and any(
        bound is not None and repeats_agree(ratios, bound, bound, below=below)
        for bound, below in zip(judged[0].bounds, (True, False), strict=True)
    )


def excused(
    by_item: ByReference, figures: Aggregates
) -> Iterator[tuple[int, Judgement, Judgement]]:
    """Yield each missed figure of an item that fails no acceptance: its judgements, old and new."""
    for of, judged in by_item.items():
        if (excuse := _excuse(of, judged, figures)) is not None:
            code, fields = excuse
            for figure, one in judged:
                if one.outcome == "FAIL":
                    reason = Message(code, text=one.reason, **fields)
                    yield figure, one, replace(one, outcome="UNJUDGED", reason=reason)


@dataclass(frozen=True)
class ItemOutcome(ABC):
    """The outcome of a contract item or of another limit, in one run or in all runs of a site."""

    item: Item | None

    @property
    @abstractmethod
    def words(self) -> Collection[str]:
        """The outcomes of its figures; UNJUDGED stands for what is missing too."""

    @property
    @abstractmethod
    def nodes(self) -> tuple[int, int]:
        """The number of nodes, or pairs, that meet it, and of all nodes."""

    @cached_property
    def outcome(self) -> str:
        """The worst of `words`; misses do not count if enough nodes meet the item."""
        enough = self.item is not None and enough_nodes(self.item, *self.nodes)
        words = {*self.words} - ({"FAIL"} if enough else set())
        return next((word for word in WORST if word in words), "UNJUDGED")

    @property
    def binding(self) -> bool:
        """Whether the acceptance needs it: an item that is minor is only stated."""
        return not (self.item and self.item.severity == "minor")

    @property
    def name(self) -> str:
        """The number and the text of the item."""
        return f"{self.item.number} {self.item.text}" if self.item else ""

    @property
    def not_evaluated(self) -> tuple[Message, ...]:
        """Why it did not judge planned figures, each reason with its nodes."""
        return ()

    @property
    def messages(self) -> tuple[Message, ...]:
        """Each reason of `not_evaluated` with the name of the limit."""
        return tuple(Message("limit-open", limit=self.name, text=why) for why in self.not_evaluated)

    @property
    def missed(self) -> Mapping[str, Message]:
        """The reason of each node that misses it, if no figure has its own row and reason."""
        return {}

    @property
    def excuses(self) -> tuple[Message, ...]:
        """The figures that miss it and fail no acceptance, each with its node."""
        return ()


def on_nodes(reasons: Iterable[tuple[Message, str]]) -> tuple[Message, ...]:
    """Return each of `reasons` once, with its nodes; each comes with its node or set of nodes."""
    hosts: dict[Message, set[str]] = {}
    for reason, node in reasons:
        hosts.setdefault(reason.without_nodes([node]), set()).update(hosts_of(node))
    return tuple(
        Message("limit-open-on", text=reason, nodes=folded(of)) for reason, of in hosts.items()
    )


@dataclass(frozen=True)
class LimitOutcome(ItemOutcome):
    """What a limit of the contract, or a reference of a case, judged.

    Attributes:
        steps: the number of planned steps whose figures it can select; 0 if it is not for the
            suite.
        figures_of_run: all figures of the run.
        judgements: of the figures that it is for, by number.
        invalid: the INVALID figures that it would judge.
        accepted: the bounds that judged its figures, or that would judge them, without repetition;
            empty for a typical value that no figure was compared with.
        running: the planned steps of a limit of the contract, of the modes that the run entered.
        rows: the numbers of the measurands that such a limit is for, by the step that printed them.
        together: the running steps whose nodes measure one figure.
        not_evaluated: why it did not judge other planned figures, with their nodes; empty for a
            reference that is no limit of the contract.
    """

    item: ContractItem | None
    of: CaseReference
    steps: int
    figures_of_run: Aggregates
    judgements: Sequence[tuple[int, Judgement]]
    invalid: Sequence[int]
    accepted: tuple[Bounds, ...]
    running: Sequence[Step] = ()
    rows: Mapping[str, set[int]] = field(default_factory=dict)
    together: frozenset[str] = frozenset()
    not_evaluated: tuple[Message, ...] = ()

    @cached_property
    def outcomes(self) -> Mapping[str, int]:
        """The number of figures with each outcome."""
        return Counter(judgement.outcome for _, judgement in self.judgements)

    @property
    def compared(self) -> int:
        """The number of figures that were compared with a value."""
        return sum(judgement.evaluated for _, judgement in self.judgements)

    @property
    def words(self) -> Collection[str]:
        """The outcomes of its figures; UNJUDGED stands for what is missing too."""
        invalid = ["INVALID"] if self.invalid else []
        missing = ["UNJUDGED"] if self.not_evaluated or not self.judged else []
        return {*self.outcomes, *invalid, *missing}

    @cached_property
    def nodes(self) -> tuple[int, int]:
        """The number of nodes, or pairs, that meet an item of the contract, and of all nodes."""
        node = self.figures_of_run.node
        return nodes_met((int(node[at]), one.outcome) for at, one in self.judgements)

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
            figures = self.figures_of_run
            virtual = [each.origin in VIRTUAL for each in figures.records.measurands]
            return sum(
                one.evaluated and not virtual[figures.measurand[at]] for at, one in self.judgements
            )
        return self.outcomes.get("PASS", 0) + self.outcomes.get("FAIL", 0)

    @cached_property
    def worst(self) -> JudgedFigure | None:
        """The figure that misses an item most, or meets it least; None: none was compared."""
        compared = [pair for pair in self.judgements if pair[1].evaluated] if self.item else []
        return self._figure(*min(compared, key=lambda pair: pair[1].margin)) if compared else None

    @cached_property
    def excused(self) -> tuple[JudgedFigure, ...]:
        """The figures that miss the item and fail no acceptance."""
        found = excused({self.of: self.judgements}, self.figures_of_run) if self.item else ()
        return tuple(self._figure(at, stated) for at, _, stated in found)

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

    def figures(self) -> Iterator[JudgedFigure]:
        """Yield the figures of the run that an item is for, then the planned ones that lack."""
        for number, judgement in self.judgements:
            yield self._figure(number, judgement)
        for number in self.invalid:
            record, steps = self.figures_of_run.record(number), self.figures_of_run.steps(number)
            scope = self._scope(record.node, steps)
            yield JudgedFigure(record.node, steps, "INVALID", record.reason, scope=scope)
        for step in self.running:
            instances = step.instances()
            for each in _lacking_rows(self.rows, instances):
                shown = folded(instances[each])
                why = Message("not-measured-on", step=step.id, nodes=shown)
                scope = self._scope(shown, (str(each),))
                yield JudgedFigure(shown, (str(each),), "UNJUDGED", why, scope=scope)

    def _figure(self, number: int, judgement: Judgement) -> JudgedFigure:
        """Return a valid figure with its judgement by the item."""
        figures = self.figures_of_run
        record, steps = figures.record(number), figures.steps(number)
        median, values = float(figures.median[number]), figures.values(number)
        return JudgedFigure(
            node=record.node,
            steps=steps,
            outcome=judgement.outcome,
            reason=judgement.reason,
            scope=self._scope(record.node, steps),
            value=compared_value(self.item, median, values) if self.item else median,
            unit=record.unit,
            record=record,
            judgement=judgement,
        )

    def _scope(self, node: str, steps: Sequence[str]) -> FigureScope:
        """Return who measured a figure.

        Args:
            node: the node or the nodes of its records. A program that starts on one of the nodes of
                its step names this one only.
        """
        named = {StepInstance.parse(each).step for each in steps}
        counted = any(step.launch == COUNTED for step in self.running if step.id in named)
        if named.isdisjoint(self.together):
            return FigureScope(frozenset(hosts_of(node)), together=False, every_node=True)
        nodes = (host for step in self.running if step.id in named for host in step.nodes)
        return FigureScope(frozenset(nodes), together=True, every_node=counted)


def limit_outcomes(
    evidence: Evidence, covered: Coverage, judged: ByReference
) -> tuple[LimitOutcome, ...]:
    """Return the outcomes of all limits of the contract, then of the references for the plan."""
    references, figures, plan = evidence.references, evidence.figures, evidence.plan
    invalid = _invalid(figures, references)
    planned = figures_of_plan(plan, evidence.benchmarks)
    found = []
    for each in references:
        steps = possible_steps(each.reference, each.case, plan, planned)
        contract = each.reference.kind == "contract"
        if not steps and not contract:
            continue
        judgements = judged.get(each, ())
        outcome = LimitOutcome(
            item=each.reference if isinstance(each.reference, ContractItem) else None,
            of=each,
            steps=len(steps),
            figures_of_run=figures,
            judgements=judgements,
            invalid=invalid[each],
            accepted=_accepted(each.reference, evidence, judgements),
        )
        if contract and steps:
            running = [step for step in plan.steps_to_run() if step.id in steps]
            together = (step for step in running if _together(step, plan, evidence.benchmarks))
            outcome = replace(
                outcome,
                running=running,
                rows=_rows(each, figures),
                together=frozenset(step.id for step in together),
            )
            why = tuple(_open(outcome, set(steps), evidence, covered))
            outcome = replace(outcome, not_evaluated=why)
        found.append(outcome)
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
    of: LimitOutcome, ids: Collection[str], evidence: Evidence, covered: Coverage
) -> Iterator[Message]:
    """Yield why a limit did not judge planned figures, each reason with its nodes."""
    figures, lacking = evidence.figures, list[tuple[Message, str]]()
    for figure, answer in of.judgements:
        if answer.outcome == "UNJUDGED":
            lacking.append((answer.reason, figures.node_of(figure)))
    if not kind_of(evidence.plan).executed:
        if nodes := folded(_nodes_without_row(of.rows, of.running)):
            lacking.append((Message("rows-missing"), nodes))
    else:
        seen = {execution.step for execution in figures.records.executions}
        for step in of.running:
            own = {each: nodes for each, nodes in step.instances().items() if str(each) in seen}
            without = chain.from_iterable(own[each] for each in _lacking_rows(of.rows, own))
            if nodes := folded(without):
                lacking.append((Message("row-missing", step=step.id), nodes))
    yield from on_nodes(lacking)
    if not of.running and not any(answer.evaluated for _, answer in of.judgements):
        left_out = (*covered.not_run, *covered.not_needed)
        why = [each.message for each in left_out if each.step in ids]
        yield joined([Message("step-missing"), *why[:1]])


def _lacking_rows(
    rows: Mapping[str, set[int]], instances: Iterable[StepInstance]
) -> Iterator[StepInstance]:
    """Yield the instances of a step without any row, or without one that another instance has."""
    found = {each: rows.get(str(each), set[int]()) for each in instances}
    expected = set[int]().union(*found.values())
    for each, own in found.items():
        if not own or own != expected:
            yield each


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


def _together(step: Step, plan: Plan, benchmarks: Benchmarks) -> bool:
    """Return whether all nodes of a step measure one figure.

    A plan for one node, or for one pair, has ordinary steps in place of those of each node or pair.
    """
    case = benchmarks.cases.get(step.case)
    uses = case.suites.get(plan.suite, ()) if case else ()
    alone = {NODES_EACH.get(use.scope) for use in uses}
    return step.scope == "job" and len(step.nodes) not in alone

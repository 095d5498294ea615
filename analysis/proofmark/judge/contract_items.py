"""The items of a contract in one run: the figures they are for, and the rules that apply a limit.

The worst figure is nearest to the limit, or misses it most.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil, inf
from statistics import fmean, stdev

from proofmark.cases.case import Scope
from proofmark.cases.reference import Reference
from proofmark.cases.suite import Benchmarks
from proofmark.common.grouping import gathered
from proofmark.common.message import Message
from proofmark.common.nodesets import folded, hosts_of
from proofmark.common.text import percent
from proofmark.judge.aggregate import Aggregates
from proofmark.judge.confidence import repeats_agree
from proofmark.judge.references.figure_comparison import Figure
from proofmark.judge.references.judgement import (
    ByReference,
    CaseReference,
    FigureScope,
    JudgedFigure,
    Judgement,
    margin,
)
from proofmark.plan.plan import Plan, Step
from proofmark.plan.step import COUNTED, StepInstance
from proofmark.site.contract_document import ContractItem, Item


def compared_with(reference: Reference, figure: Figure) -> Figure:
    """Return `figure` with the repeat that the item compares.

    The best or the worst of the repeats is what the contract is about: its noise is no doubt.

    Args:
        reference: a limit or reference; all but the items of a contract compare the median.
    """
    if not isinstance(reference, ContractItem) or reference.of == "median":
        return figure
    value = compared_value(reference, figure.value, figure.values)
    return replace(figure, value=value, values=(value,), repeats={})


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
    """The outcome of an item of the contract, or of another limit: of a run, or of its site."""

    item: Item | None

    @property
    @abstractmethod
    def outcome(self) -> str:
        """One of the four words."""

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


ALONE: Mapping[int, Scope] = {1: "each-node", 2: "each-pair"}
"""What a case of this scope plans as one step, on so many nodes (`proofmark.plan.suite_steps`)."""


@dataclass(frozen=True)
class ItemEvidence:
    """What a run has for an item of the contract.

    Attributes:
        invalid: the INVALID figures that it would judge.
        rows: the numbers of the measurands that the item is for, by the step that printed them.
        steps: the planned steps whose figures it can select, of the modes that the run entered.
    """

    judgements: Sequence[tuple[int, Judgement]] = ()
    invalid: Sequence[int] = ()
    rows: Mapping[str, set[int]] = field(default_factory=dict)
    steps: Sequence[Step] = ()
    together: frozenset[str] = frozenset()

    def scope(self, node: str, steps: Sequence[str]) -> FigureScope:
        """Return who measured a figure.

        Args:
            node: the node or the nodes of its records. A program that starts on one of the nodes of
                its step names this one only.
        """
        named = {StepInstance.parse(each).step for each in steps}
        counted = any(step.launch == COUNTED for step in self.steps if step.id in named)
        if named.isdisjoint(self.together):
            return FigureScope(frozenset(hosts_of(node)), together=False, every_node=True)
        nodes = (host for step in self.steps if step.id in named for host in step.nodes)
        return FigureScope(frozenset(nodes), together=True, every_node=counted)


def item_figures(
    item: ContractItem, evidence: ItemEvidence, figures: Aggregates
) -> Iterator[JudgedFigure]:
    """Yield the figures of a run that `item` is for, then the planned ones that are missing."""
    for number, judgement in evidence.judgements:
        yield judged_figure(item, figures, number, judgement, evidence)
    for number in evidence.invalid:
        record, steps = figures.record(number), _steps(figures, number)
        scope = evidence.scope(record.node, steps)
        yield JudgedFigure(record.node, steps, "INVALID", record.reason, scope=scope)
    for step in evidence.steps:
        instances = step.instances()
        rows = {each: evidence.rows.get(str(each), set[int]()) for each in instances}
        expected = set[int]().union(*rows.values())
        for each, nodes in instances.items():
            if not rows[each] or not expected <= rows[each]:
                shown = folded(nodes)
                why = Message("not-measured-on", step=step.id, nodes=shown)
                scope = evidence.scope(shown, (str(each),))
                yield JudgedFigure(shown, (str(each),), "UNJUDGED", why, scope=scope)


def measured_together(step: Step, plan: Plan, benchmarks: Benchmarks) -> bool:
    """Return whether all nodes of a step measure one figure.

    A plan for one node, or for one pair, has ordinary steps in place of those of each node or pair.
    """
    case = benchmarks.cases.get(step.case)
    scopes = {use.scope for use in case.suites.get(plan.suite, ())} if case else set[Scope]()
    return step.scope == "job" and ALONE.get(len(step.nodes)) not in scopes


def judged_figure(
    item: ContractItem,
    figures: Aggregates,
    number: int,
    judgement: Judgement,
    evidence: ItemEvidence,
) -> JudgedFigure:
    """Return a valid figure with its judgement by `item`."""
    record, steps = figures.record(number), _steps(figures, number)
    return JudgedFigure(
        node=record.node,
        steps=steps,
        outcome=judgement.outcome,
        reason=judgement.reason,
        scope=evidence.scope(record.node, steps),
        value=compared_value(item, float(figures.median[number]), figures.values(number)),
        unit=record.unit,
        record=record,
        judgement=judgement,
    )


def worst_figure(
    item: ContractItem, evidence: ItemEvidence, figures: Aggregates
) -> JudgedFigure | None:
    """Return the figure of an item that misses it most, or meets it least; None: none compared."""
    compared = [pair for pair in evidence.judgements if pair[1].evaluated]
    if not compared:
        return None
    number, judgement = min(compared, key=lambda pair: margin(pair[1]))
    return judged_figure(item, figures, number, judgement, evidence)


def _steps(figures: Aggregates, number: int) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.step for each in figures.executions(number)))


NO_EVIDENCE = ItemEvidence()
"""Of a limit that is no item of a contract, or is for another suite."""

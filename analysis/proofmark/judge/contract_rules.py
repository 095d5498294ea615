"""The rules by which a contract applies the limit of an item to figures, nodes and repeats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, inf
from statistics import fmean, stdev
from typing import Any

from proofmark.cases.reference import Reference
from proofmark.common.message import Message
from proofmark.common.text import percent
from proofmark.judge.aggregate import Aggregates
from proofmark.judge.references.figure_comparison import Figure
from proofmark.judge.references.judgement import CaseReference, Judgement
from proofmark.runs.waivers import Waiver
from proofmark.site.contract_document import ContractItem, Item

ByItem = Mapping[CaseReference, Sequence[tuple[int, Judgement]]]
"""The figures that each limit applies to, each with its judgement."""


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
    """Return the value of a figure that an item compares.

    Args:
        median: of the values.
    """
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


@dataclass(frozen=True)
class Excuse:
    """Why missed figures of an item fail no acceptance."""

    code: str
    fields: Mapping[str, str | int]

    def of(self, judged: Judgement) -> Judgement:
        """Return the judgement of a missed figure: it is stated, and no FAIL."""
        reason = Message(self.code, text=judged.reason, **self.fields)
        return replace(judged, outcome="UNJUDGED", reason=reason)


def nodes_met(judged: Iterable[tuple[int, Judgement]], figures: Aggregates) -> tuple[int, int]:
    """Return the number of nodes, or pairs, whose figures all meet an item, and of all nodes."""
    by_node: dict[int, bool] = {}
    for figure, judgement in judged:
        node = int(figures.node[figure])
        by_node[node] = by_node.get(node, True) and judgement.outcome == "PASS"
    return sum(by_node.values()), len(by_node)


def enough_nodes(item: Item, met: int, total: int) -> bool:
    """Return whether the share of nodes that an item requires meets it."""
    return item.nodes < 1 and met >= ceil(Fraction(str(item.nodes)) * total) > 0


def excuse_of(
    of: CaseReference,
    judged: Sequence[tuple[int, Judgement]],
    figures: Aggregates,
    waivers: Mapping[str, Waiver],
) -> Excuse | None:
    """Return why the missed figures of a limit fail no acceptance; None if they do."""
    item = of.reference
    if not isinstance(item, ContractItem):
        return None
    if waiver := waivers.get(item.number):
        about = {"by": waiver.by, "date": f"{waiver.date}", "why": waiver.reason}
        return Excuse("item-waived", {"number": item.number, **about})
    met, total = nodes_met(judged, figures)
    if enough_nodes(item, met, total):
        share = percent(item.nodes)
        return Excuse("item-share", {"met": met, "total": total, "share": share})
    return Excuse("item-minor", {"number": item.number}) if item.severity == "minor" else None


@dataclass(frozen=True)
class Excused:
    """A missed figure that an item of the contract excuses.

    Attributes:
        node: the node or the nodes that measured it, as records name them.
        step: the step that measured it.
        figure: its case, metric and setting.
        value: the value that was compared, in `unit`.
        reason: the judgement with its excuse.
    """

    node: str
    step: str
    figure: str
    value: float
    unit: str
    number: str
    reason: Message

    @property
    def message(self) -> Message:
        """The figure, its value, the item and the excuse."""
        return Message(
            "excused",
            node=self.node,
            figure=self.figure,
            value=f"{self.value:.4g} {self.unit}",
            number=self.number,
            text=self.reason,
        )

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
        named = {name: getattr(self, name) for name in ("node", "step", "figure", "value", "unit")}
        return {**named, "item": self.number, **self.reason.as_json("reason")}


def excused_figures(
    of: CaseReference,
    judged: Sequence[tuple[int, Judgement]],
    figures: Aggregates,
    waivers: Mapping[str, Waiver],
) -> Iterator[Excused]:
    """Yield each missed figure of an item that fails no acceptance: it is named all the same."""
    item = of.reference
    for figure, _, stated in excused({of: judged}, figures, waivers):
        assert isinstance(item, ContractItem)  # no other limit excuses a figure
        record = figures.record(figure)
        setting = [f"{key}={value}" for key, value in record.parameters.items()]
        yield Excused(
            record.node,
            record.step,
            " ".join([record.case, record.metric, *setting]),
            float(figures.median[figure]),
            record.unit,
            item.number,
            stated.reason,
        )


def excused(
    by_item: ByItem, figures: Aggregates, waivers: Mapping[str, Waiver]
) -> Iterator[tuple[int, Judgement, Judgement]]:
    """Yield each missed figure of an item that fails no acceptance: its judgements, old and new."""
    for of, judged in by_item.items():
        if (excuse := excuse_of(of, judged, figures, waivers)) is not None:
            for figure, one in judged:
                if one.outcome == "FAIL":
                    yield figure, one, excuse.of(one)

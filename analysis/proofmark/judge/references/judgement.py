"""References of figures, the figures that they are for, their bounds and their judgements.

The bounds of a limit are the accepted ratios of a figure and what it is compared with.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf
from typing import ClassVar, NamedTuple, Self

from proofmark.cases.reference import TYPICAL, Reference
from proofmark.cases.suite import Benchmarks
from proofmark.cases.vocabulary import ParameterValues, Scalar
from proofmark.common.grouping import gathered
from proofmark.common.message import Message, shared
from proofmark.common.text import beside
from proofmark.judge.confidence import AGAIN
from proofmark.records.columns import Record, Records
from proofmark.site.contract_document import ContractItem
from proofmark.site.hardware import UNRECORDED
from proofmark.site.node.facts import HostFacts


class Bounds(NamedTuple):
    """The least and the greatest accepted ratio; None: every ratio on that side is accepted."""

    at_least: float | None = None
    at_most: float | None = None

    @property
    def known(self) -> bool:
        """Whether there is a bound on either side."""
        return self != Bounds()

    def missed_by(self, ratio: float) -> bool:
        """Return whether `ratio` is outside."""
        low = self.at_least is not None and ratio < self.at_least
        return low or (self.at_most is not None and ratio > self.at_most)

    def times(self, value: float) -> Self:
        """Return the accepted values of a figure that is compared with `value`."""
        return type(self)(*(None if bound is None else bound * value for bound in self))


def compared(ratio: float, bounds: Bounds, name: str | Message, value: str) -> Message:
    """Return that a ratio meets or misses its bounds."""
    end = "missed" if bounds.missed_by(ratio) else "met"
    fields = {"ratio": beside(ratio, *bounds), "name": name, "value": value}
    least, most = (f"{bound:.4g}" if bound is not None else "" for bound in bounds)
    if least and most:
        return shared(f"bounds-{end}", limit=least, upper=most, **fields)
    return shared(f"{'least' if least else 'most'}-{end}", limit=least or most, **fields)


def judging_bounds(
    reference: Reference, of_site: float | None, of_source: float | None = None
) -> Bounds:
    """Return the bounds by which a figure is judged.

    An expected value has the tolerance of the site, if the site states one. A typical value has
    else the tolerance of its source: without both, its bounds are not known.

    Args:
        of_site: the tolerance that the site states for expected values; None if it states none.
        of_source: the tolerance of the source of a typical value; None if it is not known.
    """
    tolerance = of_site if reference.kind == "expected" else None
    if reference.rule in TYPICAL:
        tolerance = of_source if tolerance is None else tolerance
        return Bounds(None if tolerance is None else 1 - tolerance)
    if tolerance is None:
        return Bounds(reference.at_least, reference.at_most)
    return Bounds(
        None if reference.at_least is None else 1 - tolerance,
        None if reference.at_most is None else 1 + tolerance,
    )


NO_LABELS: ParameterValues = {}
PEERS = "peers"
"""The kind of a judgement by like nodes of the run."""
OVER_TIME = "over time"
"""The kind of a judgement of a figure by earlier values of the same run."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The outcome of one figure by one reference.

    Attributes:
        outcome: ``PASS``, ``FAIL`` or ``UNJUDGED``.
        value: the reference in the unit of the figure; None if it is not known.
        ratio: measured ÷ `value`; the median of `ratios` if there are any.
        at_least: the least accepted ratio.
        at_most: the greatest accepted ratio.
        ratios: the ratio of each repeat, if the figure and the reference were measured in the same
            repeats.
        visible: the part of the limit, or of the accepted level, by which the true level can be
            worse without being noticed, with 95 % confidence; None if it is not known.
        repeats_needed: with how many repeats an outcome that noise leaves open is decided; 0 if no
            number is known.
    """

    kind: str
    source: str
    outcome: str
    reason: Message
    value: float | None = None
    ratio: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    ratios: tuple[float, ...] = ()
    visible: float | None = None
    repeats_needed: int = 0

    @property
    def bounds(self) -> Bounds:
        """The accepted ratios."""
        return Bounds(self.at_least, self.at_most)

    @property
    def evaluated(self) -> bool:
        """Whether the figure was compared with a value."""
        return self.ratio is not None

    @property
    def margin(self) -> float:
        """The distance of the ratio from its nearest bound, as a share of the bound.

        It is negative outside the bounds, and infinite if nothing was compared.
        """
        if self.ratio is None:
            return inf
        above = inf if self.at_least is None else self.ratio / self.at_least - 1
        below = inf if self.at_most is None else 1 - self.ratio / self.at_most
        return min(above, below)

    def missed_limit(self) -> float | None:
        """Return the limit that the ratio misses; None if it misses none."""
        if self.outcome != "FAIL" or self.ratio is None:
            return None
        too_low = self.at_least is not None and self.ratio < self.at_least
        return self.at_least if too_low else self.at_most

    def misses(self, value: float) -> bool:
        """Return whether `value`, one repeat of the figure, misses the limit that the ratio misses.

        A FAIL that has no ratio is not about a limit: each repeat shows it.
        """
        if self.outcome != "FAIL":
            return False
        limit = self.missed_limit()
        if limit is None or self.ratio is None or not self.value:
            return True
        ratio = value / self.value
        return ratio < limit if self.ratio < limit else ratio > limit

    @property
    def is_open(self) -> bool:
        """Whether it misses a limit, and the repeats of the figure do not show it."""
        return self.outcome == "UNJUDGED" and AGAIN in self.reason.codes

    def open(self) -> Judgement:
        """Return a miss as UNJUDGED, because the repeats of the figure do not show it."""
        return replace(self, outcome="UNJUDGED", reason=Message(AGAIN, text=self.reason))


@dataclass(frozen=True)
class FigureScope:
    """Who measured a figure.

    Attributes:
        together: whether all nodes of the step measured one figure. Else each node or pair did.
        every_node: whether each node of the partition must have such a figure, or be part of it.
    """

    nodes: frozenset[str] = frozenset()
    together: bool = False
    every_node: bool = False


NO_SCOPE = FigureScope()


@dataclass(frozen=True)
class JudgedFigure:
    """A figure, its limit and its outcome; or a planned figure that has no value.

    Attributes:
        outcome: one of the four words. A figure that is missing is UNJUDGED.
        value: the value that the limit compares, in `unit`; None if there is no valid one.
        found: what a node reports for an item that compares no number.
        record: the first record of the figure, with the median as value; None if it has none.
    """

    node: str
    steps: tuple[str, ...]
    outcome: str
    reason: Message
    scope: FigureScope = NO_SCOPE
    value: float | None = None
    found: str = ""
    unit: str = ""
    record: Record | None = None
    judgement: Judgement | None = None

    @property
    def name(self) -> str:
        """Its case, metric and setting; empty without a record."""
        if self.record is None:
            return ""
        setting = [f"{key}={value}" for key, value in self.record.parameters.items()]
        return " ".join([self.record.case, self.record.metric, *setting])

    @property
    def accepted(self) -> Bounds:
        """The accepted values, in `unit`; not known for a figure that was not compared."""
        if self.judgement is None or not self.judgement.evaluated:
            return Bounds()
        return self.judgement.bounds.times(self.judgement.value or 0.0)

    @property
    def margin(self) -> float:
        """The distance from the limit, as a share of it; infinite if it was not compared."""
        return self.judgement.margin if self.judgement else inf

    @property
    def visible(self) -> float | None:
        """The part of the limit by which the true level can be worse without being noticed."""
        return self.judgement.visible if self.judgement else None

    @property
    def repeats_needed(self) -> int:
        """With how many repeats an outcome that noise leaves open is decided; 0: not known."""
        return self.judgement.repeats_needed if self.judgement else 0

    def excused(self, number: str) -> Message:
        """Return the figure, its value, the item with this number, and the excuse."""
        return Message(
            "excused",
            node=self.node,
            figure=self.name,
            value=f"{self.value:.4g} {self.unit}",
            number=number,
            text=self.reason,
        )


@dataclass(frozen=True)
class CaseReference:
    """A reference of a case, or a limit of the contract. Equal ones are one and the same.

    Attributes:
        judged_with: the labels of its metric with which figures are compared.
    """

    case: str
    reference: Reference
    judged_with: ParameterValues = field(default_factory=dict)

    @cached_property
    def _key(self) -> tuple[str, str]:
        return self.case, self.reference.model_dump_json()

    def __hash__(self) -> int:
        return hash(self._key)


ByReference = Mapping[CaseReference, Sequence[tuple[int, Judgement]]]
"""The figures that each reference applies to, each with its judgement."""


def ordered_references(
    benchmarks: Benchmarks, limits: Sequence[ContractItem], *, expected: bool
) -> list[CaseReference]:
    """Return the references of all cases, then the contract: in this order they judge a figure.

    There are no expected values unless the site wants them (`expected`).
    """
    ordered: list[CaseReference] = []
    for name, case in benchmarks.cases.items():
        for each in case.references:
            if expected or each.kind != "expected":
                ordered.append(CaseReference(name, each, case.judged_with(each.metric)))
    for limit in limits:
        limited = benchmarks.cases.get(limit.case)
        labels = limited.judged_with(limit.metric) if limited else NO_LABELS
        ordered.append(CaseReference(limit.case, limit, labels))
    return list(dict.fromkeys(ordered))


def applying_references(
    records: Records, references: Iterable[CaseReference]
) -> Iterator[tuple[int, list[CaseReference]]]:
    """Yield the number of each measurand to which references apply, with these references."""
    candidates = gathered(((each.case, each.reference.metric), each) for each in references)
    for number, measurand in enumerate(records.measurands):
        about = records.of_measurand(number)
        chosen = candidates.get((measurand.case, measurand.metric), ())
        if applying := [
            each for each in chosen if applies(each.reference, about, each.judged_with)
        ]:
            yield number, applying


def traits(record: Record) -> dict[str, Scalar]:
    """Return the traits by which ``where`` of a reference can select a figure."""
    return {**record.parameters, "benchmark": record.benchmark, "placement": record.placement}


def fits(traits: ParameterValues, wanted: ParameterValues) -> bool:
    """Return whether the traits agree; a trait that only one side has is ignored."""
    return all(traits[key] == value for key, value in wanted.items() if key in traits)


def applies(reference: Reference, record: Record, judged_with: ParameterValues = NO_LABELS) -> bool:
    """Return whether `reference` is for this figure, system and mode.

    `judged_with` is that of its metric (`proofmark.cases.reference.Metric`).
    """
    of_record = traits(record)
    return (
        reference.metric == record.metric
        and reference.system in (None, record.system)
        and (reference.mode in (None, record.mode) or record.mode == UNRECORDED)
        and reference.accepts(of_record, judged_with)
        and all(of_record.get(key) == value for key, value in reference.where.items())
    )


class Terms(ABC):
    """The terms of figures whose conditions are not proved, such as the mode of their nodes.

    Attributes:
        largest_ratio: a figure that is more than this many times better than its limit proves
            nothing: it is edited, in another unit, or of another machine.
    """

    largest_ratio: ClassVar[float]

    @abstractmethod
    def judge(
        self, record: Record, reference: Reference, compared: Callable[[], Judgement]
    ) -> Judgement:
        """Return the judgement of a figure."""


def uses_all_cores(record: Record, nodes: HostFacts) -> bool:
    """Return whether a figure has one thread for each core of its node; true if not known."""
    facts, threads = nodes.get(record.node), record.parameters.get("threads")
    return facts is None or threads is None or threads == facts.cores

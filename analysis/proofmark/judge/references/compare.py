"""One figure held against one reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from proofmark.cases.models import Against, Reference
from proofmark.common.expressions import render
from proofmark.common.units import factor
from proofmark.judge.aggregate import Aggregates, by_repeat
from proofmark.judge.intervals import noise
from proofmark.judge.references.derived import derive
from proofmark.records.columns import EMULATED, Record
from proofmark.site.node.facts import NodeFacts

Scalar = str | int | float
Nodes = Mapping[str, NodeFacts]


@dataclass(frozen=True, slots=True)
class Judgement:
    """One reference's answer: `ratio` is measured ÷ `value`; the limits are ratios too.

    `value` is in the unit of the figure, whatever the reference was given in. `ratios` are those
    of the repeats, where the figure and the reference were measured in the same ones; then `ratio`
    is their median.
    """

    kind: str
    source: str
    outcome: str
    reason: str
    value: float | None
    ratio: float | None
    at_least: float | None
    at_most: float | None
    ratios: tuple[float, ...] = ()

    def missed_limit(self) -> float | None:
        """Return the limit that the ratio misses; None if it keeps to both."""
        if self.outcome != "FAIL" or self.ratio is None:
            return None
        missed = self.at_least is not None and self.ratio < self.at_least
        return self.at_least if missed else self.at_most

    def within_noise(self, values: Sequence[float]) -> bool:
        """Return whether a missed limit lies where the true ratio may be as well.

        `values` are the figure's repeats. True where no limit is missed.
        """
        limit = self.missed_limit()
        if limit is None or self.ratio is None or self.value is None:
            return True
        own = self.ratios or [value / self.value for value in values]
        low, high = noise(own, self.ratio)
        return low <= limit <= high


@dataclass(frozen=True, slots=True)
class Counterpart:
    """The measure of a figure: the median over all its values, and the value of each repeat."""

    value: float
    repeats: Mapping[int, float]


class Figures:
    """The valid figures of a run, found again by what they are."""

    def __init__(self, figures: Aggregates) -> None:
        self._figures = figures
        self._by_metric: dict[tuple[str, str], dict[tuple[str, str], list[Record]]] = {}

    def _of(self, case: str, metric: str) -> dict[tuple[str, str], list[Record]]:
        """Return the valid records of a metric by node and mode; they are sorted at first use."""
        key = (case, metric)
        if key not in self._by_metric:
            found: dict[tuple[str, str], list[Record]] = {}
            for record in self._figures.measuring(case, metric):
                if record.valid and record.value is not None:
                    found.setdefault((record.node, record.mode), []).append(record)
            self._by_metric[key] = found
        return self._by_metric[key]

    def counterpart(self, of: Record, against: Against) -> Counterpart | None:
        """Return the figure that `against` names, for the node and mode of `of`.

        It is in the unit of `of`. Within the same case everything but what ``where`` changes must
        be equal.
        """
        case = against.case or of.case
        found = self._of(case, against.metric).get((of.node, of.mode), [])
        wanted: Mapping[str, Scalar] = against.where
        if case == of.case:
            wanted = {**traits(of), **against.where}
        fitting = [
            replace(record, value=record.value * times)
            for record in found
            if _fits(traits(record), wanted)
            and record.value is not None
            and (times := factor(record.unit, of.unit)) is not None
        ]
        if not fitting:
            return None
        middle = median(record.value for record in fitting if record.value is not None)
        return Counterpart(middle, by_repeat(fitting))


def traits(record: Record) -> dict[str, Scalar]:
    """Return all that a reference's ``where`` may choose a figure by."""
    return {
        **record.parameters,
        "benchmark": record.benchmark,
        "placement": record.placement,
    }


def _fits(traits: Mapping[str, Scalar], wanted: Mapping[str, Scalar]) -> bool:
    """Return whether the traits agree; one that only one side has does not part them."""
    return all(traits[key] == value for key, value in wanted.items() if key in traits)


def applies(reference: Reference, record: Record) -> bool:
    """Return whether `reference` is one for this figure, on this system, in this mode."""
    if reference.metric != record.metric or reference.system not in (None, record.system):
        return False
    if reference.mode not in (None, record.mode):
        return False
    own = traits(record)
    return all(own.get(key) == value for key, value in reference.where.items())


def compare(
    record: Record,
    value: float,
    reference: Reference,
    figures: Figures,
    nodes: Nodes,
    repeats: Mapping[int, float] | None = None,
) -> Judgement:
    """Hold `value`, the median of a figure like `record`, against `reference`.

    `repeats` are the figure's own values by repeat. Where the reference was measured in several of
    the same repeats, the median of the ratios within a repeat counts: the rate of a machine may
    change from one repeat to the next.

    What is only expected informs: it says PASS or, where it is missed, UNJUDGED. So does every
    reference for an emulated figure: how fast a virtual node is tells nothing of a real one.
    """
    held, name, source, there = _reference_value(record, reference, figures, nodes)
    limits = (reference.at_least, reference.at_most)
    if not held:
        reason = name if held is None and reference.rule else f"{name} {_lacks(held)}"
        return Judgement(reference.kind, source, "UNJUDGED", reason, held, None, *limits)
    ratios = _paired(repeats or {}, there)
    ratio = median(ratios) if ratios else value / held
    low = reference.at_least is not None and ratio < reference.at_least
    high = reference.at_most is not None and ratio > reference.at_most
    bounds = " and ".join(
        f"{word} {limit:g}"
        for word, limit in zip(("at least", "at most"), limits, strict=True)
        if limit is not None
    )
    informs = reference.kind == "expected" or record.origin == EMULATED
    missed = "UNJUDGED" if informs else "FAIL"
    outcome = missed if low or high else "PASS"
    verb = "is not" if low or high else "is"
    reason = f"{ratio:.3g} × {name} ({held:.6g} {record.unit}) {verb} {bounds}"
    if ratios:
        reason = f"median of {len(ratios)} repeats: {reason}"
    return Judgement(reference.kind, source, outcome, reason, held, ratio, *limits, ratios)


def _paired(own: Mapping[int, float], other: Mapping[int, float]) -> tuple[float, ...]:
    """Return the ratio of each repeat that both have; nothing unless both have several."""
    common = sorted(repeat for repeat in own.keys() & other.keys() if other[repeat])
    return tuple(own[repeat] / other[repeat] for repeat in common) if len(common) > 1 else ()


def _lacks(held: float | None) -> str:
    return "was not measured" if held is None else "is 0"


def _reference_value(
    record: Record, reference: Reference, figures: Figures, nodes: Nodes
) -> tuple[float | None, str, str, Mapping[int, float]]:
    """Return the reference in the figure's unit, what to call it (or why it lacks), its source.

    The last is the reference of each repeat in which it was measured.
    """
    against, source = reference.against, reference.source
    if reference.value is not None:
        times = factor(reference.unit or record.unit, record.unit)
        assert times is not None  # the cases were checked when they were read
        return reference.value * times, f"the {reference.kind} figure", source, {}
    if reference.rule is not None:
        facts = nodes.get(record.node)
        if facts is None:
            return None, f"{record.node}: the node's hardware is not known", source, {}
        made = derive(reference.rule, facts, record.parameters)
        if isinstance(made, str):
            return None, made, source, {}
        times = factor(made.unit, record.unit)
        assert times is not None
        return made.value * times, reference.rule, f"{source}; {made.source}", {}
    assert against is not None
    measured = figures.counterpart(record, against)
    where = "".join(f" at {key} {value}" for key, value in against.where.items())
    name = f"{against.metric}{where}"
    times = render(against.times, traits(record), file=record.case, key="references.times")
    if times != 1:
        name = f"{name} × {times:g}"
    if measured is None:
        return None, name, source, {}
    repeats = {repeat: value * times for repeat, value in measured.repeats.items()}
    return measured.value * times, name, source, repeats

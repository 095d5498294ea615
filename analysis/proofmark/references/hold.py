"""One figure held against one reference."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from proofmark.cases import Against, Reference
from proofmark.columns import Record
from proofmark.expressions import render
from proofmark.node.facts import NodeFacts
from proofmark.references.derived import derive
from proofmark.references.units import factor
from proofmark.standing import Standing

Scalar = str | int | float
Nodes = Mapping[str, NodeFacts]


@dataclass(frozen=True, slots=True)
class Judgement:
    """One reference's answer: `ratio` is measured ÷ `value`; the limits are ratios too.

    `value` is in the unit of the figure, whatever the reference was given in.
    """

    kind: str
    source: str
    outcome: str
    reason: str
    value: float | None
    ratio: float | None
    at_least: float | None
    at_most: float | None

    def failed_limit(self) -> float | None:
        """Return the limit that the figure misses, in its unit; None if it keeps to it."""
        if self.outcome != "FAIL" or self.value is None or self.ratio is None:
            return None
        if self.at_least is not None and self.ratio < self.at_least:
            return self.at_least * self.value
        return None if self.at_most is None else self.at_most * self.value


class Figures:
    """The valid figures of a run, found again by what they are."""

    def __init__(self, figures: Standing | Sequence[Record]) -> None:
        self._figures = figures
        self._by_metric: dict[tuple[str, str], dict[tuple[str, str], list[Record]]] = {}

    def _of(self, case: str, metric: str) -> dict[tuple[str, str], list[Record]]:
        """Return the valid records of a metric by node and mode; they are sorted at first use."""
        key = (case, metric)
        if key not in self._by_metric:
            found: dict[tuple[str, str], list[Record]] = {}
            for record in self._records(case, metric):
                if record.valid and record.value is not None:
                    found.setdefault((record.node, record.mode), []).append(record)
            self._by_metric[key] = found
        return self._by_metric[key]

    def _records(self, case: str, metric: str) -> Iterable[Record]:
        if isinstance(self._figures, Standing):
            return self._figures.measuring(case, metric)
        return [each for each in self._figures if (each.case, each.metric) == (case, metric)]

    def counterpart(self, of: Record, against: Against) -> float | None:
        """Return the median of the figure that `against` names, for the node and mode of `of`.

        It is in the unit of `of`. Within the same case everything but what ``where`` changes must
        be equal.
        """
        case = against.case or of.case
        found = self._of(case, against.metric).get((of.node, of.mode), [])
        wanted: Mapping[str, Scalar] = against.where
        if case == of.case:
            wanted = {**traits(of), **against.where}
        values = [
            record.value * times
            for record in found
            if _fits(traits(record), wanted)
            and record.value is not None
            and (times := factor(record.unit, of.unit)) is not None
        ]
        return median(values) if values else None


def traits(record: Record) -> dict[str, Scalar]:
    """Return all that a reference's ``where`` may choose a figure by."""
    return {
        **record.parameters,
        "benchmark": record.benchmark,
        "placement": record.placement,
    }


def _fits(traits: Mapping[str, Scalar], wanted: Mapping[str, Scalar]) -> bool:
    """Tell whether the traits agree; one that only one side has does not part them."""
    return all(traits[key] == value for key, value in wanted.items() if key in traits)


def applies(reference: Reference, record: Record) -> bool:
    """Tell whether `reference` is one for this figure, on this system, in this mode."""
    if reference.metric != record.metric or reference.system not in (None, record.system):
        return False
    if reference.mode not in (None, record.mode):
        return False
    own = traits(record)
    return all(own.get(key) == value for key, value in reference.where.items())


def hold(
    record: Record, value: float, reference: Reference, figures: Figures, nodes: Nodes
) -> Judgement:
    """Hold `value`, the median of a figure like `record`, against `reference`.

    What is only expected informs: it says PASS or, where it is missed, UNJUDGED. So does every
    reference for an emulated figure: how fast a virtual node is tells nothing of a real one.
    """
    held, name, source = _reference_value(record, reference, figures, nodes)
    limits = (reference.at_least, reference.at_most)
    if not held:
        reason = name if held is None and reference.rule else f"{name} {_lacks(held)}"
        return Judgement(reference.kind, source, "UNJUDGED", reason, held, None, *limits)
    ratio = value / held
    low = reference.at_least is not None and ratio < reference.at_least
    high = reference.at_most is not None and ratio > reference.at_most
    bounds = " and ".join(
        f"{word} {limit:g}"
        for word, limit in zip(("at least", "at most"), limits, strict=True)
        if limit is not None
    )
    informs = reference.kind == "expected" or record.origin == "emulated"
    missed = "UNJUDGED" if informs else "FAIL"
    outcome = missed if low or high else "PASS"
    verb = "is not" if low or high else "is"
    reason = f"{ratio:.3g} × {name} ({held:.6g} {record.unit}) {verb} {bounds}"
    return Judgement(reference.kind, source, outcome, reason, held, ratio, *limits)


def _lacks(held: float | None) -> str:
    return "was not measured" if held is None else "is 0"


def _reference_value(
    record: Record, reference: Reference, figures: Figures, nodes: Nodes
) -> tuple[float | None, str, str]:
    """Return the reference in the figure's unit, what to call it (or why it lacks), its source."""
    against, source = reference.against, reference.source
    if reference.value is not None:
        times = factor(reference.unit or record.unit, record.unit)
        assert times is not None  # the cases were checked when they were read
        return reference.value * times, f"the {reference.kind} figure", source
    if reference.rule is not None:
        facts = nodes.get(record.node)
        if facts is None:
            return None, f"{record.node}: the node's hardware is not known", source
        made = derive(reference.rule, facts, record.parameters)
        if isinstance(made, str):
            return None, made, source
        times = factor(made.unit, record.unit)
        assert times is not None
        return made.value * times, reference.rule, f"{source}; {made.source}"
    assert against is not None
    measured = figures.counterpart(record, against)
    where = "".join(f" at {key} {value}" for key, value in against.where.items())
    name = f"{against.metric}{where}"
    times = render(against.times, traits(record), file=record.case, key="references.times")
    if times != 1:
        name = f"{name} × {times:g}"
    return (measured * times if measured is not None else None), name, source

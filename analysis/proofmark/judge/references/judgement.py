"""The comparison of one figure with one reference."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import median

from proofmark.cases.reference import Against, Reference
from proofmark.cases.suite import Benchmarks
from proofmark.cases.vocabulary import MEASURED
from proofmark.common.expressions import render
from proofmark.common.message import Message
from proofmark.common.nodesets import folded, hosts_of
from proofmark.common.units import factor
from proofmark.judge.aggregate import Aggregates, by_repeat
from proofmark.judge.intervals import noise
from proofmark.judge.references.derived import NOTHING_RATED, derive
from proofmark.records.columns import VIRTUAL, Record, Records
from proofmark.site.hardware import UNRECORDED
from proofmark.site.node.facts import NodeFacts
from proofmark.site.partition import PREDICTED, Limit
from proofmark.site.rated import Rated

Scalar = str | int | float
Nodes = Mapping[str, NodeFacts]


@dataclass(frozen=True, slots=True)
class Judgement:
    """The outcome of one figure by one reference.

    Attributes:
        kind: of the reference.
        source: of the reference.
        outcome: ``PASS``, ``FAIL`` or ``UNJUDGED``.
        reason: the reason.
        value: the reference in the unit of the figure; None if it is not known.
        ratio: measured ÷ `value`; the median of `ratios` if there are any.
        at_least: the least accepted ratio.
        at_most: the greatest accepted ratio.
        ratios: the ratio of each repeat, if the figure and the reference were measured in the same
            repeats.
    """

    kind: str
    source: str
    outcome: str
    reason: Message
    value: float | None
    ratio: float | None
    at_least: float | None
    at_most: float | None
    ratios: tuple[float, ...] = ()

    @property
    def evaluated(self) -> bool:
        """Whether the figure was compared with a value."""
        return self.ratio is not None

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

    def within_noise(self, values: Sequence[float]) -> bool:
        """Return whether a missed limit lies within the noise of the ratio.

        `values` are the repeats of the figure. True if no limit is missed, except for a FAIL that
        has no ratio: it is not about a limit.
        """
        if self.ratio is None:
            return self.outcome != "FAIL"
        limit = self.missed_limit()
        if limit is None or self.value is None:
            return True
        ratios = self.ratios or [value / self.value for value in values]
        low, high = noise(ratios, self.ratio)
        return low <= limit <= high


@dataclass(frozen=True, slots=True)
class Counterpart:
    """The measured reference of a figure: the median of all values, and one value per repeat."""

    value: float
    repeats: Mapping[int, float]


class Figures:
    """The valid figures of a run, by case, metric, node and mode."""

    def __init__(self, figures: Aggregates) -> None:
        self._figures = figures
        self._by_metric: dict[tuple[str, str], dict[tuple[str, str], list[Record]]] = {}

    def _of(self, case: str, metric: str) -> dict[tuple[str, str], list[Record]]:
        """Return the valid records of a metric by node and mode; cached."""
        key = (case, metric)
        if key not in self._by_metric:
            by_node: dict[tuple[str, str], list[Record]] = {}
            for record in self._figures.measuring(case, metric):
                if record.valid:
                    by_node.setdefault((record.node, record.mode), []).append(record)
            self._by_metric[key] = by_node
        return self._by_metric[key]

    def counterpart(self, of: Record, against: Against) -> Counterpart | None:
        """Return the figure that `against` names, on the node and in the mode of `of`.

        It is in the unit of `of`. Within the same case, all traits that ``where`` does not change
        must be equal. None if it was not measured.
        """
        case = against.case or of.case
        candidates = self._of(case, against.metric).get((of.node, of.mode), [])
        wanted: Mapping[str, Scalar] = against.where
        if case == of.case:
            wanted = {**traits(of), **against.where}
        fitting = [
            (record, record.value * times)
            for record in candidates
            if _fits(traits(record), wanted)
            and record.value is not None
            and (times := factor(record.unit, of.unit)) is not None
        ]
        if not fitting:
            return None
        return Counterpart(
            median(value for _, value in fitting),
            by_repeat(replace(record, value=value) for record, value in fitting),
        )


@dataclass(frozen=True)
class OfCase:
    """A reference of a case, or a limit of the contract. Equal ones are one and the same.

    Attributes:
        case: the case of the figures that it judges.
        reference: the reference or limit.
    """

    case: str
    reference: Reference

    @cached_property
    def _key(self) -> tuple[str, str]:
        return self.case, self.reference.model_dump_json()

    def __hash__(self) -> int:
        return hash(self._key)


def ordered_references(benchmarks: Benchmarks, limits: Sequence[Limit]) -> list[OfCase]:
    """Return the references of all cases, then the limits of the contract.

    In this order they judge a figure.
    """
    of_cases = (
        OfCase(name, reference)
        for name, case in benchmarks.cases.items()
        for reference in case.references
    )
    return list(dict.fromkeys([*of_cases, *(OfCase(limit.case, limit) for limit in limits)]))


def applying_references(
    records: Records, references: Iterable[OfCase]
) -> Iterator[tuple[int, list[OfCase]]]:
    """Yield the number of each measurand to which references apply, with these references."""
    candidates: dict[tuple[str, str], list[OfCase]] = {}
    for each in references:
        candidates.setdefault((each.case, each.reference.metric), []).append(each)
    for number, measurand in enumerate(records.measurands):
        about = records.of_measurand(number)
        chosen = candidates.get((measurand.case, measurand.metric), ())
        if applying := [each for each in chosen if applies(each.reference, about)]:
            yield number, applying


def traits(record: Record) -> dict[str, Scalar]:
    """Return the traits by which ``where`` of a reference can select a figure."""
    return {
        **record.parameters,
        "benchmark": record.benchmark,
        "placement": record.placement,
    }


def _fits(traits: Mapping[str, Scalar], wanted: Mapping[str, Scalar]) -> bool:
    """Return whether the traits agree; a trait that only one side has is ignored."""
    return all(traits[key] == value for key, value in wanted.items() if key in traits)


def applies(reference: Reference, record: Record) -> bool:
    """Return whether `reference` is for this figure, system and mode."""
    of_record = traits(record)
    return (
        reference.metric == record.metric
        and reference.system in (None, record.system)
        and (reference.mode in (None, record.mode) or record.mode == UNRECORDED)
        and reference.accepts(of_record.get(MEASURED))
        and all(of_record.get(key) == value for key, value in reference.where.items())
    )


def uses_all_cores(record: Record, nodes: Nodes) -> bool:
    """Return whether a figure has one thread for each core of its node; true if not known."""
    facts, threads = nodes.get(record.node), record.parameters.get("threads")
    return facts is None or threads is None or threads == facts.cores


@dataclass(frozen=True)
class Comparison:
    """What references are compared with, besides the value of a figure.

    Attributes:
        figures: the figures of the run, for references that are measured in it.
        nodes: the hardware of each node, for references that are derived from it.
        rated: the hardware of each node as the inventory states it.
    """

    figures: Figures
    nodes: Nodes
    rated: Rated = NOTHING_RATED

    def judge(
        self,
        record: Record,
        value: float,
        reference: Reference,
        repeats: Mapping[int, float] | None = None,
    ) -> Judgement:
        """Return the judgement of a figure by a reference.

        If the reference was measured in several of the same repeats, the median of the ratios
        within a repeat counts, because the rate of a machine can change from repeat to repeat.

        A reference of the kind ``expected`` is information: its figure is UNJUDGED, and so is a
        predicted figure. An emulated figure that misses a reference is UNJUDGED, because the speed
        of a virtual node is not that of a real one.

        Args:
            record: a record of the figure.
            value: the median of the figure, in the unit of `record`.
            reference: the reference.
            repeats: the value of the figure in each repeat.
        """
        expected, name, source, of_repeat = self._reference_value(record, reference)
        limits = (reference.at_least, reference.at_most)
        if not expected:
            if expected is None and isinstance(name, Message):
                reason = name
            else:
                reason = Message(
                    "not-measured" if expected is None else "reference-zero", name=name
                )
            return Judgement(reference.kind, source, "UNJUDGED", reason, expected, None, *limits)
        ratios = _paired(repeats or {}, of_repeat)
        ratio = median(ratios) if ratios else value / expected
        low = reference.at_least is not None and ratio < reference.at_least
        high = reference.at_most is not None and ratio > reference.at_most
        informs = reference.kind == "expected" or record.origin == PREDICTED
        missed = "UNJUDGED" if informs or record.origin in VIRTUAL else "FAIL"
        met = "UNJUDGED" if informs else "PASS"
        outcome = missed if low or high else met
        value_text = f"{expected:.6g} {record.unit}"
        reason = _compared(reference, f"{ratio:.3g}", name, value_text, missed=low or high)
        if ratios:
            reason = Message("of-repeats", repeats=len(ratios), text=reason)
        return Judgement(reference.kind, source, outcome, reason, expected, ratio, *limits, ratios)

    def _reference_value(
        self, record: Record, reference: Reference
    ) -> tuple[float | None, str, str, Mapping[int, float]]:
        """Return the value of a reference, its name, its source, and its value in each repeat.

        The values are in the unit of the figure. If a derived value is not known, the name is the
        reason.
        """
        against, source = reference.against, reference.source
        if reference.value is not None:
            times = factor(reference.unit or record.unit, record.unit)
            assert times is not None  # the units were checked when the cases were read
            return reference.value * times, Message(f"figure-{reference.kind}"), source, {}
        if reference.rule is not None:
            hosts = hosts_of(record.node)
            if unknown := [host for host in hosts if host not in self.nodes]:
                return None, Message("hardware-unknown", nodes=folded(unknown)), source, {}
            facts = [self.nodes[host] for host in hosts]
            derived = derive(reference.rule, facts, record.parameters, self.rated)
            if isinstance(derived, Message):
                return None, derived, source, {}
            times = factor(derived.unit, record.unit)
            assert times is not None
            return derived.value * times, reference.rule, f"{source}; {derived.source}", {}
        assert against is not None
        measured = self.figures.counterpart(record, against)
        where = "".join(f" at {key} {value}" for key, value in against.where.items())
        name = f"{against.metric}{where}"
        # A step with one thread for each rank does not record the number.
        known = {"threads": 1, **traits(record)}
        times = render(against.times, known, file=record.case, key="references.times")
        if times != 1:
            name = f"{name} × {times:g}"
        if measured is None:
            return None, name, source, {}
        repeats = {repeat: value * times for repeat, value in measured.repeats.items()}
        return measured.value * times, name, source, repeats


def _paired(figure: Mapping[int, float], reference: Mapping[int, float]) -> tuple[float, ...]:
    """Return figure ÷ reference of each common repeat; empty for fewer than two."""
    common = sorted(number for number in figure.keys() & reference.keys() if reference[number])
    if len(common) < 2:
        return ()
    return tuple(figure[number] / reference[number] for number in common)


def _compared(reference: Reference, ratio: str, name: str, value: str, *, missed: bool) -> Message:
    """Return that a ratio meets or misses the bounds of a reference."""
    end = "missed" if missed else "met"
    fields = {"ratio": ratio, "name": name, "value": value}
    least, most = (
        None if bound is None else f"{bound:g}" for bound in (reference.at_least, reference.at_most)
    )
    if least is not None and most is not None:
        return Message(f"bounds-{end}", limit=least, upper=most, **fields)
    if least is not None:
        return Message(f"least-{end}", limit=least, **fields)
    return Message(f"most-{end}", limit=f"{most}", **fields)

"""The comparison of one figure with one reference, which can be another figure of the same run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from statistics import median
from sys import intern
from typing import NamedTuple

from proofmark.cases.reference import MATERIAL, UNIT_OF, Against, Reference, Rule
from proofmark.cases.vocabulary import ParameterValues
from proofmark.common.expressions import render
from proofmark.common.grouping import gathered
from proofmark.common.message import Message, joined, shared
from proofmark.common.nodesets import folded, hosts_of
from proofmark.common.text import factor, percent
from proofmark.judge.aggregate import Aggregates, by_repeat
from proofmark.judge.confidence import (
    FACTOR_AT_ANY_NOISE,
    OneRepeat,
    enough_repeats,
    measured_once,
    possible_miss,
    possible_repeats,
    too_noisy,
    within_by_factor,
)
from proofmark.judge.references.derived import (
    ANY_NODE,
    NOTHING_STATED,
    ONLY_SLOWER,
    UNKNOWN_BUILD,
    Build,
    Derived,
    Nominal,
    Setting,
    TypicalValue,
    value_of_rule,
)
from proofmark.judge.references.judgement import (
    Bounds,
    Judgement,
    compared,
    fits,
    judging_bounds,
    traits,
)
from proofmark.records.columns import VIRTUAL, Record
from proofmark.site.hardware import StatedNode
from proofmark.site.node.facts import HostFacts
from proofmark.site.partition import PREDICTED


@dataclass(frozen=True, slots=True)
class Counterpart:
    """The measured reference of a figure: the median of all values, and one value per repeat."""

    value: float
    repeats: Mapping[int, float]


class Figures:
    """The valid figures of a run, by case, metric, node and mode."""

    def __init__(self, figures: Aggregates) -> None:
        self._figures = figures
        self._of = cache(self._by_node)

    def _by_node(self, case: str, metric: str) -> dict[tuple[str, str], list[Record]]:
        """Return the valid records of a metric by node and mode."""
        return gathered(
            ((record.node, record.mode), record)
            for record in self._figures.measuring(case, metric)
            if record.valid
        )

    def counterpart(self, of: Record, against: Against) -> Counterpart | None:
        """Return the figure that `against` names, on the node and in the mode of `of`.

        It is in the unit of `of`. Within the same case, all traits that ``where`` does not change
        must be equal. None if it was not measured.
        """
        case = against.case or of.case
        candidates = self._of(case, against.metric).get((of.node, of.mode), [])
        wanted: ParameterValues = against.where
        if case == of.case:
            wanted = {**traits(of), **against.where}
        fitting = [
            (record, record.value * times)
            for record in candidates
            if fits(traits(record), wanted)
            and record.value is not None
            and (times := factor(record.unit, of.unit)) is not None
        ]
        if not fitting:
            return None
        return Counterpart(
            median(value for _, value in fitting),
            by_repeat(replace(record, value=value) for record, value in fitting),
        )


OF_ONE_NODE = frozenset(
    ("hostname", "reported", "date", "boot_id", "load", "clock_offset_s", "firmware")
)
"""The facts of which no rule makes a value."""
MOST_KINDS = 16
"""The number of kinds of nodes with which each further node is compared."""


class Figure(NamedTuple):
    """A figure that is compared.

    Attributes:
        value: its median, in the unit of `record`.
        repeats: its value in each repeat; empty if it is not known which figures ran together.
        material: the least change that matters, as a part of the value.
        once: the noise of a figure that was measured once; None if it is not known.
    """

    record: Record
    value: float
    values: Sequence[float] = ()
    repeats: Mapping[int, float] = {}
    material: float = MATERIAL
    once: OneRepeat | None = None


class ReferenceValue(NamedTuple):
    """What a figure is compared with, in its unit.

    Attributes:
        name: of the value; the reason if a derived value is not known.
        unheld: the conditions of a typical value that do not hold.
    """

    value: float | None
    name: str
    source: str
    repeats: Mapping[int, float] = {}
    tolerance: float | None = None
    unheld: Sequence[Message] = ()


class _Ratios(NamedTuple):
    """The judged ratio, that of each repeat, the bounds, and whether the repeats are paired."""

    middle: float
    each: Sequence[float]
    bounds: Bounds
    paired: bool

    @property
    def missed(self) -> bool:
        return self.bounds.missed_by(self.middle)


class _Outcome(NamedTuple):
    """The outcome of a comparison, as `Judgement` has it."""

    outcome: str
    reason: Message
    visible: float | None = None
    repeats_needed: int = 0


def _unbelievable(ratios: _Ratios, times: float) -> bool:
    """Return whether a figure is more than so many times better than its limit."""
    least, most = ratios.bounds
    if least is not None:
        return ratios.middle > times * least
    return most is not None and ratios.middle < most / times


@dataclass(frozen=True)
class Comparison:
    """What references are compared with, besides the value of a figure.

    Attributes:
        tolerance: the site's tolerance of expected values; None is that of each value.
    """

    figures: Figures
    nodes: HostFacts
    node: StatedNode = ANY_NODE
    builds: Mapping[str, Build] = field(default_factory=dict)
    tolerance: float | None = None
    stated: Mapping[str, Nominal] = field(default_factory=dict)
    largest_ratio: float = math.inf
    _known: dict[tuple[object, ...], Derived | Message] = field(default_factory=dict, init=False)

    def judge(self, figure: Figure, reference: Reference) -> Judgement:
        """Return the judgement of a figure by a reference.

        If the reference was measured in several of the same repeats, the median of the ratios
        within a repeat counts, because the rate of a machine can change from repeat to repeat.

        A figure that misses is FAIL. One that meets a `floor` is UNJUDGED, and so is one that can
        miss another limit by more than its material change, by its noise. A figure that was
        measured once must meet the limit with the noise that its case states. An expected value
        whose conditions do not hold, and a predicted figure, judge nothing; a figure that meets
        the value although a condition of `ONLY_SLOWER` does not hold is PASS. An emulated figure
        that misses is UNJUDGED, because the speed of a virtual node is not that of a real one.
        """
        record = figure.record
        against = self._against(record, reference)
        bounds = judging_bounds(reference, self.tolerance, against.tolerance)
        if not against.value:
            reason = _not_known(against)
            about = (reference.kind, against.source, "UNJUDGED", reason, against.value, None)
            return Judgement(*about, *bounds)
        paired = _paired(figure.repeats, against.repeats) if against.repeats else ()
        middle = median(paired) if paired else figure.value / against.value
        each = paired or tuple(value / against.value for value in figure.values) or (middle,)
        ratios = _Ratios(middle, each, bounds, bool(paired))
        judged = self._judged(figure, ratios, reference, against)
        missed = judged.outcome == "FAIL"
        open_ = [each for each in against.unheld if missed or each.code not in ONLY_SLOWER]
        if open_ and judged.outcome != "UNJUDGED":
            reason = Message("conditions-open", text=judged.reason, conditions=joined(open_))
            judged = judged._replace(outcome="UNJUDGED", reason=reason)
        return Judgement(
            *(reference.kind, against.source, judged.outcome, judged.reason),
            *(against.value, middle, *bounds),
            ratios=paired,
            visible=judged.visible,
            repeats_needed=judged.repeats_needed,
        )

    def _judged(
        self, figure: Figure, ratios: _Ratios, reference: Reference, against: ReferenceValue
    ) -> _Outcome:
        """Return what the bounds make of a figure, before the conditions of a reference."""
        value = f"{against.value:.6g} {figure.record.unit}"
        text = compared(ratios.middle, ratios.bounds, against.name, value)
        if ratios.paired:
            text = Message("of-repeats", repeats=len(ratios.each), text=text)
        if figure.record.origin == PREDICTED:
            return _Outcome("UNJUDGED", text)
        if ratios.missed:
            return _Outcome("UNJUDGED" if figure.record.origin in VIRTUAL else "FAIL", text)
        if reference.kind == "floor":
            return _Outcome("UNJUDGED", shared("floor-met", text=text))
        if _unbelievable(ratios, self.largest_ratio):
            times = f"{self.largest_ratio:g}"
            return _Outcome("UNJUDGED", Message("unbelievable", text=text, times=times))
        each, middle, once = ratios.each, ratios.middle, figure.once
        found = []
        for limit, least in zip(ratios.bounds, (True, False), strict=True):
            if limit is None:
                continue
            missed = possible_miss(each, middle, limit, least=least, once=once)
            if missed is not None:
                found.append((missed, limit, least))
        if not found:
            return _Outcome("PASS", text)
        # Nothing shows a stated noise: the limit itself must be met, not only nearly.
        assumed = once is not None and once.stated and len(each) < 2
        accepted = 0.0 if assumed else figure.material
        visible = max(missed for missed, _, _ in found)
        if visible <= accepted:
            reason = shared("limit-confidence", text=text, change=percent(visible))
            return _Outcome("PASS", reason, visible)
        near = [
            (missed, limit, least)
            for missed, limit, least in found
            if missed > accepted and not within_by_factor(each, limit, least=least)
        ]
        if not near:
            times = f"{FACTOR_AT_ANY_NOISE:g}"
            return _Outcome("PASS", shared("limit-far", text=text, times=times))
        visible, limit, least = max(near)
        needed = enough_repeats(each, middle, limit, figure.material, least=least, once=once)
        noise = too_noisy(visible, figure.material, needed)
        if assumed and once is not None:
            noise = measured_once(once.spread, visible, needed)
        reason = Message("limit-noisy", text=text, noise=noise)
        return _Outcome("UNJUDGED", reason, visible, possible_repeats(needed))

    def _against(self, record: Record, reference: Reference) -> ReferenceValue:
        source = reference.source
        if reference.value is not None:
            times = factor(reference.unit or record.unit, record.unit)
            assert times is not None  # the units were checked when the cases were read
            value = reference.value * times
            return ReferenceValue(value, shared(f"figure-{reference.kind}"), source)
        if reference.rule is not None:
            return self._by_rule(record, reference)
        return self._measured(record, reference)

    def _by_rule(self, record: Record, reference: Reference) -> ReferenceValue:
        rule, source = reference.rule, reference.source
        assert rule is not None
        # The metrics of a program on a node have the same peak: it is computed once.
        hosts = hosts_of(record.node)
        of = rule, record.case, *record.parameters.items()
        own = (record.node, *of)
        like = (tuple(self._kinds.get(host, host) for host in hosts), *of)
        if (found := self._known.get(like, self._known.get(own))) is None:
            found = self._value_of_rule(rule, record)
            # A value and its source name no node.
            of_node = isinstance(found, Message) and found.names_node
            self._known[own if of_node else like] = found
        if isinstance(found, Message):
            return ReferenceValue(None, found, source)
        times = factor(UNIT_OF[rule], record.unit)
        assert times is not None
        shown = intern(f"{source}; {found.source}")  # one text for all nodes
        if not isinstance(found, TypicalValue):
            reach = found.reach if reference.kind == "floor" else 1.0
            return ReferenceValue(found.value * reach * times, rule, shown)
        value, tolerance, unheld = found.value * times, found.tolerance, found.unheld
        return ReferenceValue(value, rule, shown, tolerance=tolerance, unheld=unheld)

    @cached_property
    def _kinds(self) -> dict[str, int]:
        """The number of the kind of each node. The rules give the same for nodes of one kind."""
        numbers: dict[str, int] = {}
        kinds: dict[int, tuple[dict[str, object], Nominal]] = {}
        for host, facts in self.nodes.items():
            of_kind = {name: each for name, each in vars(facts).items() if name not in OF_ONE_NODE}
            mine = of_kind, self.stated.get(host, NOTHING_STATED)
            same = (number for number, each in kinds.items() if each == mine)
            numbers[host] = next(same, len(numbers))
            if len(kinds) < MOST_KINDS:
                kinds.setdefault(numbers[host], mine)
        return numbers

    def _value_of_rule(self, rule: Rule, record: Record) -> Derived | Message:
        hosts = hosts_of(record.node)
        if unknown := [host for host in hosts if host not in self.nodes]:
            return Message("hardware-unknown", nodes=folded(unknown))
        facts = [self.nodes[host] for host in hosts]
        stated = [self.stated.get(host, NOTHING_STATED) for host in hosts]
        build = self.builds.get(record.case, UNKNOWN_BUILD)
        return value_of_rule(rule, Setting(facts, self.node, build, stated), record.parameters)

    def _measured(self, record: Record, reference: Reference) -> ReferenceValue:
        against = reference.against
        assert against is not None
        measured = self.figures.counterpart(record, against)
        where = "".join(f" at {key} {value}" for key, value in against.where.items())
        name = f"{against.metric}{where}"
        # A step with one thread for each rank does not record the number of threads.
        known = {"threads": 1, **traits(record)}
        times = render(against.times, known, file=record.case, key="references.times")
        if times != 1:
            name = f"{name} × {times:g}"
        if measured is None:
            return ReferenceValue(None, name, reference.source)
        repeats = {repeat: value * times for repeat, value in measured.repeats.items()}
        return ReferenceValue(measured.value * times, name, reference.source, repeats)


def _not_known(against: ReferenceValue) -> Message:
    if against.value is None and isinstance(against.name, Message):
        return against.name
    code = "not-measured" if against.value is None else "reference-zero"
    return Message(code, name=against.name)


def _paired(figure: Mapping[int, float], reference: Mapping[int, float]) -> tuple[float, ...]:
    """Return figure ÷ reference of each common repeat; empty for fewer than two."""
    common = sorted(number for number in figure.keys() & reference.keys() if reference[number])
    if len(common) < 2:
        return ()
    return tuple(figure[number] / reference[number] for number in common)

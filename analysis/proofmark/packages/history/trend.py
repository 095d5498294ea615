"""The trend of a machine: what changed over many runs, when, by how much, and what else changed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from proofmark.cases.reference import MATERIAL, Metric
from proofmark.common.message import NOTHING, Message
from proofmark.judge.confidence import Interval, ratio, ratio_interval, too_noisy
from proofmark.judge.fleet.critical_values import FAMILY_LEVEL
from proofmark.judge.shared_traits import differences
from proofmark.packages.history.change_points import Course, LevelSeries, courses
from proofmark.packages.history.history import Event, Points, events_of, family_of, history
from proofmark.packages.history.past_run import PastFigure, PastRun
from proofmark.records.columns import Floats

MetricOf = Callable[[PastFigure], Metric | None]
"""Returns the metric of a figure; None if no run has its case."""
Group = tuple[str, str, str]
"""System, partition and origin: only figures of one group are compared."""


@dataclass(frozen=True)
class TrendChange:
    """A change of one series.

    Attributes:
        first, last: the medians before and after the change, in the unit of the series.
        change: the ratio after ÷ before, minus 1.
        interval: of the change, with its confidence; None if a part has a single run.
        before: the number of the last run that is surely before the change.
        after: the number of the first run that is surely after it.
        at: the number of the first run after the most likely place; -1 for a gradual change.
        better: whether the change is an improvement; None if the metric does not tell.
        events: the events of the machine that may be its cause.
    """

    points: Points
    first: float
    last: float
    change: float
    interval: Interval | None
    before: int
    after: int
    at: int
    better: bool | None
    events: tuple[Event, ...]

    @property
    def gradual(self) -> bool:
        """Whether the series changed gradually over all its runs."""
        return self.at < 0


@dataclass(frozen=True)
class Reprogrammed:
    """A figure before and after its program changed: not like with like, and no test.

    Attributes:
        old, new: the series of the two programs.
        change: the ratio of their medians, minus 1.
        traits: what differs between the programs: trait, old and new value.
    """

    old: Points
    new: Points
    change: float
    traits: tuple[tuple[Message, str, str], ...]


@dataclass(frozen=True, eq=False)
class Trend:
    """The trend of one group.

    Attributes:
        group: system, partition and origin.
        runs: all runs; other attributes refer to their numbers.
        numbers: the runs of the group, in the order of time.
        lines: the series of all figures, with their courses.
        changes: of figures, the largest first.
        drifting: of nodes against the median of their class, the largest first.
        reprogrammed: figures whose program changed.
        events: of the machine, in the order of time.
        compared_nodes: the number of series of nodes that were tested.
        noisy_nodes: those of them in which a material change would not be seen.
    """

    group: Group
    runs: Sequence[PastRun]
    numbers: tuple[int, ...]
    lines: tuple[tuple[Points, Course], ...]
    changes: tuple[TrendChange, ...]
    drifting: tuple[TrendChange, ...]
    reprogrammed: tuple[Reprogrammed, ...]
    events: tuple[Event, ...]
    compared_nodes: int
    noisy_nodes: int = 0

    @property
    def tested(self) -> int:
        """The number of series that have enough runs and positive values."""
        return sum(course.tested for _, course in self.lines)

    @property
    def noisy(self) -> int:
        """The number of tested series in which a material change would not be seen."""
        return sum(bool(course.noise) for _, course in self.lines)


def trends(
    runs: Sequence[PastRun], metric_of: MetricOf, level: float = FAMILY_LEVEL
) -> list[Trend]:
    """Return the trend of each group of the runs.

    Args:
        runs: in the order of time.
        metric_of: the metric of a figure. Results of computation (``same_digits``) are not tested.
        level: the probability that any figure of a steady machine is reported, and that any node
            is, for each group.
    """
    about = history(runs)
    of_group: dict[Group, list[Points]] = {}
    for points in about.of_lines():
        of_group.setdefault(points.line.figure[:3], []).append(points)
    nodes: dict[Group, list[Points]] = {}
    for points in about.of_nodes():
        nodes.setdefault(points.line.figure[:3], []).append(points)
    days = np.array([run.started.timestamp() / 86400 for run in runs])
    builder = _Builder(runs, days, metric_of, level, about.hosts())
    return [
        builder.trend(group, lines, nodes.get(group, ()))
        for group, lines in sorted(of_group.items())
    ]


@dataclass(frozen=True)
class _Builder:
    """Makes trends; `hosts` are those of each class of nodes."""

    runs: Sequence[PastRun]
    days: Floats
    metric_of: MetricOf
    level: float
    hosts: Mapping[str, frozenset[str]]

    def trend(self, group: Group, lines: Sequence[Points], nodes: Sequence[Points]) -> Trend:
        numbers = sorted(set(map(int, chain.from_iterable(points.run for points in lines))))
        events = events_of(self.runs, numbers)
        found = self._courses(lines)
        of_nodes = self._courses(nodes)
        changes = (self._changes(*each, events) for each in zip(lines, found, strict=True))
        drifting = (self._changes(*each, events) for each in zip(nodes, of_nodes, strict=True))
        return Trend(
            group,
            self.runs,
            tuple(numbers),
            tuple(zip(lines, found, strict=True)),
            tuple(sorted(chain.from_iterable(changes), key=_order)),
            tuple(sorted(chain.from_iterable(drifting), key=_order)),
            tuple(self._reprogrammed(lines)),
            tuple(events),
            sum(course.tested for course in of_nodes),
            sum(bool(course.noise) for course in of_nodes),
        )

    def _courses(self, lines: Sequence[Points]) -> list[Course]:
        """Return the course of each line; an empty one if its values cannot be compared."""
        families: dict[tuple[str, ...], int] = {}
        usable = [number for number, points in enumerate(lines) if self._comparable(points)]
        series = [
            LevelSeries(
                self.days[lines[number].run],
                np.log(lines[number].value),
                families.setdefault(family_of(lines[number].line), len(families)),
            )
            for number in usable
        ]
        result = [Course()] * len(lines)
        for number, course in zip(usable, courses(series, self.level), strict=True):
            result[number] = replace(course, noise=self._noise(lines[number], course))
        return result

    def _noise(self, points: Points, course: Course) -> Message:
        """Return why a material change of a tested series would not be seen."""
        if not course.tested:
            return NOTHING
        metric = self.metric_of(points.line.figure)
        material = metric.material_change if metric else MATERIAL
        runs = math.ceil(len(points) * (course.visible / -math.log1p(-material)) ** 2)
        return too_noisy(-math.expm1(-course.visible), material, runs, "needs-runs")

    def _comparable(self, points: Points) -> bool:
        metric = self.metric_of(points.line.figure)
        digits = metric is not None and metric.same_digits
        return not digits and bool((points.value > 0).all())

    def _changes(
        self,
        points: Points,
        course: Course,
        events: Sequence[Event],
    ) -> Iterator[TrendChange]:
        node = points.line.node
        concerned = frozenset([node]) if node else self.hosts.get(points.line.kind, frozenset())
        places = [0, *(step.place for step in course.steps), len(points)]
        for number, step in enumerate(course.steps):
            first, last = places[number], places[number + 2]
            parts = points.value[first : step.place], points.value[step.place : last]
            before, after = int(points.run[step.earliest - 1]), int(points.run[step.latest])
            causes = _candidates(events, before, after, concerned)
            yield self._change(points, parts, before, after, int(points.run[step.place]), causes)
        if course.slope:
            third = max(1, len(points) // 3)
            parts = points.value[:third], points.value[-third:]
            before, after = int(points.run[0]), int(points.run[-1])
            causes = _candidates(events, before, after, concerned)
            yield self._change(points, parts, before, after, -1, causes)

    def _change(
        self,
        points: Points,
        parts: tuple[Floats, Floats],
        before: int,
        after: int,
        at: int,
        causes: tuple[Event, ...],
    ) -> TrendChange:
        first, last = (part.tolist() for part in parts)
        change = ratio(first, last) - 1
        bounds = ratio_interval(first, last)
        size = bounds and Interval(bounds.low - 1, bounds.high - 1, bounds.confidence)
        metric = self.metric_of(points.line.figure)
        better = None if metric is None else (change > 0) == (metric.better == "higher")
        middles = float(np.median(first)), float(np.median(last))
        return TrendChange(points, *middles, change, size, before, after, at, better, causes)

    def _reprogrammed(self, lines: Sequence[Points]) -> Iterator[Reprogrammed]:
        """Yield each figure with several programs: the newest one and the one before it."""
        programs: dict[tuple[PastFigure, str], list[Points]] = {}
        for points in lines:
            programs.setdefault((points.line.figure, points.line.kind), []).append(points)
        software: dict[str, Mapping[Message, str]] = {}
        for run in self.runs:
            software |= {digest: traits for digest, (_, traits) in run.software.items()}
        for alike in programs.values():
            if len(alike) < 2:
                continue
            old, new = sorted(alike, key=lambda points: int(points.run[-1]))[-2:]
            first, last = float(np.median(old.value)), float(np.median(new.value))
            traits = (software.get(each.line.program, {}) for each in (old, new))
            if first > 0:
                yield Reprogrammed(old, new, last / first - 1, tuple(differences(*traits)))


def _order(change: TrendChange) -> tuple[bool, float]:
    """Order changes: those for the better last, large ones first."""
    return change.better is True, -abs(math.log1p(change.change))


def _candidates(
    events: Sequence[Event], before: int, after: int, hosts: frozenset[str]
) -> tuple[Event, ...]:
    """Return the events on `hosts` between two runs. A program of one series never changes."""
    return tuple(
        event
        for event in events
        if event.nodes and event.within(before, after) and event.concerns(hosts)
    )

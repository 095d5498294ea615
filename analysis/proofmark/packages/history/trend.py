"""The trend of a machine: what changed over many runs, when, by how much, and what else changed.

A series has one figure, class of nodes and program. An event is a trait of nodes or programs that
differs between two runs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import polars as pl

from proofmark.cases.reference import MATERIAL, Metric
from proofmark.common.message import NOTHING, Message
from proofmark.common.nodesets import folded, hosts_of
from proofmark.judge.confidence import Interval, interval, too_noisy
from proofmark.judge.fleet.critical_values import FAMILY_LEVEL
from proofmark.judge.stated_parts import differences, of_node
from proofmark.packages.history.change_points import Course, LevelSeries, courses
from proofmark.packages.history.past_run import PackageTraits, PastFigure, PastRun
from proofmark.packages.history.two_samples import ratio, ratio_interval
from proofmark.records.columns import Floats, Numbers


@dataclass(frozen=True)
class Event:
    """One change of one trait, on one or several nodes, between two runs.

    Attributes:
        trait: the name of the trait.
        old, new: its values; empty if the trait is absent.
        before: the number of the last run with the old value.
        after: the number of the first run with the new value.
        nodes: the nodes, sorted; empty for programs.
        packages: those of the programs, sorted; empty for nodes.
    """

    trait: Message
    old: str
    new: str
    before: int
    after: int
    nodes: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()

    @property
    def where(self) -> str:
        """The nodes as a folded list, or the packages."""
        return folded(self.nodes) if self.nodes else ", ".join(self.packages)

    def within(self, first: int, last: int) -> bool:
        """Return whether the event may have happened between the runs `first` and `last`."""
        return self.before < last and self.after > first

    def concerns(self, hosts: Collection[str]) -> bool:
        """Return whether the event happened on one of `hosts`."""
        return any(host in hosts for host in self.nodes)


def events_of(runs: Sequence[PastRun], numbers: Iterable[int]) -> list[Event]:
    """Return the events of the runs with `numbers`, in the order of time.

    A node is compared with the previous run that has its facts. Equal changes of several nodes, or
    of several packages, between the same runs are one event.
    """
    last: dict[str, tuple[int, Mapping[str, str]]] = {}
    packages: dict[str, tuple[int, PackageTraits]] = {}
    of_nodes: dict[tuple[Message, str, str, int, int], set[str]] = {}
    of_packages: dict[tuple[Message, str, str, int, int], set[str]] = {}
    for number in numbers:
        for host, node in runs[number].hosts.items():
            if host in last:
                before, old = last[host]
                for trait, *values in differences(old, node.traits):
                    key = (of_node(trait), values[0], values[1], before, number)
                    of_nodes.setdefault(key, set()).add(host)
            last[host] = number, node.traits
        for name, traits in runs[number].software.items():
            if name in packages:
                before, known = packages[name]
                for part, *values in differences(known, traits):
                    key = (part.text, values[0], values[1], before, number)
                    of_packages.setdefault(key, set()).add(name)
            packages[name] = number, traits
    events = [Event(*key, nodes=tuple(sorted(names))) for key, names in of_nodes.items()]
    events += [Event(*key, packages=tuple(sorted(names))) for key, names in of_packages.items()]
    return sorted(events, key=lambda each: (each.after, not each.nodes, each.trait))


LEAST_PEERS = 3
"""The least number of like nodes in a run with which a node is compared."""


@dataclass(frozen=True)
class HistoryLine:
    """The subject of a series.

    Attributes:
        kind: the hardware of its nodes; with their number if a result belongs to several.
        program: the hash of its environment.
        node: the node, if the series is that of one node.
    """

    figure: PastFigure
    kind: str
    program: str
    node: str = ""


@dataclass(frozen=True, eq=False)
class Points:
    """The values of a line. All arrays have the shape (runs of the line,), in the order of time.

    Attributes:
        run: the numbers of the runs.
        value: the median of the nodes, in the unit of the figure; of a node: its value ÷ this
            median.
        low, high: the interval of the median; NaN for a single value.
        nodes: the number of nodes.
    """

    line: HistoryLine
    run: Numbers
    value: Floats
    low: Floats
    high: Floats
    nodes: Numbers

    def __len__(self) -> int:
        return len(self.run)


@dataclass(frozen=True, eq=False)
class History:
    """All results of the runs as one table with a row for each; the names of its numbers.

    Attributes:
        runs: the runs in the order of time.
        lines: the subjects; the column ``line`` has their numbers.
        nodes: the names of nodes and sets of nodes.
        table: the columns ``line``, ``run``, ``node``, ``value``, ``low``, ``high``.
    """

    runs: Sequence[PastRun]
    lines: Sequence[HistoryLine]
    nodes: Sequence[str]
    table: pl.DataFrame

    def of_lines(self) -> Iterator[Points]:
        """Yield the series of each line: the median of its nodes in each run.

        The interval is that of the repeats of one node, or the rank-based interval of the median of
        several nodes.
        """
        counts = self.table.group_by("line", "run").agg(pl.len().alias("nodes"))
        ranks = {
            number: int(bounds.low) if (bounds := interval(range(1, number + 1))) else 1
            for number in counts["nodes"].unique()
        }
        rank = pl.col("nodes").replace_strict(ranks, return_dtype=pl.Int64)
        several = pl.col("nodes").first() > 1
        ordered = pl.col("value").sort()
        medians = (
            self.table.join(counts.with_columns(rank=rank), on=["line", "run"])
            .group_by("line", "run")
            .agg(
                value=pl.col("value").median(),
                low=pl.when(several)
                .then(ordered.get(pl.col("rank").first() - 1))
                .otherwise(pl.col("low").first()),
                high=pl.when(several)
                .then(ordered.get(pl.len().cast(pl.Int64) - pl.col("rank").first()))
                .otherwise(pl.col("high").first()),
                nodes=pl.col("nodes").first(),
            )
            .sort("line", "run")
        )
        for (line,), part in medians.group_by("line", maintain_order=True):
            yield _points(self.lines[int(str(line))], part)

    def of_nodes(self) -> Iterator[Points]:
        """Yield the series of each single node: its value ÷ the median of like nodes.

        Runs with fewer than `LEAST_PEERS` like nodes are left out.
        """
        single = [number for number, name in enumerate(self.nodes) if len(hosts_of(name)) == 1]
        group = ["line", "run"]
        relative = (
            self.table.filter(pl.col("node").is_in(single))
            .with_columns(nodes=pl.len().over(group), middle=pl.col("value").median().over(group))
            .filter((pl.col("nodes") >= LEAST_PEERS) & (pl.col("middle") > 0))
            .with_columns(pl.col("value", "low", "high") / pl.col("middle"))
            .sort("line", "node", "run")
        )
        for (line, node), part in relative.group_by("line", "node", maintain_order=True):
            about = self.lines[int(str(line))]
            name = self.nodes[int(str(node))]
            yield _points(HistoryLine(about.figure, about.kind, about.program, name), part)

    def hosts(self) -> dict[str, frozenset[str]]:
        """Return the hosts of each class of nodes."""
        names: dict[str, set[str]] = {}
        for line, node in self.table.select("line", "node").unique().iter_rows():
            names.setdefault(self.lines[line].kind, set()).update(hosts_of(self.nodes[node]))
        return {kind: frozenset(hosts) for kind, hosts in names.items()}


def _points(line: HistoryLine, part: pl.DataFrame) -> Points:
    columns = (part[name].to_numpy() for name in ("run", "value", "low", "high", "nodes"))
    run, value, low, high, nodes = columns
    return Points(line, run, value, low, high, nodes.astype(np.int64))


def history(runs: Sequence[PastRun]) -> History:
    """Return the results of `runs`, which are in the order of time, as one table.

    A host belongs to the class of its most frequent hardware in runs of the same origin: a lost
    core is a change of this host, and no new class.
    """
    kinds = {
        origin: _Kinds([run for run in runs if run.origin == origin])
        for origin in {run.origin for run in runs}
    }
    lines: dict[HistoryLine, int] = {}
    nodes: dict[str, int] = {}
    parts = []
    for number, run in enumerate(runs):
        of_node = np.array([nodes.setdefault(name, len(nodes)) for name in run.nodes])
        kind = [kinds[run.origin].of(name) for name in run.nodes]
        subjects = np.stack((run.figure, run.node, run.program), axis=1).tolist()
        line = [
            lines.setdefault(HistoryLine(run.figures[f], kind[n], run.programs[p]), len(lines))
            for f, n, p in subjects
        ]
        columns = {
            "line": np.array(line, dtype=np.int64),
            "run": np.full(len(line), number, dtype=np.int64),
            "node": of_node[run.node],
            "value": run.value,
            "low": run.low,
            "high": run.high,
        }
        parts.append(pl.DataFrame(columns))
    return History(runs, list(lines), list(nodes), pl.concat(parts))


class _Kinds:
    """The class of each node and set of nodes."""

    def __init__(self, runs: Sequence[PastRun]) -> None:
        seen: dict[str, Counter[str]] = {}
        for run in runs:
            for host, node in run.hosts.items():
                seen.setdefault(host, Counter())[node.kind] += 1
        self._usual = {host: counts.most_common(1)[0][0] for host, counts in seen.items()}
        self._known: dict[str, str] = {}

    def of(self, name: str) -> str:
        """Return the class of a node or of a set of nodes."""
        if name not in self._known:
            hosts = hosts_of(name)
            usual = " and ".join(sorted({self._usual.get(host, "") for host in hosts}))
            self._known[name] = usual if len(hosts) == 1 else f"{len(hosts)} nodes: {usual}"
        return self._known[name]


def family_of(line: HistoryLine) -> tuple[str, ...]:
    """Return the family of a line, over which noise is pooled: all but parameters, mode, program.

    Placements and classes of nodes belong to one family too.
    """
    return line.figure[:7]


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
    """

    old: Points
    new: Points
    change: float


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
        for alike in programs.values():
            if len(alike) < 2:
                continue
            old, new = sorted(alike, key=lambda points: int(points.run[-1]))[-2:]
            first, last = float(np.median(old.value)), float(np.median(new.value))
            if first > 0:
                yield Reprogrammed(old, new, last / first - 1)


def _order(change: TrendChange) -> tuple[bool, float]:
    """Order changes: those for the better last, large ones first."""
    return change.better is True, -abs(math.log1p(change.change))


def _candidates(
    events: Sequence[Event], before: int, after: int, hosts: frozenset[str]
) -> tuple[Event, ...]:
    """Return the events on `hosts` between two runs. A program of one series never changes."""
    return tuple(event for event in events if event.within(before, after) and event.concerns(hosts))

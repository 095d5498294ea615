"""The figures of many runs as series, and the events of the machine between the runs.

A series has one figure, class of nodes and program. An event is a trait of nodes or programs that
differs between two runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from proofmark.common.message import Message
from proofmark.common.nodesets import folded, hosts_of
from proofmark.judge.confidence import interval
from proofmark.judge.shared_traits import differences, of_node, of_package
from proofmark.packages.history.past_run import PastFigure, PastRun
from proofmark.records.columns import Floats, Numbers


@dataclass(frozen=True)
class Event:
    """One change of one trait, on one or several nodes, between two runs.

    Attributes:
        trait: the name of the trait; of a program with the name of its package.
        old, new: its values; empty if the trait is absent.
        nodes: the nodes, sorted; empty for a program.
        before: the number of the last run with the old value.
        after: the number of the first run with the new value.
    """

    trait: Message
    old: str
    new: str
    nodes: tuple[str, ...]
    before: int
    after: int

    @property
    def where(self) -> str:
        """The nodes as a folded list."""
        return folded(self.nodes) if self.nodes else ""

    def within(self, first: int, last: int) -> bool:
        """Return whether the event may have happened between the runs `first` and `last`."""
        return self.before < last and self.after > first

    def concerns(self, hosts: Collection[str]) -> bool:
        """Return whether the event happened on one of `hosts`, or to a program."""
        return not self.nodes or any(host in hosts for host in self.nodes)


def events_of(runs: Sequence[PastRun], numbers: Iterable[int]) -> list[Event]:
    """Return the events of the runs with `numbers`, in the order of time.

    A node is compared with the previous run that has its facts. Equal changes of several nodes
    between the same runs are one event.
    """
    last: dict[str, tuple[int, Mapping[str, str]]] = {}
    packages: dict[str, tuple[int, Mapping[Message, str]]] = {}
    found: dict[tuple[Message, str, str, int, int], list[str]] = {}
    for number in numbers:
        for host, node in runs[number].hosts.items():
            if host in last:
                before, old = last[host]
                for trait, *values in differences(old, node.traits):
                    key = (of_node(trait), values[0], values[1], before, number)
                    found.setdefault(key, []).append(host)
            last[host] = number, node.traits
        for name, traits in runs[number].software.values():
            if name in packages:
                before, known = packages[name]
                for part, *values in differences(known, traits):
                    key = (of_package(name, part), values[0], values[1], before, number)
                    found.setdefault(key, [])
            packages[name] = number, traits
    events = [
        Event(trait, old, new, tuple(sorted(hosts)), before, after)
        for (trait, old, new, before, after), hosts in found.items()
    ]
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

"""The figures of a run over like nodes, and what each node's is held against."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from proofmark.cases.models import Benchmarks
from proofmark.common.nodesets import hosts_of
from proofmark.judge.aggregate import Aggregates
from proofmark.judge.fleet.thresholds import (
    DROPS,
    FAMILY_LEVEL,
    FleetLimit,
    fleet_limit,
    level_of_one,
)
from proofmark.judge.references.compare import Judgement
from proofmark.records.columns import Floats, Numbers, Record
from proofmark.site.node.facts import NodeFacts


@dataclass(frozen=True)
class FleetFigure:
    """One figure over like nodes: any of its records, and the yardstick."""

    record: Record
    kind: str
    better: str
    fleet_limit: FleetLimit
    flagged: tuple[str, ...]

    @cached_property
    def told(self) -> tuple[str, str, tuple[float | None, float | None]]:
        """What the answer to every node says: source, what it is held against, and the limits."""
        stick = self.fleet_limit
        source = f"{stick.nodes} like nodes"
        if stick.limit is None:
            return source, "", (None, None)
        found = f"finds one {100 * stick.detectable:.2g} % off in 95 of 100 cases"
        source = f"{source}, spread {100 * stick.spread:.2g} %; {found}"
        name = f"the median of {stick.nodes} like nodes ({stick.centre:.6g} {self.record.unit})"
        accepted = stick.limit / stick.centre
        return source, name, (accepted, None) if self.better == "higher" else (None, accepted)

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
        record, stick = self.record, self.fleet_limit
        return {
            "case": record.case,
            "benchmark": record.benchmark,
            "metric": record.metric,
            "unit": record.unit,
            "mode": record.mode,
            "placement": record.placement,
            "parameters": dict(record.parameters),
            "hardware": self.kind,
            "nodes": stick.nodes,
            "median": stick.centre,
            "spread": stick.spread,
            "critical": stick.critical,
            "limit": stick.limit,
            "detectable": stick.detectable,
            "power": {f"{drop:g}": stick.power_at(drop) for drop in DROPS},
            "powerless": stick.powerless,
            "flagged": list(self.flagged),
        }


@dataclass(frozen=True, eq=False)
class Fleet:
    """All figures that several like nodes measured, and the answer for each.

    Attributes:
        level: probability that anything is flagged on a healthy machine.
        figures: over like nodes.
        passed, failed: the numbers of the results that do, as their fellows have it.
        of: of each result its place in `figures`; -1 of one without fellows.
        median: of each result.
    """

    level: float = FAMILY_LEVEL
    figures: tuple[FleetFigure, ...] = ()
    passed: Numbers = field(default_factory=lambda: _NONE, repr=False)
    failed: Numbers = field(default_factory=lambda: _NONE, repr=False)
    of: Numbers = field(default_factory=lambda: _NONE, repr=False)
    median: Floats = field(default_factory=lambda: np.array([]), repr=False)

    def judge(self, result: int) -> Judgement | None:
        """Return what its fellows say about a result; None where it has none."""
        place = int(self.of[result])
        if place < 0:
            return None
        return _judgement(self.figures[place], float(self.median[result]))

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
        return {
            "family_level": self.level,
            "tests": sum(figure.fleet_limit.nodes for figure in self._tested()),
            "figures": [figure.as_json() for figure in self.figures],
        }

    def _tested(self) -> Iterable[FleetFigure]:
        return (figure for figure in self.figures if figure.fleet_limit.limit is not None)


_NONE: Numbers = np.array([], dtype=np.int64)


def hardware_kind(facts: NodeFacts | None) -> str:
    """Return what makes nodes comparable; firmware and settings do not, they are what is sought."""
    if facts is None:
        return ""
    return f"{facts.cpu_model}, {facts.sockets} × {facts.cores // max(1, facts.sockets)} cores"


def measure_fleet(
    figures: Aggregates, benchmarks: Benchmarks, nodes: Mapping[str, NodeFacts], level: float
) -> Fleet:
    """Compare like nodes: figures that differ in nothing but the node, on like hardware.

    Args:
        figures: of a run; the valid ones count, each of one node or pair.
        benchmarks: say which direction of a metric is good.
        nodes: hardware by host name.
        level: probability that anything at all is flagged on a healthy machine.
    """
    kinds = _Kinds(nodes)
    several = list(_groups(figures, benchmarks, kinds))
    one = level_of_one(level, len(several))
    made: list[FleetFigure] = []
    passed: list[Numbers] = [_NONE]
    failed: list[Numbers] = [_NONE]
    of = np.full(len(figures), -1, dtype=np.int64)
    for members in several:
        first = figures.record(int(members[0]))
        better = benchmarks.case(first.case).metrics[first.metric].better
        values = figures.median[members]
        stick = fleet_limit(values, better, one)
        bad = np.zeros(len(members), dtype=bool)
        if stick.limit is not None:
            bad = values < stick.limit if better == "higher" else values > stick.limit
            passed.append(members[~bad])
            failed.append(members[bad])
        of[members] = len(made)
        flagged = tuple(figures.records.nodes[node] for node in figures.node[members[bad]])
        kind, _ = kinds.of(first.node)
        made.append(FleetFigure(first, kind, better, stick, flagged))
    return Fleet(
        level, tuple(made), np.concatenate(passed), np.concatenate(failed), of, figures.median
    )


def _groups(figures: Aggregates, benchmarks: Benchmarks, kinds: _Kinds) -> Iterator[Numbers]:
    """Yield the numbers of the figures that are alike, where several are."""
    places: dict[tuple[str, int], int] = {}
    kind = np.array(
        [places.setdefault(kinds.of(node), len(places)) for node in figures.records.nodes],
        dtype=np.int64,
    )
    sound = np.flatnonzero(figures.valid)
    alike = figures.identity[sound] * max(1, len(places)) + kind[figures.node[sound]]
    by_group = np.argsort(alike, kind="stable")
    borders = np.flatnonzero(np.diff(alike[by_group])) + 1
    groups = [sound[own] for own in np.split(by_group, borders) if len(own) > 1]
    for members in sorted(groups, key=lambda own: int(own[0])):
        what = figures.records.measurands[figures.measurand[members[0]]]
        if what.metric in benchmarks.case(what.case).metrics:
            yield members  # else nobody says which direction is good


class _Kinds:
    """The hardware of each node or pair; a pair is compared with pairs."""

    def __init__(self, nodes: Mapping[str, NodeFacts]) -> None:
        self._nodes = nodes
        self._known: dict[str, tuple[str, int]] = {}

    def of(self, node: str) -> tuple[str, int]:
        if node not in self._known:
            hosts = hosts_of(node)
            kinds = sorted({hardware_kind(self._nodes.get(host)) for host in hosts})
            self._known[node] = " and ".join(kinds), len(hosts)
        return self._known[node]


def _judgement(figure: FleetFigure, value: float) -> Judgement:
    """Hold one node's value against those of its fellows."""
    stick, better = figure.fleet_limit, figure.better
    source, name, bounds = figure.told
    if stick.limit is None:
        return Judgement(
            "fleet", source, "UNJUDGED", stick.powerless, stick.centre or None, None, None, None
        )
    ratio = value / stick.centre
    reason = f"{ratio:.3g} × {name}"
    bad = value < stick.limit if better == "higher" else value > stick.limit
    if bad:
        off = stick.deviation(value)
        far = "" if off == float("inf") else f", {off:.1f} spreads off"
        reason = f"{reason}{far}; {stick.critical:.1f} are accepted"
    outcome = "FAIL" if bad else "PASS"
    return Judgement("fleet", source, outcome, reason, stick.centre, ratio, *bounds)

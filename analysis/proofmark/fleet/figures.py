"""The figures of a run over like nodes, and what each node's is held against."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from ClusterShell.NodeSet import NodeSet

from proofmark.cases import Benchmarks
from proofmark.fleet.outliers import (
    DROPS,
    FAMILY_LEVEL,
    Yardstick,
    level_of_one,
    yardstick,
)
from proofmark.node.facts import NodeFacts
from proofmark.records import Record
from proofmark.references.hold import Judgement

NODE = 3
"""Where the node stands in the identity of a figure."""


@dataclass(frozen=True, slots=True)
class Point:
    """One figure of one node, or of one pair of nodes; `record` holds the median."""

    record: Record
    identity: tuple[str, ...]


@dataclass(frozen=True)
class FleetFigure:
    """One figure over like nodes: any of its records, and the yardstick."""

    record: Record
    kind: str
    better: str
    yardstick: Yardstick
    flagged: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
        record, stick = self.record, self.yardstick
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


@dataclass(frozen=True)
class Fleet:
    """All figures that several like nodes measured, and the answer for each."""

    level: float = FAMILY_LEVEL
    figures: tuple[FleetFigure, ...] = ()
    answers: Mapping[int, Judgement] = field(default_factory=dict, repr=False, compare=False)

    def judge(self, record: Record) -> Judgement | None:
        """Return what its fellows say about this very figure; None where it has none."""
        return self.answers.get(id(record))

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
        return {
            "family_level": self.level,
            "tests": sum(figure.yardstick.nodes for figure in self._tested()),
            "figures": [figure.as_json() for figure in self.figures],
        }

    def _tested(self) -> Iterable[FleetFigure]:
        return (figure for figure in self.figures if figure.yardstick.limit is not None)


def hardware_kind(facts: NodeFacts | None) -> str:
    """Return what makes nodes comparable; firmware and settings do not, they are what is sought."""
    if facts is None:
        return ""
    return f"{facts.cpu_model}, {facts.sockets} × {facts.cores // max(1, facts.sockets)} cores"


def measure_fleet(
    points: Sequence[Point], benchmarks: Benchmarks, nodes: Mapping[str, NodeFacts], level: float
) -> Fleet:
    """Compare like nodes: figures that differ in nothing but the node, on like hardware.

    Args:
        points: the valid figures of a run, one a node (or pair) each.
        benchmarks: say which direction of a metric is good.
        nodes: hardware by host name.
        level: probability that anything at all is flagged on a healthy machine.
    """
    kinds = _Kinds(nodes)
    groups: dict[tuple[object, ...], list[Point]] = {}
    for point in points:
        if point.record.metric not in benchmarks.case(point.record.case).metrics:
            continue  # nobody says which direction is good
        where = point.identity
        key = (*where[:NODE], *where[NODE + 1 :], *kinds.of(point.record.node))
        groups.setdefault(key, []).append(point)
    several = [group for group in groups.values() if len(group) > 1]
    one = level_of_one(level, len(several))
    figures: list[FleetFigure] = []
    answers: dict[int, Judgement] = {}
    for group in several:
        first = group[0].record
        metric = benchmarks.case(first.case).metrics[first.metric]
        values = [point.record.value or 0.0 for point in group]
        stick = yardstick(values, metric.better, one)
        judgements = _judgements(values, metric.better, first.unit, stick)
        answers |= {id(point.record): each for point, each in zip(group, judgements, strict=True)}
        flagged = tuple(
            point.record.node
            for point, each in zip(group, judgements, strict=True)
            if each.outcome == "FAIL"
        )
        kind = str(kinds.of(first.node)[0])
        figures.append(FleetFigure(first, kind, metric.better, stick, flagged))
    return Fleet(level, tuple(figures), answers)


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


@lru_cache(maxsize=65536)
def hosts_of(node: str) -> tuple[str, ...]:
    """Return the hosts that a record's node names: itself, or those of a folded set."""
    if "[" not in node and "," not in node:
        return (node,)
    return tuple(NodeSet(node))


def _judgements(
    values: Sequence[float], better: str, unit: str, stick: Yardstick
) -> Iterable[Judgement]:
    if stick.limit is None:
        source = f"{stick.nodes} like nodes"
        nothing = Judgement(
            "fleet", source, "UNJUDGED", stick.powerless, stick.centre or None, None, None, None
        )
        return [nothing] * len(values)
    ratio = stick.limit / stick.centre
    bounds = (ratio, None) if better == "higher" else (None, ratio)
    source = (
        f"{stick.nodes} like nodes, spread {100 * stick.spread:.2g} %; "
        f"finds one {100 * stick.detectable:.2g} % off in 95 of 100 cases"
    )
    name = f"the median of {stick.nodes} like nodes ({stick.centre:.6g} {unit})"
    found = []
    for value in values:
        bad = value < stick.limit if better == "higher" else value > stick.limit
        if bad:
            off = stick.off(value)
            far = "" if off == float("inf") else f", {off:.1f} spreads off"
            reason = f"{value / stick.centre:.3g} × {name}{far}; {stick.critical:.1f} are accepted"
        else:
            reason = f"{value / stick.centre:.3g} × {name}"
        outcome = "FAIL" if bad else "PASS"
        ratio_now = value / stick.centre
        found.append(Judgement("fleet", source, outcome, reason, stick.centre, ratio_now, *bounds))
    return found

"""The fleet comparison: each figure is compared with that of like nodes, or of like targets."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from proofmark.cases.suite import Benchmarks
from proofmark.cases.telemetry import metrics_of
from proofmark.cases.vocabulary import MEASURED, STORAGE_TARGET, TOGETHER
from proofmark.common.message import NOTHING, Message
from proofmark.common.nodesets import hosts_of
from proofmark.judge.aggregate import Aggregates
from proofmark.judge.fleet.fleet_noise import repeats_of_nodes
from proofmark.judge.fleet.thresholds import (
    DROPS,
    FAMILY_LEVEL,
    FleetLimit,
    fleet_limit,
    level_of_one,
    members_of,
)
from proofmark.judge.power import material_of, too_noisy
from proofmark.judge.references.judgement import PEERS, Judgement
from proofmark.records.columns import Floats, Measurand, Numbers, Record
from proofmark.site.node.facts import NodeFacts


@dataclass(frozen=True)
class FleetFigure:
    """One figure of like nodes.

    Attributes:
        record: the record of one of the nodes.
        kind: the hardware of the nodes, and the distance of a pair.
        better: whether a higher or a lower value is better (``higher``, ``lower``).
        fleet_limit: the limit for all nodes.
        flagged: the nodes that miss the limit, or the indexes of storage targets.
        members: what is compared: `LIKE_NODES` or `LIKE_TARGETS`.
        noise: why a material change of a node would not be seen; `NOTHING` if it would be.
        needed: with how many repeats it would be seen (`repeats_needed`).
    """

    record: Record
    kind: str
    better: str
    fleet_limit: FleetLimit
    flagged: tuple[str, ...]
    members: str = "like nodes"
    noise: Message = NOTHING
    needed: float = 1.0

    @cached_property
    def judgement_parts(self) -> tuple[Message, tuple[float | None, float | None]]:
        """The parts that the judgements of all nodes share: the source and the limits.

        The limits are the least and the greatest accepted ratio to the median.
        """
        limit = self.fleet_limit
        if limit.limit is None:
            return Message(self.code, nodes=limit.nodes), (None, None)
        spread, drop = f"{100 * limit.spread:.2g}", f"{100 * limit.detectable:.2g}"
        source = Message(f"{self.code}-spread", nodes=limit.nodes, spread=spread, drop=drop)
        accepted = limit.limit / limit.centre
        return source, (accepted, None) if self.better == "higher" else (None, accepted)

    @property
    def code(self) -> str:
        """The first word of the codes of its messages."""
        return members_of(self.record.node, targets=self.members == LIKE_TARGETS)

    def reason_alike(self, ratio: float) -> Message:
        """Return the reason of a value that keeps the limit.

        It is like its peers only if a material change would be seen.
        """
        if self.noise:
            return self.reason("noisy", ratio, text=self.noise)
        return self.reason("alike", ratio)

    def reason(self, end: str, ratio: float, **more: str) -> Message:
        """Return the reason with the code `end`, for a value that is `ratio` × the median."""
        limit = self.fleet_limit
        value = f"{limit.centre:.6g} {self.record.unit}"
        shared = {"ratio": f"{ratio:.3g}", "value": value, **more}
        return Message(f"{self.code}-{end}", nodes=limit.nodes, **shared)

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
        record, limit = self.record, self.fleet_limit
        parameters = dict(record.parameters)
        if self.members == LIKE_TARGETS:
            parameters.pop(STORAGE_TARGET)
        return {
            "members": self.members,
            "case": record.case,
            "benchmark": record.benchmark,
            "metric": record.metric,
            "unit": record.unit,
            "mode": record.mode,
            "placement": record.placement,
            "parameters": parameters,
            "hardware": self.kind,
            "nodes": limit.nodes,
            "median": limit.centre,
            "spread": limit.spread,
            "critical": limit.critical,
            "limit": limit.limit,
            "detectable": limit.detectable,
            "noise": self.noise,
            "power": {f"{drop:g}": limit.power_at(drop) for drop in DROPS},
            "powerless": limit.powerless,
            "flagged": list(self.flagged),
        }


@dataclass(frozen=True, eq=False)
class Fleet:
    """All figures that several like nodes measured, and the judgement of each node.

    Attributes:
        level: probability that any node is flagged on a healthy machine.
        figures: the figures of like nodes.
        alike, failed: the numbers of the results that keep or miss the limit of their fleet.
        of: the place of each result in `figures`; -1 if it has no like nodes.
        median: of each result.
    """

    level: float = FAMILY_LEVEL
    figures: tuple[FleetFigure, ...] = ()
    alike: Numbers = field(default_factory=lambda: _NONE, repr=False)
    failed: Numbers = field(default_factory=lambda: _NONE, repr=False)
    of: Numbers = field(default_factory=lambda: _NONE, repr=False)
    median: Floats = field(default_factory=lambda: np.array([]), repr=False)

    @property
    def shown_alike(self) -> int:
        """The number of results in `alike` of which a material change would be seen."""
        seen = np.array([not figure.noise for figure in self.figures], dtype=bool)
        return int(seen[self.of[self.alike]].sum())

    def judge(self, result: int) -> Judgement | None:
        """Return the judgement of a result by like nodes; None if it has none."""
        place = int(self.of[result])
        if place < 0:
            return None
        return _judgement(self.figures[place], float(self.median[result]))

    def reason_alike(self, result: int) -> Message:
        """Return the reason of a result in `alike`, without making its judgement."""
        figure = self.figures[int(self.of[result])]
        return figure.reason_alike(float(self.median[result]) / figure.fleet_limit.centre)

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
        return {
            "family_level": self.level,
            "tests": sum(figure.fleet_limit.nodes for figure in self._tested()),
            "figures": [figure.as_json() for figure in self.figures],
        }

    def _tested(self) -> Iterable[FleetFigure]:
        return (figure for figure in self.figures if figure.fleet_limit.limit is not None)


LIKE_NODES = "like nodes"
"""Nodes with the same hardware."""
LIKE_TARGETS = "storage targets"
"""Storage targets of a file system that the same nodes used."""

_NONE: Numbers = np.array([], dtype=np.int64)


def hardware_kind(facts: NodeFacts | None) -> str:
    """Return the processor model, sockets and cores: nodes with the same are compared.

    Firmware and settings are left out, because the comparison shall find their differences.
    """
    if facts is None:
        return ""
    return f"{facts.cpu_model}, {facts.sockets} × {facts.cores // max(1, facts.sockets)} cores"


Distance = Callable[[Sequence[str]], str]
"""Returns the nearest level whose switch two hosts share; empty for other sets of hosts."""


def measure_fleet(
    figures: Aggregates,
    benchmarks: Benchmarks,
    nodes: Mapping[str, NodeFacts],
    level: float,
    distance: Distance | None = None,
) -> Fleet:
    """Return the comparison of figures that differ only in the node, on like hardware.

    Figures of the same nodes that differ only in the storage target are compared in the same way.

    Args:
        figures: of a run; each valid one, of a node or a pair of nodes, is compared.
        benchmarks: the cases; their metrics state whether higher or lower is better.
        nodes: hardware by host name.
        level: probability that any node is flagged on a healthy machine.
        distance: of a pair; only pairs of the same distance are compared. None: any pairs.
    """
    kinds = Kinds(nodes, distance)
    groups = [
        *((LIKE_NODES, each) for each in like_nodes(figures, benchmarks, kinds, same_digits=False)),
        *((LIKE_TARGETS, each) for each in like_targets(figures)),
    ]
    level_of_figure, material = level_of_one(level, len(groups)), material_of(benchmarks)
    fleet_figures: list[FleetFigure] = []
    alike: list[Numbers] = [_NONE]
    failed: list[Numbers] = [_NONE]
    of = np.full(len(figures), -1, dtype=np.int64)
    for compared, members in groups:
        first = figures.record(int(members[0]))
        better = metrics_of(benchmarks.case(first.case))[first.metric].better
        values = figures.median[members]
        code = members_of(first.node, targets=compared == LIKE_TARGETS)
        limit = fleet_limit(values, better, level_of_figure, code)
        bad = np.zeros(len(members), dtype=bool)
        if limit.limit is not None:
            bad = values < limit.limit if better == "higher" else values > limit.limit
            alike.append(members[~bad])
            failed.append(members[bad])
        of[members] = len(fleet_figures)
        flagged = tuple(_name(figures, int(figure), compared) for figure in members[bad])
        kind, _ = kinds.of(first.node)
        needed = repeats_of_nodes(figures, members, limit, material(first))
        noise = too_noisy(limit.detectable, material(first), needed) if limit.limit else NOTHING
        fleet_figures.append(
            FleetFigure(first, kind, better, limit, flagged, compared, noise, needed)
        )
    return Fleet(
        level=level,
        figures=tuple(fleet_figures),
        alike=np.concatenate(alike),
        failed=np.concatenate(failed),
        of=of,
        median=figures.median,
    )


def _name(figures: Aggregates, figure: int, compared: str) -> str:
    """Return the node of a figure, or its storage target."""
    if compared == LIKE_NODES:
        return figures.records.nodes[int(figures.node[figure])]
    return str(figures.record(figure).parameters[STORAGE_TARGET])


def like_nodes(
    figures: Aggregates, benchmarks: Benchmarks, kinds: Kinds, *, same_digits: bool
) -> Iterator[Numbers]:
    """Yield the numbers of the figures of each group of two or more like nodes.

    `same_digits` chooses the metrics that have it, or the others, which are speeds. Metrics without
    ``peers`` are left out. Pairs that measured together are not alike: some of them share links.
    """
    kind, names = kinds.numbers(figures.records.nodes)
    valid = np.flatnonzero(figures.valid)
    alike = figures.identity[valid] * max(1, len(names)) + kind[figures.node[valid]]
    by_group = np.argsort(alike, kind="stable")
    borders = np.flatnonzero(np.diff(alike[by_group])) + 1
    groups = [valid[places] for places in np.split(by_group, borders) if len(places) > 1]
    for members in sorted(groups, key=lambda group: int(group[0])):
        measurand = figures.records.measurands[figures.measurand[members[0]]]
        metric = metrics_of(benchmarks.case(measurand.case)).get(measurand.metric)
        parameters = figures.record(int(members[0])).parameters
        if parameters.get(MEASURED) == TOGETHER:
            continue
        if metric and metric.peers and metric.same_digits == same_digits:
            yield members  # without a metric it is unknown whether higher or lower is better


class Kinds:
    """The hardware of each node or pair, and the distance of a pair if it is known."""

    def __init__(self, nodes: Mapping[str, NodeFacts], distance: Distance | None = None) -> None:
        self._nodes, self._distance = nodes, distance or (lambda _: "")
        self._known: dict[str, tuple[str, int]] = {}

    def numbers(self, nodes: Iterable[str]) -> tuple[Numbers, list[tuple[str, int]]]:
        """Return the number of the kind of each node or pair, and the kinds by number."""
        places: dict[tuple[str, int], int] = {}
        kind = [places.setdefault(self.of(node), len(places)) for node in nodes]
        return np.array(kind, dtype=np.int64), list(places)

    def of(self, node: str) -> tuple[str, int]:
        """Return the hardware and distance of a node or a set of nodes, and its number of nodes."""
        if node not in self._known:
            hosts = hosts_of(node)
            kinds = sorted({hardware_kind(self._nodes.get(host)) for host in hosts})
            level = self._distance(hosts)
            parts = filter(None, [" and ".join(kinds), level and f"distance {level}"])
            self._known[node] = "; ".join(parts), len(hosts)
        return self._known[node]


def _judgement(figure: FleetFigure, value: float) -> Judgement:
    """Return the judgement of one node's value by like nodes.

    A value that is like those of its peers is UNJUDGED, because nodes that are all bad agree.
    """
    limit, better = figure.fleet_limit, figure.better
    source, bounds = figure.judgement_parts
    if limit.limit is None:
        return Judgement(
            PEERS, source, "UNJUDGED", limit.powerless, limit.centre or None, None, None, None
        )
    ratio = value / limit.centre
    reason = figure.reason_alike(ratio)
    bad = value < limit.limit if better == "higher" else value > limit.limit
    if bad:
        deviation, accepted = limit.deviation(value), f"{limit.critical:.1f}"
        if deviation == float("inf"):
            reason = figure.reason("off", ratio, accepted=accepted)
        else:
            away = f"{deviation:.1f}"
            reason = figure.reason("off-by", ratio, accepted=accepted, deviation=away)
    outcome = "FAIL" if bad else "UNJUDGED"
    return Judgement(PEERS, source, outcome, reason, limit.centre, ratio, *bounds)


def like_targets(figures: Aggregates) -> Iterator[Numbers]:
    """Yield the numbers of the valid figures of each group of two or more like targets."""
    keys = [_without_target(each) for each in figures.records.measurands]
    groups: dict[tuple[object, ...], list[int]] = {}
    for figure in np.flatnonzero(figures.valid).tolist():
        key = keys[figures.measurand[figure]]
        if key is not None:
            groups.setdefault((key, int(figures.node[figure])), []).append(figure)
    for members in groups.values():
        if len(members) > 1:
            yield np.array(members, dtype=np.int64)


def _without_target(measurand: Measurand) -> Measurand | None:
    """Return `measurand` without its storage target; None if it has none."""
    if f'"{STORAGE_TARGET}"' not in measurand.parameters:
        return None
    parameters = json.loads(measurand.parameters)
    if parameters.pop(STORAGE_TARGET, None) is None:
        return None
    return measurand._replace(parameters=json.dumps(parameters, sort_keys=True))

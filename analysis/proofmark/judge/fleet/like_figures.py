"""Which figures are compared with each other: those of like nodes, and of like storage targets."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from proofmark.cases.suite import Benchmarks
from proofmark.cases.telemetry import metrics_of
from proofmark.cases.vocabulary import MEASURED, STORAGE_TARGET, TOGETHER
from proofmark.common.nodesets import hosts_of
from proofmark.judge.aggregate import Aggregates
from proofmark.records.columns import Measurand, Numbers

LIKE_NODES = "like nodes"
"""Nodes for which the same hardware was ordered."""
LIKE_TARGETS = "storage targets"
"""Storage targets of a file system that the same nodes used."""


Distance = Callable[[Sequence[str]], str]
"""Returns the nearest level whose switch two hosts share; empty for other sets of hosts."""


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
    """The hardware of each node or pair, and the distance of a pair if it is known.

    Args:
        hardware: of each node, as a text: that which was ordered, never that which was found, or a
            node with a wrong part is compared with itself. A node that it lacks is like no other.
        distance: of a pair; None if it is not known.
        groups: of hosts of unknown hardware, as a text (`measured_groups`).
    """

    def __init__(
        self,
        hardware: Mapping[str, str],
        distance: Distance | None = None,
        groups: Mapping[str, str] | None = None,
    ) -> None:
        self._hardware, self._distance = hardware, distance or (lambda _: "")
        self._groups = groups or {}
        self._known: dict[str, tuple[str, int]] = {}

    def are_known(self, node: str) -> bool:
        """Return whether the hardware of all nodes in `node` is known."""
        return all(self._hardware.get(host) for host in hosts_of(node))

    def numbers(self, nodes: Iterable[str]) -> tuple[Numbers, list[tuple[str, int]]]:
        """Return the number of the kind of each node or pair, and the kinds by number."""
        places: dict[tuple[str, int], int] = {}
        kind = [places.setdefault(self.of(node), len(places)) for node in nodes]
        return np.array(kind, dtype=np.int64), list(places)

    def of(self, node: str) -> tuple[str, int]:
        """Return the hardware and distance of a node or a set of nodes, and its number of nodes."""
        if node not in self._known:
            hosts = hosts_of(node)
            kinds = sorted(
                {self._hardware.get(host) or self._groups.get(host, "") for host in hosts}
            )
            level = self._distance(hosts)
            parts = filter(None, [" and ".join(kinds), level and f"distance {level}"])
            self._known[node] = "; ".join(parts), len(hosts)
        return self._known[node]


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

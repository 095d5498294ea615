"""Which figures are compared with each other, and whether they are one population.

Figures of like nodes and of like storage targets are compared. Median and spread describe one
population. If a fabric has near and far pairs, the pairs of the smaller group are no outliers: the
groups are compared apart, or not at all.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from proofmark.cases.case import metrics_of
from proofmark.cases.suite import Benchmarks
from proofmark.cases.vocabulary import MEASURED, STORAGE_TARGET, TOGETHER
from proofmark.common.message import NOTHING, Message
from proofmark.common.nodesets import hosts_of, hosts_of_nodes
from proofmark.judge.aggregate import Aggregates
from proofmark.judge.fleet.critical_values import LEAST_NODES, MIN_NODES_OF_MAD, untied
from proofmark.judge.fleet.levels import Levels, Mask, Places, facts_of, levels_of
from proofmark.records.columns import Floats, Measurand, Numbers

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
    if f'"{STORAGE_TARGET}"' not in measurand.parameters:
        return None
    parameters = json.loads(measurand.parameters)
    if parameters.pop(STORAGE_TARGET, None) is None:
        return None
    return measurand._replace(parameters=json.dumps(parameters, sort_keys=True))


LEAST_SHARE, LEAST_SHARE_OF_NODES = 0.1, 0.2
"""The least share of pairs, and of single nodes, that is a population. Fewer slow ones may be
outliers: the spread of the others is known in spite of them."""
EXPLAINED = 0.8
"""The least part of the smaller population that a fact must explain: Goodman and Kruskal's lambda,
Measures of association for cross classifications, JASA 49 (1954), section 5."""
LEAST_APART = 0.01
"""The least distance of two populations, as a part of their values."""
MOST_BAD = 1 / 3
"""The share of hosts from which on they are another kind, and not bad."""
_TRIALS, _MOST, _LEVEL, _SEED = 2000, 1000, 0.01, 37


@dataclass(frozen=True, eq=False)
class PeerGroup:
    """Figures that are compared with each other.

    Attributes:
        compared: `LIKE_NODES` or `LIKE_TARGETS`.
        fact: what separates them from other figures of like nodes; empty for all of these.
        apart: how like nodes lie apart (`levels_of`), or `NOTHING`.
    """

    members: Numbers
    compared: str = LIKE_NODES
    fact: str = ""
    why: Message = NOTHING
    apart: Message = NOTHING


def populations_of(
    figures: Aggregates, group: PeerGroup, kinds: Kinds, places: Places, level: float
) -> Iterator[PeerGroup]:
    """Yield the populations of a group; the group itself if it is one.

    Single nodes whose hardware is known to be alike are one: a slower part of them is a fault, and
    not another kind. From `MOST_BAD` on it is not known which part is as it should be.

    Args:
        level: probability that levels of nodes that are all alike are named.
    """
    nodes, values = figures.records.nodes, figures.median[group.members]
    names = [nodes[node] for node in figures.node[group.members].tolist()]
    first = figures.record(int(group.members[0]))
    alone = len(hosts_of(names[0])) == 1
    upper = None
    if not (alone and kinds.are_known(names[0])):
        upper = two_populations(values, LEAST_SHARE_OF_NODES if alone else LEAST_SHARE)
    if upper is None or (
        not alone
        and (of_bad_hosts(names, upper) or of_bad_hosts(names, ~upper))
        and (kinds.are_known(names[0]) or not slow_alike(names, ~upper, values))
    ):
        found = levels_of(names, values, places, level, first.unit) if alone else Levels()
        if not MOST_BAD <= found.lower.mean() <= 1 - MOST_BAD:
            yield replace(group, apart=found.message)
            return
        for mask in (found.lower, ~found.lower):
            near = f"{float(np.median(values[mask])):.4g} {first.unit}".rstrip()
            label = "; ".join(filter(None, (group.fact, near)))
            yield replace(group, members=group.members[mask], fact=label, apart=found.message)
        return
    fact, value_of = separating(names, upper, places) or ("", [])
    if not fact:
        smaller = upper if 2 * upper.sum() <= len(upper) else ~upper
        yield replace(group, why=several(values, smaller, first.unit, alone=alone))
        return
    rest = {host: {k: v for k, v in of.items() if k != fact} for host, of in places.items()}
    for value in dict.fromkeys(value_of):
        mask = np.array([each == value for each in value_of])
        label = "; ".join(filter(None, (group.fact, f"{fact}: {value}")))
        part = replace(group, members=group.members[mask], fact=label)
        yield from populations_of(figures, part, kinds, rest, level)


def several(values: Floats, smaller: Mask, unit: str, *, alone: bool) -> Message:
    """Return why figures are not compared: some of them may be another kind."""
    few, many = (float(np.median(values[mask])) for mask in (smaller, ~smaller))
    code = "nodes-populations" if alone else "pairs-populations"
    numbers = {"many": int((~smaller).sum()), "few": int(smaller.sum())}
    shown = {"usual": f"{many:.4g} {unit}", "other": f"{few:.4g} {unit}"}
    return Message(code, **numbers, **shown)


def are_a_kind(names: Sequence[str], slow: Mask, values: Floats) -> bool:
    """Return whether slow figures are too many for bad hosts (`MOST_BAD`), or alike."""
    share = _share_of_bad_hosts(names, slow)
    many = bool(slow.any()) and (float(slow.mean()) if share is None else share) >= MOST_BAD
    return many or slow_alike(names, slow, values)


def slow_alike(names: Sequence[str], slow: Mask, values: Floats) -> bool:
    """Return whether hosts are slow among themselves as evenly as the others are fast.

    They may be another kind, however few they are. Single nodes say nothing of this.
    """
    sets = [set(hosts_of(name)) for name in names]
    fast = set(hosts_of_nodes(name for name, bad in zip(names, slow, strict=True) if not bad))
    among = np.array([len(of_pair) > 1 and not of_pair & fast for of_pair in sets])
    hosts = set(chain.from_iterable(sets)) - fast
    whole = len(hosts) * (len(hosts) - 1) // 2
    if len(hosts) < LEAST_NODES or 2 * among.sum() < whole or slow.all():
        return False
    logs = np.log(np.maximum(values, np.finfo(float).tiny))
    spreads = [float(np.ptp(np.quantile(logs[mask], (0.1, 0.9)))) for mask in (among, ~slow)]
    return spreads[0] <= 2 * spreads[1]


def two_populations(values: Floats, least_share: float = LEAST_SHARE) -> Mask | None:
    """Return the members of the upper of two populations; None if there is one.

    One normal population is taken for two in at most 1 of 100 cases: the squares between the best
    two parts are compared with those of random populations. Besides, fewer members are in the
    middle between both medians than around either. So one population with a long tail stays one.

    Source: J. A. Hartigan, Asymptotic distributions for clustering criteria, Annals of Statistics
    6 (1978), section 1.

    Args:
        values: positive; shape (members,).
        least_share: of the smaller population. The extremes beyond it are moved to it, so that
            single outliers decide nothing.
    """
    if len(values) < MIN_NODES_OF_MAD or values.min() <= 0:
        return None
    logs = np.log(untied(values))
    between, cuts = _between(logs[None, :], least_share)
    if between[0] <= _critical(min(len(values), _MOST), least_share):
        return None
    low, high = np.median(logs[: cuts[0] + 1]), np.median(logs[cuts[0] + 1 :])
    near = [
        int((np.abs(logs - place) < (high - low) / 8).sum())
        for place in (low, (low + high) / 2, high)
    ]
    upper: Mask = values > np.sort(values)[cuts[0]]
    least = _least(len(values), least_share)
    several = high - low >= LEAST_APART and near[1] < min(near[0], near[2])
    return upper if several and least <= upper.sum() <= len(values) - least else None


def _least(members: int, share: float) -> int:
    return max(LEAST_NODES, math.ceil(share * members))


def _between(ordered: Floats, least_share: float) -> tuple[Floats, NDArray[np.int64]]:
    """Return the largest part of the squares that is between two parts, and where they meet.

    Args:
        ordered: values in increasing order; shape (fleets, members).
    """
    members = ordered.shape[1]
    least = _least(members, least_share)
    kept = np.clip(ordered, ordered[:, [least - 1]], ordered[:, [members - least]])
    kept = kept - kept.mean(axis=1, keepdims=True)
    count = np.arange(1, members)
    squares = np.cumsum(kept, axis=1)[:, :-1] ** 2 * (1 / count + 1 / (members - count))
    total = np.maximum((kept**2).sum(axis=1), np.finfo(float).tiny)
    tried = squares[:, least - 1 : members - least]
    return tried.max(axis=1) / total, least - 1 + tried.argmax(axis=1)


@lru_cache(maxsize=256)
def _critical(members: int, least_share: float) -> float:
    """Return the part between two parts that one normal population exceeds with `_LEVEL`."""
    samples = np.random.default_rng(_SEED).standard_normal((_TRIALS, members))
    return float(np.quantile(_between(np.sort(samples, axis=1), least_share)[0], 1 - _LEVEL))


def of_bad_hosts(names: Sequence[str], slow: Mask) -> bool:
    """Return whether few hosts with only slow pairs explain all slow pairs.

    Pairs of another switch are fast among themselves. Those of bad hosts are not.
    """
    share = _share_of_bad_hosts(names, slow)
    return share is not None and share < MOST_BAD


def _share_of_bad_hosts(names: Sequence[str], slow: Mask) -> float | None:
    pairs = [hosts_of(name) for name in names]
    fast = set(hosts_of_nodes(name for name, bad in zip(names, slow, strict=True) if not bad))
    if not all(set(of_pair) - fast for of_pair, bad in zip(pairs, slow, strict=True) if bad):
        return None
    hosts = set(chain.from_iterable(pairs))
    return len(hosts - fast) / len(hosts)


def separating(names: Sequence[str], slow: Mask, places: Places) -> tuple[str, list[str]] | None:
    """Return the fact that separates two populations, with its value for each member, or None.

    Args:
        places: switches and rack, by host.
    """
    best, found = EXPLAINED * min(slow.sum(), len(slow) - slow.sum()), None
    for fact, values in facts_of(names, places):
        cells = Counter(zip(values, slow.tolist(), strict=True))
        kinds = set(values)
        if not 1 < len(kinds) <= len(names) / (2 * LEAST_NODES):
            continue
        misfits = sum(min(cells[kind, True], cells[kind, False]) for kind in kinds)
        explained = min(slow.sum(), len(slow) - slow.sum()) - misfits
        if explained >= best and (found is None or explained > best):
            best, found = explained, (fact, values)
    return found

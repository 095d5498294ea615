"""Which figures are compared with each other, and whether they are one population.

Figures of like nodes and of like storage targets are compared. Median and spread describe one
population. If a fabric has near and far pairs, the pairs of the smaller group are no outliers: the
groups are compared apart, or not at all.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain, groupby

import numpy as np
import polars as pl
from numpy.typing import NDArray

from proofmark.cases.case import metrics_of
from proofmark.cases.suite import Benchmarks
from proofmark.cases.vocabulary import MEASURED, STORAGE_TARGET, TOGETHER
from proofmark.common.grouping import gathered
from proofmark.common.message import NOTHING, Message, Term, joined
from proofmark.common.nodesets import folded, hosts_of, hosts_of_nodes
from proofmark.common.text import by_number, percent
from proofmark.judge.aggregate import Aggregates
from proofmark.judge.fleet.critical_values import (
    LEAST_DROP,
    LEAST_NODES,
    MIN_NODES_OF_MAD,
    resolution,
    untied,
)
from proofmark.records.columns import Floats, Measurand, Numbers

Mask = NDArray[np.bool_]
Places = Mapping[str, Mapping[str, str]]
"""Switches, rack and settings, by host."""
LEAST_OF_ALL = 2 * LEAST_NODES
"""The least number of nodes of which levels are looked for."""
TAILS = (0.05, 0.95)
"""Values beyond these quantiles are moved to them: single bad nodes decide nothing."""
SEPARATED, SEPARATED_OF_FEW = 0.9, 0.98
"""The least part of the squares between two levels that no fact separates, and of fewer nodes than
`MIN_NODES_OF_MAD`. The best two parts of normal values have 0.64."""
SAYS_MORE = 0.8
"""A fact that explains this part of what the best two parts explain says more than their nodes."""
Fact = tuple[str, Sequence[str]]
"""A fact, and its value for each node."""
IN_CHASSIS = (2, 4)
"""Numbers of nodes in a chassis: each position in it is a fact."""


@dataclass(frozen=True, eq=False)
class Levels:
    """How like nodes lie apart.

    Attributes:
        message: what lies apart, and what separates it; `NOTHING`: nodes are alike.
        lower: the nodes in the lower of two levels; none of a slope.
        explained: the part of the squares between the levels, or on the slope.
        kinds: the number of values of the fact that separates.
    """

    message: Message = NOTHING
    lower: Mask = field(default_factory=lambda: np.zeros(1, dtype=bool))
    explained: float = 0.0
    kinds: int = 2


def levels_of(
    names: Sequence[str], values: Floats, places: Places, level: float, unit: str
) -> Levels:
    """Return in which levels, or along which slope, nodes lie.

    A fact counts if the ranks of the values depend on it, and if the levels are `LEAST_DROP` apart.
    The best one is named (Schwarz, Annals of Statistics 6 (1978)), with others of the same levels.

    Source: Kruskal and Wallis, Use of ranks in one-criterion variance analysis, Journal of the
    American Statistical Association 47 (1952); for a slope Spearman's rank correlation.

    Args:
        values: of the nodes, in `unit`; shape (nodes,).
        places: numbers in the names of the nodes are further facts.
        level: probability that anything is named if all nodes are alike.
    """
    if len(values) < LEAST_OF_ALL or values.min() <= 0:
        return Levels()
    clipped = np.clip(values, *np.quantile(values, TAILS))
    if np.ptp(clipped) <= max(LEAST_DROP * float(clipped.min()), resolution(values)):
        return Levels()
    logs = np.log(clipped)
    facts, numbers = [*_facts(names, places)], [*_facts(names, _numbers(tuple(names)))]
    level /= 1 + 2 * (len(facts) + len(numbers))
    ranks = pl.Series(values).rank().to_numpy()  # equal values share one
    nodes = _Nodes(names, values, unit, logs - logs.mean(), ranks - ranks.mean())
    split, best = nodes.split(), nodes.slope(level)
    enough = SAYS_MORE * split.explained if split.message else 1.0
    for each in (*facts, *numbers):
        for found in (nodes.by([each], level, enough), nodes.slope(level, each)):
            if _score(found, len(names)) < _score(best, len(names)):
                best = found
    if split.message and best.explained < enough:
        return split
    same = [each for each in facts if np.array_equal(nodes.by([each], 1.0).lower, best.lower)]
    return nodes.by(same, 1.0) if best.lower.any() and same else best


def _score(levels: Levels, count: int) -> float:
    """Return the information criterion of Schwarz: less is better; of none 0."""
    if not levels.message:
        return 0.0
    return count * math.log(max(1 - levels.explained, 1e-9)) + levels.kinds * math.log(count)


@dataclass(frozen=True, eq=False)
class _Nodes:
    """Nodes with their values; ``logs`` without tails and ``ranks`` are around 0."""

    names: Sequence[str]
    values: Floats
    unit: str
    logs: Floats
    ranks: Floats

    def by(self, facts: Sequence[Fact], level: float, enough: float = 1.0) -> Levels:
        """Return the two levels that the values of the first of `facts` separate.

        Ranks depend on it by chance with at most `level`, or it explains `enough` of the squares.
        """
        from scipy.special import chdtrc

        kinds, kind, size = np.unique(facts[0][1], return_inverse=True, return_counts=True)
        between = (np.bincount(kind, self.ranks) ** 2 / size).sum()
        variance = float(self.ranks @ self.ranks) / (len(kind) - 1)
        (lower, explained), named = self._cut(kind), list[Message]()
        if chdtrc(len(kinds) - 1, between / variance) > level and explained < enough:
            return Levels()
        for fact, of_nodes in facts:
            pairs = [*zip(of_nodes, lower.tolist(), strict=True)]
            few, many = (
                ", ".join(sorted({of for of, low in pairs if low is part}, key=by_number))
                for part in (True, False)
            )
            shown = fact if isinstance(fact, Message) else Term(fact)
            named.append(Message("levels-by", fact=shown, lower=few, upper=many))
        return self._levels(lower, explained, joined(named), len(kinds))

    def split(self) -> Levels:
        """Return two levels that no fact separates."""
        lower, explained = self._cut(np.arange(len(self.names)))
        if explained < (SEPARATED if len(lower) >= MIN_NODES_OF_MAD else SEPARATED_OF_FEW):
            return Levels()
        nodes = folded(name for name, low in zip(self.names, lower, strict=True) if low)
        return self._levels(lower, explained, Message("levels-of", nodes=nodes))

    def slope(self, level: float, within: Fact = ("", ())) -> Levels:
        """Return the slope along the numbers of the nodes, or of those with one value of a fact.

        Such a fact, as a rack, must have consecutive nodes for each of its values.
        """
        from scipy.special import stdtr

        count = len(self.names)
        in_order = _in_order(tuple(self.names))
        fact, of_nodes = within[0], within[1] or [""] * count
        parts = [[*part] for _, part in groupby(in_order, key=lambda place: of_nodes[place])]
        if len(parts) > len({*of_nodes}) or count < LEAST_NODES * len(parts):
            return Levels()
        line = np.empty(count)
        for part in parts:
            line[part] = np.linspace(-0.5, 0.5, len(part))
        line -= line.mean()
        rho, of_logs = (
            float(line @ each) / math.sqrt(float(line @ line) * float(each @ each))
            for each in (self.ranks, self.logs)
        )
        t = abs(rho) * math.sqrt((count - 2) / max(1 - rho**2, 1e-9))
        thirds = np.array_split(self.logs[np.argsort(line, kind="stable")], 3)
        begin, _, end = map(np.median, thirds)
        rise = 1.5 * float(end - begin)  # the middles of the first and the last third are 2/3 apart
        if 2 * stdtr(count - 2, -t) > level or math.expm1(abs(rise)) < LEAST_DROP:
            return Levels()
        middle = float(np.median(self.values))
        about = {
            "one": self._near(middle * math.exp(-rise / 2)),
            "other": self._near(middle * math.exp(rise / 2)),
            "gap": percent(-math.expm1(-abs(rise))),
        }
        if fact:
            shown = fact if isinstance(fact, Message) else Term(fact)
            return Levels(Message("levels-slope-in", fact=shown, **about), explained=of_logs**2)
        first, last = self.names[in_order[0]], self.names[in_order[-1]]
        message = Message("levels-slope", first=first, last=last, **about)
        return Levels(message, explained=of_logs**2)

    def _cut(self, kind: Numbers) -> tuple[Mask, float]:
        """Return the lower of the best two parts of kinds, and the part of the squares between."""
        sums, size = np.bincount(kind, self.logs), np.bincount(kind)
        order = np.argsort(sums / size, kind="stable")
        below = np.cumsum(size[order])[:-1]
        between = np.cumsum(sums[order])[:-1] ** 2 * (1 / below + 1 / (len(kind) - below))
        cut = int(between.argmax())
        return np.isin(kind, order[: cut + 1]), float(between[cut] / (self.logs @ self.logs))

    def _levels(self, lower: Mask, explained: float, named: Message, kinds: int = 2) -> Levels:
        if not LEAST_NODES <= lower.sum() <= len(lower) - LEAST_NODES:
            return Levels()
        low, high = (float(np.median(self.values[part])) for part in (lower, ~lower))
        if low > high * (1 - LEAST_DROP):
            return Levels()
        near = {"low": self._near(low), "high": self._near(high)}
        count = {"few": int(lower.sum()), "many": int((~lower).sum())}
        message = Message("levels", gap=percent(1 - low / high), named=named, **near, **count)
        return Levels(message, lower, explained, kinds)

    def _near(self, value: float) -> str:
        return f"{value:.6g} {self.unit}".rstrip()


def facts_of(names: Sequence[str], places: Places) -> Iterator[tuple[str, list[str]]]:
    """Yield each place of all members: of a node, or whether the nodes of a pair share it."""
    known = [[places.get(host, {}) for host in hosts_of(name)] for name in names]
    single = all(len(each) == 1 for each in known)
    for fact in dict.fromkeys(chain.from_iterable(chain.from_iterable(known))):
        values = [[place.get(fact, "") for place in each] for each in known]
        if single:
            yield fact, [value for (value,) in values]
        else:
            yield fact, ["same" if len({*each}) == 1 else "different" for each in values]


def _facts(names: Sequence[str], places: Places) -> Iterator[Fact]:
    """Yield each fact that all nodes have and that separates some: one value for two nodes."""
    for fact, values in facts_of(names, places):
        if all(values) and 1 < len({*values}) <= len(values) / 2:
            yield fact, values


@lru_cache(maxsize=4)  # the figures of a case have the same nodes
def _in_order(names: tuple[str, ...]) -> list[int]:
    """Return the places of `names` in the order of their numbers."""
    return sorted(range(len(names)), key=lambda place: by_number(names[place]))


@lru_cache(maxsize=4)
def _numbers(names: tuple[str, ...]) -> dict[str, dict[str, str]]:
    """Return the numbers in each name; without the last one, of which the position is a fact."""
    found: dict[str, dict[str, str]] = {}
    for name in names:
        *first, last = re.findall(r"\d+", name) or [""]
        found[name] = {Message("host-number", place=i): each for i, each in enumerate(first, 1)}
        for several in IN_CHASSIS if last else ():
            found[name][Message("host-number-modulo", by=several)] = f"{int(last) % several}"
    return found


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
    groups = gathered(
        ((key, int(figures.node[figure])), figure)
        for figure in np.flatnonzero(figures.valid).tolist()
        if (key := keys[figures.measurand[figure]]) is not None
    )
    for members in groups.values():
        if len(members) > 1:
            yield np.array(members, dtype=np.int64)


def _without_target(measurand: Measurand) -> Measurand | None:
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
    values = figures.median[group.members]
    names = [*map(figures.node_of, group.members.tolist())]
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
    sets, fast = [set(hosts_of(name)) for name in names], _fast_hosts(names, slow)
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


def _fast_hosts(names: Sequence[str], slow: Mask) -> set[str]:
    return set(hosts_of_nodes(name for name, bad in zip(names, slow, strict=True) if not bad))


def _share_of_bad_hosts(names: Sequence[str], slow: Mask) -> float | None:
    pairs, fast = [hosts_of(name) for name in names], _fast_hosts(names, slow)
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

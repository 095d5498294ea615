"""Two levels of like nodes, or a slope along their numbers, and the fact that separates them.

Half of the racks can be slower, or each node a little more than the one before. No node is then an
outlier, and more repeats show nothing else: the place or the setting says where to look.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from proofmark.common.message import NOTHING, Message, Term, joined
from proofmark.common.nodesets import folded, hosts_of
from proofmark.common.text import percent
from proofmark.judge.fleet.critical_values import (
    LEAST_DROP,
    LEAST_NODES,
    MIN_NODES_OF_MAD,
    resolution,
)
from proofmark.records.columns import Floats, Numbers

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
    logs = np.log(values)
    logs = np.clip(logs, *np.quantile(logs, TAILS))
    if np.expm1(np.ptp(logs)) <= max(LEAST_DROP, resolution(values) / float(values.min())):
        return Levels()
    facts, numbers = [*_facts(names, places)], [*_facts(names, _numbers(names))]
    level /= 1 + len(facts) + len(numbers)
    nodes = _Nodes(names, values, unit, logs - logs.mean(), _ranks(values))
    split, best = nodes.split(), nodes.slope(level)
    enough = SAYS_MORE * split.explained if split.message else 1.0
    for each in (*facts, *numbers):
        found = nodes.by([each], level, enough)
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
                ", ".join(sorted({of for of, low in pairs if low is part}, key=_by_number))
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

    def slope(self, level: float) -> Levels:
        """Return the slope along the numbers of the nodes."""
        from scipy.special import stdtr

        count = len(self.names)
        in_order = sorted(range(count), key=lambda place: _by_number(self.names[place]))
        line = np.empty(count)
        line[in_order] = np.linspace(-0.5, 0.5, count)
        rho, of_logs = (
            float(line @ each) / math.sqrt(float(line @ line) * float(each @ each))
            for each in (self.ranks, self.logs)
        )
        t = abs(rho) * math.sqrt((count - 2) / max(1 - rho**2, 1e-9))
        begin, _, end = map(np.median, np.array_split(self.logs[in_order], 3))
        rise = 1.5 * float(end - begin)  # the middles of the first and the last third are 2/3 apart
        if 2 * stdtr(count - 2, -t) > level or math.expm1(abs(rise)) < LEAST_DROP:
            return Levels()
        middle = float(np.median(self.values))
        message = Message(
            "levels-slope",
            first=self.names[in_order[0]],
            last=self.names[in_order[-1]],
            one=self._near(middle * math.exp(-rise / 2)),
            other=self._near(middle * math.exp(rise / 2)),
            gap=percent(-math.expm1(-abs(rise))),
        )
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


def _ranks(values: Floats) -> Floats:
    """Return the ranks of values around 0; equal values share one."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(count) - (count - 1) / 2)[place] - (len(values) + 1) / 2
    return ranks


def facts_of(names: Sequence[str], places: Places) -> Iterator[tuple[str, list[str]]]:
    """Yield each place of all members: of a node, or whether the nodes of a pair share it."""
    sets = [hosts_of(name) for name in names]
    known = [places.get(host, {}) for host in chain.from_iterable(sets)]
    for fact in dict.fromkeys(chain.from_iterable(known)):
        values = [[places.get(host, {}).get(fact, "") for host in hosts] for hosts in sets]
        shared = ("same" if len({*each}) == 1 else "different" for each in values)
        single = all(len(each) == 1 for each in values)
        yield fact, [each[0] for each in values] if single else list(shared)


def _facts(names: Sequence[str], places: Places) -> Iterator[Fact]:
    """Yield each fact that all nodes have and that separates some: one value for two nodes."""
    for fact, values in facts_of(names, places):
        if all(values) and 1 < len({*values}) <= len(values) / 2:
            yield fact, values


def _numbers(names: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the numbers in each name; without the last one, of which the position is a fact."""
    found: dict[str, dict[str, str]] = {}
    for name in names:
        *first, last = re.findall(r"\d+", name) or [""]
        found[name] = {Message("host-number", place=i): each for i, each in enumerate(first, 1)}
        for several in IN_CHASSIS if last else ():
            found[name][Message("host-number-modulo", by=several)] = f"{int(last) % several}"
    return found


def _by_number(name: str) -> list[tuple[int, str]]:
    """Return the key by which names are in the order of their numbers."""
    return [(int(digits or 0), text) for text, digits in re.findall(r"(\D*)(\d*)", name)]

"""Slow uplinks of switches that do not declare how they choose an uplink.

One slow uplink of several makes some pairs slow that leave its switch. Which uplink carried which
pair is not known. So this compares the share of slow pairs of each switch with that of the other
switches, and the share of slow pairs of a level with that of the pairs that do not cross it. Only
pairs that measured alone are used, because others may share uplinks in an unknown way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from proofmark.judge.links.link_fit import LIKELY, Fit
from proofmark.judge.links.path_evidence import relative_entropy, slow_at
from proofmark.judge.links.paths import NONE
from proofmark.records.columns import Numbers

SPREADS = 3.0
"""The distance of a slow pair from the usual value, in spreads."""
LEAST_SLOW = 3
"""The least number of slow pairs that name an uplink."""
LEAST_CHANCE = 0.01
"""The least assumed share of slow pairs on a healthy fabric."""


@dataclass(frozen=True, eq=False)
class SlowUplink:
    """A slow uplink whose number is not known, or a slow switch above all switches of a level.

    Attributes:
        level: the number of the level of the switches below it.
        switch: the number of the switch; -1 if the uplinks of all switches are affected.
        ratio: the median of measured ÷ usual of the slow pairs.
        confidence: the probability of it among the uplinks that explain the slow pairs.
        measured, slow: the numbers of the pairs that cross the uplinks, and of the slow ones.
    """

    level: int
    switch: int
    ratio: float
    confidence: float
    measured: Numbers
    slow: Numbers


def slow_uplinks(fit: Fit, level: float) -> Iterator[SlowUplink]:
    """Yield the slow uplinks of each level whose routing is not declared, from the fit of the rest.

    Args:
        fit: the fit, which names the elements of which most measurements are slow.
        level: the probability that anything of a healthy fabric is named.
    """
    samples, paths = fit.samples, fit.elements.paths
    alone = np.array([each.alone for each in samples.of], dtype=bool)[samples.series]
    usable = alone & (fit.owner == NONE) & (fit.about.like != NONE)
    slow = usable & slow_at(fit.found, SPREADS)
    for number, tier in enumerate(paths.tiers):
        if tier.known or tier.declared == 1:
            continue
        ends = paths.groups[number][samples.pairs]
        crosses = usable & (paths.distance(samples.pairs) > number) & (ends != NONE).all(axis=1)
        switches = len(tier.switches)
        inside = usable & ~crosses
        chance = max(LEAST_CHANCE, float(((slow & inside).sum() + 0.5) / (inside.sum() + 1)))
        everything = _gain(int(crosses.sum()), int((crosses & slow).sum()), chance)
        left, rest = slow.copy(), crosses.copy()
        needed = np.log((switches + 1) / level)
        while (left & rest).sum() >= LEAST_SLOW:
            count = _ends(ends[rest], switches)
            hit = _ends(ends[rest & left], switches)
            others = (2 * (left & rest).sum() - hit + 1) / (2 * rest.sum() - count + 2)
            gain = relative_entropy(np.maximum(count, 1), hit, np.clip(others, LEAST_CHANCE, 0.99))
            gain[(hit < LEAST_SLOW)] = 0.0
            worst = int(np.argmax(gain))
            if gain[worst] <= needed:
                break
            of_switch = rest & (ends == worst).any(axis=1)
            share = np.exp(gain - gain[worst])
            total = share[share >= LIKELY].sum()
            yield _uplink(fit, number, worst, 1 / total, of_switch, left)
            everything -= gain[worst]
            rest &= ~of_switch
        if everything > needed and (left & rest).sum() >= LEAST_SLOW:
            yield _uplink(fit, number, NONE, 1.0, rest, left)


def _gain(count: int, hit: int, chance: float) -> float:
    if not count:
        return 0.0
    return float(relative_entropy(np.array([count]), np.array([hit]), np.array([chance]))[0])


def _ends(ends: Numbers, switches: int) -> Numbers:
    """Return the number of pairs of each switch; shape (switches,)."""
    return np.bincount(ends.ravel(), minlength=switches)


def _uplink(
    fit: Fit, level: int, switch: int, confidence: float, pairs: Numbers, slow: Numbers
) -> SlowUplink:
    hit = np.flatnonzero(pairs & slow)
    ratio = float(np.exp(np.median(fit.found.residual[hit])))
    return SlowUplink(level, switch, ratio, confidence, np.flatnonzero(pairs), hit)

"""Values that are off at single message sizes: they are measured again before they count.

A pair measures 24 sizes in one execution, and a disturbance of a moment hits one of them. A slow
node or link is slow at several.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

import numpy as np

from proofmark.judge.aggregate import Aggregates
from proofmark.judge.fleet.populations import Mask
from proofmark.judge.fleet.thresholds import FleetLimit
from proofmark.records.columns import Numbers

LEAST_SIZES = 4
"""The least number of sizes of which a single one is not enough."""
Off = tuple[Numbers, Mask, FleetLimit]
"""The figures of one size, which of them are off, and their limit."""


def spikes(figures: Aggregates, sizes: Sequence[Off], level: float) -> Numbers:
    """Return the figures of like nodes that are off, but at too few of the sizes.

    Needed are so many sizes that spikes alone reach them with the probability `level` on any node.
    The rate of spikes is that of the nodes with one at most. More than half of several executions
    that are off confirm a figure at any size.

    Args:
        figures: of the run.
        sizes: one entry for each message size.
        level: the probability that spikes alone name any node.
    """
    if len(sizes) < LEAST_SIZES:
        return np.array([], dtype=np.int64)
    nodes = np.concatenate([figures.node[members] for members, _, _ in sizes])
    off = np.concatenate([bad for _, bad, _ in sizes])
    _, place = np.unique(nodes, return_inverse=True)
    count = np.bincount(place, weights=off)
    usual = int((count <= 1).sum())
    rate = (int((count == 1).sum()) + 1) / (len(sizes) * max(1, usual))
    needed = _needed(len(sizes), min(rate, 0.5), level / len(count))
    few = np.concatenate([members for members, _, _ in sizes])[off & (count[place] < needed)]
    limits: dict[int, FleetLimit] = {}
    for members, _, limit in sizes:
        limits |= dict.fromkeys(members.tolist(), limit)
    kept = [each for each in few.tolist() if not _confirmed(figures.values(each), limits[each])]
    return np.array(kept, dtype=np.int64)


def _needed(sizes: int, rate: float, level: float) -> int:
    """Return the number of `sizes` that spikes of this rate reach with at most `level`."""
    tail, needed = 0.0, sizes + 1
    while needed > 2:
        tail += comb(sizes, needed - 1) * rate ** (needed - 1) * (1 - rate) ** (sizes - needed + 1)
        if tail > level:
            break
        needed -= 1
    return min(needed, sizes)


def _confirmed(values: Sequence[float], limit: FleetLimit) -> bool:
    missed = int(limit.missed(np.array(values)).sum())
    return missed > 1 and 2 * missed > len(values)

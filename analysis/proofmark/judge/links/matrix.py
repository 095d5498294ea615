"""The median relative rate between each two switches, or each two hosts of a small fabric."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from proofmark.judge.links.link_fit import Fit
from proofmark.judge.links.paths import NONE
from proofmark.records.columns import Floats

MOST_HOSTS = 64
"""Up to this number of measured hosts, the matrix has a row for each host."""
MOST_SWITCHES = 1000
"""The largest number of switches of a matrix."""


@dataclass(frozen=True, eq=False)
class Matrix:
    """Relative rates between groups of hosts.

    Attributes:
        level: what a row is: ``node``, or the name of a level.
        names: of the rows and columns.
        ratio: the median of measured ÷ usual, better if greater; NaN if it was not measured. The
            row is the group of the first host of a pair; shape (groups, groups).
    """

    level: str
    names: tuple[str, ...]
    ratio: Floats


def matrix(fit: Fit) -> Matrix | None:
    """Return the relative rates; None if there are too many groups for a picture.

    The rates of both directions of a pair count for both, unless the data flow in one direction.
    """
    samples, paths = fit.samples, fit.elements.paths
    compared = fit.about.like != NONE
    hosts = np.unique(samples.pairs[compared])
    if not len(hosts):
        return None
    if len(hosts) <= MOST_HOSTS:
        level, names = "node", tuple(paths.hosts[host] for host in hosts.tolist())
        ends = np.searchsorted(hosts, samples.pairs[compared])
    elif paths.tiers and len(paths.tiers[0].switches) <= MOST_SWITCHES:
        level, names = paths.tiers[0].name, paths.tiers[0].switches
        ends = paths.groups[0][samples.pairs[compared]]
    else:
        return None
    value = np.exp(fit.found.residual[compared])
    two_way = np.array([not each.one_way for each in samples.of])[samples.series[compared]]
    ends = np.concatenate([ends, ends[two_way][:, ::-1]])
    value = np.concatenate([value, value[two_way]])
    inside = (ends != NONE).all(axis=1)
    cell, value = (ends @ [len(names), 1])[inside], value[inside]
    order = np.lexsort((value, cell))
    cell, value = cell[order], value[order]
    cells, first, count = np.unique(cell, return_index=True, return_counts=True)
    ratio = np.full(len(names) ** 2, np.nan)
    ratio[cells] = (value[first + (count - 1) // 2] + value[first + count // 2]) / 2
    return Matrix(level, names, ratio.reshape(len(names), len(names)))

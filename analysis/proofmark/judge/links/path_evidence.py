"""The evidence that an element of a fabric is slow: how many of its measurements are slow.

A measurement is slow or not. So an outlier counts once, however far it is off, and an element is
named only if at least half of its measurements are slow. The probability that this happens by
chance is bounded by exp(-n D(k/n, p)) for k slow measurements of n, where p is the share of slow
measurements elsewhere in the same rounds and D the relative entropy (W. Hoeffding, "Probability
inequalities for sums of bounded random variables", Journal of the American Statistical Association
58 (1963), theorem 1; for rounds that differ in p: W. Hoeffding, Annals of Mathematical Statistics
27 (1956), theorem 4).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from proofmark.judge.links.elements import Elements
from proofmark.judge.links.paths import NONE
from proofmark.judge.links.samples import Deviations, Expected, Samples
from proofmark.records.columns import Floats, Numbers

LEAST_DROP = 0.03
"""The least drop of a slow measurement."""
SPREADS = (1.5, 3.0, 6.0)
"""Distances from the usual value, in spreads, from which a measurement is slow. Each is tried."""
LEAST_SLOW = 3
"""The least number of slow measurements that name an element."""
CHUNK = 10_000
"""The number of measurements whose elements are listed at a time, to save memory."""
PRIOR_WEIGHT = 4.0
"""How many measurements the share of slow ones in all rounds weighs against that of one round."""


@dataclass(frozen=True, eq=False)
class Incidence:
    """Which measurements an element limits, as pairs of numbers.

    A cell is an element in a series. Its number is element × series + number of the series.

    Attributes:
        sample, cell: the numbers of a measurement and of a cell; shape (pairs,).
        series: the number of series.
        cells: the number of cells.
    """

    sample: NDArray[np.int32]
    cell: NDArray[np.int32]
    series: int
    cells: int

    def counts(self, chosen: NDArray[np.bool_]) -> Numbers:
        """Return the number of chosen measurements of each cell; shape (cells,)."""
        return np.bincount(self.cell[chosen[self.sample]], minlength=self.cells)

    @cached_property
    def _by_cell(self) -> NDArray[np.int32]:
        return np.argsort(self.cell, kind="stable").astype(np.int32)

    @cached_property
    def _ends(self) -> Numbers:
        counts = np.bincount(self.cell, minlength=self.cells)
        return np.append(0, np.cumsum(counts))

    def of(self, element: int) -> Numbers:
        """Return the measurements that an element limits."""
        first, last = self._ends[[element * self.series, (element + 1) * self.series]]
        return self.sample[self._by_cell[first:last]].astype(np.int64)


def incidence(samples: Samples, about: Expected, elements: Elements) -> Incidence:
    """Return which measurements each element limits: those with a link of it without slack."""
    width = elements.of_link.shape[1]
    padded = np.concatenate([elements.of_link, np.full((1, width), NONE)]).astype(np.int32)
    series = len(samples.of)
    parts: list[tuple[NDArray[np.int32], NDArray[np.int32]]] = []
    for first in range(0, len(samples), CHUNK):
        part = slice(first, first + CHUNK)
        limits = (about.path[part] != NONE) & (about.slack[part] == 0)
        links = np.where(limits, about.path[part], NONE)
        found = np.sort(padded[links].reshape(len(links), -1), axis=1)
        new = found != NONE
        new[:, 1:] &= found[:, 1:] != found[:, :-1]
        new[about.like[part] == NONE] = False
        sample, column = np.nonzero(new)
        cell = found[sample, column] * series + samples.series[part][sample]
        parts.append(((sample + first).astype(np.int32), cell.astype(np.int32)))
    samples_of, cells_of = (np.concatenate(each) for each in zip(*parts, strict=True))
    return Incidence(samples_of, cells_of, series, len(elements) * series)


@dataclass(frozen=True, eq=False)
class PathEvidence:
    """The evidence against each element.

    Attributes:
        gain: the logarithm of the improbability of the evidence by chance; shape (elements,).
        share: the share of slow measurements, in the series that count; shape (elements,).
        slow: whether each measurement is slow; shape (measurements,).
        active: whether at least half of the measurements of an element in a series are slow; shape
            (elements, series).
        tested: the number of elements that could be named.
    """

    gain: Floats
    share: Floats
    slow: NDArray[np.bool_]
    active: NDArray[np.bool_]
    tested: int


def slow_at(found: Deviations, spreads: float) -> NDArray[np.bool_]:
    """Return which measurements are slow by at least `spreads` spreads and `LEAST_DROP`."""
    slow: NDArray[np.bool_] = found.residual < -np.maximum(
        spreads * found.spread, -np.log1p(-LEAST_DROP)
    )
    return slow


def evidence(
    samples: Samples,
    found: Deviations,
    usable: NDArray[np.bool_],
    limits: Incidence,
    spreads: float,
) -> PathEvidence:
    """Return the evidence against each element from the usable measurements.

    Args:
        samples: the measurements.
        found: their distances from the usual values.
        usable: the measurements that are compared and that no named element explains.
        limits: which measurements each element limits.
        spreads: the distance of a slow measurement, in spreads.
    """
    slow = usable & slow_at(found, spreads)
    all_of, slow_of = limits.counts(usable), limits.counts(slow)
    shape = (-1, limits.series)
    tested = int((all_of.reshape(shape).sum(axis=1) >= LEAST_SLOW).sum())
    chosen = (slow_of > 0) & (2 * slow_of >= all_of)
    gain = np.zeros(limits.cells)
    cells = np.flatnonzero(chosen)
    if len(cells):
        chance = _chances(samples, usable, slow, limits, cells)
        gain[cells] = relative_entropy(all_of[cells], slow_of[cells], chance)
    active = (chosen & (gain > 0)).reshape(shape)
    counted = np.where(active, slow_of.reshape(shape), 0).sum(axis=1)
    share = counted / np.maximum(np.where(active, all_of.reshape(shape), 0).sum(axis=1), 1)
    total = np.where(counted >= LEAST_SLOW, gain.reshape(shape).sum(axis=1), 0.0)
    return PathEvidence(total, share, slow, active, tested)


def relative_entropy(all_of: Numbers, slow_of: Numbers, chance: Floats) -> Floats:
    """Return n D(k/n, p) for k slow ones of n; 0 if no more than expected are slow."""
    share = slow_of / all_of
    with np.errstate(divide="ignore", invalid="ignore"):
        one = np.where(share > 0, share * np.log(share / chance), 0.0)
        other = np.where(share < 1, (1 - share) * np.log((1 - share) / (1 - chance)), 0.0)
    found: Floats = np.where(share > chance, all_of * (one + other), 0.0)
    return found


def _chances(
    samples: Samples,
    usable: NDArray[np.bool_],
    slow: NDArray[np.bool_],
    limits: Incidence,
    cells: Numbers,
) -> Floats:
    """Return the share of slow measurements in the rounds of each cell, without the cell itself."""
    place = np.full(limits.cells, NONE, dtype=np.int64)
    place[cells] = np.arange(len(cells))
    kept = usable[limits.sample] & (place[limits.cell] != NONE)
    sample, cell = limits.sample[kept].astype(np.int64), place[limits.cell[kept]]
    series = cells % limits.series
    counted = usable & (np.bincount(limits.sample, minlength=len(samples)) > 0)
    rounds = int(samples.round.max()) + 1
    of_cell = np.bincount(cell, minlength=len(cells))
    slow_of_cell = np.bincount(cell[slow[sample]], minlength=len(cells))
    in_series = np.bincount(samples.series[counted], minlength=limits.series)[series]
    slow_series = np.bincount(samples.series[counted & slow], minlength=limits.series)[series]
    elsewhere = (slow_series - slow_of_cell + 0.5) / (in_series - of_cell + 1)
    # One row for each pair of cell and round with a measurement.
    keys, row = np.unique(cell * rounds + samples.round[sample], return_inverse=True)
    of_row, owner, number = np.bincount(row), keys // rounds, keys % rounds
    slow_of_row = np.bincount(row[slow[sample]], minlength=len(keys))
    compared = samples.series * rounds + samples.round
    sizes = limits.series * rounds
    of_round = np.bincount(compared[counted], minlength=sizes)[series[owner] * rounds + number]
    slow_round = np.bincount(compared[counted & slow], minlength=sizes)[
        series[owner] * rounds + number
    ]
    share = (slow_round - slow_of_row + PRIOR_WEIGHT * elsewhere[owner]) / (
        of_round - of_row + PRIOR_WEIGHT
    )
    found: Floats = np.bincount(owner, weights=of_row * share, minlength=len(cells)) / of_cell
    return found

"""The fit of all rounds together: the elements of a fabric that are slow.

The element that explains most slow measurements is named first (matching pursuit: S. Mallat and
Z. Zhang, IEEE Transactions on Signal Processing 41 (1993)). The measurements that it explains do
not count for other elements. This repeats until the rest is explained by chance.

The evidence that an element of a fabric is slow: how many of its measurements are slow.

A measurement is slow or not. So an outlier counts once, however far it is off, and an element is
named only if at least half of its measurements are slow. The probability that this happens by
chance is bounded by exp(-n D(k/n, p)) for k slow measurements of n, where p is the share of slow
measurements elsewhere in the same rounds and D the relative entropy (W. Hoeffding, "Probability
inequalities for sums of bounded random variables", Journal of the American Statistical Association
58 (1963), theorem 1; for rounds that differ in p: W. Hoeffding, Annals of Mathematical Statistics
27 (1956), theorem 4).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from proofmark.packages.fabric.elements import NONE, Elements, Paths, elements_of
from proofmark.packages.fabric.samples import (
    Deviations,
    Expected,
    Samples,
    deviations,
    expected,
    shares,
)
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


MOST = 100
"""The largest number of elements that are named."""
CLEAR, COMPARABLE = 0.9, 0.3
"""An element of which this share of the measurements is slow is named before elements with a
smaller share, if its evidence is at least this part of the largest evidence."""
CONSISTENT = 0.75
"""The least share of slow measurements of an element among those that show its slowdown."""
NOTICED = 0.01
"""A measurement whose expected value falls by more than this part is explained."""
LIKELY = 0.05
"""Other elements with at least this probability are listed as alternatives."""


@dataclass(frozen=True, eq=False)
class Named:
    """An element that is slow.

    Attributes:
        element: its number.
        ratio: the median of measured ÷ usual of its slow measurements; less than 1.
        confidence: the probability of the element among those that explain the same measurements.
        alternatives: the other elements that explain them, with their probabilities.
        measured: the numbers of the measurements that it limits.
        slow: the numbers of the slow ones of these.
        gain: the logarithm of the improbability of the evidence by chance.
        series: the numbers of the series in which it is slow.
    """

    element: int
    ratio: float
    confidence: float
    alternatives: tuple[tuple[int, float], ...]
    measured: Numbers
    slow: Numbers
    gain: float
    series: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Fit:
    """The fit of all measurements of a fabric.

    Attributes:
        about: their links and classes.
        named: the slow elements, the one with the most evidence first.
        found: the distance of each measurement from the usual value of its class.
        owner: the place in `named` of the element that makes a measurement slower; -1 for none;
            shape (measurements,).
        tested: the number of elements that could be named.
        limited: the number of compared measurements that each element limits; shape (elements,).
    """

    samples: Samples
    about: Expected
    elements: Elements
    named: tuple[Named, ...]
    found: Deviations
    owner: Numbers
    tested: int
    limited: Numbers


def fit(samples: Samples, paths: Paths, level: float) -> Fit:
    """Return the slow elements of a fabric.

    Args:
        samples: the measurements of all rounds.
        level: the probability that any element of a healthy fabric is named.
    """
    about, elements = expected(samples, paths), elements_of(paths)
    limits = incidence(samples, about, elements)
    search = _Search(samples, about, elements, limits, level)
    named = tuple(islice(search.elements_by_evidence(), MOST))
    residual = np.where(about.like == NONE, 0.0, search.found.residual + search.change)
    found = Deviations(residual, search.found.spread)
    limited = limits.counts(about.like != NONE).reshape(-1, limits.series).sum(axis=1)
    return Fit(samples, about, elements, named, found, search.owner, search.tested, limited)


@dataclass
class _Search:
    samples: Samples
    about: Expected
    elements: Elements
    limits: Incidence
    level: float

    def __post_init__(self) -> None:
        self.owner: Numbers = np.full(len(self.samples), NONE, dtype=np.int64)
        self.change: Floats = np.zeros(len(self.samples))
        self.found = deviations(self.samples, self.about, self.free)
        self.distance = self.elements.paths.distance(self.samples.pairs)
        self.tested = 0
        self.capacity = self.elements.paths.capacity.copy()

    @property
    def free(self) -> NDArray[np.bool_]:
        """Mask of the measurements that no slow element explains."""
        mask: NDArray[np.bool_] = self.owner == NONE
        return mask

    def elements_by_evidence(self) -> Iterator[Named]:
        """Yield the slow elements, the one with the most evidence first."""
        number = 0
        while best := self._best():
            named = self._named(*best)
            self._explain(named, number)
            self.found = deviations(self.samples, self.about, self.free, self.change)
            yield named
            number += 1

    def _best(self) -> tuple[int, PathEvidence] | None:
        """Return the element with the most evidence; None if chance explains the rest."""
        usable = self.free & (self.about.like != NONE)
        if not usable.any():
            return None
        tries = [
            evidence(self.samples, self.found, usable, self.limits, spreads) for spreads in SPREADS
        ]
        best = max(tries, key=lambda each: float(each.gain.max(initial=0)))
        self.tested = max(self.tested, best.tested)
        # Each element, each threshold and each choice of series is a test.
        tests = max(1, best.tested) * len(SPREADS)
        needed = np.log(tests / self.level) + self.limits.series * np.log(2)
        gain = np.round(best.gain, 9)
        # A slow port makes some flows of an uplink slow. So an element of which almost all
        # measurements are slow is named before one with mixed measurements.
        clear = (gain > COMPARABLE * gain.max()) & (best.share >= CLEAR)
        strong = np.flatnonzero(gain > needed)
        for element in strong[np.lexsort((strong, -gain[strong], ~clear[strong]))].tolist():
            if self._consistent(element, best):
                return element, best
        return None

    def _consistent(self, element: int, best: PathEvidence) -> bool:
        """Return whether the element makes slow what it should.

        A series in which it is not slow counts against it, if the usual spread would not hide it.
        So does a distance: the flows to some hosts may take one slow uplink, but these hosts are
        fast for their neighbours. One slow uplink of several is no evidence against all of them.
        """
        residual, spread = self.found.residual, self.found.spread
        of_element = self._of(element, self.free & (self.about.like != NONE))
        ratio = np.median(residual[of_element[best.slow[of_element]]])
        visible = of_element[2 * spread[of_element] < -ratio]
        if not len(visible):
            return True
        slow = residual[visible] < ratio / 2
        distance = self.distance[visible]
        count = np.bincount(distance)
        hit = np.bincount(distance[slow], minlength=len(count))
        least = CLEAR if self.elements.unrouted(element) else CONSISTENT
        return bool(slow.mean() >= least and (2 * hit >= count)[count > 1].all())

    def _of(self, element: int, chosen: NDArray[np.bool_]) -> Numbers:
        """Return the numbers of the chosen measurements that an element limits."""
        numbers = self.limits.of(element)
        kept: Numbers = numbers[chosen[numbers]]
        return kept

    def _named(self, element: int, best: PathEvidence) -> Named:
        usable = self.free & (self.about.like != NONE)
        series = np.flatnonzero(best.active[element])
        measured = self._of(element, usable & np.isin(self.samples.series, series))
        slow = measured[best.slow[measured]]
        strength, alternatives = self._alternatives(element, slow, best)
        return Named(
            element=element,
            ratio=float(np.exp(np.median(self.found.residual[slow]))),
            confidence=strength,
            alternatives=alternatives,
            measured=measured,
            slow=slow,
            gain=float(best.gain[element]),
            series=tuple(series.tolist()),
        )

    def _alternatives(
        self, element: int, slow: Numbers, best: PathEvidence
    ) -> tuple[float, tuple[tuple[int, float], ...]]:
        """Return the probability of an element, and the other ones that are likely.

        They are the elements that limit at least half of the same slow measurements. Each is as
        probable as its evidence. The directions of one element count once.
        """
        mask = np.zeros(len(self.samples), dtype=bool)
        mask[slow] = True
        shared = self.limits.counts(mask).reshape(-1, self.limits.series).sum(axis=1)
        others = np.flatnonzero((2 * shared >= len(slow)) & (best.gain > 0))
        base = self.elements.base
        weight: dict[int, tuple[float, int]] = {}
        for other in others.tolist():
            each = float(np.exp(min(0.0, best.gain[other] - best.gain[element])))
            weight[int(base[other])] = max(weight.get(int(base[other]), (0.0, 0)), (each, -other))
        weight[int(base[element])] = (1.0, -element)
        total = sum(each for each, _ in weight.values())
        likely = sorted(
            (-each / total, -other)
            for family, (each, other) in weight.items()
            if family != base[element] and each / total >= LIKELY
        )
        return 1 / total, tuple((other, -each) for each, other in likely)

    def _explain(self, named: Named, number: int) -> None:
        """Mark the measurements that a slow element makes slower.

        Other flows on their links may become faster, and take more from a third flow. So the shares
        of all measurements are computed with the slower element. A share that grows is not used: a
        series that measures both directions cannot tell which of them is slow.
        """
        links = self.elements.links(named.element)
        has = np.isin(self.about.path, links)
        slack = np.where(has, self.about.slack, np.inf).min(axis=1)
        self.capacity[links] *= named.ratio
        share, _ = shares(self.samples.round, self.about.path, self.capacity)
        rate = np.array([each.rate for each in self.samples.of], dtype=bool)[self.samples.series]
        share[~rate] = 1.0
        self.change = np.log(np.minimum(1.0, share / self.about.share))
        slower = (np.log(named.ratio) + slack < 0) | (self.change < np.log1p(-NOTICED))
        self.owner[slower & self.free] = number

"""The fit of all rounds together: the elements of a fabric that are slow.

The element that explains most slow measurements is named first (matching pursuit: S. Mallat and
Z. Zhang, IEEE Transactions on Signal Processing 41 (1993)). The measurements that it explains do
not count for other elements. This repeats until the rest is explained by chance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from proofmark.judge.links.elements import Elements, elements_of
from proofmark.judge.links.path_evidence import (
    SPREADS,
    Incidence,
    PathEvidence,
    evidence,
    incidence,
)
from proofmark.judge.links.paths import NONE, Paths
from proofmark.judge.links.samples import (
    Deviations,
    Expected,
    Samples,
    deviations,
    expected,
    shares,
)
from proofmark.records.columns import Floats, Numbers

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
        samples: the measurements.
        about: their links and classes.
        elements: the elements of the fabric.
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
        paths: the links of the fabric.
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

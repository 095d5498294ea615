"""The bounds of a limit: the accepted ratios of a figure and what it is compared with."""

from __future__ import annotations

from typing import NamedTuple, Self

from proofmark.cases.reference import OF_EXPECTED, TYPICAL, Reference


class Bounds(NamedTuple):
    """The least and the greatest accepted ratio; None: every ratio on that side is accepted."""

    at_least: float | None = None
    at_most: float | None = None

    @property
    def known(self) -> bool:
        """Whether there is a bound on either side."""
        return self.at_least is not None or self.at_most is not None

    @property
    def each(self) -> tuple[float, ...]:
        """The bounds that there are, the least first."""
        return tuple(bound for bound in self if bound is not None)

    def missed_by(self, ratio: float) -> bool:
        """Return whether `ratio` is outside."""
        low = self.at_least is not None and ratio < self.at_least
        return low or (self.at_most is not None and ratio > self.at_most)

    def times(self, value: float) -> Self:
        """Return the accepted values of a figure that is compared with `value`."""
        return type(self)(*(None if bound is None else bound * value for bound in self))


def judging_bounds(
    reference: Reference, of_site: float | None, of_source: float | None = None
) -> Bounds:
    """Return the bounds by which a figure is judged.

    An expected value has the tolerance of the site, if the site states one. A typical value has
    else the tolerance of its source: without both, its bounds are not known.

    Args:
        reference: the reference or limit.
        of_site: the tolerance that the site states for expected values; None if it states none.
        of_source: the tolerance of the source of a typical value; None if it is not known.
    """
    tolerance = of_site if reference.kind in OF_EXPECTED else None
    if reference.rule in TYPICAL:
        tolerance = of_source if tolerance is None else tolerance
        return Bounds(None if tolerance is None else 1 - tolerance)
    if tolerance is None:
        return Bounds(reference.at_least, reference.at_most)
    return Bounds(
        None if reference.at_least is None else 1 - tolerance,
        None if reference.at_most is None else 1 + tolerance,
    )

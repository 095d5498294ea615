"""The model of the claims of papers: the sweep that a claim needs, and its decision."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from proofmark.cases.vocabulary import Scalar
from proofmark.judge.claim_source import Machines, NodeHardware, Statement
from proofmark.packages.papers.repeat_noise import Found, Noise

Point = tuple[Scalar, ...]


PAPERS: Machines = {
    "knl": NodeHardware(cores=68, tiles=34, peak_gflops=68 * 32 * 1.4),
    "skl": NodeHardware(cores=40, peak_gflops=40 * 32 * 2.4),
    "tachyon1": NodeHardware(cores=16),
    "tachyon2": NodeHardware(cores=8),
    "p595": NodeHardware(cores=64),
}
"""The systems as the papers describe them."""


@dataclass(frozen=True)
class SweepNeed:
    """A sweep that a claim needs: every combination of `axes`, with the traits `fixed`.

    With `points` only these combinations are needed; a simulation has fewer sizes with more ranks.

    A trait is a parameter of a record, or its ``benchmark``, ``metric``, ``mode`` or
    ``placement``. Other traits may differ. Of figures that differ in them the median is used, or
    with `best` the greatest (the Rmax of HPL is the best of its settings).
    """

    system: str
    case: str
    unit: str
    fixed: Mapping[str, Scalar]
    axes: Mapping[str, Sequence[Scalar]]
    best: bool = False
    points: tuple[Point, ...] = ()

    def _values(self) -> Mapping[str, Sequence[Scalar]]:
        """Return the values of each axis that are needed at any point."""
        if not self.points:
            return self.axes
        columns = (tuple(dict.fromkeys(column)) for column in zip(*self.points, strict=True))
        return dict(zip(self.axes, columns, strict=True))

    @property
    def text(self) -> str:
        """Return the need in words."""
        fixed = ", ".join(f"{name} {value}" for name, value in self.fixed.items())
        axes = "; ".join(f"{name}: {folded(values)}" for name, values in self._values().items())
        return f"{self.case} on {self.system} ({fixed}) at {axes}"


def folded(values: Sequence[Scalar]) -> str:
    """Return values as text: ``1 … 68`` for four or more consecutive integers."""
    whole = [value for value in values if isinstance(value, int)]
    if len(set(whole)) == len(values) > 3 and max(whole) - min(whole) + 1 == len(values):
        return f"{min(whole)} … {max(whole)}"
    return ", ".join(str(value) for value in values)


Values = Mapping[Point, float]
"""The figures of a need by their point: one value for each axis, in the order of the axes."""


@dataclass(frozen=True)
class Measured:
    """The figures of a need, and the noise of their repeats."""

    values: Values
    noise: Noise = field(default_factory=Noise)


@dataclass(frozen=True)
class ClaimDecision:
    """Whether a claim holds, with a sentence and the numbers of the decision.

    `holds` is None if the noise of the repeats hides the answer.
    """

    holds: Found
    sentence: str
    numbers: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Claim(Statement):
    """A statement of a paper that can be checked on records.

    Attributes:
        needs: returns its minimum sweep on these machines.
        decide: returns the decision from the complete figures of each need.
        of_twin: returns the minimum sweep in a simulation; None if a simulation cannot answer.
        decide_of_twin: returns the decision from the figures of `of_twin`; None: as `decide`.
        follows_from: the figures of the model from which a predicted answer follows.
        input_of_twin: the input of a model that a predicted answer would only repeat; empty if no
            suite of a twin has the sweep.
    """

    needs: Callable[[Machines], Sequence[SweepNeed]]
    decide: Callable[[Sequence[Measured], Machines], ClaimDecision]
    of_twin: Callable[[Machines], Sequence[SweepNeed]] | None = None
    decide_of_twin: Callable[[Sequence[Measured], Machines], ClaimDecision] | None = None
    follows_from: str = ""
    input_of_twin: str = ""

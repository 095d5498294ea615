"""The model of the claims of papers: the sweep that a claim needs, and its decision."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Literal, get_args

import polars as pl

from proofmark.cases.vocabulary import Scalar
from proofmark.common.message import NOTHING, Message
from proofmark.common.translation import N_
from proofmark.packages.papers.repeat_noise import Found, Noise
from proofmark.report.plots import NodeHardware

Point = tuple[Scalar, ...]
Word = Literal["holds", "does not hold", "cannot be told"]
WORDS: tuple[Word, ...] = get_args(Word)
_SHOWN = (N_("holds"), N_("does not hold"), N_("cannot be told"))  # for the catalogue
Machines = Mapping[str, NodeHardware]
"""Machines by system."""


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
class Claim:
    """A statement of a paper that can be checked on records.

    Attributes:
        id: ``C1.1`` … ``C5.4``, of paper P1 … P5.
        statement: the claim of the paper.
        needs: returns its minimum sweep on these machines.
        decide: returns the decision from the complete figures of each need.
        of_twin: returns the minimum sweep in a simulation; None if a simulation cannot answer.
        decide_of_twin: returns the decision from the figures of `of_twin`; None: as `decide`.
        follows_from: the figures of the model from which a predicted answer follows.
        input_of_twin: the input of a model that a predicted answer would only repeat; empty if no
            suite of a twin has the sweep.
    """

    id: str
    statement: str
    systems: tuple[str, ...]
    needs: Callable[[Machines], Sequence[SweepNeed]]
    decide: Callable[[Sequence[Measured], Machines], ClaimDecision]
    of_twin: Callable[[Machines], Sequence[SweepNeed]] | None = None
    decide_of_twin: Callable[[Sequence[Measured], Machines], ClaimDecision] | None = None
    follows_from: str = ""
    input_of_twin: str = ""

    @property
    def paper(self) -> str:
        """The paper, ``P1`` … ``P5``."""
        return f"P{self.id[1]}"


@dataclass(frozen=True)
class Answer:
    """The answer to a claim from figures of one origin.

    Attributes:
        missing: the gaps of the sweep.
        elsewhere: whether the claim is about a system without figures.
    """

    claim: Claim
    origin: str
    word: Word
    sentence: str
    numbers: Mapping[str, float] = field(default_factory=dict)
    missing: tuple[Message, ...] = ()
    elsewhere: bool = False

    def as_json(self) -> dict[str, object]:
        """Return the form of ``proofmark verdict --claims --json``."""
        return {
            "claim": self.claim.id,
            "paper": self.claim.paper,
            "statement": self.claim.statement,
            "systems": list(self.claim.systems),
            "origin": self.origin,
            "answer": self.word,
            "sentence": self.sentence,
            "numbers": dict(self.numbers),
            "missing": list(self.missing),
        }


LIKE = (
    "system",
    "case",
    "benchmark",
    "metric",
    "unit",
    "mode",
    "placement",
    "environment_hash",
    "parameters",
)
"""Columns in which the repeats of one figure agree, on one node or several."""


@dataclass(frozen=True)
class _Figure:
    """The median of the repeats of a figure.

    Attributes:
        traits: the values that a need can ask for.
        repeats: the number of values.
        squares: the sum of the squared deviations of their logarithms from the mean.
    """

    traits: dict[str, Any]
    value: float
    repeats: int
    squares: float


class ClaimFigures:
    """The figures of a table of records, by system, case and unit."""

    def __init__(self, records: pl.DataFrame, origin: str) -> None:
        """Aggregate the valid records of `origin`.

        `records` has the columns of records.parquet. Values that are not positive and finite do not
        count.
        """
        counting = (
            pl.col("valid")
            & (pl.col("origin") == origin)
            & pl.col("value").is_finite()
            & (pl.col("value") > 0)
        )
        logarithm = pl.col("value").log()
        self._figures: dict[tuple[str, str, str], list[_Figure]] = {}
        # Groups of all cases at once would need as much memory as the table.
        for case in records.get_column("case").unique().to_list():
            of_case = records.lazy().filter(counting & (pl.col("case") == case))
            figures = of_case.group_by(LIKE, maintain_order=True).agg(
                pl.col("value").median(),
                pl.len().alias("repeats"),
                (logarithm - logarithm.mean()).pow(2).sum().alias("squares"),
            )
            for row in figures.collect().iter_rows(named=True):
                traits = {
                    **json.loads(row["parameters"]),
                    **{name: row[name] for name in ("benchmark", "metric", "mode", "placement")},
                }
                key = (row["system"], row["case"], row["unit"])
                figure = _Figure(traits, row["value"], row["repeats"], row["squares"])
                self._figures.setdefault(key, []).append(figure)

    def of(self, need: SweepNeed) -> Measured:
        """Return the figures of `need` by point, also at points that it does not name.

        Their noise is pooled over like steps: all figures of the same system, case and metric.
        """
        like = self._figures.get((need.system, need.case, need.unit), [])
        by_point: dict[Point, list[_Figure]] = {}
        for figure in like:
            traits = figure.traits
            if all(traits.get(name) == wanted for name, wanted in need.fixed.items()) and all(
                name in traits for name in need.axes
            ):
                by_point.setdefault(tuple(traits[name] for name in need.axes), []).append(figure)
        if need.best:
            by_point = {
                point: [max(figures, key=lambda figure: figure.value)]
                for point, figures in by_point.items()
            }
        if need.points:
            by_point = {point: by_point[point] for point in need.points if point in by_point}
        values = {point: median(each.value for each in of) for point, of in by_point.items()}
        counts = [sum(figure.repeats for figure in of) for of in by_point.values()]
        metrics = set()
        for of in by_point.values():
            metrics |= {figure.traits["metric"] for figure in of}
        pooled = [figure for figure in like if figure.traits["metric"] in metrics]
        freedom = sum(figure.repeats - 1 for figure in pooled)
        squares = sum(figure.squares for figure in pooled)
        deviation = math.sqrt(squares / freedom) if freedom else 0.0
        return Measured(values, Noise(deviation, min(counts, default=1), freedom))


def origins(records: pl.DataFrame) -> list[str]:
    """Return the origins of the records, in order."""
    return sorted(records.get_column("origin").unique().to_list())


def missing_points(need: SweepNeed, values: Values) -> Message:
    """Return the points of `need` that `values` lack; `NOTHING` if they lack none."""
    wanted = list(_points(need))
    missing = [point for point in wanted if point not in values]
    if not missing:
        return NOTHING
    if len(missing) == len(wanted):
        return Message("claim-all-points", points=len(wanted), sweep=need.text)
    named = "; ".join(_named(need, point) for point in missing[:3])
    more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
    sweep = f"{need.text}: {named}{more}"
    return Message("claim-points", missing=len(missing), points=len(wanted), sweep=sweep)


def _points(need: SweepNeed) -> Iterator[Point]:
    if need.points:
        yield from need.points
        return
    points: list[Point] = [()]
    for values in need.axes.values():
        points = [(*point, value) for point in points for value in values]
    yield from points


def _named(need: SweepNeed, point: Point) -> str:
    return ", ".join(f"{name} {value}" for name, value in zip(need.axes, point, strict=True))


def curve(values: Values, place: int, *fixed: Scalar) -> list[tuple[float, float]]:
    """Return the points (x, value) over the axis at `place`, sorted by x.

    `fixed` are the values of the other axes, in order.
    """
    line = []
    for point, value in values.items():
        x = point[place]
        if (*point[:place], *point[place + 1 :]) == fixed and not isinstance(x, str):
            line.append((float(x), value))
    return sorted(line)


def ratio_curve(
    over: Sequence[tuple[float, float]], under: Sequence[tuple[float, float]]
) -> list[tuple[float, float]]:
    """Return the ratio of two lines at each x that both have."""
    divisors = dict(under)
    return [(x, y / divisors[x]) for x, y in over if x in divisors]

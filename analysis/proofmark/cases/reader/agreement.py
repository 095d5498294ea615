"""Numbers of one row that determine each other. A row that contradicts itself is INVALID."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise, product
from statistics import fmean

from proofmark.cases.reader.builder import ReadingBuilder
from proofmark.cases.vocabulary import Parameters, ParameterValues
from proofmark.common.expressions import Arithmetic, arithmetic
from proofmark.common.message import NOTHING, Message
from proofmark.common.text import measure


@dataclass(frozen=True)
class Agreement:
    """How one number of a row is computed from the others.

    Attributes:
        metric: the number that is computed: a metric, or a number that is only compared.
        equals: arithmetic over the metrics, the parameters and the numbers that are only compared.
            Of several expressions, for programs that differ by version, one must fit. A `printed`
            number can be half of its last digit larger or smaller.
        at_most: instead of `equals`, arithmetic whose value the metric cannot exceed.
        at_least: the same for a value that the metric cannot be below.
        rounding: the largest difference by the printed digits, in the unit of the metric.
        within: the largest relative difference besides.
        rounded: half of the last printed digit of other metrics in `equals`.
        benchmark: the rule holds for the benchmarks of this name only.
        unless: the rule does not hold for a row with this parameter.
    """

    metric: str
    equals: tuple[str, ...] = ()
    at_most: str = ""
    at_least: str = ""
    rounding: float = 0
    within: float = 0.002
    rounded: Mapping[str, float] = field(default_factory=dict)
    benchmark: re.Pattern[str] | None = None
    unless: str = ""

    @cached_property
    def expressions(self) -> tuple[Arithmetic, ...]:
        """The expressions of which one must fit."""
        return tuple(map(arithmetic, self.equals or (self.at_most or self.at_least,)))


def check(
    rules: Sequence[Agreement],
    builders: Iterable[ReadingBuilder],
    facts: ParameterValues,
) -> None:
    """Add a problem to the readings of each row whose numbers contradict each other.

    A row that lacks a number of a rule is not checked by this rule.

    Args:
        facts: what is valid for the whole run.
    """
    rows = [*builders] if rules else []
    printed = {*facts}
    for each in rows:
        printed.add(each.metric)
        printed.update(each.parameters, each.aside)
    rules = [
        rule
        for rule in rules
        if any({rule.metric, *each.names} <= printed for each in rule.expressions)
    ]
    for row in _rows(rows) if rules else ():
        values = {each.metric: each.value for each in row if each.value is not None}
        problems: dict[Message, None] = {}
        for each in row:
            names: Parameters = {**facts, **each.parameters, **values, **each.aside}
            for rule in rules:
                if rule.metric in names and (
                    rule.metric == each.metric or rule.metric not in values
                ):
                    problems[_contradiction(rule, each.benchmark, names)] = None
        for each in row:
            each.problems += filter(None, problems)


def refuse_zeros(
    units: Mapping[str, str], short: Collection[str], builders: Sequence[ReadingBuilder]
) -> None:
    """Add a problem to each rate of zero: the program did not do what it should measure.

    So does a time of zero: it is below the resolution of the output. A time of `short`, and the
    bandwidth of a small message, are rounded numbers beside another number of their row.

    Args:
        units: metric → unit.
        short: times that an output states beside their rate, and parts of a time.
    """
    if all(each.value != 0 for each in builders):
        return  # of most outputs
    bases = {name: f"/{measure(unit)[0]}" for name, unit in units.items()}
    for row in _rows(builders):
        measured = any(each.value for each in row if bases[each.metric].endswith("/s"))
        for each in row:
            base = bases[each.metric]
            message = base == "/byte/s" and "bytes" in each.parameters
            rounded = measured and (message or each.metric in short)
            if each.value == 0 and base.endswith("/s") and not rounded:
                code = "reader-zero-time" if base == "/s" else "reader-zero-rate"
                each.problems.append(Message(code, metric=each.metric))


_Summary = Callable[[Sequence[float]], float]
_AGAIN: Mapping[str, _Summary] = {"most": max, "least": min, "mean": fmean}


def compare_again(rows: Sequence[ReadingBuilder], printed: Mapping[str, float]) -> None:
    """Add a problem to rows whose `printed` summary is not the summary of their values.

    The names in `printed` are those of `_AGAIN`.
    """
    values = [each.value for each in rows if each.value is not None]
    for name, stated in printed.items() if len(values) == len(rows) else ():
        found = _AGAIN[name](values)
        if not _near(stated, Agreement(name, rounding=0.006), found, found):
            numbers = {"printed": f"{found:g}", "computed": f"{stated:g}"}
            for each in rows:
                each.problems.append(Message("reader-contradiction", metric=each.metric, **numbers))


def row_missing(builders: Iterable[ReadingBuilder]) -> Message:
    """Return between which sizes of a table a row is missing, or `NOTHING`. The sizes double.

    Sizes of which one is no power of two are a list of a person.
    """
    every = [*builders]
    found = {each.parameters.get("bytes") for each in every}
    sizes = sorted(size for size in found if isinstance(size, int) and size)
    if any(each.value is None for each in every) or any(size & (size - 1) for size in sizes):
        return NOTHING  # a row that cannot be read has its own INVALID reading
    for size, following in pairwise(sizes):
        if following != 2 * size:
            return Message("reader-no-row-between", least=size, most=following)
    return NOTHING


def _rows(builders: Iterable[ReadingBuilder]) -> Iterator[list[ReadingBuilder]]:
    """Yield successive readings with equal parameters, each metric once."""
    row: list[ReadingBuilder] = []
    for builder in builders:
        same = row and (row[0].benchmark, row[0].parameters) == (
            builder.benchmark,
            builder.parameters,
        )
        if not same or builder.metric in {each.metric for each in row}:
            if row:
                yield row
            row = []
        row.append(builder)
    if row:
        yield row


def _contradiction(rule: Agreement, benchmark: str | None, names: ParameterValues) -> Message:
    """Return how a number contradicts the others of its row, or `NOTHING`."""
    printed = names.get(rule.metric)
    if not isinstance(printed, (int, float)) or math.isnan(printed) or rule.unless in names:
        return NOTHING
    if rule.benchmark and not rule.benchmark.fullmatch(benchmark or ""):
        return NOTHING
    expressions = [each for each in rule.expressions if each.names <= names.keys()]
    # Most rows agree without their rounding, which takes several computations.
    for each in expressions:
        if (exact := _computed(each, names, {})) and _near(printed, rule, *exact):
            return NOTHING
    rounded = (_computed(each, names, _halves(rule, each, names)) for each in expressions)
    ranges = [each for each in rounded if each]
    if not ranges or any(_near(printed, rule, *each) for each in ranges):
        return NOTHING
    middle = sum(ranges[0]) / 2
    numbers = {"printed": f"{printed:g}", "computed": f"{middle:g}"}
    return Message("reader-contradiction", metric=rule.metric, **numbers)


def _near(printed: float, rule: Agreement, low: float, high: float) -> bool:
    rounding = rule.rounding + getattr(printed, "half", 0.0)
    enough = low - (rounding + rule.within * abs(low)) <= printed
    little = printed <= high + (rounding + rule.within * abs(high))
    return (enough or bool(rule.at_most)) and (little or bool(rule.at_least))


def _halves(rule: Agreement, expression: Arithmetic, names: ParameterValues) -> dict[str, float]:
    """Return the rounding error of each rounded number: half of its last printed digit."""
    halves = {
        name: rule.rounded.get(name, getattr(names.get(name), "half", 0.0))
        for name in expression.names
    }
    return {name: half for name, half in halves.items() if half}


def _computed(
    expression: Arithmetic, names: ParameterValues, halves: Mapping[str, float]
) -> tuple[float, float] | None:
    """Return the least and the greatest value within `halves`; None if it cannot be computed."""
    try:
        numbers = {name: float(names[name]) for name in expression.names}
        if not halves:
            value = expression.compute(numbers)
            return (value, value) if math.isfinite(value) else None
        if any(abs(numbers[name]) <= half for name, half in halves.items()):
            return None  # 0.00 s is any short time
        found = []
        for corner in product(*([(name, -half), (name, half)] for name, half in halves.items())):
            moved = dict(numbers)
            for name, by in corner:
                moved[name] += by
            found.append(expression.compute(moved))
        return (min(found), max(found)) if all(map(math.isfinite, found)) else None
    except (ArithmeticError, TypeError, ValueError):
        return None  # a division by zero, a complex number, a word

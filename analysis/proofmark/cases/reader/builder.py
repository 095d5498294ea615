"""The state of a reader: readings that later lines of the run can still make INVALID."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product

from proofmark.cases.reader.rules import Agreement
from proofmark.cases.reader.values import Parameter, parameter, rounds_to, scaled
from proofmark.common.expressions import Arithmetic
from proofmark.common.message import NOTHING, Message
from proofmark.common.text import measure


@dataclass(slots=True)
class ReadingBuilder:
    """A reading before the end of its run. It is valid if it has no problem.

    Readings of one row may share their parameters. The numbers in `aside` are only compared.
    """

    metric: str
    value: float | None
    parameters: Mapping[str, Parameter]
    problems: list[Message] = field(default_factory=list)
    benchmark: str | None = None
    aside: Mapping[str, Parameter] = field(default_factory=dict)
    settings: Mapping[str, Parameter] = field(default_factory=dict)


@dataclass
class ProgramRun:
    """The readings of one run of a program, and the facts and problems of the whole run.

    Attributes:
        unproven: rows may be missing, because the requested ones are not known.
        notes: what the output says besides, and makes no figure INVALID.
        unset: the metrics that the program reports as not run.
    """

    builders: list[ReadingBuilder] = field(default_factory=list)
    facts: dict[str, Parameter] = field(default_factory=dict)
    problems: list[Message] = field(default_factory=list)
    node: str | None = None
    unproven: bool = False
    notes: list[Message] = field(default_factory=list)
    unset: set[str] = field(default_factory=set)

    def settle(self, corrected: Mapping[str, Parameter]) -> None:
        """Replace facts by the values that correct them; note each difference and what is unset."""
        for name, value in corrected.items():
            if (first := self.facts.get(name, value)) != value:
                two = {"first": first, "second": value}
                self.notes.append(Message("reader-corrected", name=name, **two))
            self.facts[name] = value
        if self.unset:
            self.notes.append(Message("reader-not-run", metrics=tuple(sorted(self.unset))))


@dataclass
class Notes:
    """The readings of a run of printed text, and the context of the next reading.

    Attributes:
        types: parameter → its type.
        aside: the names in `types` that are no parameters of a reading.
        run: the readings so far.
        sticky: the parameters that are valid for the following lines.
        benchmark: the benchmark whose results follow, if the program printed its name.
        exact: sizes in the command line. They replace sizes that the program printed rounded.
        doubts: problems of the next row.
        last_row: the place of the first reading of the last row.
        settings: what the header and the command line set for the next rows.
    """

    types: Mapping[str, str]
    aside: Collection[str] = ()
    run: ProgramRun = field(default_factory=ProgramRun)
    sticky: dict[str, Parameter] = field(default_factory=dict)
    benchmark: str | None = None
    exact: dict[str, int] = field(default_factory=dict)
    doubts: list[Message] = field(default_factory=list)
    last_row: int = 0
    settings: Mapping[str, Parameter] = field(default_factory=dict)

    def typed(
        self, groups: Mapping[str, str | None], problems: list[Message]
    ) -> dict[str, Parameter]:
        """Return the groups that are parameters, as typed values; append errors to `problems`."""
        parameters: dict[str, Parameter] = {}
        for name, word in groups.items():
            if word is not None and name in self.types:
                exact = self.exact.get(name)
                # 1.746 GiB is printed as 1.75 GiB, which is a whole number of bytes, too.
                if exact is not None and "." in word and rounds_to(word.strip(), exact):
                    parameters[name] = exact
                    continue
                try:
                    parameters[name] = parameter(self.types[name], word)
                except ValueError as error:
                    problems.append(Message("reader-parameter", name=name, problem=error.args[0]))
        return parameters

    def row_read(self, start: int) -> None:
        """Record that the readings from `start` on are a row: the doubts concern it."""
        self.last_row = start
        if self.doubts:
            self.doubt_last_row()

    def doubt_last_row(self) -> None:
        """Add the doubts to the last row, or to the whole run if there is no row."""
        for builder in self.run.builders[self.last_row :]:
            builder.problems += self.doubts
        if not self.run.builders:
            self.run.problems += self.doubts
        self.doubts.clear()

    def measure(
        self,
        metric: str,
        word: str,
        parameters: Mapping[str, Parameter],
        problems: Iterable[Message],
        power: int = 0,
    ) -> ReadingBuilder:
        """Add the reading of a printed value, times ten to the power of `power`."""
        value, problem = scaled(word, power)
        every = [*problems, problem] if problem else [*problems]
        known = self._with_sticky(parameters)
        builder = ReadingBuilder(metric, value, known, every, self.benchmark)
        set_aside(builder, self.aside)
        builder.settings = self.settings
        self.run.builders.append(builder)
        return builder

    def _with_sticky(self, parameters: Mapping[str, Parameter]) -> Mapping[str, Parameter]:
        return {**self.sticky, **parameters} if self.sticky else parameters

    def unread(
        self, metric: str, problem: Message, parameters: Mapping[str, Parameter] | None = None
    ) -> ReadingBuilder:
        """Add an INVALID reading for a value that could not be read."""
        known = {**self.sticky, **(parameters or {})}
        builder = ReadingBuilder(metric, None, known, [problem], self.benchmark)
        builder.settings = self.settings
        self.run.builders.append(builder)
        return builder


@dataclass
class UnreadLines:
    """Lines that could not be read. Consecutive lines of a metric become one INVALID reading."""

    builder: ReadingBuilder | None = None
    metric: str = ""
    first: Message = NOTHING
    more: int = 0

    def line(
        self, problem: Message, note: Callable[[Message], ReadingBuilder], metric: str
    ) -> None:
        """Add a line. The first line of a block makes the reading, by `note`."""
        if self.builder is None or metric != self.metric:
            self.builder, self.first, self.more = note(problem), problem, 0
            self.metric = metric
        else:
            self.more += 1
            more = Message("reader-more-lines", problem=self.first, lines=self.more)
            self.builder.problems[0] = more

    def end(self) -> None:
        """End the block, after a line that can be read."""
        self.builder = None


def set_aside(builder: ReadingBuilder, names: Collection[str]) -> None:
    """Move the numbers `names` of a reading from its parameters to those that are only compared."""
    if names and not builder.parameters.keys().isdisjoint(names):
        both = builder.parameters
        builder.aside = {name: value for name, value in both.items() if name in names}
        builder.parameters = {name: both[name] for name in both if name not in names}


def check(
    rules: Sequence[Agreement],
    builders: Iterable[ReadingBuilder],
    facts: Mapping[str, Parameter],
) -> None:
    """Add a problem to the readings of each row whose numbers contradict each other.

    A row that lacks a number of a rule is not checked by this rule.

    Args:
        facts: what is valid for the whole run.
    """
    metrics = {rule.metric for rule in rules}
    for row in _rows(builders) if rules else ():
        values = {each.metric: each for each in row if each.value is not None}
        if metrics.isdisjoint(values):
            continue
        names: dict[str, Parameter] = {**facts, **row[0].parameters}
        names |= {name: each.value for name, each in values.items() if each.value is not None}
        for rule in rules:
            checked = values.get(rule.metric)
            if checked and (problem := _contradiction(rule, checked, names)):
                for each in row:
                    each.problems.append(problem)


def refuse_zero_rates(units: Mapping[str, str], builders: Iterable[ReadingBuilder]) -> None:
    """Add a problem to each rate of zero: the program did not do what it should measure.

    The bandwidth of a small message beside its time or its message rate is a rounded number.

    Args:
        units: metric → unit.
    """
    bases = {name: measure(unit)[0] for name, unit in units.items()}
    for row in _rows(builders):
        measured = any(each.value for each in row)
        for each in row:
            base = bases[each.metric]
            rounded = measured and base == "byte/s"
            if each.value == 0 and base.endswith("/s") and not rounded:
                each.problems.append(Message("reader-zero-rate", metric=each.metric))


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


def _contradiction(
    rule: Agreement, builder: ReadingBuilder, names: Mapping[str, Parameter]
) -> Message:
    """Return how the value of `builder` contradicts the numbers of its row, or `NOTHING`."""
    printed = builder.value
    if printed is None or rule.unless in names or rule.unless in builder.aside:
        return NOTHING
    if rule.benchmark and not rule.benchmark.fullmatch(builder.benchmark or ""):
        return NOTHING
    names = {**names, **builder.aside} if builder.aside else names
    expressions = [each for each in rule.expressions if each.names <= names.keys()]
    near = partial(_near, printed, rule)
    # Most rows agree without their rounding, which takes several computations.
    exact = (_computed(each, names, {}) for each in expressions)
    if any(each and near(*each) for each in exact):
        return NOTHING
    rounded = (_computed(each, names, _halves(rule, each, names)) for each in expressions)
    ranges = [each for each in rounded if each]
    if not ranges or any(near(*each) for each in ranges):
        return NOTHING
    middle = sum(ranges[0]) / 2
    numbers = {"printed": f"{printed:g}", "computed": f"{middle:g}"}
    return Message("reader-contradiction", metric=rule.metric, **numbers)


def _near(printed: float, rule: Agreement, low: float, high: float) -> bool:
    below, above = (rule.rounding + rule.within * abs(each) for each in (low, high))
    return (bool(rule.at_most) or low - below <= printed) and printed <= high + above


def _halves(
    rule: Agreement, expression: Arithmetic, names: Mapping[str, Parameter]
) -> dict[str, float]:
    """Return the rounding error of each rounded number: half of its last printed digit."""
    halves = {
        name: rule.rounded.get(name, getattr(names.get(name), "half", 0.0))
        for name in expression.names
    }
    return {name: half for name, half in halves.items() if half}


def _computed(
    expression: Arithmetic, names: Mapping[str, Parameter], halves: Mapping[str, float]
) -> tuple[float, float] | None:
    """Return the least and the greatest value within `halves`; None: there is none."""
    try:
        numbers = {name: float(names[name]) for name in expression.names}
        if any(abs(numbers[name]) <= half for name, half in halves.items()):
            return None  # 0.00 s is any short time
        corners = product(*([(name, -half), (name, half)] for name, half in halves.items()))
        moved = ({**numbers, **{name: numbers[name] + by for name, by in each}} for each in corners)
        found = [*map(expression.compute, moved)]
        return (min(found), max(found)) if all(map(math.isfinite, found)) else None
    except (ArithmeticError, TypeError, ValueError):
        return None  # a division by zero, a complex number, a word

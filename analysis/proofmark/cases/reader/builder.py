"""The state of a reader: readings that later lines of the run can still make INVALID."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from proofmark.cases.reader.spec_types import Agreement
from proofmark.cases.reader.values import Parameter, parameter, rounds_to, scaled
from proofmark.common.errors import BadInput
from proofmark.common.expressions import evaluate
from proofmark.common.message import NOTHING, Message


@dataclass(slots=True)
class ReadingBuilder:
    """A reading before the end of its run. It is valid if it has no problem.

    Readings of one row may share their parameters.
    """

    metric: str
    value: float | None
    parameters: Mapping[str, Parameter]
    problems: list[Message] = field(default_factory=list)
    benchmark: str | None = None


@dataclass
class ProgramRun:
    """The readings of one run of a program, and the facts and problems of the whole run.

    Attributes:
        unproven: rows may be missing, because the requested ones are not known.
    """

    builders: list[ReadingBuilder] = field(default_factory=list)
    facts: dict[str, Parameter] = field(default_factory=dict)
    problems: list[Message] = field(default_factory=list)
    node: str | None = None
    unproven: bool = False


@dataclass
class Notes:
    """The readings of a run of printed text, and the context of the next reading.

    Attributes:
        types: parameter → its type.
        run: the readings so far.
        sticky: the parameters that are valid for the following lines.
        benchmark: the benchmark whose results follow, if the program printed its name.
        exact: sizes in the command line. They replace sizes that the program printed rounded.
        doubts: problems of the next row.
        last_row: the place of the first reading of the last row.
    """

    types: Mapping[str, str]
    run: ProgramRun = field(default_factory=ProgramRun)
    sticky: dict[str, Parameter] = field(default_factory=dict)
    benchmark: str | None = None
    exact: dict[str, int] = field(default_factory=dict)
    doubts: list[Message] = field(default_factory=list)
    last_row: int = 0

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
        builder = ReadingBuilder(
            metric, value, self._with_sticky(parameters), every, self.benchmark
        )
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


def check(rules: Sequence[Agreement], builders: Iterable[ReadingBuilder]) -> None:
    """Add a problem to the readings of each row whose numbers contradict each other.

    A row that lacks a number of a rule is not checked by this rule.
    """
    if rules:
        for row in _rows(builders):
            for rule in rules:
                _check_row(rule, row)


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


def _check_row(rule: Agreement, row: Sequence[ReadingBuilder]) -> None:
    values = {each.metric: each.value for each in row if each.value is not None}
    printed = values.get(rule.metric)
    if printed is None:
        return
    try:
        computed = evaluate(rule.equals, {**row[0].parameters, **values}, file="", key="agree")
    except BadInput:  # the row lacks a number
        return
    if abs(printed - computed) > rule.rounding + rule.within * abs(computed):
        problem = Message(
            "reader-contradiction",
            metric=rule.metric,
            printed=f"{printed:g}",
            computed=f"{computed:g}",
        )
        for builder in row:
            builder.problems.append(problem)

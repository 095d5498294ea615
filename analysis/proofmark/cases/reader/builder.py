"""The state of a reader: readings that later lines of the run can still make INVALID."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from proofmark.cases.reader.values import Parameter, measured, parameter


@dataclass(slots=True)
class ReadingBuilder:
    """A reading before the end of its run. It is valid if it has no problem.

    Readings of one row may share their parameters.
    """

    metric: str
    value: float | None
    parameters: Mapping[str, Parameter]
    problems: list[str] = field(default_factory=list)
    benchmark: str | None = None


@dataclass
class ProgramRun:
    """The readings of one run of a program, and the facts and problems of the whole run."""

    builders: list[ReadingBuilder] = field(default_factory=list)
    facts: dict[str, Parameter] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    node: str | None = None


@dataclass
class Notes:
    """The readings of a run of printed text, and the context of the next reading.

    Attributes:
        types: parameter → its type.
        run: the readings so far.
        sticky: the parameters that are valid for the following lines.
        benchmark: the benchmark whose results follow, if the program printed its name.
    """

    types: Mapping[str, str]
    run: ProgramRun = field(default_factory=ProgramRun)
    sticky: dict[str, Parameter] = field(default_factory=dict)
    benchmark: str | None = None

    def typed(self, groups: Mapping[str, str | None], problems: list[str]) -> dict[str, Parameter]:
        """Return the groups that are parameters, as typed values; append errors to `problems`."""
        parameters = {}
        for name, word in groups.items():
            if word is not None and name in self.types:
                try:
                    parameters[name] = parameter(self.types[name], word)
                except ValueError as error:
                    problems.append(f"{name}: {error}")
        return parameters

    def measure(
        self, metric: str, word: str, parameters: Mapping[str, Parameter], problems: Iterable[str]
    ) -> ReadingBuilder:
        """Add the reading of a printed value."""
        value, problem = measured(word)
        every = [*problems, problem] if problem else [*problems]
        builder = ReadingBuilder(
            metric, value, self._with_sticky(parameters), every, self.benchmark
        )
        self.run.builders.append(builder)
        return builder

    def _with_sticky(self, parameters: Mapping[str, Parameter]) -> Mapping[str, Parameter]:
        return {**self.sticky, **parameters} if self.sticky else parameters

    def unread(
        self, metric: str, problem: str, parameters: Mapping[str, Parameter] | None = None
    ) -> ReadingBuilder:
        """Add an INVALID reading for a value that could not be read."""
        known = {**self.sticky, **(parameters or {})}
        builder = ReadingBuilder(metric, None, known, [problem], self.benchmark)
        self.run.builders.append(builder)
        return builder


@dataclass
class UnreadLines:
    """Lines that could not be read. Consecutive lines become one INVALID reading."""

    builder: ReadingBuilder | None = None
    first: str = ""
    more: int = 0

    def line(self, problem: str, note: Callable[[str], ReadingBuilder]) -> None:
        """Add a line. The first line of a block makes the reading, by `note`."""
        if self.builder is None:
            self.builder, self.first, self.more = note(problem), problem, 0
        else:
            self.more += 1
            self.builder.problems[0] = f"{self.first} (and {self.more} more lines)"

    def end(self) -> None:
        """End the block, after a line that can be read."""
        self.builder = None

"""What a reader notes while a run is being read: later lines may still make a reading invalid."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from proofmark.cases.reader.values import Parameter, measured, parameter


@dataclass(slots=True)
class ReadingBuilder:
    """A reading before its run is over; it is valid as long as it has no problem.

    Rows may share their parameters.
    """

    metric: str
    value: float | None
    parameters: Mapping[str, Parameter]
    problems: list[str] = field(default_factory=list)
    benchmark: str | None = None


@dataclass
class ProgramRun:
    """What one run of a program gave, and what holds for all of it."""

    drafts: list[ReadingBuilder] = field(default_factory=list)
    facts: dict[str, Parameter] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    node: str | None = None


@dataclass
class Notes:
    """The drafts of a run of printed text, and the context in which the next one is made.

    Attributes:
        types: parameter → its type.
        run: what was found so far.
        sticky: the parameters that hold for what follows.
        benchmark: the benchmark that prints now, if the program has said so.
    """

    types: Mapping[str, str]
    run: ProgramRun = field(default_factory=ProgramRun)
    sticky: dict[str, Parameter] = field(default_factory=dict)
    benchmark: str | None = None

    def typed(self, groups: Mapping[str, str | None], problems: list[str]) -> dict[str, Parameter]:
        """Turn the groups that are parameters into such; add to `problems` what cannot be."""
        found = {}
        for name, word in groups.items():
            if word is not None and name in self.types:
                try:
                    found[name] = parameter(self.types[name], word)
                except ValueError as error:
                    problems.append(f"{name}: {error}")
        return found

    def measure(
        self, metric: str, word: str, parameters: Mapping[str, Parameter], problems: Iterable[str]
    ) -> ReadingBuilder:
        """Note what is printed as a value."""
        value, problem = measured(word)
        found = [*problems, problem] if problem else [*problems]
        draft = ReadingBuilder(metric, value, self._with_sticky(parameters), found, self.benchmark)
        self.run.drafts.append(draft)
        return draft

    def _with_sticky(self, parameters: Mapping[str, Parameter]) -> Mapping[str, Parameter]:
        return {**self.sticky, **parameters} if self.sticky else parameters

    def unread(
        self, metric: str, problem: str, parameters: Mapping[str, Parameter] | None = None
    ) -> ReadingBuilder:
        """Note that a value could not be read, and why."""
        known = {**self.sticky, **(parameters or {})}
        draft = ReadingBuilder(metric, None, known, [problem], self.benchmark)
        self.run.drafts.append(draft)
        return draft


@dataclass
class UnreadLines:
    """Lines that could not be read; those that follow each other become one draft."""

    draft: ReadingBuilder | None = None
    first: str = ""
    more: int = 0

    def line(self, problem: str, note: Callable[[str], ReadingBuilder]) -> None:
        """Take one more such line; the first of a block makes the draft, by `note`."""
        if self.draft is None:
            self.draft, self.first, self.more = note(problem), problem, 0
        else:
            self.more += 1
            self.draft.problems[0] = f"{self.first} (and {self.more} lines more)"

    def end(self) -> None:
        """End the block: something that can be read came."""
        self.draft = None

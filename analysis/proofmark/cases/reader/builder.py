"""The readings of a run of a program; later lines of the run can still make them INVALID."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from proofmark.cases.reader.values import parameter, rounds_to, scaled
from proofmark.cases.vocabulary import Parameters, ParameterValues
from proofmark.common.message import NOTHING, Message


@dataclass(slots=True)
class ReadingBuilder:
    """A reading before the end of its run. It is valid if it has no problem.

    Readings of one row may share their parameters. The numbers in `aside` are only compared.
    """

    metric: str
    value: float | None
    parameters: ParameterValues
    problems: list[Message] = field(default_factory=list)
    benchmark: str | None = None
    aside: ParameterValues = field(default_factory=dict)
    settings: ParameterValues = field(default_factory=dict)


@dataclass
class ProgramRun:
    """The readings of one run of a program, what is known of the run, and of its next reading.

    Attributes:
        types: parameter → its type.
        only_compared: the names in `types` that are no parameters of a reading.
        facts: the parameters of the whole run.
        problems: why all readings are INVALID.
        node: the host that the program printed.
        unproven: rows may be missing, because the requested ones are not known.
        notes: what the output says besides, and makes no figure INVALID.
        sticky: the parameters that are valid for the following lines.
        benchmark: the benchmark whose results follow, if the program printed its name.
        exact: sizes in the command line. They replace sizes that the program printed rounded.
        settings: what the header and the command line set for the next rows.
        doubts: problems of the next row.
        last_row: the place of the first reading of the last row.
    """

    types: Mapping[str, str] = field(default_factory=dict)
    only_compared: Collection[str] = ()
    builders: list[ReadingBuilder] = field(default_factory=list)
    facts: Parameters = field(default_factory=dict)
    problems: list[Message] = field(default_factory=list)
    node: str | None = None
    unproven: bool = False
    notes: list[Message] = field(default_factory=list)
    sticky: Parameters = field(default_factory=dict)
    benchmark: str | None = None
    exact: dict[str, int] = field(default_factory=dict)
    settings: ParameterValues = field(default_factory=dict)
    doubts: list[Message] = field(default_factory=list)
    last_row: int = 0

    def typed(self, groups: Mapping[str, str | None], problems: list[Message]) -> Parameters:
        """Return the groups that are parameters, as typed values; append errors to `problems`."""
        parameters: Parameters = {}
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
        for builder in self.builders[self.last_row :]:
            builder.problems += self.doubts
        if not self.builders:
            self.problems += self.doubts
        self.doubts.clear()

    def measure(
        self,
        metric: str,
        word: str,
        parameters: ParameterValues,
        problems: Iterable[Message] = (),
        power: int = 0,
    ) -> ReadingBuilder:
        """Add the reading of a printed value, times ten to the power of `power`."""
        value, problem = scaled(word, power)
        every = [*problems, problem] if problem else [*problems]
        known = {**self.sticky, **parameters} if self.sticky else parameters
        builder = self._add(ReadingBuilder(metric, value, known, every, self.benchmark))
        set_aside(builder, self.only_compared)
        return builder

    def unread(
        self, metric: str, problem: Message, parameters: ParameterValues | None = None
    ) -> ReadingBuilder:
        """Add an INVALID reading for a value that could not be read."""
        known = {**self.sticky, **(parameters or {})}
        return self._add(ReadingBuilder(metric, None, known, [problem], self.benchmark))

    def _add(self, builder: ReadingBuilder) -> ReadingBuilder:
        builder.settings = self.settings
        self.builders.append(builder)
        return builder


@dataclass
class UnreadLines:
    """Lines that could not be read. Consecutive lines of a metric become one INVALID reading."""

    builder: ReadingBuilder | None = None
    metric: str = ""
    first: Message = NOTHING
    more: int = 0

    def line(
        self, problem: Message, note: Callable[[str, Message], ReadingBuilder], metric: str
    ) -> None:
        """Add a line. The first line of a block makes the reading, by `note`."""
        if self.builder is None or metric != self.metric:
            self.builder, self.first, self.more = note(metric, problem), problem, 0
            self.metric = metric
        else:
            self.more += 1
            more = Message("reader-more-lines", problem=self.first, lines=self.more)
            self.builder.problems[0] = more


def set_aside(builder: ReadingBuilder, names: Collection[str]) -> None:
    """Move the numbers `names` of a reading from its parameters to those that are only compared."""
    if names and not builder.parameters.keys().isdisjoint(names):
        both = builder.parameters
        builder.aside = {name: value for name, value in both.items() if name in names}
        builder.parameters = {name: both[name] for name in both if name not in names}


_NO_SPACE = ("No space left on device", "Disk quota exceeded")
_ABORTED = (
    # strerror(3) of ENOSPC, EDQUOT, EIO, ENOTCONN, ESHUTDOWN (a client that Lustre evicted), ESTALE
    # and EROFS. They come first, because they are the cause of the others.
    *_NO_SPACE,
    "Input/output error",
    "Transport endpoint is not connected",
    "Cannot send after transport endpoint shutdown",
    "Stale file handle",
    "Read-only file system",
    "MPI_ABORT was invoked",
    "MPI_Abort(",
    "noticed that process rank",
    "exited with non-zero status",
    "exited on signal",
    "killed by signal",
    "BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
    "*** Process received signal ***",
    "*** An error occurred in MPI_",
    "Fatal error in PMPI_",
    "Fatal error in MPI_",
    "slurmstepd: error: ***",
    "srun: error:",
    "DUE TO TIME LIMIT",
    "STEP CANCELLED",
    " CANCELLED AT ",
    "PBS: job killed",
    "TERM_RUNLIMIT",
    "TERM_MEMLIMIT",
    "oom-kill event",
    "oom_kill",
    "Out of memory",
    "Out Of Memory",
    "OUT_OF_MEMORY",
    "out of memory:",
    "Segmentation fault",
    "segmentation fault",
    "Bus error",
    "(core dumped)",
    "forrtl: severe",
    "gzip: unexpected end of file",
)
"""Words of file systems, launchers, resource managers and kernels.

No benchmark that succeeds prints them.
"""


_CLEAN: set[str] = set()
"""Lines of short outputs without such a message: most are the same on thousands of nodes."""
_MOST_CLEAN, _SHORT = 1 << 13, 1 << 16


def has_message(text: str, lines: Iterable[str]) -> bool:
    """Return whether `text`, an output of a program with these `lines`, has such a message."""
    new = {*lines} - _CLEAN
    found = bool(messages_in("\n".join(new)))
    if len(_CLEAN) > _MOST_CLEAN:
        _CLEAN.clear()
    if not found and len(text) <= _SHORT:
        _CLEAN.update(new)
    return found


def messages_in(text: str) -> list[Message]:
    """Return a problem for each such message in `text`, the output of one run of a program.

    What stands before the banner of the first run is no part of it: an earlier command of the job
    script printed it.
    """
    found = (words for words in _ABORTED if words in text)
    return [
        Message("reader-no-space" if words in _NO_SPACE else "reader-contains", words=repr(words))
        for words in found
    ]

"""The reader of the outputs of a program, and the lines of each run in a text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Literal

from proofmark.cases.reader.agreement import Agreement
from proofmark.cases.reader.builder import (
    ProgramRun,
    ReadingBuilder,
    UnreadLines,
    has_message,
    messages_in,
)
from proofmark.cases.reader.settings import StartedCommand, named, of_command
from proofmark.cases.reader.table import CACHED, OpenTable, Table
from proofmark.cases.reader.values import Parameter, shorten
from proofmark.cases.vocabulary import Parameters, ParameterValues
from proofmark.common.message import NOTHING, Message

Pattern = re.Pattern[str]
Match = re.Match[str]
ParameterType = Literal["int", "real", "word", "lower", "size", "suffixed"]
DOCUMENT = re.compile(r"\{.*")
"""The first line of a JSON document."""


def line(pattern: str) -> Pattern:
    """Return the pattern of a line without its trailing blanks."""
    return re.compile(pattern, re.ASCII)


def any_of(patterns: Iterable[Pattern]) -> Pattern:
    """Return one pattern of all lines of `patterns`: most lines are excluded by one match."""
    texts = dict.fromkeys(re.sub(r"\(\?P<\w+>", "(?:", each.pattern) for each in patterns)
    return line("|".join(f"(?:{text})" for text in texts) or "(?!)")


def matches_of(*patterns: Pattern) -> Callable[[str], tuple[Match, ...]]:
    """Return a function with the matches of a line, and a cache: headers are alike on all nodes."""
    anything = any_of(patterns)

    @lru_cache(maxsize=CACHED)
    def matches(text: str) -> tuple[Match, ...]:
        found = patterns if anything.fullmatch(text) else ()
        return tuple(filter(None, (each.fullmatch(text) for each in found)))

    return matches


def words(text: str) -> tuple[str, ...]:
    """Return the words of a text."""
    return tuple(text.split())


@dataclass(frozen=True)
class Item:
    """One measurement in a document.

    Attributes:
        values: metric → its place in the document, for a reason, and the value at this place.
        parameters: parameter → the value at its place; None: the document does not have it.
        settings: the options of the measurement.
        problems: why its figures are INVALID.
    """

    values: Mapping[str, tuple[str, object]]
    parameters: Mapping[str, object] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)
    problems: Sequence[str] = ()


@dataclass(frozen=True)
class Documents:
    """The JSON documents of a program.

    Attributes:
        keys: the keys that each document has. They show of which case a document is.
        stated: the parameters that each document has.
        items: a function that yields the measurements of a document.
        problems: a function that yields why all figures of a document are INVALID.
        is_partial: whether a document is a report of a program that still runs.
        numbered: the parameter that numbers the readings of one metric, from 0, if a document has
            no numbers.
        refused: lines beside a document that make its figures INVALID.
    """

    keys: tuple[str, ...]
    stated: frozenset[str]
    items: Callable[[object], Iterator[Item]]
    problems: Callable[[object], Iterator[str]] = lambda document: iter(())
    is_partial: Callable[[object], bool] = lambda document: False
    numbered: str = ""
    refused: tuple[Pattern, ...] = ()


@dataclass(frozen=True, eq=False)
class Reader:
    """How the output of a program is read.

    Attributes:
        finds: the name of a result in the output, for the reason if there is no result.
        units: metric → unit, of all metrics that the program prints.
        parameters: every parameter that a reading may have → its type: `int`; `real`; `word`;
            `lower`, a word in lower case; `size`, as in `16 MiB` or `262144 bytes`, in bytes;
            `suffixed`, as in `16m`, powers of 1024, or as in `16MiB`, powers of 1000 (as fio and
            its manual, `kb_base`), in bytes.
        read: a function that reads the lines of one run; None: the program prints only documents.
        documents: its documents of JSON, if it prints any.
        benchmark: the name of the benchmark, if the program does not print it.
        prints_benchmark: whether the program prints the name of a benchmark.
        aside: numbers of the output that are only compared → `int` or `suffixed` if it is exact,
            `printed` if its last digit is rounded.
        no_setting: options and names in `settings` that other rules read, or that change no figure.
        agree: numbers of one row that determine each other.
        short: times that may be printed as 0: beside their rate, and parts of a time.
        starts: the banner, the line that begins a run of the program. An output may contain several
            runs. Each is checked on its own. A run without it is INVALID.
        headers: lines that begin the results of a version that prints no line `starts`.
        untitled: some versions of the program print no line `starts`.
        facts: lines anywhere in a run whose groups are valid for the whole run.
        settings: lines before a figure with the groups `key` and `value`, or with groups whose
            names are keys. Each is a parameter of a figure that nobody planned; so are the options
            of the command line.
        summary: whether lines behind a figure have settings of it, too.
        require: name for the reason → a line that every run must have (an end marker, a validation
            line). Without it all readings of the run are INVALID.
        reject: lines that make all readings of a run INVALID.
        foreign: name → a line of another program, or of a format that is not read. The run then has
            one INVALID reading with this name.
        closes: the last line of a run. A fact, or a line of `opens`, after it begins the next run.
        once: what occurs once in a run of an output that is not mixed with another one. `ends`: a
            line of `require`. `rows`: so do a header, and a metric with equal parameters, and there
            is no row outside of a table.
        expects: metrics that every run must have.
        needs: parameters, or `benchmark`, that every reading must have, or it is INVALID.
        proven: whether the requested rows prove the end of a run instead of `require`.
    """

    finds: str
    units: Mapping[str, str]
    parameters: Mapping[str, ParameterType]
    read: Callable[[TextRun], None] | None = None
    documents: Documents | None = None
    benchmark: str | None = None
    prints_benchmark: bool = False
    aside: Mapping[str, Literal["int", "printed", "suffixed"]] = field(default_factory=dict)
    no_setting: tuple[str, ...] = ()
    agree: tuple[Agreement, ...] = ()
    short: tuple[str, ...] = ()
    starts: Pattern | None = None
    headers: tuple[Pattern, ...] = ()
    untitled: bool = False
    facts: tuple[Pattern, ...] = ()
    settings: tuple[Pattern, ...] = ()
    summary: bool = False
    require: Mapping[str, Pattern] = field(default_factory=dict)
    reject: tuple[Pattern, ...] = ()
    foreign: Mapping[str, Pattern] = field(default_factory=dict)
    closes: Pattern | None = None
    opens: tuple[Pattern, ...] = ()
    once: Literal["", "ends", "rows"] = ""
    expects: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    proven: Callable[[TextRun], bool] = lambda run: False

    @cached_property
    def types(self) -> Mapping[str, str]:
        """The type of each parameter and of each number of `aside`."""
        return {**self.parameters, **self.aside}

    @property
    def metric(self) -> str:
        """The metric of a reading whose line has none."""
        return next(iter(self.units))

    @cached_property
    def begins(self) -> tuple[Pattern, ...]:
        """The lines that begin an output, or the results of one that can lack a banner."""
        banner = [self.starts] if self.starts else []
        return (*banner, *self.headers, *([DOCUMENT] if self.documents else []))

    @property
    def stated(self) -> frozenset[str]:
        """The parameters that each whole output has."""
        return self.documents.stated if self.documents else frozenset(self.parameters)

    @cached_property
    def is_mark(self) -> Callable[[str], Match | None]:
        """A function that matches the lines that are read alike in all programs, with a cache."""
        banner = [each for each in (self.starts, self.closes) if each]
        lines = (*self.opens, *self.facts, *self.reject, *self.require.values())
        marks = any_of([*banner, *lines, *self.foreign.values()])
        return lru_cache(maxsize=CACHED)(marks.fullmatch)

    @cached_property
    def settings_in(self) -> Callable[[str], ParameterValues]:
        """A function that returns the settings in a line, with a cache.

        The header of a program is the same on thousands of nodes.
        """
        return lru_cache(maxsize=CACHED)(self._settings_in)

    def _settings_in(self, text: str) -> ParameterValues:
        found: Parameters = {}
        for match in filter(None, (pattern.fullmatch(text) for pattern in self.settings)):
            groups = {name: word for name, word in match.groupdict().items() if word}
            if "key" in groups:
                groups = {groups["key"]: groups.get("value", "")}
            for name, word in groups.items():
                found |= named(name, word, self.no_setting)
        return found


class Source:
    """The lines of a text, of which runs take one after another.

    Attributes:
        place: of the next line.
        started: whether a run has begun with its first line.
    """

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        self.place = 0
        self.started = False
        self.has_messages = has_message(text, self.lines)


class TextRun(ProgramRun):
    """The state of one run of a program while the function of its reader reads it.

    Attributes:
        request: what was started, or the command line that the output has.
        mixed: why the output is a mixture; `NOTHING` if it is none.
        table: the open table.
        cut: the last line, if its end is missing.
        unset: the metrics that the program reports as not run.
    """

    def __init__(self, reader: Reader, source: Source, request: StartedCommand | None) -> None:
        super().__init__(reader.types, reader.aside)
        self.reader, self._source = reader, source
        self._started = self.request = self._next_request = request
        self._next_settings: Parameters = {}
        self._first = source.place
        self.mixed = NOTHING
        self.table: OpenTable | None = None
        self.unset: set[str] = set()
        self.foreign = ""  # another format or program that the output belongs to
        self._closed = False
        self._closed_table: OpenTable | None = None
        self._seen: set[str] = set()  # names of `require`, patterns of `reject`
        self._banner = False
        self._measured = 0  # the number of readings before the header
        self._strays = UnreadLines()
        self._doubts: dict[Message, Iterable[str]] = {}  # problem → metrics of the figures
        self.cut = ""
        self._marked = False

    def following(self) -> TextRun:
        """Return the next run in the same output."""
        run = TextRun(self.reader, self._source, self._started)
        run.request, run.settings, run.foreign = (
            self._next_request,
            self._next_settings,
            self.foreign,
        )
        return run

    def lines(self) -> Iterator[str]:
        """Yield the lines of the run, without trailing blanks, up to the first line of the next."""
        source, begin, is_mark = self._source, self._source.place, self.reader.is_mark
        lines, last, settings = source.lines, len(source.lines) - 1, self.reader.settings
        while (place := source.place) <= last:
            raw = lines[place]
            text = raw.rstrip()
            self._marked = is_mark(text) is not None
            if place == last:
                self.cut = raw
            elif self._marked and (place > begin or not begin) and self._is_next(text):
                break
            if self._marked:
                self._mark(text)
            source.place = place + 1
            if text or not self.cut:
                yield text
                if settings and text:
                    self._setting(text)
        self._end()

    def _is_next(self, text: str) -> bool:
        """Return whether a line is of the next run, which may be of another program."""
        reader, source = self.reader, self._source
        starts = reader.starts and reader.starts.fullmatch(text)
        foreign = any(each.fullmatch(text) for each in reader.foreign.values())
        ends = foreign and self.builders and not self.foreign
        if self._closed and not ends:
            ends = any(each.fullmatch(text) for each in (*reader.facts, *reader.opens))
        if not (starts or ends):
            return False
        nothing = not (self._banner or self.builders or self._seen or self.table)
        if not (starts and nothing and self.facts):  # else facts stand before the banner of the run
            if source.started or self._closed or self.foreign:
                source.started = True
                return True
            if starts:
                self._first = source.place  # what stands before the banner is not of the program
        source.started = True
        return False

    def _mark(self, text: str) -> None:
        """Read a line that is read alike in all programs."""
        reader = self.reader
        self._strays.builder = None
        if reader.starts and reader.starts.fullmatch(text):
            self._banner, self.foreign = True, ""
        for fact in reader.facts:
            if (match := fact.fullmatch(text)) and self.is_whole(match):
                self._fact(match)
        for name, pattern in reader.foreign.items():
            if pattern.fullmatch(text):
                self.foreign = self.foreign or name
        for name, pattern in reader.require.items():
            if pattern.fullmatch(text):
                if name in self._seen and reader.once:
                    self.mixed = Message("mixed-lines", line=repr(name))
                self._seen.add(name)
        for pattern in reader.reject:
            # Thousands of ranks may print the same line.
            if pattern.fullmatch(text) and pattern.pattern not in self._seen:
                self._seen.add(pattern.pattern)
                self.problems.append(Message("reader-contains", words=shorten(text)))
        if reader.closes and reader.closes.fullmatch(text):
            self._closed = True

    def _fact(self, match: Match) -> None:
        groups = match.groupdict()
        self.node = groups.get("node") or self.node
        for name, value in self.typed(groups, self.problems).items():
            if self.facts.setdefault(name, value) != value:
                two = {"first": self.facts[name], "second": value}
                self.problems.append(Message("reader-two-values", name=name, **two))

    def is_whole(self, match: Match) -> bool:
        """Return whether a line is whole as far as a pattern reads it.

        The last line is, although its end is missing, if the pattern ends with a fixed word.
        """
        return not self.cut or not match.re.fullmatch(match.string[:-1])

    def context(self, match: Match, resets: Iterable[str] = ()) -> None:
        """Read a line whose groups are valid for the following lines, up to the next such line.

        It ends the open table.

        Args:
            resets: parameters that are no longer valid.
        """
        if not self.is_whole(match):
            return
        self._strays.builder = None
        self._measured = len(self.builders)
        self.end_table()
        self._closed_table = None
        for name in resets:
            self.sticky.pop(name, None)
        groups = match.groupdict()
        self.benchmark = groups.get("benchmark") or self.benchmark
        self.sticky |= self.typed(groups, self.problems)

    def contexts(self, matches: Iterable[Match]) -> None:
        """Read a line that several patterns match; see `context`."""
        for match in matches:
            self.context(match)

    def header(self, table: Table, match: Match) -> None:
        """Open a table. Its titles are the group `titles`, or the whole line without this group."""
        if not self.is_whole(match):
            return
        self._strays.builder = None
        self.end_table()
        if self._closed_table and self.reader.once == "rows":
            self.mixed = Message("mixed-headers")
        titles = match.groupdict().get("titles") or match.string
        self.table = OpenTable(table, titles, self)
        self.table.above = match.string

    def end_table(self) -> None:
        """End the open table, if one is open."""
        if self.table:
            self.table.close()
            self._closed_table = self.table
        self.table = None

    def other(self, text: str, *tables: Table) -> None:
        """Read a line that nothing else reads: a row of the open table, or a row outside of one.

        Args:
            tables: those whose rows are recognised outside of a table.
        """
        if self._marked:
            return
        if self.table is None:
            for table in tables if text and not self.cut else ():
                self._stray(table, text)
        elif not self.cut or self.table.is_whole(self.cut):
            self.table.take(text)
        else:
            self.table.broken(text, Message("reader-cut", line=shorten(text)))

    def _stray(self, table: Table, text: str) -> None:
        """Add an INVALID reading for a line outside of any table if it looks like a row."""
        if not (table.stray and table.stray.fullmatch(text)):
            return
        problem = Message("reader-row-outside", line=shorten(text))
        if self.reader.once == "rows":
            self.mixed = Message("mixed-row")
            self._strays.builder = None  # each row has its own reading
        closed = self._closed_table
        if closed and closed.table is table and closed.take_stray(text, problem):
            self._strays.builder = None
        else:
            self._strays.line(problem, self.unread, table.metric_of(text.split()))

    def key(self, match: Match, metric: str) -> None:
        """Read a line with one value, the group `value`; other groups are parameters."""
        self._strays.builder = None
        if not self.is_whole(match):
            self.unread(metric, Message("reader-cut", line=shorten(match.string)))
            return
        start, problems = len(self.builders), list[Message]()
        parameters = self.typed(match.groupdict(), problems)
        self.measure(metric, match["value"].strip(), parameters, problems)
        self.row_read(start)

    def fail(self, match: Match) -> None:
        """Read a line that reports that one benchmark has no result: an INVALID reading."""
        self.end_table()
        self._strays.builder = None
        groups = match.groupdict()
        self.benchmark = groups.get("benchmark") or self.benchmark
        self.sticky.clear()
        problem = Message("reader-contains", words=shorten(match.string))
        self.unread(self.reader.metric, problem, self.typed(groups, []))

    def command(self, match: Match) -> StartedCommand | None:
        """Read a line with a command line, the group `command`.

        Return it, or None if it is that of the next run: the run has readings.
        """
        if not self.is_whole(match):
            return None
        self._strays.builder = None
        words = match["command"].split()
        found = of_command(words, self.reader.no_setting)
        printed = StartedCommand(words)
        self.ahead(found)
        if self.builders:
            self._next_request = self._started or printed
            return None
        self.request = self._started or printed
        return printed

    def ahead(self, found: ParameterValues) -> None:
        """Record settings before a banner, or of a command: behind figures, of the next run."""
        if self.builders:
            self._next_settings = {**self._next_settings, **found}
        else:
            self.settings = {**self.settings, **found}

    def complaint(self, text: str, metrics: tuple[str, ...] = ()) -> None:
        """Read a line by which the program itself doubts a figure.

        Args:
            metrics: all figures of these metrics of the run are INVALID, because any process may
                print the line at any time. Without them it is the figures of the next row, or of
                the last row if none follows.
        """
        problem = Message("reader-contains", words=shorten(text))
        if metrics:
            self.doubt(problem, metrics)
        elif problem not in self.doubts:
            self.doubts.append(problem)

    def doubt(self, problem: Message, metrics: Iterable[str]) -> None:
        """Make all figures of some metrics of the run INVALID, also those that follow."""
        self._doubts[problem] = metrics

    def check_doubts(self) -> None:
        """Apply the doubts about all figures of a metric; one about no figure is of the run."""
        for problem, metrics in self._doubts.items():
            concerned = [each for each in self.builders if each.metric in metrics]
            for builder in concerned:
                builder.problems.append(problem)
            if not concerned:
                self.problems.append(problem)
        self._doubts.clear()

    def correct(self, name: str, value: Parameter) -> None:
        """Replace a fact by the value that counts; note the difference."""
        if (first := self.facts.get(name, value)) != value:
            self.notes.append(Message("reader-corrected", name=name, first=first, second=value))
        self.facts[name] = value

    def _setting(self, text: str) -> None:
        """Record the settings in a line of the header."""
        reader = self.reader
        late = self._measured < len(self.builders) and not reader.summary
        if late or self.cut or not (self._banner or reader.untitled):
            return
        if self.table and not text.lstrip()[:1].isalpha():
            return
        if found := reader.settings_in(text):
            self.settings = {**self.settings, **found}

    def _end(self) -> None:
        """Check what each whole run has, after its last line."""
        reader, source = self.reader, self._source
        self.end_table()
        if source.has_messages:
            self.problems += messages_in("\n".join(source.lines[self._first : source.place]))
        if reader.starts and not (self._banner or reader.untitled):
            self.problems.append(Message("reader-no-banner"))
        missing = [name for name in reader.require if name not in self._seen]
        if missing and not reader.proven(self):
            self.problems += [Message("reader-no-line", line=repr(name)) for name in missing]

    def finish(self) -> ProgramRun:
        """Check the readings of the run, after its reader has read it."""
        reader = self.reader
        self.table = self._closed_table = None  # a table refers to its run: the run would stay
        if self.doubts:
            self.doubt_last_row()
        self.check_doubts()
        if self.foreign:
            self.problems.clear()
            self.builders.clear()
            self.unread(reader.metric, Message("reader-foreign", program=self.foreign))
            return self
        for builder in self.builders if reader.summary else ():
            builder.settings = self.settings
        if self.unset:
            self.notes.append(Message("reader-not-run", metrics=tuple(sorted(self.unset))))
        if self.builders:
            metrics = {builder.metric for builder in self.builders} | self.unset
            for metric in reader.expects:
                if metric not in metrics:
                    self.unread(metric, Message("reader-no-metric", metric=metric))
        if reader.once == "rows":
            self._check_distinct()
        for builder in self.builders if reader.needs else ():
            known = {*self.facts, *builder.parameters}
            if builder.benchmark or reader.benchmark is not None:
                known.add("benchmark")
            if not builder.problems:
                lacking = (name for name in reader.needs if name not in known)
                builder.problems += [Message("reader-no-parameter", name=name) for name in lacking]
        return self

    def _check_distinct(self) -> None:
        known = set()
        for builder in self.builders:
            key = (builder.metric, builder.benchmark, *builder.parameters.items())
            if builder.value is not None and key in known:
                self.mixed = self.mixed or Message("mixed-values", metric=builder.metric)
            known.add(key)


class Rows:
    """Lines with several values, and the lines elsewhere that confirm or refuse them.

    Args:
        match: the row; its groups are metrics and parameters. A row that it does not match is
            INVALID.
        confirmed: whether a later line must confirm each row.
    """

    def __init__(
        self, run: TextRun, match: Pattern, metrics: Sequence[str], *, confirmed: bool = False
    ) -> None:
        self._run, self._match, self._metrics = run, match, metrics
        self._needs_check = confirmed
        self._waiting: list[ReadingBuilder] = []  # the last row, until its check is read
        self._parameters: ParameterValues = {}
        self._checked = False
        self._seen = 0
        self._counted: int | None = None

    def row(self, text: str) -> None:
        """Read a line that begins like a row."""
        run = self._run
        match = self._match.fullmatch(text)
        if (match and not run.is_whole(match)) or (not match and run.cut):
            self._broken(Message("reader-cut", line=shorten(text)))
            return
        start = len(run.builders)
        self._settle()
        self._seen += 1
        problems: list[Message] = []
        self._parameters = run.typed(match.groupdict(), problems) if match else {}
        if not match or problems:
            self._broken(Message("reader-broken-line", line=shorten(text)))
        else:
            for metric in self._metrics:
                self._waiting.append(run.measure(metric, match[metric], self._parameters))
        run.row_read(start)

    def confirm(self, match: Match, metrics: Sequence[str] = ()) -> None:
        """Record that the last row is confirmed.

        Args:
            metrics: those that the first such line has for its row.
        """
        if not self._run.is_whole(match):
            return
        for metric in metrics if self._waiting and not self._checked else ():
            check = self._run.measure(metric, match[metric], self._parameters)
            problem = Message("reader-check", metric=metric, word=shorten(match[metric]))
            for builder in self._waiting if check.problems else ():
                builder.problems.append(problem)
            self._waiting.append(check)
        self._checked = True

    def refuse(self, text: str) -> None:
        """Make the last row INVALID."""
        self._checked = True  # its check was read; the result is no
        for builder in self._waiting:
            builder.problems.append(Message("reader-contains", words=shorten(text)))

    def count(self, match: Match) -> None:
        """Read a line with the number of rows, the group `count`."""
        if self._run.is_whole(match):
            # A longer number is cut to nine digits; no number of rows is equal to it.
            self._counted = int(match["count"][:9])

    def finish(self, *, counted: bool = False) -> None:
        """Check the rows after the last line of the run.

        Args:
            counted: whether each run has a line with the number of rows.
        """
        self._settle()
        problems = self._run.problems
        if counted and self._counted is None:
            problems.append(Message("reader-no-count"))
        elif self._counted not in (None, self._seen):
            found = f"{self._counted}"
            problems.append(Message("reader-other-count", rows=self._seen, counted=found))

    def _broken(self, problem: Message) -> None:
        for metric in self._metrics:
            self._run.unread(metric, problem)

    def _settle(self) -> None:
        """Add a problem to the last row if its check is missing."""
        if self._needs_check and not self._checked:
            for builder in self._waiting:
                builder.problems.append(Message("reader-unconfirmed"))
        self._waiting, self._checked = [], False


def read_text(reader: Reader, text: str, request: StartedCommand | None) -> list[TextRun]:
    """Return the program runs in `text`."""
    source, read = Source(text), reader.read
    runs = [TextRun(reader, source, request)]
    while read:
        read(runs[-1])
        runs[-1].finish()
        if source.place >= len(source.lines):
            break
        runs.append(runs[-1].following())
    for problem in dict.fromkeys(run.mixed for run in runs if run.mixed):
        for each in runs:
            each.problems.append(Message("reader-mixed", problem=problem))
    return runs

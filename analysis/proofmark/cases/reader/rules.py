"""The rules by which the output of a program is read: patterns of lines, titles of tables.

Every pattern must match a whole line without its trailing blanks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, PlainSerializer, PlainValidator, WithJsonSchema, model_validator

from proofmark.cases.reader.settings import named
from proofmark.cases.reader.values import Parameter, shorten
from proofmark.common.errors import nearest
from proofmark.common.expressions import Arithmetic, arithmetic
from proofmark.common.message import Message
from proofmark.common.strict_model import StrictModel
from proofmark.common.text import factor

CACHED = 4096
"""Size of a cache of lines or of parameters of rows. Outputs of all nodes share some hundred."""


def line(pattern: str) -> re.Pattern[str]:
    """Return the pattern of a line."""
    return re.compile(pattern, re.ASCII)


def words(text: str) -> tuple[str, ...]:
    """Return the words of a text."""
    return tuple(text.split())


def _pattern(value: object) -> re.Pattern[str]:
    if isinstance(value, re.Pattern):
        return value
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a regular expression in quotes")
    try:
        return line(value)
    except re.error as error:
        raise ValueError(f"{value!r} is not a regular expression: {error}") from None


Pattern = Annotated[
    re.Pattern[str],
    PlainValidator(_pattern),
    PlainSerializer(lambda pattern: pattern.pattern, return_type=str),
    WithJsonSchema({"type": "string", "format": "regex"}),
]


class Agreement(StrictModel):
    """Numbers of one row that determine each other; readings of a row that contradicts are INVALID.

    Attributes:
        metric: the number that is computed from the others.
        at_most: arithmetic as that of `equals`, whose value the metric cannot exceed.
        equals: arithmetic over the metrics, the parameters and the numbers of `aside`; or
            several ones for programs that differ by version, of which one must fit. A `printed`
            number of `aside` can be half of its last digit larger or smaller.
        rounding: the largest difference by the printed digits, in the unit of the metric.
        within: the largest relative difference besides.
        rounded: half of the last printed digit of other metrics in `equals`.
        benchmark: the rule holds for the benchmarks of this name only.
        unless: the rule does not hold for a row with this parameter.
    """

    metric: str
    at_most: str = ""
    equals: str | tuple[str, ...] = ()
    rounding: float = Field(ge=0)
    within: float = Field(ge=0, lt=1)
    rounded: Mapping[str, float] = {}
    benchmark: Pattern | None = None
    unless: str = ""

    @model_validator(mode="after")
    def _computable(self) -> Agreement:
        if bool(self.at_most) == bool(self.expressions_of_equals):
            raise ValueError("exactly one of equals and at_most is required")
        _ = self.expressions
        return self

    @property
    def expressions_of_equals(self) -> tuple[str, ...]:
        """The texts of `equals`."""
        return (self.equals,) if isinstance(self.equals, str) else self.equals

    @cached_property
    def expressions(self) -> tuple[Arithmetic, ...]:
        """The expressions of which one must fit."""
        return tuple(map(arithmetic, self.expressions_of_equals or (self.at_most,)))


def check_known(names: Iterable[str], known: Iterable[str], where: str, kind: str) -> None:
    """Raise ValueError for the first of `names` that is not one of `known`."""
    words = set(known)
    for name in names:
        if name not in words:
            raise ValueError(f"{where}: {name!r} is not a {kind}{nearest(name, words)}")


class ColumnRule(StrictModel):
    """One column of a table. A column without keys is accepted and not read.

    Attributes:
        parameter: the column holds this parameter.
        metric: the column holds this metric, printed in `unit`.
        unit: without `metric`: the column holds the value of the metric that `names` defines. The
            unit of the metric is that of the first such column.
        names: the column holds the name of the row's metric: printed word → metric.
        accept: the required word of the column; with another word the row is INVALID.
    """

    parameter: str | None = None
    metric: str | None = None
    unit: str | None = None
    names: Mapping[str, str] | None = None
    accept: str | None = None

    @model_validator(mode="after")
    def _one_role(self) -> ColumnRule:
        role = {key for key in self.model_fields_set if getattr(self, key) is not None}
        if (len(role) > 1 and role != {"metric", "unit"}) or role == {"metric"}:
            raise ValueError(
                f"a column with {', '.join(sorted(role))}; accepted: one of parameter, metric with "
                "unit, unit (value of the metric that the row names), names, accept, or no key"
            )
        return self


class TableRule(StrictModel):
    """A table: a header line with titles, and rows with one word for each title.

    Attributes:
        header: the header line. Its group `titles`, or the whole line without such a group, is a
            sequence of titles of `columns`, in any order and number.
        columns: printed title → the column.
        unread: titles of further columns, which are not read. Any other title is INVALID.
        skip: lines inside the table that are not rows. Blank lines are always skipped.
        gives_up: a row without numbers, which the program prints if it could not measure. It has
            the group `reason`, and groups for parameters.
        ends: the line after the last row. A new header or a context line ends the table, too.
        stray: the pattern of a row. Outside a table such a line is INVALID, not ignored.
    """

    header: Pattern
    columns: Mapping[str, ColumnRule]
    unread: Pattern | None = None
    skip: Pattern | None = None
    gives_up: Pattern | None = None
    ends: Pattern | None = None
    stray: Pattern | None = None

    @model_validator(mode="after")
    def _readable(self) -> TableRule:
        if not any(True for _ in self.yields()):
            raise ValueError("columns: none has a metric, or both names and their unit")
        for title, column in self.columns.items():
            if column.unit and self._power(column) is None:
                raise ValueError(f"{title}: {column.unit} is no power of ten of {self._unit}")
        if self.gives_up and "reason" not in self.gives_up.groupindex:
            raise ValueError(f"gives_up: {self.gives_up.pattern!r} has no group (?P<reason>…)")
        return self

    @cached_property
    def layout(self) -> Callable[[str], Layout]:
        """A function that returns the layout for the titles of a header, with a cache."""
        return lru_cache(maxsize=64)(self._layout)

    def _layout(self, titles: str) -> Layout:
        columns: list[ColumnRule] = []
        problems: list[Message] = []
        place = 0
        while match := self.title.match(titles, place):
            place = match.end()
            columns.append(self.columns[match["known"]] if match["known"] else ColumnRule())
            if not (match["known"] or (self.unread and self.unread.fullmatch(match["unknown"]))):
                title = shorten(match["unknown"], 40)
                problems.append(Message("reader-title", title=title))
        metrics = [column.metric for column in columns if column.metric]
        powers = [self._power(column) or 0 for column in columns]
        return Layout(columns, powers, metrics or [self.first_metric], problems)

    def _power(self, column: ColumnRule) -> int | None:
        """Return the power of ten from the unit of a column to that of its metric; None: none."""
        if column.metric or not column.unit:
            return 0
        power = math.log10(factor(column.unit, self._unit) or math.nan)
        return int(power) if power.is_integer() else None

    @cached_property
    def _unit(self) -> str:
        """The unit of the metrics that a row names; no letters if it names none."""
        units = (column.unit for column in self.columns.values() if not column.metric)
        return next(filter(None, units), "")

    @cached_property
    def title(self) -> re.Pattern[str]:
        """A pattern of one known title, or else of the words up to the next two blanks."""
        known = sorted(self.columns, key=len, reverse=True)
        alternatives = "|".join(re.escape(title) for title in known)
        return re.compile(rf"\s*(?:(?P<known>{alternatives})(?!\S)|(?P<unknown>\S+(?: \S+)*))")

    def yields(self) -> Iterator[tuple[str, str]]:
        """Yield each (metric, unit) that a row can have."""
        for column in self.columns.values():
            if column.metric and column.unit:
                yield column.metric, column.unit
        named = (column.names for column in self.columns.values() if column.names and self._unit)
        for names in named:
            yield from ((metric, self._unit) for metric in names.values())

    @cached_property
    def first_metric(self) -> str:
        """The metric of a reading whose line cannot be read."""
        return next(self.yields())[0]

    def metric_of(self, words: Sequence[str]) -> str:
        """Return the metric that a row names, or else the first one."""
        names = (column.names for column in self.columns.values() if column.names)
        named = (known[word] for known in names for word in words if word in known)
        return next(named, self.first_metric)

    def parameters(self) -> Iterator[str]:
        """Yield each parameter that a row, or a row of `gives_up`, can have."""
        yield from (c.parameter for c in self.columns.values() if c.parameter)
        if self.gives_up:
            yield from self.gives_up.groupindex.keys() - {"reason"}


class Layout:
    """The columns of one header, by their places in a row.

    Attributes:
        width: number of words of a row.
        metrics: of a row; the first is also that of a row that cannot be read.
        problems: one for each unknown title.
        names: place and metrics by printed word.
        values: place, metric and power of ten; None for the metric that the row names.
        accepted: place and required word.
        plain: whether no value depends on a name in the row.
        known: a cache of the parameters of rows, by their words.
    """

    def __init__(
        self,
        columns: Sequence[ColumnRule],
        powers: Sequence[int],
        metrics: Sequence[str],
        problems: Sequence[Message],
    ) -> None:
        self.width, self.metrics, self.problems = len(columns), metrics, problems
        places = list(enumerate(columns))
        self.parameters = [(place, col.parameter) for place, col in places if col.parameter]
        self.names = [(place, col.names) for place, col in places if col.names]
        self.values = [(place, col.metric, powers[place]) for place, col in places if col.unit]
        self.plain = bool(self.values) and all(metric for _, metric, _ in self.values)
        self.known: dict[tuple[str, ...], dict[str, Parameter]] = {}
        self.accepted = [(place, col.accept) for place, col in places if col.accept]


class RowRule(StrictModel):
    """A line with several values, and the lines elsewhere that confirm or refuse it.

    Attributes:
        under: the title of the rows, if they have one besides the banner. Lines before it are no
            rows.
        begins: the pattern that recognises such a row. If `match` then fails, the row is INVALID.
        match: the row; its groups are metrics and parameters.
        metrics: group → unit as printed.
        confirm: a later line; without it the row is INVALID.
        confirmed: group of `confirm` → unit: metrics that the first such line has for its row.
        refuse: a later line; with it the row is INVALID.
        count: a line whose group `count` is the number of rows that the run must have.
    """

    begins: Pattern
    match: Pattern
    under: Pattern | None = None
    metrics: Mapping[str, str]
    confirm: Pattern | None = None
    confirmed: Mapping[str, str] = {}
    refuse: Pattern | None = None
    count: Pattern | None = None

    @model_validator(mode="after")
    def _groups(self) -> RowRule:
        check_known(self.metrics, self.match.groupindex, "metrics", "group of match")
        groups = self.confirm.groupindex if self.confirm else ()
        check_known(self.confirmed, groups, "confirmed", "group of confirm")
        if self.count and r"(?P<count>\d+)" not in self.count.pattern:
            raise ValueError(f"count: {self.count.pattern!r} has no group (?P<count>\\d+)")
        return self


class Quantity(StrictModel):
    """A metric and the unit that the program prints it in."""

    metric: str
    unit: str


class Keys(StrictModel):
    """Lines of the form key and value; `match` has the groups `key` and `value`.

    Attributes:
        match: the line.
        metrics: key → its quantity.
        not_run: the value of a metric that the program did not measure. It is no figure.
        under: the title of their table, if it has one besides the banner. Lines before it are not
            read.
        until: the title of a table with the same keys and other quantities. Lines after it are not
            read.
        least_seconds: the values are the seconds that the metrics were measured. A metric that was
            measured for less is INVALID.
    """

    match: Pattern
    metrics: Mapping[str, Quantity]
    under: Pattern | None = None
    not_run: Pattern | None = None
    until: Pattern | None = None
    least_seconds: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _groups(self) -> Keys:
        if missing := {"key", "value"} - self.match.groupindex.keys():
            raise ValueError(f"match: {self.match.pattern!r} has no group {min(missing)!r}")
        return self

    def quantity(self, match: re.Match[str]) -> Quantity | None:
        """Return the quantity of the line's key; None for a key that is not read."""
        return self.metrics.get(match["key"].strip())


class ContextRule(StrictModel):
    """A line whose groups are valid for the following lines, up to the next such line or a reset.

    Attributes:
        match: the line.
        resets: parameters that are no longer valid.
        titles: each table has such a line of its own. The benchmark of a table without one is not
            known.
    """

    match: Pattern
    resets: tuple[str, ...] = ()
    titles: bool = False


Role = Literal[
    "fact",
    "context",
    "header",
    "end",
    "row",
    "confirm",
    "refuse",
    "count",
    "key",
    "required",
    "rejected",
    "failed",
    "command",
    "complaint",
    "closes",
    "title",
    "untitle",
    "foreign",
]


class Hit(NamedTuple):
    """A rule that matches a line; `subject` is the table, row or name of the rule, or None."""

    role: Role
    subject: object
    match: re.Match[str]


class ClassifiedLine(NamedTuple):
    """A line and the rules that match it, independent of its place in the output.

    Attributes:
        text: without trailing blanks.
        ruled: whether a rule matches it. If not, it is a row of the open table, or is ignored.
        starts: whether it begins a run of the program.
        hits: one for each rule that matches.
        roles: those of `hits`.
    """

    text: str
    ruled: bool
    starts: bool = False
    hits: tuple[Hit, ...] = ()
    roles: frozenset[Role] = frozenset()


class Complaint(StrictModel):
    """A line by which the program itself doubts a figure.

    Attributes:
        match: the line.
        metrics: all figures of these metrics of the run are INVALID, because any process may print
            the line at any time. Without `metrics` it is the figures of the next row, or of the
            last row if none follows.
        unless: a parameter. With it the line is normal.
    """

    match: Pattern
    metrics: tuple[str, ...] = ()
    unless: str | None = None


Once = Literal["ends", "rows"]
"""What occurs once in a run of an output that is not mixed with another one."""


class TextSpec(StrictModel):
    """How printed text is read.

    Attributes:
        starts: the banner, the line that begins a run of the program. An output may contain several
            runs. Each is checked on its own. A run without it is INVALID.
        untitled: some versions of the program print no line `starts`.
        no_end: the program prints no line at its end, so that a cut after a row cannot be seen.
        foreign: name → a line of another program, or of a format that these rules do not read. The
            run then has one INVALID reading with this name.
        closes: the last line of a run. A fact, a header or a row after it begins the next run.
        once: `ends`: a line of `require` occurs once in a run. `rows`: so does a header, and a
            metric with equal parameters, and there is no row outside of a table. Otherwise several
            outputs are mixed. All readings are INVALID.
        command: the line that has the command line of a run, as the group `command`.
        complaints: lines by which the program itself doubts a figure.
        facts: lines anywhere in a run whose groups are valid for the whole run.
        context: lines whose groups are valid for the following lines.
        settings: lines before a figure with the groups `key` and `value`, or with groups whose
            names are keys. Each is a parameter of an imported figure; so are the options of the
            command line.
        tables, rows, keys: the places of the values.
        require: name for the reason → a line that every run must have (an end marker, a validation
            line). Without it all readings of the run are INVALID.
        reject: lines that make all readings of a run INVALID.
        fails: lines that report that one benchmark has no result: an INVALID reading.
        expects: metrics that every run must have.
        needs: parameters, or `benchmark`, that every reading must have, or it is INVALID.
    """

    starts: Pattern | None = None
    untitled: bool = False
    no_end: bool = False
    foreign: Mapping[str, Pattern] = {}
    closes: Pattern | None = None
    once: Once | None = None
    command: Pattern | None = None
    complaints: tuple[Complaint, ...] = ()
    facts: tuple[Pattern, ...] = ()
    context: tuple[ContextRule, ...] = ()
    settings: tuple[Pattern, ...] = ()
    tables: tuple[TableRule, ...] = ()
    rows: tuple[RowRule, ...] = ()
    keys: tuple[Keys, ...] = ()
    require: Mapping[str, Pattern] = {}
    reject: tuple[Pattern, ...] = ()
    fails: tuple[Pattern, ...] = ()
    expects: Literal["all"] | tuple[str, ...] = ()
    needs: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _readable(self) -> TextSpec:
        if not (self.tables or self.rows or self.keys):
            raise ValueError("at least one of tables, rows and keys is required")
        if self.command and "command" not in self.command.groupindex:
            raise ValueError(f"command: {self.command.pattern!r} has no group (?P<command>…)")
        try:
            self.gate.fullmatch("")
        except re.error as error:
            raise ValueError(f"the patterns cannot be joined to one: {error}") from None
        return self

    def yields(self) -> Iterator[tuple[str, str]]:
        """Yield each (metric, unit) that the rules can read."""
        for table in self.tables:
            yield from table.yields()
        for row in self.rows:
            yield from row.metrics.items()
            yield from row.confirmed.items()
        for keys in self.keys:
            if keys.least_seconds is None:
                yield from ((quantity.metric, quantity.unit) for quantity in keys.metrics.values())

    def begins(self) -> Iterator[re.Pattern[str]]:
        """Yield the lines that begin an output, or the tables of one that can lack a banner."""
        if self.starts:
            yield self.starts
        if self.untitled or not self.starts:
            yield from (table.header for table in self.tables)

    @cached_property
    def first_metric(self) -> str:
        """The metric of a reading whose line has none."""
        return next(self.yields())[0]

    @cached_property
    def strays(self) -> tuple[tuple[TableRule, re.Pattern[str]], ...]:
        """The tables that recognise their rows outside a table, with the pattern of a row."""
        return tuple((table, table.stray) for table in self.tables if table.stray)

    def metric_names(self) -> Iterator[tuple[str, Iterable[str]]]:
        """Yield each key of the block that names metrics, with the names."""
        yield "text.expects", self.expected
        for complaint in self.complaints:
            yield "text.complaints.metrics", complaint.metrics
        for keys in self.keys:
            yield "text.keys.metrics", [quantity.metric for quantity in keys.metrics.values()]

    @cached_property
    def expected(self) -> Iterable[str]:
        """The metrics that every run must have."""
        return dict(self.yields()) if self.expects == "all" else self.expects

    def groups(self) -> Iterator[tuple[str, Iterable[str]]]:
        """Yield each key of the block that names parameters, with the names."""
        yield from (("facts", fact.groupindex) for fact in self.facts)
        yield from (("fails", fail.groupindex) for fail in self.fails)
        yield from (("keys", keys.match.groupindex.keys() - {"key", "value"}) for keys in self.keys)
        for context in self.context:
            yield "context.match", context.match.groupindex
            yield "context.resets", context.resets
        yield from (("tables", table.parameters()) for table in self.tables)
        yield from (("rows.match", row.match.groupindex.keys() - row.metrics) for row in self.rows)
        yield "needs", self.needs
        yield "complaints.unless", filter(None, (item.unless for item in self.complaints))

    @cached_property
    def classify(self) -> Callable[[str], ClassifiedLine]:
        """A function that returns the `Line` of a raw line, with a cache."""
        return lru_cache(maxsize=CACHED)(self._classify)

    def _classify(self, raw: str) -> ClassifiedLine:
        line = raw.rstrip()
        if not self.gate.fullmatch(line):
            return ClassifiedLine(line, False)
        starts = bool(self.starts and self.starts.fullmatch(line))
        hits = tuple(self._hits(line))
        return ClassifiedLine(line, True, starts, hits, frozenset(hit.role for hit in hits))

    @cached_property
    def settings_in(self) -> Callable[[str, tuple[str, ...]], Mapping[str, Parameter]]:
        """A function that returns the settings in a line without some names, with a cache.

        The header of a program is the same on thousands of nodes.
        """
        return lru_cache(maxsize=CACHED)(self._settings_in)

    def _settings_in(self, line: str, skipped: tuple[str, ...]) -> Mapping[str, Parameter]:
        found: dict[str, Parameter] = {}
        for name, word in self._printed_settings(line):
            found |= named(name, word, skipped)
        return found

    def _printed_settings(self, line: str) -> Iterator[tuple[str, str]]:
        for pattern in self.settings:
            if match := pattern.fullmatch(line):
                groups = {name: word for name, word in match.groupdict().items() if word}
                if "key" in groups:
                    yield groups["key"], groups.get("value", "")
                else:
                    yield from groups.items()

    def _hits(self, line: str) -> Iterator[Hit]:
        for pattern, role, subject in self._rules:
            if match := pattern.fullmatch(line):
                yield Hit(role, subject, match)

    @cached_property
    def _rules(self) -> tuple[tuple[re.Pattern[str], Role, object], ...]:
        return tuple(
            (pattern, role, subject) for pattern, role, subject in self._all_rules() if pattern
        )

    def _all_rules(self) -> Iterator[tuple[re.Pattern[str] | None, Role, object]]:
        """Yield each pattern with the role of its lines, in the order in which the rules apply."""
        yield from ((fact, "fact", None) for fact in self.facts)
        yield from ((item.match, "context", item) for item in self.context)
        for table in self.tables:
            yield table.header, "header", table
            yield table.ends, "end", None
        for number, row in enumerate(self.rows):
            yield row.under, "title", row.under
            yield row.begins, "row", number
            yield row.confirm, "confirm", number
            yield row.refuse, "refuse", number
            yield row.count, "count", number
        for keys in self.keys:
            yield keys.under, "title", keys.under
            yield keys.until, "untitle", keys.under
            yield keys.match, "key", keys
        yield from ((pattern, "foreign", name) for name, pattern in self.foreign.items())
        yield from ((pattern, "required", name) for name, pattern in self.require.items())
        yield from ((pattern, "rejected", None) for pattern in self.reject)
        yield from ((pattern, "failed", None) for pattern in self.fails)
        yield self.command, "command", None
        yield from ((item.match, "complaint", item) for item in self.complaints)
        yield self.closes, "closes", None

    @cached_property
    def gate(self) -> re.Pattern[str]:
        """One pattern for all lines that a rule matches: most lines are excluded by one match."""
        patterns = [self.starts, self.closes, *self.facts, *self.require.values()]
        patterns += self.foreign.values()
        patterns += [self.command]
        patterns += [complaint.match for complaint in self.complaints]
        patterns += [*self.reject, *self.fails]
        patterns += [context.match for context in self.context]
        for table in self.tables:
            patterns += (table.header, table.ends)
        for row in self.rows:
            patterns += [row.under, row.begins, row.confirm, row.refuse, row.count]
        for keys in self.keys:
            patterns += (keys.under, keys.until, keys.match)
        texts = dict.fromkeys(re.sub(r"\(\?P<\w+>", "(?:", p.pattern) for p in patterns if p)
        return re.compile("|".join(f"(?:{text})" for text in texts), re.ASCII)

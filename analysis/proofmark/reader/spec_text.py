"""The models of a `text:` block: how printed text is read.

Every pattern must match a whole line, trailing blanks removed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Literal, NamedTuple

from pydantic import model_validator

from proofmark.reader.spec_types import Block, Pattern, known
from proofmark.reader.values import Parameter, shorten


class Column(Block):
    """One column of a table. Without any key the column is known and not read.

    Attributes:
        parameter: the column holds this parameter.
        metric: the column holds this metric, printed in `unit`.
        unit: without `metric`: the column holds the value of the metric that `names` gives.
        names: the column names the row's metric: printed word → metric.
        accept: the word that must stand here, or the row is INVALID.
    """

    parameter: str | None = None
    metric: str | None = None
    unit: str | None = None
    names: Mapping[str, str] | None = None
    accept: str | None = None

    @model_validator(mode="after")
    def _one_role(self) -> Column:
        role = {key for key in self.model_fields_set if getattr(self, key) is not None}
        if (len(role) > 1 and role != {"metric", "unit"}) or role == {"metric"}:
            raise ValueError(
                f"a column with {', '.join(sorted(role))}; it has one of parameter, metric with "
                "unit, unit (value of the metric the row names), names, accept, or nothing"
            )
        return self


class Table(Block):
    """Rows of as many words as the header line has titles.

    Attributes:
        header: the header line; its group `titles`, if there is one, else the line, is a sequence
            of titles of `columns`. The columns may come in any order and number.
        columns: printed title → what stands under it.
        skip: lines inside the table that are no rows. Blank lines are always skipped.
        gives_up: a row without numbers, by which the program says that it could not measure; group
            `reason`, and parameters.
        ends: the line after which no row follows. A new header and any context end it too.
        stray: what a row looks like; outside a table such a line is INVALID, not ignored.
    """

    header: Pattern
    columns: Mapping[str, Column]
    skip: Pattern | None = None
    gives_up: Pattern | None = None
    ends: Pattern | None = None
    stray: Pattern | None = None

    @model_validator(mode="after")
    def _readable(self) -> Table:
        if not any(True for _ in self.yields()):
            raise ValueError("columns: none holds a metric, nor both names and their value")
        if self.gives_up and "reason" not in self.gives_up.groupindex:
            raise ValueError(f"gives_up: {self.gives_up.pattern!r} has no group (?P<reason>…)")
        return self

    @cached_property
    def layout(self) -> Callable[[str], Layout]:
        """Return what tells the columns of a header by its titles; headers are remembered."""
        return lru_cache(maxsize=64)(self._layout)

    def _layout(self, titles: str) -> Layout:
        columns: list[Column] = []
        problems: list[str] = []
        place = 0
        while match := self.title.match(titles, place):
            place = match.end()
            columns.append(self.columns[match["known"]] if match["known"] else Column())
            if not match["known"]:
                problems.append(f"unknown column title {shorten(match['unknown'], 40)}")
        found = [column.metric for column in columns if column.metric]
        return Layout(columns, found or [self.first_metric], problems)

    @cached_property
    def title(self) -> re.Pattern[str]:
        """One known title, or else the words up to the next gap of two blanks."""
        known = sorted(self.columns, key=len, reverse=True)
        alternatives = "|".join(re.escape(title) for title in known)
        return re.compile(rf"\s*(?:(?P<known>{alternatives})(?!\S)|(?P<unknown>\S+(?: \S+)*))")

    def yields(self) -> Iterator[tuple[str, str]]:
        """Give each (metric, unit) that a row can hold."""
        for column in self.columns.values():
            if column.metric and column.unit:
                yield column.metric, column.unit
        units = [column.unit for column in self.columns.values() if not column.metric]
        named = [column.names for column in self.columns.values() if column.names]
        for unit in filter(None, units):
            for names in named:
                yield from ((metric, unit) for metric in names.values())

    @cached_property
    def first_metric(self) -> str:
        """The metric of a reading that has none of its own: a line that cannot be read."""
        return next(self.yields())[0]

    def parameters(self) -> Iterator[str]:
        """Give each parameter that a row or a row that gives up can hold."""
        yield from (c.parameter for c in self.columns.values() if c.parameter)
        if self.gives_up:
            yield from self.gives_up.groupindex.keys() - {"reason"}


class Layout:
    """The columns of one header: at which places of a row its words are what.

    Attributes:
        width: how many words a row has.
        metrics: those of a row; the first stands for a row that cannot be read.
        problems: titles that nobody knows.
        parameters: place and parameter.
        names: place and metrics by the printed word.
        values: place and metric; None for the one that the row names.
        accepted: place and the word that must stand there.
        plain: every value has its metric, whatever the row says.
        known: parameters of rows that were read before, by their words.
    """

    def __init__(
        self, columns: Sequence[Column], metrics: Sequence[str], problems: Sequence[str]
    ) -> None:
        self.width, self.metrics, self.problems = len(columns), metrics, problems
        placed = list(enumerate(columns))
        self.parameters = [(place, each.parameter) for place, each in placed if each.parameter]
        self.names = [(place, each.names) for place, each in placed if each.names]
        self.values = [(place, each.metric) for place, each in placed if each.unit]
        self.plain = bool(self.values) and all(metric for _, metric in self.values)
        self.known: dict[tuple[str, ...], dict[str, Parameter]] = {}
        self.accepted = [(place, each.accept) for place, each in placed if each.accept]


class Row(Block):
    """A line with several values, and the lines elsewhere that vouch for it.

    Attributes:
        begins: what makes a line such a row; when `match` then fails the row is INVALID.
        match: the row; its groups are metrics and parameters.
        metrics: group → unit as printed.
        confirm: a later line without which the row is INVALID.
        refuse: a later line that makes the row INVALID.
        count: a line whose group `count` is the number of rows that the run must have.
    """

    begins: Pattern
    match: Pattern
    metrics: Mapping[str, str]
    confirm: Pattern | None = None
    refuse: Pattern | None = None
    count: Pattern | None = None

    @model_validator(mode="after")
    def _groups(self) -> Row:
        known(self.metrics, self.match.groupindex, "metrics", "group of match")
        if self.count and r"(?P<count>\d+)" not in self.count.pattern:
            raise ValueError(f"count: {self.count.pattern!r} has no group (?P<count>\\d+)")
        return self


class Quantity(Block):
    """A metric and the unit that the program prints it in."""

    metric: str
    unit: str


class Keys(Block):
    """Lines of the form key and value; `match` has the groups `key` and `value`."""

    match: Pattern
    metrics: Mapping[str, Quantity]

    @model_validator(mode="after")
    def _groups(self) -> Keys:
        if missing := {"key", "value"} - self.match.groupindex.keys():
            raise ValueError(f"match: {self.match.pattern!r} has no group {min(missing)!r}")
        return self

    def quantity(self, match: re.Match[str]) -> Quantity | None:
        """Return what the line's key stands for; None for a key that is not read."""
        return self.metrics.get(match["key"].strip())


class Context(Block):
    """A line whose groups hold for what follows, until the next such line or a reset.

    Attributes:
        match: the line.
        resets: parameters that end here.
    """

    match: Pattern
    resets: tuple[str, ...] = ()


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
]


class Hit(NamedTuple):
    """A rule that looks at a line; `subject` is the rule's table, row, name, … or None."""

    role: Role
    subject: object
    match: re.Match[str]


class Line(NamedTuple):
    """What a line is to the rules, wherever it stands.

    Attributes:
        text: without trailing blanks.
        ruled: some rule looks at it; else it is a row of the open table, or nothing.
        starts: it begins a run of the program.
        hits: what the rules find in it.
    """

    text: str
    ruled: bool
    starts: bool = False
    hits: tuple[Hit, ...] = ()


REMEMBERED = 4096
"""Lines; a program's output has some hundred of them that are the same on every node."""


class TextSpec(Block):
    """How printed text is read.

    Attributes:
        starts: the line that begins a run of the program; a file may hold several runs, and each
            is judged by itself.
        facts: lines whose groups hold for the whole run, wherever they stand in it.
        context: lines whose groups hold for what follows.
        tables, rows, keys: where the values stand.
        require: what must stand in every run, or all its readings are INVALID (an end marker, a
            validation line): name for the reason → line.
        reject: lines that make all readings of a run INVALID.
        fails: lines by which the program says that one benchmark gave nothing: an INVALID reading.
        expects: metrics of which every run must give a value.
        needs: parameters, or `benchmark`, without which a reading is INVALID.
    """

    starts: Pattern | None = None
    facts: tuple[Pattern, ...] = ()
    context: tuple[Context, ...] = ()
    tables: tuple[Table, ...] = ()
    rows: tuple[Row, ...] = ()
    keys: tuple[Keys, ...] = ()
    require: Mapping[str, Pattern] = {}
    reject: tuple[Pattern, ...] = ()
    fails: tuple[Pattern, ...] = ()
    expects: Literal["all"] | tuple[str, ...] = ()
    needs: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _readable(self) -> TextSpec:
        if not (self.tables or self.rows or self.keys):
            raise ValueError("neither tables nor rows nor keys: nothing can be read")
        try:
            self.gate.fullmatch("")
        except re.error as error:
            raise ValueError(f"the patterns do not go together: {error}") from None
        return self

    def yields(self) -> Iterator[tuple[str, str]]:
        """Give each (metric, unit) that the rules can read."""
        for table in self.tables:
            yield from table.yields()
        for row in self.rows:
            yield from row.metrics.items()
        for keys in self.keys:
            yield from ((quantity.metric, quantity.unit) for quantity in keys.metrics.values())

    @cached_property
    def first_metric(self) -> str:
        """The metric of a reading that has none of its own."""
        return next(self.yields())[0]

    @cached_property
    def strays(self) -> tuple[Table, ...]:
        """The tables that know their rows where they do not belong."""
        return tuple(table for table in self.tables if table.stray)

    @cached_property
    def expected(self) -> Iterable[str]:
        """The metrics of which every run must give a value."""
        return dict(self.yields()) if self.expects == "all" else self.expects

    def groups(self) -> Iterator[tuple[str, Iterable[str]]]:
        """Give each place that names parameters, with the names."""
        yield from (("facts", fact.groupindex) for fact in self.facts)
        yield from (("fails", fail.groupindex) for fail in self.fails)
        yield from (("keys", keys.match.groupindex.keys() - {"key", "value"}) for keys in self.keys)
        for context in self.context:
            yield "context.match", context.match.groupindex
            yield "context.resets", context.resets
        yield from (("tables", table.parameters()) for table in self.tables)
        yield from (("rows.match", row.match.groupindex.keys() - row.metrics) for row in self.rows)
        yield "needs", self.needs

    @cached_property
    def look(self) -> Callable[[str], Line]:
        """Return what tells what a line is; of lines that came before it is remembered."""
        return lru_cache(maxsize=REMEMBERED)(self._look)

    def _look(self, raw: str) -> Line:
        line = raw.rstrip()
        if not self.gate.fullmatch(line):
            return Line(line, False)
        starts = bool(self.starts and self.starts.fullmatch(line))
        return Line(line, True, starts, tuple(self._hits(line)))

    def _hits(self, line: str) -> Iterator[Hit]:
        for pattern, role, subject in self._rules:
            if match := pattern.fullmatch(line):
                yield Hit(role, subject, match)

    @cached_property
    def _rules(self) -> tuple[tuple[re.Pattern[str], Role, object], ...]:
        return tuple((pattern, role, what) for pattern, role, what in self._every() if pattern)

    def _every(self) -> Iterator[tuple[re.Pattern[str] | None, Role, object]]:
        """Give each pattern with what its line is, in the order in which they act on a line."""
        yield from ((fact, "fact", None) for fact in self.facts)
        yield from ((item.match, "context", item) for item in self.context)
        for table in self.tables:
            yield table.header, "header", table
            yield table.ends, "end", None
        for number, row in enumerate(self.rows):
            yield row.begins, "row", number
            yield row.confirm, "confirm", number
            yield row.refuse, "refuse", number
            yield row.count, "count", number
        yield from ((keys.match, "key", keys) for keys in self.keys)
        yield from ((pattern, "required", name) for name, pattern in self.require.items())
        yield from ((pattern, "rejected", None) for pattern in self.reject)
        yield from ((pattern, "failed", None) for pattern in self.fails)

    @cached_property
    def gate(self) -> re.Pattern[str]:
        """One pattern for all the lines that some rule looks at: most lines fail it, at once."""
        patterns = [self.starts, *self.facts, *self.require.values()]
        patterns += [*self.reject, *self.fails]
        patterns += [context.match for context in self.context]
        patterns += [pattern for table in self.tables for pattern in (table.header, table.ends)]
        for row in self.rows:
            patterns += [row.begins, row.confirm, row.refuse, row.count]
        patterns += [keys.match for keys in self.keys]
        texts = {re.sub(r"\(\?P<\w+>", "(?:", p.pattern): None for p in patterns if p}
        return re.compile("|".join(f"(?:{text})" for text in texts), re.ASCII)

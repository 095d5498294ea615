"""The models of a `text:` block: how printed text is read.

Every pattern must match a whole line, trailing blanks removed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Literal

from pydantic import model_validator

from proofmark.reader.spec_types import Block, Pattern, known


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

    @property
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

"""The models of a `text:` block: how printed text is read.

Every pattern must match a whole line, trailing blanks removed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Literal, NamedTuple

from pydantic import model_validator

from proofmark.cases.reader.spec_table import Table
from proofmark.cases.reader.spec_types import REMEMBERED, Pattern, known
from proofmark.common.strict_model import StrictModel


class Row(StrictModel):
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


class Quantity(StrictModel):
    """A metric and the unit that the program prints it in."""

    metric: str
    unit: str


class Keys(StrictModel):
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


class Context(StrictModel):
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


class TextSpec(StrictModel):
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

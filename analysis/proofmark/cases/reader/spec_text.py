"""The models of a `text:` block: how printed text is read.

Every pattern must match a whole line without its trailing blanks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Literal, NamedTuple

from pydantic import Field, model_validator

from proofmark.cases.reader.settings import named
from proofmark.cases.reader.spec_table import TableRule
from proofmark.cases.reader.spec_types import CACHED, Pattern, check_known
from proofmark.cases.reader.values import Parameter
from proofmark.common.strict_model import StrictModel


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

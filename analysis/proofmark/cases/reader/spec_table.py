"""The models of the tables of a `text:` block, and what the titles of a header make of its rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache

from pydantic import model_validator

from proofmark.cases.reader.spec_types import Pattern
from proofmark.cases.reader.values import Parameter, shorten
from proofmark.common.strict_model import StrictModel


class Column(StrictModel):
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


class Table(StrictModel):
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

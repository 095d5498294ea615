"""The models of the tables of a `text:` block, and the layout of a header's titles."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache

from pydantic import model_validator

from proofmark.cases.reader.spec_types import Pattern
from proofmark.cases.reader.values import Parameter, shorten
from proofmark.common.message import Message
from proofmark.common.strict_model import StrictModel
from proofmark.common.units import factor


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
        parameters: place and parameter.
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

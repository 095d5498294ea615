"""Printed numbers of one row that determine each other, for example a rate and its time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from proofmark.cases.reader.builder import ReadingBuilder
from proofmark.cases.reader.spec_types import Agreement
from proofmark.common.errors import BadInput
from proofmark.common.expressions import evaluate


def check(rules: Sequence[Agreement], builders: Iterable[ReadingBuilder]) -> None:
    """Add a problem to the readings of each row whose numbers contradict each other.

    A row that lacks a number of a rule is not checked by this rule.
    """
    if rules:
        for row in _rows(builders):
            for rule in rules:
                _check_row(rule, row)


def _rows(builders: Iterable[ReadingBuilder]) -> Iterator[list[ReadingBuilder]]:
    """Yield successive readings with equal parameters, each metric once."""
    row: list[ReadingBuilder] = []
    for builder in builders:
        same = row and (row[0].benchmark, row[0].parameters) == (
            builder.benchmark,
            builder.parameters,
        )
        if not same or builder.metric in {each.metric for each in row}:
            if row:
                yield row
            row = []
        row.append(builder)
    if row:
        yield row


def _check_row(rule: Agreement, row: Sequence[ReadingBuilder]) -> None:
    values = {each.metric: each.value for each in row if each.value is not None}
    printed = values.get(rule.metric)
    if printed is None:
        return
    try:
        computed = evaluate(rule.equals, {**row[0].parameters, **values}, file="", key="agree")
    except BadInput:  # the row lacks a number
        return
    if abs(printed - computed) > rule.rounding + rule.within * abs(computed):
        problem = (
            f"{rule.metric} is {printed:g}, but the other numbers of the row give {computed:g}"
        )
        for builder in row:
            builder.problems.append(problem)

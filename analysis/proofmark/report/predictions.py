"""The prediction of a figure as texts and columns of tables, and the source of the predictions.

A measured figure has its prediction beside it. An addition may have further columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from proofmark.common.message import localized
from proofmark.common.translation import _
from proofmark.judge.predictions import FigurePredictions
from proofmark.judge.verdict import Result
from proofmark.report.page import Column, Table, numeric, titled
from proofmark.report.run_data import RunData
from proofmark.report.words import number
from proofmark.runs.predictions import Assumption


def heads() -> tuple[str, str]:
    """Return the titles of the `texts` of a figure."""
    return _("Expected"), _("Measured ÷ expected")


def columns(run_data: RunData) -> tuple[Column, ...]:
    """Return the columns for predictions. A measured run without predictions has none."""
    own = tuple(map(numeric, heads())) if run_data.verdict.expected else ()
    return (*own, *chain.from_iterable(each.columns() for each in run_data.additions))


def cells(result: Result, run_data: RunData) -> tuple[str, ...]:
    """Return one text for each of the `columns`, about the figure in `result`."""
    own = texts(result) if run_data.verdict.expected else ()
    return (*own, *chain.from_iterable(each.cells(result) for each in run_data.additions))


def texts(result: Result) -> tuple[str, str]:
    """Return the prediction of a figure with its range, and measured ÷ predicted; – if unknown."""
    expected = result.expected
    if expected is None:
        return "–", "–"
    value = f"{number(expected.value)} {result.record.unit}"
    if expected.low is not None and expected.high is not None:
        value = f"{value} ({number(expected.low)} … {number(expected.high)})"
    return value, "–" if expected.ratio is None else number(expected.ratio, 3)


def notes(expected: FigurePredictions) -> Iterator[tuple[str, str]]:
    """Yield the source of the predictions, what was assumed and the error of the model."""
    known, measured = expected.expected, int(expected.mask.sum())
    yield _("Run of the twin"), known.run
    yield _("Algorithms of collectives, as in"), known.selector
    texts = _("{predicted} of {figures}")
    figures = texts.format(predicted=f"{measured:,}", figures=f"{len(expected.figures):,}")
    yield _("Figures with an expected value"), figures
    assumed = [localized(each.what) for each in known.assumptions if not each.sourced]
    yield _("Assumed, without a source"), ", ".join(dict.fromkeys(assumed)) or "–"
    yield _("Error of the model (predicted ÷ measured)"), _error(expected)


def _error(expected: FigurePredictions) -> str:
    text = _("{case} {metric}: median {median}, from {smallest} to {largest}")
    errors = (
        text.format(
            case=each.case,
            metric=each.metric,
            median=number(each.median, 3),
            smallest=number(each.smallest, 3),
            largest=number(each.largest, 3),
        )
        for each in expected.expected.errors
    )
    return "; ".join(errors) or _("not known")


def assumptions_table(assumptions: Iterable[Assumption]) -> Table:
    """Return a table with one row for each assumption."""
    rows = [
        (
            localized(each.what),
            localized(each.value),
            _("source") if each.sourced else _("assumed"),
            localized(each.why),
        )
        for each in assumptions
    ]
    heads = (_("Part of the model"), _("Value"), _("Kind"), _("Source or assumption"))
    return titled(_("Assumptions of the model"), heads, rows)

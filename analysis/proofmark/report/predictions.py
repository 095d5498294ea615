"""The prediction of a figure as texts and columns of tables, and the source of the predictions.

A measured figure has the figure of a twin beside it. A figure of a twin has the error of its model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from proofmark.common.sentences import localized
from proofmark.common.translation import _
from proofmark.judge.counterparts import Counterparts
from proofmark.judge.verdict import Result
from proofmark.report.page import Column, Table, numeric, titled
from proofmark.report.run_data import RunData
from proofmark.report.words import number
from proofmark.runs.twin_files import Assumption, ModelError


def heads() -> tuple[str, str]:
    """Return the titles of the `texts` of a figure."""
    return _("Expected"), _("Measured ÷ expected")


def columns(run_data: RunData) -> tuple[Column, ...]:
    """Return the columns for predictions. A measured run without predictions has none."""
    if run_data.twin:
        return (numeric(_("Range by the error of the model")),)
    if run_data.verdict.expected is None:
        return ()
    return tuple(numeric(head) for head in heads())


def cells(result: Result, run_data: RunData) -> tuple[str, ...]:
    """Return one text for each of the `columns`, about the figure in `result`."""
    if run_data.twin:
        return (_range(result, run_data.model_error),)
    return texts(result) if run_data.verdict.expected else ()


def _range(result: Result, error: ModelError | None) -> str:
    """Return the range of the real figure whose prediction is `result`."""
    record = result.record
    about = (record.case, record.metric)
    row = (
        next((row for row in error.rows if (row.case, row.metric) == about), None)
        if error
        else None
    )
    if row is None or record.value is None:
        return _("not known")
    low, high = row.range_of(record.value)
    return f"{number(low)} … {number(high)} {record.unit}"


def error_in_words(error: ModelError | None) -> str:
    """Return the typical error of the model of a twin in a few words."""
    if error is None or error.typical is None:
        return _("error not known")
    return _("half of the figures within a factor of {factor}").format(
        factor=f"{error.typical:.2f}"
    )


def texts(result: Result) -> tuple[str, str]:
    """Return the prediction of a figure with its range, and measured ÷ predicted; – if unknown."""
    expected = result.expected
    if expected is None:
        return "–", "–"
    value = f"{number(expected.value)} {result.record.unit}"
    if expected.low is not None and expected.high is not None:
        value = f"{value} ({number(expected.low)} … {number(expected.high)})"
    return value, "–" if expected.ratio is None else number(expected.ratio, 3)


def notes(expected: Counterparts) -> Iterator[tuple[str, str]]:
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


def _error(expected: Counterparts) -> str:
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

"""The prediction of a figure as texts and columns of tables, and the source of the predictions."""

from __future__ import annotations

from collections.abc import Iterator

from proofmark.common.sentences import localized
from proofmark.common.translation import _
from proofmark.judge.expected.counterparts import Counterparts
from proofmark.judge.verdict import Result, Verdict
from proofmark.report.page import Column
from proofmark.report.text import number

NUMBER = "number"


def columns(verdict: Verdict) -> tuple[Column, ...]:
    """Return the columns for predictions. A run without predictions has none."""
    if verdict.expected is None:
        return ()
    return Column(_("Expected"), NUMBER), Column(_("Measured ÷ expected"), NUMBER)


def cells(result: Result, verdict: Verdict) -> tuple[str, ...]:
    """Return one text for each of the `columns`, about the figure in `result`."""
    return texts(result) if verdict.expected else ()


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
    assumed = [each.what for each in known.assumptions if not each.sourced]
    yield _("Assumed, without a source"), localized(", ".join(dict.fromkeys(assumed))) or "–"
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

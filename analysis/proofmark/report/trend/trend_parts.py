"""Names, curves and folded tables that several sections of the page of trends use."""

from __future__ import annotations

import json

import numpy as np

from proofmark.common.translation import _
from proofmark.judge.trend.history import HistoryLine, Points
from proofmark.judge.trend.trend import Trend
from proofmark.report.drawing.history_chart import SECONDS_OF_DAY, Curve
from proofmark.report.page import Block, Fold, Table
from proofmark.report.words import pairs

MOST_EVENTS = 3
"""The largest number of events or differences in a cell of a table."""


def label(line: HistoryLine) -> tuple[str, str]:
    """Return the name of a series, and its settings."""
    figure = line.figure
    benchmark = "" if figure.benchmark.casefold() == figure.case.casefold() else figure.benchmark
    name = " ".join(filter(None, (figure.case, benchmark, figure.metric)))
    mode = "" if figure.mode == "current" else figure.mode
    settings = pairs(json.loads(figure.parameters))
    return name, ", ".join(filter(None, (mode, figure.placement, settings)))


def day_of(trend: Trend, run: int) -> float:
    """Return the start of a run in days since 1970."""
    return trend.runs[run].started.timestamp() / SECONDS_OF_DAY


def curve_of(trend: Trend, points: Points) -> Curve:
    """Return the curve of a series."""
    days = np.array([day_of(trend, run) for run in points.run.tolist()])
    return Curve(days, points.value, points.low, points.high)


def folded_table(shown: Table, rows: int) -> Fold:
    """Return a table that opens at a click."""
    return Fold(_("{count} rows").format(count=rows), Block(tables=(shown,)))

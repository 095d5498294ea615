"""The text below a chart: the values of its lines, and what is missing."""

from __future__ import annotations

from collections.abc import Sequence

from proofmark.common.translation import _
from proofmark.report.drawing.chart import Axis, Chart, Panel, expected_x
from proofmark.report.drawing.ticks import byte_label
from proofmark.report.plot import PlotContext
from proofmark.report.text import count, number


def text_below(chart: Chart, content: Sequence[Panel], context: PlotContext) -> str:
    """Return the ends of each line, the gaps of lines, and the steps without a valid figure."""
    parts = (_ranges(chart, content), _gaps(chart, content), _incomplete(chart, context))
    return " ".join(filter(None, parts))


def _ranges(chart: Chart, content: Sequence[Panel]) -> str:
    """Return for each line its first, last and largest value, and the x of the largest."""
    most = 8
    lines = [(panel, line) for panel in content for line in panel.lines if line.points]
    ranges = []
    for panel, line in lines[:most]:
        values = [point.y for point in line.points]
        name = ", ".join(filter(None, (panel.title, line.label)))
        top = max(line.points, key=lambda point: point.y)
        position = _position(chart.x, top.x)
        ends = (
            _("{first} to {last} {unit}")
            .format(first=number(values[0], 3), last=number(values[-1], 3), unit=chart.unit)
            .strip()
        )
        ranges.append(
            _("{name}: {ends}, largest {value} at {position}").format(
                name=name, ends=ends, value=number(top.y, 3), position=position
            )
        )
    more = f" {count(len(lines) - most, 'more line')}." if len(lines) > most else ""
    return f"{'; '.join(ranges)}.{more}"


def _position(axis: Axis, x: float) -> str:
    if axis.scale == "bytes":
        return byte_label(x)
    return axis.counted(round(x))


def _gaps(chart: Chart, content: Sequence[Panel]) -> str:
    """Return which lines have gaps: an x that they should have (`expected_x`)."""
    gaps = []
    for panel in content:
        expected = expected_x(chart, content, panel)
        for line in panel.lines:
            measured = {point.x for point in line.points}
            missing = [
                x
                for x in expected[line.label]
                if measured and min(measured) <= x <= max(measured) and x not in measured
            ]
            if missing:
                listed = ", ".join(number(x) for x in missing[:4])
                more = (
                    _(" and {count} more").format(count=len(missing) - 4)
                    if len(missing) > 4
                    else ""
                )
                name = ", ".join(filter(None, (panel.title, line.label)))
                gaps.append(
                    _("{name} at {positions}{more}").format(name=name, positions=listed, more=more)
                )
    return _("Missing: {gaps}.").format(gaps="; ".join(gaps)) if gaps else ""


def _incomplete(chart: Chart, context: PlotContext) -> str:
    counts = [
        (case, *context.missing_steps[case])
        for case in chart.cases
        if case in context.missing_steps
    ]
    return " ".join(
        _(
            "Incomplete: {missing} of {planned} planned steps of {case} have no valid figure."
        ).format(missing=missing, planned=planned, case=case)
        for case, missing, planned in counts
        if missing
    )

"""Plots of one figure over many runs, as SVG elements of a page. They need no library.

A page has hundreds of them. Lines and texts have the colour of the surrounding text, so that they
fit light pages, dark pages and print.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape

import numpy as np

from proofmark.records.columns import Floats
from proofmark.report.words import number, visible

MOST_POINTS = 160
"""The largest number of points of a plot; more runs share points."""
SECONDS_OF_DAY = 86400
WIDTH, HEIGHT = 420, 190
LEFT, RIGHT, TOP, BOTTOM = 54, 8, 18, 24
SPARK_WIDTH, SPARK_HEIGHT = 240, 44


@dataclass(frozen=True)
class Mark:
    """A change of the plotted figure.

    Attributes:
        begin, end: the days between which it happened.
        kind: CSS class: ``improved``, ``neutral`` or empty.
    """

    begin: float
    end: float
    kind: str = ""


@dataclass(frozen=True, eq=False)
class Curve:
    """The values of a figure over time.

    Attributes:
        days: days since 1970, in order.
        value, low, high: NaN in `low` and `high` if a value has no interval. Shapes (points,).
    """

    days: Floats
    value: Floats
    low: Floats
    high: Floats

    def thinned(self) -> Curve:
        """Return at most `MOST_POINTS` points: the median of neighbours, and their whole range."""
        if len(self.value) <= MOST_POINTS:
            return self
        groups = np.array_split(np.arange(len(self.value)), MOST_POINTS)
        lows = np.fmin(self.low, self.value)
        highs = np.fmax(self.high, self.value)
        return Curve(
            np.array([self.days[group].mean() for group in groups]),
            np.array([np.median(self.value[group]) for group in groups]),
            np.array([lows[group].min() for group in groups]),
            np.array([highs[group].max() for group in groups]),
        )


def sparkline(curve: Curve, text: str) -> str:
    """Return a small plot: a line, and the intervals as a band; `text` is its alternative."""
    shown = curve.thinned()
    x, y = _scales(shown, (0, SPARK_WIDTH), (3, SPARK_HEIGHT - 3))
    content = [_band(shown, x, y), _line(shown, x, y)]
    content.append(_dot(x(shown.days[-1]), y(shown.value[-1]), 2.4))
    return _svg(SPARK_WIDTH, SPARK_HEIGHT, text, content)


def plot(
    curve: Curve,
    text: str,
    marks: Sequence[Mark],
    levels: Sequence[tuple[float, float, float]],
    events: Sequence[float],
) -> str:
    """Return a plot with axes.

    Args:
        curve: the values.
        text: alternative of the picture, and its title.
        marks: the changes, drawn as shades between two days.
        levels: first day, last day and level of each part of the curve.
        events: days of events of the machine, drawn as triangles at the top.
    """
    shown = curve.thinned()
    x, y = _scales(shown, (LEFT, WIDTH - RIGHT), (TOP, HEIGHT - BOTTOM))
    content = [*_grid(shown, x, y), *(_mark(mark, x) for mark in marks)]
    content += _bars(shown, x, y)
    content += [_level(part, x, y) for part in levels]
    content.append(_thin_line(shown, x, y))
    size = 2.6 if len(shown.days) <= 80 else 1.6
    content += [
        _dot(x(day), y(value), size) for day, value in zip(shown.days, shown.value, strict=True)
    ]
    content += [_triangle(x(day)) for day in sorted(set(events))]
    return _svg(WIDTH, HEIGHT, text, content)


Scale = Callable[[float], float]


def _scales(
    curve: Curve, across: tuple[float, float], down: tuple[float, float]
) -> tuple[Scale, Scale]:
    """Return the functions from days and values to coordinates. The axis does not begin at 0."""
    first, last = float(curve.days[0]), float(curve.days[-1])
    least = float(np.nanmin(np.fmin(curve.low, curve.value)))
    most = float(np.nanmax(np.fmax(curve.high, curve.value)))
    margin = 0.08 * (most - least) or 0.05 * abs(most) or 1.0
    least, most = least - margin, most + margin

    def x(day: float) -> float:
        share = (day - first) / (last - first) if last > first else 0.5
        return across[0] + 6 + share * (across[1] - across[0] - 12)

    def y(value: float) -> float:
        return down[1] - (value - least) / (most - least) * (down[1] - down[0])

    return x, y


def _svg(width: int, height: int, text: str, content: Sequence[str]) -> str:
    words = escape(visible(text), quote=True)
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{words}">'
        f"<title>{words}</title>{''.join(content)}</svg>"
    )


def _points(days: Floats, values: Floats, x: Scale, y: Scale) -> str:
    pairs = zip(days.tolist(), values.tolist(), strict=True)
    return " ".join(f"{x(day):.1f},{y(value):.1f}" for day, value in pairs)


def _line(curve: Curve, x: Scale, y: Scale) -> str:
    points = _points(curve.days, curve.value, x, y)
    return f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="1.3"/>'


def _thin_line(curve: Curve, x: Scale, y: Scale) -> str:
    points = _points(curve.days, curve.value, x, y)
    style = 'fill="none" stroke="currentColor" stroke-width="0.7" opacity="0.45"'
    return f'<polyline points="{points}" {style}/>'


def _band(curve: Curve, x: Scale, y: Scale) -> str:
    known = ~np.isnan(curve.low)
    if not known.any():
        return ""
    lower = _points(curve.days[known], curve.low[known], x, y)
    upper = _points(curve.days[known][::-1], curve.high[known][::-1], x, y)
    return f'<polygon points="{lower} {upper}" fill="currentColor" opacity="0.16"/>'


def _bars(curve: Curve, x: Scale, y: Scale) -> list[str]:
    """Return the interval of each point as a vertical line."""
    known = ~np.isnan(curve.low)
    columns = (curve.days[known], curve.low[known], curve.high[known])
    paths = [
        f"M{x(day):.1f} {y(low):.1f}V{y(high):.1f}" for day, low, high in zip(*columns, strict=True)
    ]
    if not paths:
        return []
    return [f'<path d="{"".join(paths)}" stroke="currentColor" opacity="0.4" fill="none"/>']


def _dot(x: float, y: float, radius: float) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="currentColor"/>'


def _level(part: tuple[float, float, float], x: Scale, y: Scale) -> str:
    first, last, value = part
    place = f'x1="{x(first):.1f}" x2="{x(last):.1f}" y1="{y(value):.1f}" y2="{y(value):.1f}"'
    return f'<line {place} stroke="currentColor" stroke-width="2.2" stroke-dasharray="7 4"/>'


def _mark(mark: Mark, x: Scale) -> str:
    begin, end = x(mark.begin), x(mark.end)
    kind = f"change {mark.kind}".strip()
    place = f'x="{begin:.1f}" width="{max(2.0, end - begin):.1f}" y="{TOP}"'
    height = HEIGHT - TOP - BOTTOM
    return f'<rect class="{kind}" {place} height="{height}" opacity="0.28" stroke="none"/>'


def _triangle(x: float) -> str:
    return f'<path d="M{x - 4:.1f} {TOP - 12}h8l-4 8z" fill="currentColor" opacity="0.75"/>'


def _grid(curve: Curve, x: Scale, y: Scale) -> list[str]:
    """Return the axes: four values, and at most four dates."""
    least = float(np.nanmin(np.fmin(curve.low, curve.value)))
    most = float(np.nanmax(np.fmax(curve.high, curve.value)))
    values = _round_values(least, most) if most > least else [least]
    lines = []
    for value in values:
        place = f'x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}"'
        lines.append(f'<line {place} stroke="currentColor" opacity="0.15"/>')
        label = f'x="{LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end"'
        lines.append(f"<text {label}>{number(value)}</text>")
    first, last = float(curve.days[0]), float(curve.days[-1])
    places = np.linspace(first, last, 4) if last > first else np.array([first])
    dates = dict.fromkeys((date_of(day), float(day)) for day in places.tolist())
    known: set[str] = set()
    for text, day in dates:
        if text in known:
            continue
        known.add(text)
        anchor = "start" if day == first else "end" if day == last else "middle"
        label = f'x="{x(day):.1f}" y="{HEIGHT - 8}" text-anchor="{anchor}"'
        lines.append(f"<text {label}>{text}</text>")
    return lines


def _round_values(least: float, most: float) -> list[float]:
    """Return up to five round values between two values: multiples of 1, 2 or 5 times a power."""
    power = 10.0 ** np.floor(np.log10((most - least) / 4))
    step = next(s * power for s in (1, 2, 5, 10) if s * power >= (most - least) / 4)
    first = np.ceil(least / step)
    count = int(np.floor(most / step) - first) + 1
    return [float(f"{(first + each) * step:.10g}") for each in range(count)]


def date_of(day: float) -> str:
    """Return a day since 1970 as a date in UTC."""
    return datetime.fromtimestamp(day * SECONDS_OF_DAY, UTC).strftime("%Y-%m-%d")

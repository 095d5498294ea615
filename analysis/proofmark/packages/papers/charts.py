"""Style, colours and font of all plots, two kinds of charts, and their forms as files.

The charts are lines over bytes, and bars. A plot is an SVG file, an SVG element of an HTML page, or
a PNG file. The package koreanize-matplotlib has the font NanumGothic, which has Hangul. Each system
has the same font. The package is not imported.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from proofmark.common.errors import bad_input
from proofmark.common.translation import ENGLISH, N_, _, language, translated
from proofmark.judge.headline import CONTRACT, EXPECTED, FLOOR
from proofmark.packages.papers.series import (
    NOMINAL,
    PlotPoint,
    Sample,
    Series,
    byte_label,
    byte_ticks,
    log_ticks,
    number_label,
)
from proofmark.report.words import count, number


@dataclass(frozen=True)
class Font:
    """The files of one font.

    Attributes:
        regular: the file of its regular weight.
        bold: the file of its bold weight.
    """

    name: str
    regular: Path
    bold: Path


def korean() -> Font:
    """Return a font with Hangul and Latin letters."""
    files = ("NanumGothic.ttf", "NanumGothicBold.ttf")
    return _font("koreanize_matplotlib", "fonts", *files)


def _font(package: str, folder: str, regular: str, bold: str) -> Font:
    """Return a font of a Python package.

    Raises:
        BadInput: the package or a file of it is missing.
    """
    spec = find_spec(package)
    distribution = package.replace("_", "-")
    accepted = f"the Python package {distribution} with {folder}/{regular}: run make .venv"
    if spec is None or not spec.submodule_search_locations:
        raise bad_input("font", "", f"no package {distribution}", accepted)
    place = Path(spec.submodule_search_locations[0]) / folder
    for name in (regular, bold):
        if not (place / name).is_file():
            raise bad_input("font", "", f"no file {name} in the package {distribution}", accepted)
    return Font(regular.removesuffix(".ttf").casefold(), place / regular, place / bold)


INK = "#101010"
"""Colour of text and axes; on the page it becomes the colour of the surrounding text."""

PAPER = "#ffffff"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#B8800A", "#3A94C8", INK)
"""Palette of Okabe and Ito ("Color Universal Design", 2008) without yellow, strongest first.

Its orange and its sky blue are darker here: a line has a contrast of 3 to white and to dark paper.
"""

MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", "--", "-.", ":", "-", "--", "-.")
SIZE = (4.6, 3.0)  # inches; small enough to be read on a telephone

STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "proofmark",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.0,
    "axes.titlesize": 9.0,
    "axes.labelsize": 9.0,
    "legend.fontsize": 8.5,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    # Names in outputs are foreign text, not formulas.
    "text.parse_math": False,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.markersize": 4.0,
    "lines.linewidth": 1.4,
    "hatch.linewidth": 0.6,
}


@contextmanager
def plot_style() -> Iterator[None]:
    """Draw in `STYLE` in the block; in Korean with a font that has Hangul.

    Raises:
        BadInput: the language is Korean, and the font is not installed.
    """
    hangul: dict[Any, Any] = {} if language() == ENGLISH else {"font.family": _fonts_with_hangul()}
    with matplotlib.rc_context({**STYLE, **hangul}):
        yield


@cache
def _fonts_with_hangul() -> list[str]:
    """Return the families of fonts with the font of `korean`, which is added."""
    font = korean()
    for file, weight in ((font.regular, "normal"), (font.bold, "bold")):
        fontManager.addfont(str(file))
        # The bold file states the weight 600.
        fontManager.ttflist[-1] = replace(fontManager.ttflist[-1], weight=weight)
    return [*STYLE["font.sans-serif"], fontManager.ttflist[-1].name]


Style = dict[str, Any]
"""Style of a line: keyword arguments of matplotlib's ``plot``."""


@dataclass(frozen=True)
class Drawing:
    """A plot with its caption and its data.

    Attributes:
        name: stem of its file names.
        title: quantity and axes.
        text: the values in words, as caption and for screen readers.
        samples: the data of the plot.
    """

    name: str
    title: str
    text: str
    figure: Figure
    samples: Sequence[Sample]


def sheet() -> tuple[Figure, Axes]:
    """Return an empty figure of matplotlib with one pair of axes."""
    figure = Figure(figsize=SIZE, layout="constrained", facecolor=PAPER)
    axes: Axes = figure.subplots()
    return figure, axes


LIMIT_NAMES = {
    CONTRACT: N_("limit of the contract"),
    EXPECTED: N_("expected value"),
    FLOOR: N_("floor"),
    NOMINAL: N_("peak of the hardware"),
}
LIMIT_MARKS = dict(zip(LIMIT_NAMES, ("_", "+", "1", "x"), strict=True))
"""The mark of matplotlib for each kind of limit."""


@dataclass(frozen=True)
class Labels:
    """The title of a plot, and quantity and unit of its axes."""

    title: str
    x: str
    y: str


def draw_over_bytes(
    name: str, labels: Labels, lines: Sequence[Series], samples: Sequence[Sample]
) -> list[Drawing]:
    """Draw `lines` over a number of bytes, both axes logarithmic; nothing without positive values.

    A shade shows the range over repeats and nodes. Only as many lines are drawn as there are
    colours. The text counts the other lines, and the values of 0 that a logarithmic axis lacks.
    """
    positive = [Series(line.label, _positive(line)) for line in lines]
    drawable = [line for line in positive if line.points]
    drawn = drawable[: len(COLOURS)]
    if not drawn:
        return []
    figure, axes = sheet()
    for line, colour, marker, dash in zip(drawn, COLOURS, MARKERS, DASHES, strict=False):
        x = [point.x for point in line.points]
        y = [point.y for point in line.points]
        axes.plot(x, y, color=colour, marker=marker, linestyle=dash, label=line.label)
        low = [point.low for point in line.points]
        high = [point.high for point in line.points]
        if low != high:
            axes.fill_between(x, low, high, color=colour, alpha=0.18, linewidth=0)
    points: list[PlotPoint] = []
    for line in drawn:
        points += line.points
    bounds = draw_limits(axes, drawn)
    _scale_bytes(axes, [point.x for point in points])
    ends: list[float] = []
    for point in points:
        ends += (point.low, point.high)
    _scale_log(axes, [*ends, *bounds])
    axes.set_xlabel(labels.x)
    axes.set_title(labels.y, loc="left")
    if any(line.label for line in drawn) or bounds:
        figure.legend(loc="outside upper left", ncols=2, frameon=False, borderaxespad=0.2)
    zeros = sum(len(line.points) for line in lines) - sum(len(line.points) for line in positive)
    text = _described(drawn, labels.y, len(drawable) - len(drawn), zeros)
    return [Drawing(name, labels.title, text, figure, samples)]


def draw_limits(axes: Axes, lines: Sequence[Series]) -> list[float]:
    """Draw a mark at each limit, a kind of mark for each kind of limit; return their values."""
    drawn: list[float] = []
    for kind, marker in LIMIT_MARKS.items():
        bounds = []
        for line in lines:
            for point in line.points:
                bounds += [
                    (point.x, bound) for name, bound in point.limits if name == kind and bound > 0
                ]
        found = dict.fromkeys(bounds)
        if found:
            x, y = zip(*found, strict=True)
            label = translated(LIMIT_NAMES[kind])
            axes.plot(x, y, marker, color=INK, markersize=9, markeredgewidth=1.6, label=label)
            drawn += y
    return drawn


def _positive(line: Series) -> tuple[PlotPoint, ...]:
    """Return the points that a logarithmic axis can show."""
    return tuple(point for point in line.points if point.low > 0)


def _scale_bytes(axes: Axes, x: Sequence[float]) -> None:
    low, high = min(x), max(x)
    if low == 0:
        # Messages of 0 bytes are shown left of 1 byte.
        axes.set_xscale("symlog", base=2, linthresh=1)
        axes.set_xlim(-0.4, 2 ** (math.log2(max(high, 1)) + 0.5))
    else:
        axes.set_xscale("log", base=2)
        margin = 2 ** max(0.25, 0.04 * math.log2(high / low))
        axes.set_xlim(low / margin, high * margin)
    axes.xaxis.set_major_locator(FixedLocator(byte_ticks(low, high)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(byte_label))
    axes.xaxis.set_tick_params(rotation=0)


def _scale_log(axes: Axes, y: Sequence[float]) -> None:
    ticks = log_ticks(min(y), max(y))
    axes.set_yscale("log")
    axes.set_ylim(ticks[0], ticks[-1])
    axes.yaxis.set_major_locator(FixedLocator(ticks))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(number_label))
    axes.grid(axis="y", color=INK, alpha=0.15, linewidth=0.6)


def _described(lines: Sequence[Series], y_label: str, left_out: int, zeros: int) -> str:
    ranges = []
    for line in lines:
        values = [point.y for point in line.points]
        name = f"{line.label}: " if line.label else ""
        ends = _(" to ").join(dict.fromkeys([number(min(values), 3), number(max(values), 3)]))
        ranges.append(f"{name}{ends}")
    more = (
        _(" {lines} in the data only.").format(lines=count(left_out, "more line"))
        if left_out
        else ""
    )
    not_drawn = _(" {values} of 0 not drawn.").format(values=count(zeros, "value")) if zeros else ""
    return f"{y_label[:1].upper()}{y_label[1:]} – {'; '.join(ranges)}.{more}{not_drawn}"


SVG = "{http://www.w3.org/2000/svg}"
XLINK = "{http://www.w3.org/1999/xlink}href"
DOTS = 200
"""Resolution of PNG files in dots per inch."""
_NUMBERS = {"d", "points", "transform", "x", "y", "x1", "x2", "y1", "y2"}


def svg_file(drawing: Drawing) -> str:
    """Return the plot as an SVG file; the same plot gives the same bytes."""
    no_metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    file = StringIO()
    drawing.figure.savefig(file, format="svg", metadata=no_metadata)
    return file.getvalue()


def png_file(drawing: Drawing) -> bytes:
    """Return the plot as a PNG file; the same plot gives the same bytes."""
    file = BytesIO()
    drawing.figure.savefig(file, format="png", dpi=DOTS, metadata={"Software": None})
    return file.getvalue()


def svg_element(drawing: Drawing, text: str) -> str:
    """Return `text`, the SVG file of the plot, as an element of an HTML page.

    Ids begin with the name of the plot. Text and axes have the colour of the surrounding text, and
    the background is transparent, so that the plot fits light pages, dark pages and print. Screen
    readers get title and text.
    """
    root = ElementTree.fromstring(text)
    for parent in root.iter():
        for child in [item for item in parent if item.tag in (f"{SVG}metadata", f"{SVG}style")]:
            parent.remove(child)
    for element in root.iter():
        element.tag = element.tag.removeprefix(SVG)
        for name, value in list(element.attrib.items()):
            del element.attrib[name]
            element.set(*_attribute(name, value, drawing.name))
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.set("role", "img")
    root.set("aria-labelledby", f"{drawing.name}-title {drawing.name}-text")
    for index, (tag, words) in enumerate((("title", drawing.title), ("desc", drawing.text))):
        element = ElementTree.Element(tag, id=f"{drawing.name}-{'text' if index else 'title'}")
        element.text = words
        root.insert(index, element)
    return re.sub(r">\s+<", "><", ElementTree.tostring(root, encoding="unicode"))


def _attribute(name: str, value: str, prefix: str) -> tuple[str, str]:
    if name == "id":
        return name, f"{prefix}-{value}"
    if name == XLINK:
        return "href", f"#{prefix}-{value.removeprefix('#')}"
    value = value.replace("url(#", f"url(#{prefix}-")
    if name in _NUMBERS:
        # Digits after hundredths of a point are invisible, and half of the file size.
        return name, " ".join(re.sub(r"-?\d+\.\d{3,}", _rounded, value).split())
    if name == "style":
        value = value.replace(INK, "currentColor").replace(f"fill: {PAPER}", "fill: none")
        value = re.sub(r"; (?=[a-z])", ";", re.sub(r": ", ":", value))
    return name, value


def _rounded(match: re.Match[str]) -> str:
    return f"{float(match[0]):.2f}".rstrip("0").rstrip(".")

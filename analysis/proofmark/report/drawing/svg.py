"""Figures as text: an SVG file of its own, and one that is part of a page."""

from __future__ import annotations

import re
from io import BytesIO, StringIO
from xml.etree import ElementTree

from proofmark.report.drawing.charts import INK, PAPER, Drawing

SVG = "{http://www.w3.org/2000/svg}"
XLINK = "{http://www.w3.org/1999/xlink}href"
DOTS = 200
"""Of a PNG, to the inch."""
_NUMBERS = {"d", "points", "transform", "x", "y", "x1", "x2", "y1", "y2"}


def standalone(drawing: Drawing) -> str:
    """Return the figure as an SVG file; the same figure gives the same bytes."""
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    file = StringIO()
    drawing.figure.savefig(file, format="svg", metadata=nothing)
    return file.getvalue()


def raster(drawing: Drawing) -> bytes:
    """Return the figure as a PNG file for documents; the same figure gives the same bytes."""
    file = BytesIO()
    drawing.figure.savefig(file, format="png", dpi=DOTS, metadata={"Software": None})
    return file.getvalue()


def inline(drawing: Drawing, text: str) -> str:
    """Return `text`, the figure's file, as an element of an HTML page.

    Its ids carry the figure's name, its ink is that of the text around it and its paper is
    clear, so that it fits light pages, dark pages and print. Screen readers get its words.
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
    for place, (tag, words) in enumerate((("title", drawing.title), ("desc", drawing.text))):
        element = ElementTree.Element(tag, id=f"{drawing.name}-{'text' if place else 'title'}")
        element.text = words
        root.insert(place, element)
    return re.sub(r">\s+<", "><", ElementTree.tostring(root, encoding="unicode"))


def _attribute(name: str, value: str, prefix: str) -> tuple[str, str]:
    if name == "id":
        return name, f"{prefix}-{value}"
    if name == XLINK:
        return "href", f"#{prefix}-{value.removeprefix('#')}"
    value = value.replace("url(#", f"url(#{prefix}-")
    if name in _NUMBERS:
        # Hundredths of a point cannot be seen, and are half of the size.
        return name, " ".join(re.sub(r"-?\d+\.\d{3,}", _rounded, value).split())
    if name == "style":
        value = value.replace(INK, "currentColor").replace(f"fill: {PAPER}", "fill: none")
        value = re.sub(r"; (?=[a-z])", ";", re.sub(r": ", ":", value))
    return name, value


def _rounded(match: re.Match[str]) -> str:
    return f"{float(match[0]):.2f}".rstrip("0").rstrip(".")

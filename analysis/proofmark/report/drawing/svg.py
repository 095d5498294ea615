"""Plots as SVG files, as SVG elements of an HTML page, and as PNG files."""

from __future__ import annotations

import re
from io import BytesIO, StringIO
from xml.etree import ElementTree

from proofmark.report.drawing.charts import INK, PAPER, Drawing

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

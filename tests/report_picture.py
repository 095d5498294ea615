"""Draws the picture of the report in the README.

``python -m tests.report_picture`` judges the sample run of the tests, whose outputs are those of
real programs, opens its page in Chromium, and writes its first part to ``docs/report.png``. The
file also has the outline of the page, which a test compares with that of the present page: it needs
no browser.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.e2e.test_report_browser import Browser
from tests.fixtures.finished import seal
from tests.fixtures.report_run import made_run
from tests.folders import ROOT

from proofmark.cli.main import main as proofmark

PICTURE = ROOT / "docs" / "report.png"
WIDTH, HEIGHT = 1280, 1900
"""The part of the page in CSS pixels: until the issues."""
OUTLINE = b"outline\0"
"""The keyword of the outline in a chunk ``tEXt`` (PNG Specification, 11.3.3.2)."""
_PARTS = re.compile(r"<(h[1-3]|th|dt)\b[^>]*>(.*?)</\1>|<td class=\"strong\">(.*?)<", re.DOTALL)
_END = 12
"""Bytes of the last chunk, which is empty: length, name and CRC."""


def page_of(folder: Path) -> Path:
    """Return the page of the sample run, which is made in `folder`."""
    run = made_run(folder / "runs")
    seal(run.folder)
    assert proofmark(["report", f"{run.folder}"]) == 0
    return run.products.report


def outline(page: str) -> list[str]:
    """Return the headings, heads of tables and names of rows before the section of the issues."""
    shown = page.partition('<section id="attention"')[0].partition("<body")[2]
    texts = (found[2] or found[3] or "" for found in _PARTS.finditer(shown))
    return [" ".join(re.sub(r"<[^>]+>", " ", text).split()) for text in texts]


def outline_in(picture: bytes) -> list[str]:
    """Return the outline that a picture has; empty if it has none."""
    place = picture.find(b"tEXt" + OUTLINE)
    if place < 0:
        return []
    length = int.from_bytes(picture[place - 4 : place], "big")
    text = picture[place + 4 + len(OUTLINE) : place + 4 + length]
    return list(json.loads(text))


def with_outline(picture: bytes, texts: list[str]) -> bytes:
    """Return a picture with an outline before its last chunk."""
    data = OUTLINE + json.dumps(texts).encode()
    chunk = b"tEXt" + data
    whole = len(data).to_bytes(4, "big") + chunk + zlib.crc32(chunk).to_bytes(4, "big")
    return picture[:-_END] + whole + picture[-_END:]


def draw(folder: Path) -> bytes:
    """Return the picture as PNG; the run and the profile of the browser are in `folder`."""
    page = page_of(folder)
    browser = Browser(folder / "profile")
    try:
        browser.attach()
        browser.show(page, width=WIDTH)
        clip = {"x": 0, "y": 0, "width": WIDTH, "height": HEIGHT, "scale": 1}
        shown = browser.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        return with_outline(base64.b64decode(shown["data"]), outline(page.read_text("utf-8")))
    finally:
        browser.close()


def main() -> None:
    """Write the picture."""
    with TemporaryDirectory(prefix="proofmark-picture-") as folder:
        (Path(folder) / "runs").mkdir()
        PICTURE.write_bytes(draw(Path(folder)))


if __name__ == "__main__":
    main()

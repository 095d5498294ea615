"""Draws the picture of the report in the README.

``python -m tests.report_picture`` judges the sample run of the tests, whose outputs are those of
real programs, opens its page in Chromium, and writes its first part to ``docs/report.png``.
"""

from __future__ import annotations

import base64
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.e2e.test_report_browser import Browser
from tests.fixtures.finished import seal
from tests.fixtures.report_run import made_run
from tests.folders import ROOT

from proofmark.cli.main import main as proofmark

PICTURE = ROOT / "docs" / "report.png"
WIDTH, HEIGHT = 1280, 1600
"""The part of the page in CSS pixels: until the issues."""


def draw(folder: Path) -> bytes:
    """Return the picture as PNG; the run and the profile of the browser are in `folder`."""
    run = made_run(folder / "runs")
    seal(run.folder)
    assert proofmark(["report", f"{run.folder}"]) == 0
    browser = Browser(folder / "profile")
    try:
        browser.attach()
        browser.show(run.products.report, width=WIDTH)
        clip = {"x": 0, "y": 0, "width": WIDTH, "height": HEIGHT, "scale": 1}
        shown = browser.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        return base64.b64decode(shown["data"])
    finally:
        browser.close()


def main() -> None:
    """Write the picture."""
    with TemporaryDirectory(prefix="proofmark-picture-") as folder:
        (Path(folder) / "runs").mkdir()
        PICTURE.write_bytes(draw(Path(folder)))


if __name__ == "__main__":
    main()

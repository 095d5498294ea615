"""The report in a real browser: from a file, without script or network, at any width."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from pypdf import PageObject, PdfReader
from tests.fixtures.pages import contrast
from tests.fixtures.report_run import made_run, reported, troubled_run
from tests.fixtures.sweeps import collectives, hpl_knl
from tests.packages.papers.test_paper_plots import KNL, P595, paper_run, threads
from tests.processes import running
from tests.unit.report.test_summary_pages import signed_sheets_run

from proofmark.judge.verdict import WORDS

pytestmark = pytest.mark.slow

TIMEOUT_S = 60.0  # for a response of the browser on a busy machine
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)
# The protocol fixes the file descriptors: the browser reads from 3 and writes to 4.
AS_3_AND_4 = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3]]
for number, end in enumerate(ends, start=3):
    os.dup2(end, number)
os.execvp(sys.argv[3], sys.argv[3:])
"""
HOSTILE = "<img src=x onerror=alert(1)>" + "w" * 200


class Browser:
    """Chromium, driven by its DevTools protocol over a pair of pipes (messages end with NUL)."""

    def __init__(self, profile: Path) -> None:
        program = shutil.which("chromium")
        assert program, "chromium is missing: requirements/debian-dev.txt names it"
        their_input, self._out = os.pipe()
        self._in, their_output = os.pipe()
        wrapper = [sys.executable, "-c", AS_3_AND_4, f"{their_input}", f"{their_output}"]
        self._process = subprocess.Popen(
            [*wrapper, program, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(their_input, their_output),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(their_input)
        os.close(their_output)
        self._buffer = b""
        self._number = 0
        self._session = ""
        self.events: list[dict[str, Any]] = []

    def attach(self) -> None:
        """Attach to the first page of the browser."""
        (page,) = (
            each for each in self.call("Target.getTargets")["targetInfos"] if each["type"] == "page"
        )
        attached = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        """End the browser."""
        os.close(self._out)
        os.close(self._in)
        with running(self._process):
            self._process.terminate()
            self._process.wait(timeout=TIMEOUT_S)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method and return its result; keep the events that arrive before it."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def wait_for(self, event: str) -> None:
        """Wait until `event` has arrived."""
        while not any(each.get("method") == event for each in self.events):
            self.events.append(self._next())

    def _next(self) -> dict[str, Any]:
        deadline = time.monotonic() + TIMEOUT_S
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(0, deadline - time.monotonic()))
            assert ready, "the browser does not answer"
            received = os.read(self._in, 1 << 20)
            assert received, "the browser has ended"
            self._buffer += received
        text, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        return message

    def show(self, page: Path, *, width: int, dark: bool = False) -> None:
        """Open a file in a window of `width` CSS pixels; events of earlier pages are removed."""
        self.events.clear()
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=page.as_uri())
        self.wait_for("Page.loadEventFired")

    def value(self, expression: str) -> Any:
        """Return the value of a JavaScript expression, evaluated from outside the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def messages(self) -> list[dict[str, Any]]:
        """Return the console output of the page, and the messages of the browser about it."""
        kinds = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [each for each in self.events if each.get("method") in kinds]

    def requested(self) -> set[str]:
        """Return the addresses that the page requested."""
        return {
            each["params"]["request"]["url"]
            for each in self.events
            if each.get("method") == "Network.requestWillBeSent"
        }


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    opened = Browser(tmp_path_factory.mktemp("profile"))
    try:
        opened.attach()
        yield opened
    finally:
        opened.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return four reports: all PASS, with faults, a hostile host name, figures of the papers."""
    runs = {
        "good": made_run(tmp_path_factory.mktemp("good")),
        "troubled": troubled_run(tmp_path_factory.mktemp("troubled")),
        "hostile": made_run(tmp_path_factory.mktemp("hostile"), model=HOSTILE),
    }
    for run in runs.values():
        reported(run, drawn=True)
    runs["papers"], _ = paper_run(
        tmp_path_factory.mktemp("papers"), hpl_knl(KNL), threads(KNL), collectives(P595)
    )
    return {name: run.folder / "report.html" for name, run in runs.items()}


@pytest.mark.parametrize("name", ["good", "troubled", "hostile", "papers"])
@pytest.mark.parametrize("width", [1280, 1100, 800, 375])
def test_opens_from_a_file_and_fits(
    browser: Browser, pages: dict[str, Path], name: str, width: int
) -> None:
    browser.show(pages[name], width=width)
    assert browser.messages() == []
    assert browser.requested() == {pages[name].as_uri()}
    shown = browser.value("document.body.innerText")
    assert all(word in shown for word in WORDS)
    assert browser.value("document.querySelectorAll('script, img').length") == 0
    assert browser.value("document.querySelectorAll('main svg').length") > 0
    browser.value("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert browser.value("document.documentElement.scrollWidth") <= width
    wider = (
        "[...document.querySelectorAll('body *')]"
        ".filter(each => each.getBoundingClientRect().right > innerWidth + 1)"
        ".filter(each => !each.closest('svg, thead, caption'))"
        ".map(each => each.outerHTML.slice(0, 200))"
    )
    assert browser.value(wider) == []


BROKEN = """
(() => {
  const broken = [];
  for (const cell of document.querySelectorAll('tbody td, tbody th')) {
    const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    let text = '', places = [];
    while (walker.nextNode()) {
      const node = walker.currentNode;
      if (!node.parentElement.offsetParent) continue;
      for (let at = 0; at < node.data.length; at++) places.push([node, at]);
      text += node.data;
      text += ' '; places.push(null);
    }
    for (const found of text.matchAll(/\\S{2,24}/g)) {
      const word = found[0];
      if (text[found.index + word.length] !== ' ' && text[found.index + word.length]) continue;
      if (found.index && !/\\s/.test(text[found.index - 1])) continue;
      const range = document.createRange();
      const [first, from] = places[found.index];
      const [last, to] = places[found.index + word.length - 1];
      range.setStart(first, from); range.setEnd(last, to + 1);
      const tops = [...range.getClientRects()].filter(each => each.width).map(each => each.top);
      if (tops.length && Math.max(...tops) - Math.min(...tops) > 6) broken.push(word);
    }
  }
  return broken;
})()
"""
"""The words of at most 24 characters in cells of tables that are in more than one line."""


@pytest.mark.parametrize("name", ["good", "troubled", "papers"])
@pytest.mark.parametrize(
    ("width", "media"), [(1280, "screen"), (800, "screen"), (375, "screen"), (690, "print")]
)
def test_no_name_is_broken_into_two_lines(
    browser: Browser, pages: dict[str, Path], name: str, width: int, media: str
) -> None:
    browser.show(pages[name], width=width)
    browser.call("Emulation.setEmulatedMedia", media=media)
    try:
        browser.value("document.querySelectorAll('details').forEach(each => each.open = true)")
        assert browser.value("document.querySelectorAll('tbody td').length") > 100
        assert browser.value(BROKEN) == []
    finally:
        browser.call("Emulation.setEmulatedMedia", media="")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_text_has_enough_contrast(
    browser: Browser, pages: dict[str, Path], dark: bool
) -> None:
    browser.show(pages["troubled"], width=1280, dark=dark)
    numbers = "(text => text.match(/[\\d.]+/g).map(Number))"
    ground = browser.value(f"{numbers}(getComputedStyle(document.body).backgroundColor)")
    assert (sum(ground[:3]) < 3 * 128) is dark
    tint = browser.value(
        f"{numbers}(getComputedStyle(document.querySelector('pre')).backgroundColor)"
    )
    texts = browser.value(
        "[...document.querySelectorAll('body *')]"
        ".filter(each => !each.matches('svg title, svg desc'))"
        ".filter(each => [...each.childNodes].some(node => node.nodeType == 3 && node.data.trim()))"
        ".map(each => [getComputedStyle(each)[each.closest('svg') ? 'fill' : 'color'], each])"
        f".map(([colour, each]) => [{numbers}(colour), each.outerHTML.slice(0, 100)])"
    )
    assert len(texts) > 100
    assert [
        (colour, text)
        for colour, text in texts
        if min(contrast(colour, each) for each in (ground, tint)) < 4.5
    ] == []


def sheets_of(browser: Browser, **paper: float) -> list[PageObject]:
    """Return the sheets of the page that is shown, as the browser prints them."""
    printed = browser.call("Page.printToPDF", preferCSSPageSize=True, **paper)
    return [*PdfReader(BytesIO(base64.b64decode(printed["data"]))).pages]


def test_prints_on_paper(browser: Browser, pages: dict[str, Path]) -> None:
    """The reader chooses the paper: A4 or Letter, in inches."""
    browser.show(pages["good"], width=1280)
    for width, height in ((8.27, 11.69), (8.5, 11)):
        sheets = sheets_of(browser, paperWidth=width, paperHeight=height)
        assert float(sheets[0].mediabox.height) == pytest.approx(72 * height, abs=1)
        # Details are not printed: only their titles.
        assert 3 <= len(sheets) <= 10
        assert all(len(sheet.extract_text()) > 400 for sheet in sheets[:-1])


def test_prints_the_signed_sheets_first(browser: Browser, tmp_path: Path) -> None:
    """Each sheet has its number and the exact digest of the evidence.

    Fonts have one glyph for the letters ff, which a program reads as another letter.
    """
    accepted = signed_sheets_run(tmp_path)
    newest = max((accepted.folder / "evidence").glob("*.tar"))
    made = hashlib.sha256(newest.read_bytes()).hexdigest()
    digest = f"ff{made[2:]}"
    page = tmp_path / "page.html"
    page.write_text(accepted.files.report.read_text().replace(made, digest))
    browser.show(page, width=1280)
    sheets = [sheet.extract_text() for sheet in sheets_of(browser)]
    last = next(number for number, text in enumerate(sheets) if "Signature" in text)
    assert last < 2
    for number, text in enumerate(sheets, start=1):
        assert digest in text and f"{number} / {len(sheets)}" in text


def test_a_script_is_detected(browser: Browser, tmp_path: Path) -> None:
    """Control: no fault is injected."""
    page = tmp_path / "loud.html"
    page.write_text("<img src='missing.png'><script>console.error('loud')</script>")
    browser.show(page, width=375)
    assert any("loud" in json.dumps(each) for each in browser.messages())
    assert (tmp_path / "missing.png").as_uri() in browser.requested()

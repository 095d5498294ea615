"""The page of trends in a real browser: from a file, without script or network, at any width."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.e2e.test_report_browser import Browser
from tests.e2e.test_report_browser import browser as browser
from tests.fixtures.past_runs import Value, write_past_run

from proofmark.cli.main import main

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("width", [1280, 360])
def test_opens_from_a_file_and_fits(browser: Browser, tmp_path: Path, width: int) -> None:
    for number in range(12):
        level = 100 * (1 + 0.01 * (number % 2)) * (0.8 if number > 7 else 1)
        figures = [Value("copy" * 20, (level, level * 1.01)), Value("add", (100.0 + number,))]
        write_past_run(tmp_path, number, figures)
    assert main(["trend", f"{tmp_path}"]) == 0
    page = tmp_path / "trend.html"
    browser.show(page, width=width)
    assert browser.messages() == []
    assert browser.requested() == {page.as_uri()}
    assert browser.value("document.querySelectorAll('script, img').length") == 0
    assert browser.value("document.querySelectorAll('#changes svg[role=img] title').length") > 0
    browser.value("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert browser.value("document.documentElement.scrollWidth") <= width

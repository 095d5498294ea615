"""The report as PDF, printed by a browser of this machine, or by the library weasyprint."""

from __future__ import annotations

import os
import shutil
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from subprocess import TimeoutExpired
from tempfile import TemporaryDirectory

from proofmark.common.errors import bad_input
from proofmark.common.processes import run_command
from proofmark.judge.verdict import Verdict
from proofmark.records.columns import Records
from proofmark.report.export import Export
from proofmark.runs.run import Run

BROWSERS = (
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"),
    *("microsoft-edge", "microsoft-edge-stable", "brave-browser"),
)
"""The names of browsers that print a page without a window, the first one of which is used."""
LIBRARY = "weasyprint"
LONGEST_S = 300
"""The time limit of a browser: the page of a large run has thousands of rows."""


class Pdf(Export):
    """Prints ``report.html``: the sheets that are signed first, then the details."""

    content = "the report as PDF, by a browser or the library weasyprint of this machine"

    def write(self, run: Run, records: Records, verdict: Verdict, folder: Path) -> list[Path]:
        """Write ``report.pdf``.

        Raises:
            BadInput: the run has no report, nothing here can print it, or the browser failed.
        """
        page, path = run.products.report, folder / "report.pdf"
        if not page.is_file():
            accepted = "a run with a report: proofmark report RUN"
            raise bad_input(page, "", "no such file", accepted)
        browser = next(filter(None, map(shutil.which, BROWSERS)), None)
        if browser:
            _print(browser, page, path)
        elif find_spec(LIBRARY):
            import_module(LIBRARY).HTML(filename=f"{page}").write_pdf(f"{path}")
        else:
            accepted = f"one of {', '.join(BROWSERS)} in PATH, or the Python package {LIBRARY}"
            raise bad_input("--format", "", "pdf: no browser and no library", accepted)
        return [path]


def _print(browser: str, page: Path, path: Path) -> None:
    """Print a page with a browser, whose profile is a folder that is removed."""
    with TemporaryDirectory(prefix="proofmark-") as profile:
        words = [
            *(browser, "--headless", "--disable-gpu", "--no-pdf-header-footer"),
            # A browser refuses to isolate pages of root; this page has no script and no network.
            *(["--no-sandbox"] if os.geteuid() == 0 else []),
            *(f"--user-data-dir={profile}", f"--print-to-pdf={path.resolve()}"),
            page.resolve().as_uri(),
        ]
        # Browsers also write below HOME and TMPDIR.
        places = {"HOME": profile, "TMPDIR": profile}
        try:
            done = run_command(words, timeout_s=LONGEST_S, environment={**os.environ, **places})
        except TimeoutExpired:
            found = f"pdf: {browser} did not end within {LONGEST_S} s"
            raise bad_input("--format", "", found, "a browser that prints the page") from None
    if done.returncode or not path.is_file():
        found = f"pdf: {browser}: exit code {done.returncode}: {done.stderr.strip()[-300:]}"
        raise bad_input("--format", "", found, "a browser that prints the page")

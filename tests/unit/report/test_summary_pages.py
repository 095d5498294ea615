"""The summary of two pages: it fits, has the verdict and the limits, and has the same bytes."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

import pytest
from pypdf import PdfReader
from tests.fixtures.finished import written_verdict
from tests.fixtures.fleet import fleet_run
from tests.fixtures.pages import plain
from tests.fixtures.report_run import made_run, troubled_run

from proofmark.cli.main import main
from proofmark.report.run_data import gather
from proofmark.report.sections.next_steps import next_steps
from proofmark.report.short.sheet import (
    ALLOWANCES,
    Allowance,
    Party,
    Sheet,
    SheetColumn,
    SheetCount,
    SheetPart,
    clipped,
)
from proofmark.report.short.summary_pdf import column_widths, pdf
from proofmark.report.write import fitted
from proofmark.runs.run import Run

WRITTEN = datetime(2026, 11, 23, tzinfo=UTC)
LONG = "n" * 400


def text_of(document: bytes) -> str:
    return "\n".join(page.extract_text() for page in PdfReader(BytesIO(document)).pages)


def largest(allowance: Allowance, name: str) -> Sheet:
    """Return a summary whose parts have all rows of `allowance`, with long texts."""
    word = clipped(name, allowance.characters)
    half = clipped(name, allowance.characters // 2)

    def part(title: str, shares: tuple[int, ...], row: tuple[str, ...], rows: int) -> SheetPart:
        columns = tuple(SheetColumn("title", share) for share in shares)
        return SheetPart(title, title, columns, (row,) * rows, (word,), (f"300 more {title}",))

    return Sheet(
        "Summary",
        clipped(name, 70),
        "FAIL",
        clipped(name, 320),
        tuple(SheetCount(each, "300") for each in ("PASS", "FAIL", "INVALID", "UNJUDGED")),
        tuple((f"fact {number}", clipped(name, 110)) for number in range(12)),
        (
            part("limits", (31, 19, 25, 14, 11), (word, *(half,) * 3, "FAIL"), allowance.limits),
            part("exceptions", (12, 66, 22), ("NOTE", word, half), allowance.exceptions),
            part("nodes", (16, 11, 38, 35), (half, "−9.9 %", word, word), allowance.nodes),
            part("digests", (24, 76), ("file", "0" * 64), 8),
        ),
        "Signatures",
        clipped(name, 200),
        (Party("customer", ("Name",) * 4), Party("supplier", ("Name",) * 4)),
        "foot",
    )


def test_no_short_word_is_broken_on_paper() -> None:
    """A column that is too narrow for the name of a node gets the room of the others."""
    names = ("rknl0007", "0003-imb-pingpong", "runs/a/b", "knl[0001-0042,0077]")
    columns = tuple(
        SheetColumn("title", share, kind) for share, kind in ((4, ""), (5, "code"), (91, ""))
    )
    rows = tuple((name, name, "a sentence of many words " * 8) for name in names)
    content = largest(ALLOWANCES[-1], "a long text")
    content = replace(content, parts=(SheetPart("nodes", "nodes", columns, rows),))
    words = text_of(pdf(content, WRITTEN)[0]).split()
    assert [words.count(name) for name in names] == [2, 2, 2, 2]


@pytest.mark.parametrize(
    ("shares", "least", "widths"),
    [
        ((50, 50), (10, 10), (50, 50)),
        ((10, 90), (30, 0), (30, 70)),
        ((10, 45, 45), (30, 35, 0), (30, 41.363636, 28.636364)),
        ((50, 50), (80, 80), (50, 50)),
        ((50, 50), (50, 50), (50, 50)),
    ],
)
def test_widths_of_columns(
    shares: tuple[float, ...], least: tuple[float, ...], widths: tuple[float, ...]
) -> None:
    assert column_widths(shares, least, 100) == pytest.approx(widths)


@pytest.mark.parametrize("name", [LONG, "a long text " * 40], ids=["one word", "words"])
def test_a_summary_of_long_texts_fits_on_two_pages(name: str) -> None:
    pages: list[int] = []

    def made(allowance: Allowance) -> tuple[Sheet, bytes, int]:
        content = largest(allowance, name)
        document, number = pdf(content, WRITTEN)
        pages.append(number)
        return content, document, number

    _, document = fitted(made)
    assert len(PdfReader(BytesIO(document)).pages) <= 2
    assert pages[0] > 2  # the first allowance is too large: rows were left out


def test_a_summary_that_cannot_fit_is_an_error() -> None:
    content = largest(ALLOWANCES[-1], "x")
    with pytest.raises(AssertionError):
        fitted(lambda allowance: (content, b"", 3))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return a run with one fault of each kind, and its summary."""
    made = troubled_run(tmp_path_factory.mktemp("troubled"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1795000000")
        assert main(["report", str(made.folder), "--summary"]) == 0
    return made


def test_the_pdf_has_the_verdict_and_the_limit(run: Run) -> None:
    page, printed = run.files.summary, run.files.printed_summary
    reader = PdfReader(printed)
    assert 1 <= len(reader.pages) <= 2
    text = text_of(printed.read_bytes())
    for wanted in (
        "INVALID",
        "imb-pingpong bandwidth",
        "9000 Mbytes/sec",
        "FAIL",
        "Signature",
        run.id,
    ):
        assert wanted in text
        assert wanted in plain(page.read_text(encoding="utf-8"))
    assert "/FontFile2" in printed.read_bytes().decode("latin-1")


def test_the_first_digest_is_that_of_the_newest_archive(run: Run) -> None:
    newest = max((run.folder / "evidence").glob("*.tar"))
    digest = hashlib.sha256(newest.read_bytes()).hexdigest()
    assert digest in run.files.summary.read_text(encoding="utf-8")


def test_each_fail_and_invalid_has_a_next_step(run: Run) -> None:
    data = gather(run, written_verdict(run))
    steps = next_steps(data)
    words = {step.word for step in steps}
    assert {"FAIL", "INVALID"} <= words
    counts = data.verdict.counts
    for word in ("FAIL", "INVALID"):
        assert sum(step.figures for step in steps if step.word == word) == counts[word]
    assert any(step.command.startswith(f"proofmark rerun runs/{run.id} ") for step in steps)
    page = run.files.report.read_text(encoding="utf-8")
    assert page.index('id="next"') < page.index('id="attention"')


def test_a_run_without_problems_has_no_next_step(tmp_path: Path) -> None:
    made = made_run(tmp_path)
    assert next_steps(gather(made, written_verdict(made))) == ()


def test_a_slow_node_is_named_with_its_step(tmp_path: Path) -> None:
    rates = {f"n{number:02d}": 100.0 + number % 3 for number in range(1, 13)}
    made = fleet_run(tmp_path, {**rates, "n07": 60.0})
    (step,) = next_steps(gather(made, written_verdict(made)))
    assert (step.word, step.nodes) == ("FAIL", "n07")
    assert "/n07" in step.command

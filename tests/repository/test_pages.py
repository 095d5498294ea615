"""The pages of the documentation are short where a reader looks first."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.folders import ROOT
from tests.report_picture import PICTURE, outline, outline_in, page_of, with_outline

PAGES = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted(ROOT.glob("roles/*/README.md")),
    *sorted(ROOT.glob("analysis/proofmark/packages/*/README.md")),
)
MOST_WORDS = 100
SCREENS = 2 * 45
"""Lines of two screens, before which a page has its first example: commands or a file."""
WITHOUT = {"docs/index.md"}
"""Lists of the other pages."""
_ITEM = re.compile(r"(?:[-*+]|\d+\.) ")
_FENCE = ("```", "~~~")


def paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Yield each paragraph and item of a page with its first line; no table, heading or example."""
    first, words, inside = 0, list[str](), False
    for number, line in enumerate([*text.splitlines(), ""], 1):
        part = line.strip()
        fence = part.startswith(_FENCE)
        ends = fence or not part or part.startswith(("|", "#")) or _ITEM.match(part)
        if words and (ends or inside):
            yield first, " ".join(words)
            words = []
        inside ^= fence
        if part and not (fence or inside or part.startswith(("|", "#"))):
            first = first if words else number
            words.append(part)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_paragraph_has_at_most_a_hundred_words(page: Path) -> None:
    long = [
        f"{page.name}:{line}: {len(text.split())} words"
        for line, text in paragraphs(page.read_text("utf-8"))
        if len(text.split()) > MOST_WORDS
    ]
    assert not long


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page.is_relative_to(ROOT / "docs")],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_a_page_has_its_first_example_within_two_screens(page: Path) -> None:
    lines = page.read_text("utf-8").splitlines()
    places = (number for number, line in enumerate(lines, 1) if line.strip().startswith(_FENCE))
    first = next(places, None)
    if str(page.relative_to(ROOT)) not in WITHOUT:
        assert first is not None
        assert first <= SCREENS


def test_paragraphs_are_found() -> None:
    text = "# A\n\none two\nthree\n- four\n  five\n\n  six\n\n```sh\nseven\n```\n| eight |\n"
    assert [*paragraphs(text)] == [(3, "one two three"), (5, "- four five"), (8, "six")]


def test_the_picture_of_the_readme_is_of_the_present_page(tmp_path: Path) -> None:
    """``python -m tests.report_picture`` draws it. The parts are compared, not the pixels."""
    (tmp_path / "runs").mkdir()
    page = page_of(tmp_path).read_text("utf-8")
    assert "Key figures" in outline(page)
    assert outline_in(PICTURE.read_bytes()) == outline(page)
    assert outline_in(with_outline(PICTURE.read_bytes()[:40], ["a"])) == ["a"]

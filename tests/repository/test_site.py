"""The site of the documentation: links, orphans, and the keys of the models."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.fixtures.pages import Page, assert_readable
from tests.folders import ROOT
from tests.key_pages import PAGES, WRITE, KeyPage, page_of_packages

pytestmark = pytest.mark.rest("the site is built three times")

DOCS = ROOT / "docs"


def build(docs: Path, target: Path) -> subprocess.CompletedProcess[str]:
    """Build the site as ``make docs`` does; a warning is an error."""
    options = ["-E", "-q", "-W", "--keep-going"]
    command = [sys.executable, "-m", "sphinx", *options, str(docs), str(target)]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def assert_reachable(text: str) -> None:
    """Check that a page can be read with the keyboard: what scrolls has a place and a name."""
    page = Page(text)
    assert_readable(page)
    boxes = [each for _, each in page.elements if "table-wrapper" in each.get("class", "")]
    assert len(boxes) == len(page.of("table"))
    for each in [*boxes, *page.of("pre")]:
        assert (each["tabindex"], each["role"]) == ("0", "group")
        assert each["aria-label"]


@pytest.mark.parametrize("page", [*PAGES, page_of_packages()], ids=lambda page: page.name)
def test_the_page_has_the_keys_of_the_models(page: KeyPage) -> None:
    assert (DOCS / page.name).read_text(encoding="utf-8") == page.text(), WRITE


def test_the_site_is_built_without_a_warning_and_without_a_network(tmp_path: Path) -> None:
    """No page of it loads anything from another address when it is opened."""
    built = build(DOCS, tmp_path)
    assert (built.returncode, built.stderr) == (0, "")
    pages = sorted(tmp_path.rglob("*.html"))
    assert {page.stem for page in DOCS.rglob("*.md")} <= {page.stem for page in pages}
    for page in pages:
        assert_reachable(page.read_text(encoding="utf-8"))
    loaded = ('src="http', 'rel="stylesheet" href="http', "@import url(http", "url(//")
    files = [*pages, *tmp_path.rglob("*.css")]
    texts = {file.name: file.read_text(encoding="utf-8") for file in files}
    assert [name for name, text in texts.items() if any(word in text for word in loaded)] == []


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("[a](missing.md)", "cross-reference target not found"),
        ("[a](#no-such-heading)", "cross-reference target not found"),
        ("# Second", "isn't included in any toctree"),
    ],
    ids=["page", "anchor", "orphan"],
)
def test_a_wrong_link_and_an_orphan_are_found(tmp_path: Path, text: str, warning: str) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    shutil.copy(DOCS / "conf.py", docs)
    shutil.copytree(DOCS / "theme", docs / "theme")
    (docs / "index.md").write_text("# First\n", encoding="utf-8")
    target = docs / ("second.md" if text.startswith("#") else "index.md")
    target.write_text(f"{text}\n" if target.name == "second.md" else f"# First\n\n{text}\n")
    built = build(docs, tmp_path / "built")
    assert built.returncode == 1
    assert warning in built.stderr

"""The runs and links that a refusal names, and what the nodes that join a run change."""

from __future__ import annotations

from pathlib import Path

import pytest

from proofmark.runs.run import is_reserved, point, runs_below


def test_a_refusal_names_the_links_and_the_three_newest_runs(tmp_path: Path) -> None:
    assert runs_below(tmp_path) == "a run's folder"
    for day in (3, 1, 4, 2):
        (tmp_path / f"2026010{day}T000000Z-a-quick").mkdir()
    (tmp_path / "named").mkdir()
    newest = [f"2026010{day}T000000Z-a-quick" for day in (2, 3, 4)]
    assert runs_below(tmp_path) == ", ".join(newest)
    for site in ("b", "a"):
        (tmp_path / f"latest-{site}").symlink_to("named")
    (tmp_path / "latest-c").mkdir()
    (tmp_path / "9Z-link").symlink_to("named")
    assert runs_below(tmp_path) == ", ".join(["latest-a", "latest-b", *newest])


@pytest.mark.parametrize("name", ["latest-", "run", "run-a", "a-latest", ""])
def test_a_name_without_a_site_after_a_dash_is_no_link(name: str) -> None:
    assert not is_reserved(name)


def test_a_link_that_cannot_be_made_says_why(tmp_path: Path) -> None:
    link = tmp_path / "none/latest-a"
    assert point(link, "r") == f"{link}: not moved to r: No such file or directory"

"""What commands print and what pages say is what the stories have, in each cell and each line."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.stories import STORIES, golden, text_of


@pytest.mark.parametrize("name", STORIES)
def test_a_story_is_told_as_it_was(name: str, tmp_path: Path) -> None:
    """Else read the difference; if it is right, write it: python -m tests.stories."""
    told = text_of(name, tmp_path.resolve()).splitlines()
    assert told == golden(name).read_text(encoding="utf-8").splitlines()

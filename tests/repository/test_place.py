"""Whether the place of the checkout is open to other users, whose commands tests start."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fixtures.place import all_can_read
from tests.folders import let_all_enter


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    let_all_enter(tmp_path)
    made = tmp_path / "home/checkout"
    (made / "analysis").mkdir(parents=True)
    (made / ".git").mkdir(mode=0o700)  # no command reads it
    (made / "acceptance.yml").touch()
    return made


def test_an_open_checkout_is_read_where_it_is(folder: Path) -> None:
    assert all_can_read(folder)


@pytest.mark.parametrize("closed", ["..", ".", "analysis", "acceptance.yml"])
def test_a_closed_home_folder_or_file_closes_the_checkout(folder: Path, closed: str) -> None:
    (folder / closed).chmod(0o700)
    assert not all_can_read(folder)

"""Files in the folder of a run: that folder is the run user's, and root writes in it too."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from proofmark.common.errors import BadInput
from proofmark.common.files import open_to_append, replacing, write_whole


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """Give a file that a link in the run's folder names."""
    path = tmp_path / "elsewhere"
    path.write_text("not the run's\n")
    return path


def test_what_is_there_already_is_kept(tmp_path: Path) -> None:
    for line in ("first\n", "second\n"):
        with open_to_append(tmp_path / "trace.log") as file:
            file.write(line)
    assert (tmp_path / "trace.log").read_text() == "first\nsecond\n"


@pytest.mark.parametrize("link", ["symbolic_link", "hard_link", "dangling_link"])
def test_a_link_is_not_written_through(tmp_path: Path, elsewhere: Path, link: str) -> None:
    path = tmp_path / "trace.log"
    if link == "hard_link":
        path.hardlink_to(elsewhere)
    else:
        path.symlink_to(elsewhere if link == "symbolic_link" else tmp_path / "absent")
    owner = elsewhere.stat().st_uid
    with pytest.raises(BadInput, match=r"trace\.log: .*accepted: a regular file"):
        open_to_append(path)
    assert (elsewhere.read_text(), elsewhere.stat().st_uid) == ("not the run's\n", owner)
    assert not (tmp_path / "absent").exists()


def test_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "trace.log")
    with pytest.raises(BadInput, match="not a regular file"):
        open_to_append(tmp_path / "trace.log")


def test_a_link_in_the_place_of_a_new_file_is_replaced(tmp_path: Path, elsewhere: Path) -> None:
    path, new = tmp_path / "plan.json", tmp_path / "plan.json.new"
    for text in ("first", "second"):
        new.symlink_to(elsewhere)
        write_whole(path, text)
        assert path.read_text() == text
    new.symlink_to(elsewhere)
    with replacing(path) as file:
        file.write("third")
    assert path.read_text() == "third"
    assert elsewhere.read_text() == "not the run's\n"
    assert not new.exists()

"""Files in the folder of a run: that folder is the run user's, and root writes in it too."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import socket
import tracemalloc
from pathlib import Path

import pytest

from proofmark.common.errors import BadInput
from proofmark.common.files import (
    open_to_append,
    parse_json,
    read_bytes,
    read_json,
    replacing,
    sha256_of,
    text_or_empty,
    write_atomic,
)
from proofmark.runs.identity import Identity


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
        write_atomic(path, text)
        assert path.read_text() == text
    new.symlink_to(elsewhere)
    with replacing(path) as file:
        file.write("third")
    assert path.read_text() == "third"
    assert elsewhere.read_text() == "not the run's\n"
    assert not new.exists()


def special(path: Path, kind: str) -> None:
    """Put something that is not a regular file of a sensible size at `path`."""
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as server, contextlib.chdir(path.parent):
            server.bind(path.name)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "link":
        path.symlink_to(__file__)
    else:
        with path.open("wb") as file:
            file.truncate(3 << 30)  # sparse


@pytest.mark.parametrize("kind", ["fifo", "folder", "socket", "device", "link", "sparse"])
def test_only_a_regular_file_of_limited_size_is_read(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "stdout"
    special(path, kind)
    tracemalloc.start()
    with pytest.raises(OSError, match=r"regular file|more than 64.0 MiB"):
        read_bytes(path)
    with pytest.raises(BadInput, match="stdout"):
        read_json(path, Identity)
    assert text_or_empty(path) == ""
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


@pytest.mark.parametrize("size", [0, 5, 1 << 16, (1 << 16) + 1, 200_000])
def test_a_file_up_to_the_limit_is_read_whole(tmp_path: Path, size: int) -> None:
    """Control: no fault is injected."""
    path = tmp_path / "stdout"
    path.write_bytes(os.urandom(size))
    assert read_bytes(path, max(size, 1)) == path.read_bytes()
    assert sha256_of(path) == hashlib.sha256(path.read_bytes()).hexdigest()
    if size > 1:
        with pytest.raises(OSError, match="more than"):
            read_bytes(path, size - 1)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 200_000,
        '{"a":' * 200_000,
        "[" * 101 + "]" * 101,
        "9" * 5000,
        "NaN",
        "[Infinity]",
        "\0",
    ],
)
def test_json_beyond_the_limits_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_json(text.encode())


def test_json_within_the_limits_is_read() -> None:
    """Control: no fault is injected."""
    for text in ("[" * 64 + "]" * 64, json.dumps([{"rank": rank} for rank in range(500)]), "1e3"):
        assert parse_json(text.encode()) == json.loads(text)

"""An archive gives back what was written, as `tarfile` reads it too."""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofmark.common import archive
from proofmark.common.archive import ArchiveWriter, Chain, header_of, mounted, read_archive
from proofmark.common.errors import BadInput
from proofmark.common.files import exists, is_folder, is_regular, names_in, paths_in, read_bytes

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=120)
FOLDERS = st.lists(NAMES.filter(lambda name: name not in (".", "..")), max_size=4).map("/".join)
CONTENTS = st.dictionaries(NAMES, st.binary(max_size=2000), max_size=4)


@contextmanager
def made(folders: dict[str, dict[str, bytes]]) -> Iterator[BinaryIO]:
    """Yield an archive with the contents by folder and name."""
    with tempfile.TemporaryFile() as file:
        writer = ArchiveWriter(file, 1)
        for folder, files in folders.items():
            writer.add(folder, files, {})
        writer.finish({"run": "r"})
        yield file


@given(st.dictionaries(FOLDERS, CONTENTS, max_size=4))
def test_what_was_written_is_read(folders: dict[str, dict[str, bytes]]) -> None:
    with made(folders) as file:
        chain = Chain([read_archive(file, "x.tar")])
        for folder, files in folders.items():
            assert set(files) <= set(chain.names(folder))
            for name, content in files.items():
                path = f"{folder}/{name}" if folder else name
                assert chain.read(path, 2000) == content
        file.seek(0)
        with tarfile.open(fileobj=file) as tar:
            members = [tar.extractfile(each) for each in tar.getmembers()]
        assert len(members) == sum(map(len, folders.values())) + 2


@given(
    st.lists(NAMES, min_size=1, max_size=4).map("/".join) | st.text(st.characters(codec="ascii")),
    st.integers(0, 8**11 + 1) | st.integers(0, 9**4),
    st.integers(0, 8**11 - 1),
)
def test_a_header_is_that_of_tarfile(name: str, length: int, time: int) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mtime, info.mode = length, time, 0o644
    try:
        whole = info.tobuf(tarfile.USTAR_FORMAT, "ascii", "strict")
    except (ValueError, UnicodeError):
        whole = info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
    assert header_of(name, length, time) == whole


def test_a_large_folder_is_read_file_by_file(monkeypatch: pytest.MonkeyPatch) -> None:
    folders = {"a": {f"{number}": bytes([number]) * 700 for number in range(50)}}
    with made(folders) as file:
        for small in (1 << 20, 100):
            monkeypatch.setattr(archive, "_SMALL", small)
            chain = Chain([read_archive(file, "x.tar")])
            assert {name: chain.read(f"a/{name}", 700) for name in chain.names("a")} == folders["a"]


def test_the_newest_archive_counts_and_removed_files_are_gone() -> None:
    with (
        made({"a": {"x": b"1", "y": b"2"}}) as first,
        made({"a": {"x": b"3"}}) as second,
        tempfile.TemporaryFile() as third,
    ):
        writer = ArchiveWriter(third, 1)
        writer.remove(["a/y"])
        writer.add("a", {"z": b"4"}, {"l": "link"})
        writer.finish({})
        chain = Chain([read_archive(each, "x.tar") for each in (first, second, third)])
        assert chain.names("a") == ["l", "x", "z"]
        assert chain.read("a/x", 9) == b"3"
        for name in ("a/y", "a/l", "b/x", "a"):
            with pytest.raises(OSError, match=r"."):
                chain.read(name, 9)


def test_a_mounted_archive_is_read_as_a_folder(tmp_path: Path) -> None:
    with made({"": {"top": b"t"}, "a/b": {"x": b"1"}}) as file:
        chain = Chain([read_archive(file, "x.tar")])
        place = tmp_path / "run"
        with mounted(place, chain):
            assert read_bytes(place / "a/b/x") == b"1"
            assert sorted(names_in(place)) == ["a", "top"]
            assert paths_in(place / "a", "b*") == [place / "a/b"]
            assert [is_folder(place / "a"), is_folder(place / "a/b/x")] == [True, False]
            assert [is_regular(place / "a/b/x"), exists(place / "a/c")] == [True, False]
            assert names_in(place / "nowhere") == ()
            assert not exists(tmp_path / "runs")
        assert not exists(place / "a")


@given(st.binary(max_size=3000), st.integers(0, 9000))
def test_a_damaged_archive_is_bad_input_or_a_damaged_file(noise: bytes, place: int) -> None:
    with made({"a": {"x": b"1" * 900}}) as file:
        file.seek(place)
        file.write(noise)
        file.flush()
        try:
            chain = Chain([read_archive(file, "x.tar")])
            for folder in chain.folders():
                for name in chain.files(folder):
                    chain.read(f"{folder}/{name}", 10_000)
        except (BadInput, OSError):
            pass

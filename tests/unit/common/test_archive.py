"""An archive gives back what was written, and all readers read the same."""

from __future__ import annotations

import json
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from proofmark.common import archive
from proofmark.common.archive import (
    FACTS,
    FORMAT,
    ArchiveWriter,
    Chain,
    header_of,
    mounted,
    read_archive,
)
from proofmark.common.errors import BadInput
from proofmark.common.files import exists, is_folder, is_regular, names_in, paths_in, read_bytes
from proofmark.common.input_limits import MAX_DEPTH, MAX_EVIDENCE_BYTES, MAX_PATH_BYTES

Folders = dict[str, dict[str, bytes]]
NAMES = st.text(
    st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=120
).filter(lambda name: name not in (".", "..") and len(name.encode()) < 256)
CONTENTS = st.dictionaries(NAMES, st.binary(max_size=2000), max_size=4)


def _tree(found: Folders) -> Folders:
    """Return folders in the order of an archive, without a file that is a folder as well."""
    folders = {}
    for folder in sorted(found, key=lambda each: each.split("/")):
        prefix = f"{folder}/" if folder else ""
        folders[folder] = {
            name: content
            for name, content in found[folder].items()
            if prefix + name != FACTS
            and not any(f"{each}/".startswith(f"{prefix}{name}/") for each in found)
        }
    return folders


FOLDERS = st.dictionaries(
    st.lists(NAMES, max_size=4).map("/".join).filter(lambda name: not f"{name}/".startswith(FACTS)),
    CONTENTS,
    max_size=4,
).map(_tree)


def _write(file: BinaryIO, folders: Folders) -> None:
    writer = ArchiveWriter(file, 1)
    for folder, files in folders.items():
        writer.add(folder, files, {})
    writer.finish({"format": FORMAT, "run": "r"})


@contextmanager
def made(folders: Folders) -> Iterator[BinaryIO]:
    """Yield an archive with the contents by folder and name."""
    with tempfile.TemporaryFile() as file:
        _write(file, folders)
        yield file


def bytes_of(folders: Folders) -> bytes:
    """Return such an archive."""
    with made(folders) as file:
        file.seek(0)
        return file.read()


def read(content: bytes) -> dict[str, bytes]:
    """Return the files of an archive by their paths, as `Chain` reads them, and `FACTS`.

    Raises:
        BadInput: it is damaged.
    """
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.flush()
        found = read_archive(file, "x.tar")
        chain = Chain([found])
        files = {FACTS: found.stated}
        for folder in chain.folders:
            for name, problem in chain.files(folder).items():
                path = f"{folder}/{name}" if folder else name
                if not problem:
                    files[path] = chain.read(path, len(content))
        return files


def read_by_others(content: bytes) -> list[dict[str, bytes]]:
    """Return what `tarfile` and GNU tar read."""
    with tarfile.open(fileobj=BytesIO(content)) as tar:
        by_python = {
            each.name: file.read() for each in tar.getmembers() if (file := tar.extractfile(each))
        }
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["tar", "xf", "-", "-C", folder], input=content, check=True)
        place = Path(folder)
        paths = [path for path in place.rglob("*") if not path.is_dir()]
        by_gnu = {f"{path.relative_to(place)}": path.read_bytes() for path in paths}
    return [by_python, by_gnu]


TREE: Folders = {
    "": {"plan.json": b"{}", "run.json": b"1" * 900},
    "steps/0001": {"rc": b"0"},
    "steps/0001/execution-1": {"stdout": b"rate 1\n", "\u00b5": b"", "n" * 120: b"x" * 700},
    "steps/0002": {"rc": b"1"},
}


@given(FOLDERS)
@example(TREE)
@example({"a" * 99: {"b": b"1"}, "a" * 99 + "/c": {"b": b"2"}})
@example({"": {"-x": b"", "a\nb": b"1", "\\": b"2", " ": b"3", "%s": b"4", "*": b"5"}})
def test_all_readers_read_what_was_written(folders: Folders) -> None:
    files = {
        f"{folder}/{name}" if folder else name: content
        for folder, contents in folders.items()
        for name, content in contents.items()
    }
    content = bytes_of(folders)
    found = read(content)
    assert {**files, FACTS: found[FACTS]} == found
    assert read_by_others(content) == [found, found]


def _blocks(content: bytes) -> st.SearchStrategy[bytes]:
    """Return changes of an archive: of fields of its headers, with a right checksum, and of all."""
    number = len(content) // 512

    def of_a_field(block: int, begin: int, value: bytes, right: bool) -> bytes:
        changed = bytearray(content)
        at = block * 512
        changed[at + begin : at + begin + len(value)] = value
        if right:
            changed[at + 148 : at + 156] = b" " * 8
            changed[at + 148 : at + 156] = b"%06o\0 " % sum(changed[at : at + 512])
        return bytes(changed[: len(content)])

    def moved(first: int, last: int, to: int) -> bytes:
        part = content[first * 512 : last * 512]
        return content[: to * 512] + part + content[to * 512 :]

    def without(first: int, last: int) -> bytes:
        return content[: first * 512] + content[last * 512 :]

    blocks = st.integers(0, number - 1)
    fields = st.sampled_from([0, 1, 50, 99, 100, 124, 135, 136, 156, 157, 257, 345, 500])
    marks = [bytes([each]) for each in b"01257LKSgxX"]
    numbers = [b"00000000000", b"-0000000001", b"77777777777", b"+0000000001", b"0_000000001"]
    binary = [b"\x80" + b"\xff" * 11, b"\x80" + bytes(10) + b"\1"]
    names = [b"\0", b"/", b"..", b"../x\0", b"plan.json\0", b"x\0y"]
    texts = st.sampled_from([*marks, *numbers, *binary, *names])
    return st.one_of(
        st.builds(of_a_field, blocks, fields, texts | st.binary(max_size=12), st.booleans()),
        st.builds(of_a_field, blocks, st.integers(0, 511), st.binary(max_size=9), st.just(False)),
        st.builds(moved, blocks, blocks, blocks),
        st.builds(without, blocks, blocks),
        st.integers(0, len(content) - 1).map(lambda end: content[:end]),
        st.binary(min_size=1, max_size=1024).map(lambda more: content + more),
    )


@pytest.mark.fault("archive-of-two-readings")
@given(_blocks(bytes_of(TREE)))
def test_a_changed_archive_is_refused_or_all_readers_read_the_same(content: bytes) -> None:
    """The control is `test_all_readers_read_what_was_written`."""
    try:
        found = read(content)
    except BadInput as error:
        assert "x.tar" in f"{error}"
    else:
        assert read_by_others(content) == [found, found]


def _member(
    name: str, content: bytes = b"", form: Literal[0, 1, 2] = tarfile.USTAR_FORMAT, **about: Any
) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.mtime = len(content), 1
    for key, value in about.items():
        setattr(info, key, value)
    return info.tobuf(form) + content + bytes(-len(content) % 512)


LAST = json.dumps({"format": FORMAT}).encode()
END = _member(FACTS, LAST) + bytes(1024)


def _stating(**facts: Any) -> bytes:
    return _member(FACTS, json.dumps({"format": FORMAT, **facts}).encode()) + bytes(1024)


DEEP = "d/" * (MAX_DEPTH + 1)
REFUSED = {
    "no facts": _member("a") + bytes(1024),
    "empty": b"",
    "no end": _member("a") + END[:-1024],
    "half an end": END[:-512],
    "a larger end": END + bytes(8192),
    "a member after the facts": END[:-1024] + _member("a") + bytes(1024),
    "the facts twice": END[:-1024] + END,
    "a second archive behind the end": END + END,
    "a name twice": _member("a", b"1") + _member("a", b"2") + END,
    "a folder twice": _member("a/x") + _member("b/x") + _member("a/y") + END,
    "a folder after the folders in it": _member("a/b/x") + _member("a/b") + END,
    "a file that is a folder": _member("a") + _member("a/b") + END,
    "a file that is a folder of a folder": _member("a/b") + _member("a/b/c/d") + END,
    "the facts as a folder": _member(f"{FACTS}/x") + END,
    "an absolute name": _member("/a") + END,
    "the folder above": _member("../a") + END,
    "the folder above, within": _member("a/../b") + END,
    "this folder": _member("./a") + END,
    "an empty part": _member("a//b") + END,
    "a folder as a file": _member("a/") + END,
    "no name": _member("") + END,
    "too many levels": _member(f"{DEEP}x") + END,
    "a long name": header_of("a/" * 20 + "n" * MAX_PATH_BYTES, 0, 1) + END,
    "a link": _member("a", type=tarfile.SYMTYPE, linkname="/etc/passwd") + END,
    "a hard link": _member("a") + _member("b", type=tarfile.LNKTYPE, linkname="a") + END,
    "a folder": _member("a", type=tarfile.DIRTYPE) + END,
    "a FIFO": _member("a", type=tarfile.FIFOTYPE) + END,
    "a device": _member("a", type=tarfile.CHRTYPE) + END,
    "a sparse file of GNU": _member("a", type=tarfile.GNUTYPE_SPARSE) + END,
    "a long name of GNU": _member("a" * 120, b"", tarfile.GNU_FORMAT) + END,
    "a large length of GNU": _member("a", b"", tarfile.GNU_FORMAT, size=1 << 40) + END,
    "a name in two fields": _member("a" * 90 + "/" + "b" * 90) + END,
    "a size in a pax header": _member(
        "a", b"1", tarfile.PAX_FORMAT, pax_headers={"size": "100", "path": "\u00b5"}
    )
    + END,
    "a sparse file of pax": _member(
        "\u00b5", b"", tarfile.PAX_FORMAT, pax_headers={"GNU.sparse.size": "9"}
    )
    + END,
    "a NUL in a name": header_of("\u00b5\0x", 0, 1) + END,
    "rights of another user": _member("a", mode=0o4755) + END,
    "another time": _member("a", mtime=2) + END,
    "a negative time": _member("a").replace(b"00000000001", b"-0000000001") + END,
    "an absolute empty folder": _stating(unread={"/a": {}}),
    "an empty folder too deep": _stating(unread={f"{DEEP}x": {}}),
    "an unread entry of no kind": _stating(unread={"a": {"x": "other"}}),
    "a change of no kind": _stating(kept={"x": "other"}),
}
"""Archives that two readers could read in two ways, or that no seal writes."""


@pytest.mark.fault("archive-of-two-readings")
@pytest.mark.parametrize("content", REFUSED.values(), ids=REFUSED)
def test_what_no_seal_writes_is_refused(content: bytes) -> None:
    with pytest.raises(BadInput, match=r"x\.tar"):
        read(content)


def test_a_member_counts_more_than_an_entry_without_content() -> None:
    content = _member("a/x", b"1") + _stating(unread={"a": {"x": "link"}})
    assert read(content)["a/x"] == b"1"


def test_control_the_same_parts_are_an_archive() -> None:
    content = _member("a") + _member("b/x", b"1") + _stating(unread={"b": {"y": "link"}, "c": {}})
    found = read(content)
    assert {**found, FACTS: b""} == {"a": b"", "b/x": b"1", FACTS: b""}


@pytest.mark.parametrize(
    "stated",
    [
        *(b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000, b'{"format":' * 100_000, b"9" * 5000),
        *(json.dumps({"format": found}).encode() for found in (-1, 10**400, 2.5, True, "2", None)),
        *(b'{"format": NaN}', b'{"format": 2, "removed": 3}', b'{"format": 2, "unread": {"a": 1}}'),
    ],
)
def test_damaged_facts_are_bad_input(stated: bytes) -> None:
    with pytest.raises(BadInput, match=r"x\.tar"):
        read(_member(FACTS, stated) + bytes(1024))


def test_an_archive_of_another_format_is_named() -> None:
    with pytest.raises(BadInput) as raised:
        read(_member(FACTS, b'{"format": 1, "index": [1, 2]}') + _member("x") + bytes(1024))
    (found,) = raised.value.mistakes
    assert (found.file, found.key, found.found) == ("x.tar", "format", "1")
    assert found.accepted.startswith(f"{FORMAT},")


def test_a_file_of_terabytes_is_refused_by_its_length(tmp_path: Path) -> None:
    path = tmp_path / "x.tar"
    with path.open("x+b") as file:
        file.truncate(MAX_EVIDENCE_BYTES + 512)
        with pytest.raises(BadInput, match="more than"):
            read_archive(file, "x.tar")


@pytest.mark.parametrize(
    "write",
    [
        lambda writer: writer.add("", {FACTS: b""}, {}),
        lambda writer: (writer.add("a", {"x": b""}, {}), writer.add("", {"a": b""}, {})),
        lambda writer: [writer.add(each, {"x": b""}, {}) for each in ("a", "b", "a")],
        lambda writer: writer.add("a/..", {"x": b""}, {}),
    ],
)
def test_what_no_reader_accepts_is_not_written(write: Callable[[ArchiveWriter], object]) -> None:
    with tempfile.TemporaryFile() as file, pytest.raises(ValueError, match=r"."):
        writer = ArchiveWriter(file, 1)
        write(writer)
        writer.finish({"format": FORMAT})


@given(
    st.lists(NAMES, min_size=1, max_size=4).map("/".join),
    st.integers(0, 8**11 - 1) | st.integers(0, 9**4),
    st.integers(0, 8**11 - 1),
)
def test_a_header_is_that_of_tarfile(name: str, length: int, time: int) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mtime, info.mode = length, time, 0o644
    header = header_of(name, length, time)
    if name.isascii() and len(name) <= tarfile.LENGTH_NAME:
        assert header == info.tobuf(tarfile.USTAR_FORMAT)
    with tarfile.open(fileobj=BytesIO(header)) as tar:
        found = tar.next()
    assert found is not None
    assert {**found.get_info(), "chksum": 0} == {**info.get_info(), "chksum": 0}


def test_a_large_folder_is_read_file_by_file(monkeypatch: pytest.MonkeyPatch) -> None:
    folders = {"a": {f"{number}": bytes([number]) * 700 for number in range(50)}}
    with made(folders) as file:
        for small in (1 << 20, 10_000):
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
        writer.finish({"format": FORMAT})
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

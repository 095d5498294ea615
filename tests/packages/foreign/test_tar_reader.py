"""Archives are read as `tarfile` reads them, and within limits that `tarfile` does not have."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
import tarfile
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofmark.common.message import Message
from proofmark.packages.foreign import packed
from proofmark.packages.foreign.tar_reader import (
    MAX_MEMBER_HEADER_BYTES,
    MAX_MEMBER_HEADERS,
    NotUnpacked,
    TarReader,
)

pytestmark = pytest.mark.core("hostile archives")

FORMATS = (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)
NAME = st.from_regex(r"[a-zé0-9.]{1,60}(/[a-zé0-9.]{1,60}){0,3}", fullmatch=True)
MEMBERS = st.dictionaries(NAME, st.binary(max_size=1200), min_size=1, max_size=4)
XHD, LONG = tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME
PACKERS = (bytes, gzip.compress, bz2.compress, lzma.compress)


def archive(files: dict[str, bytes], form: int = tarfile.GNU_FORMAT) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as made:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            made.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def header(kind: bytes, size: int, name: str = "x") -> bytes:
    """Return a header as it is in an archive; it may be one that no archive may have."""
    member = tarfile.TarInfo(name)
    member.type, member.size = kind, size
    return member.tobuf(tarfile.GNU_FORMAT)


def padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % 512)


def read(content: bytes) -> dict[str, bytes]:
    reader = TarReader(io.BytesIO(content))
    return {each.name: reader.read(each.size) for each in reader.members()}


def why(content: bytes) -> Message:
    with pytest.raises(NotUnpacked) as error:
        read(content)
    found = error.value.args[0]
    assert isinstance(found, Message)
    return found


@given(MEMBERS, st.sampled_from(FORMATS))
def test_members_are_those_that_were_packed(files: dict[str, bytes], form: int) -> None:
    try:
        content = archive(files, form)
    except ValueError:  # a name that ustar cannot have
        content = archive(files)
    assert read(content) == files
    reader = TarReader(io.BytesIO(content))
    assert [each.name for each in reader.members()] == [*files]  # contents are skipped
    assert reader.bytes <= len(content)


@given(MEMBERS, st.sampled_from(FORMATS[1:]), st.data())
def test_damage_never_raises_anything_else(
    files: dict[str, bytes], form: int, data: st.DataObject
) -> None:
    content = bytearray(archive(files, form))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] = data.draw(st.integers(0, 255))
    try:
        read(bytes(content[: data.draw(st.integers(0, len(content)))]))
    except NotUnpacked as error:
        assert error.args[0].code.startswith(("packed-", "archive-"))


@pytest.mark.fault("adopted-archive-attacks")
@pytest.mark.parametrize("kind", [LONG, tarfile.GNUTYPE_LONGLINK, XHD, tarfile.XGLTYPE])
def test_headers_before_a_member_have_a_number(kind: bytes) -> None:
    """`tarfile` calls itself for each of them: RecursionError."""
    part = header(kind, 10) + padded(b"10 path=x\n")
    end = header(b"0", 0) + bytes(1024)
    assert read(part * MAX_MEMBER_HEADERS + end)
    assert why(part * 400 + end).code == "archive-headers"


@pytest.mark.fault("adopted-archive-attacks")
def test_headers_before_a_member_have_a_size_together() -> None:
    part = header(XHD, MAX_MEMBER_HEADER_BYTES // 2)
    part += padded(b"524288 path=" + b"y" * (MAX_MEMBER_HEADER_BYTES // 2 - 13) + b"\n")
    end = header(b"0", 0) + bytes(1024)
    assert read(2 * part + end)
    assert why(3 * part + end).code == "archive-header-large"
    assert why(header(XHD, 1 << 33)).code == "archive-header-large"  # before it is read


@pytest.mark.fault("adopted-archive-attacks")
@pytest.mark.parametrize("pack", PACKERS)
def test_many_large_headers_are_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: type[bytes]
) -> None:
    """Headers of 1 MB, each before a file of its own, in an archive of some kB."""
    monkeypatch.setattr(packed, "_LEAST_OF_ARCHIVE", 32 << 20)
    record = b"%d comment=" % (1 << 20)
    large = header(XHD, 1 << 20) + record + b"y" * ((1 << 20) - len(record) - 1) + b"\n"
    content = pack(40 * (large + header(b"0", 0)) + bytes(1024))
    tracemalloc.start()
    found = list(packed.unpack(io.BytesIO(content), len(content), tmp_path, 1 << 16))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 16 << 20
    assert [each.code for _, each in found] == ([] if pack is bytes else ["packed-ratio"])


def test_all_headers_of_an_archive_have_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those of folders, which are no files."""
    monkeypatch.setattr("proofmark.packages.foreign.tar_reader.MAX_ARCHIVE_HEADER_BYTES", 512 * 40)
    assert read(header(b"5", 0) * 40 + bytes(1024))
    assert why(header(b"5", 0) * 41 + bytes(1024)).code == "archive-all-headers"
    holes = bytearray(header(b"S", 0))
    holes[482] = 1
    holes[148:156] = b"%06o\0 " % (sum(holes[:148]) + sum(holes[156:]) + 256)
    assert why(bytes(holes) + (bytes(504) + b"\x01" + bytes(7)) * 60).code == "archive-all-headers"


def test_what_is_no_file_is_named() -> None:
    kinds = {b"1": "hard link", b"2": "symbolic link", b"3": "device", b"6": "FIFO", b"5": "folder"}
    kinds |= {b"S": "sparse file", b"Z": "member of an unknown kind", b"7": "file"}
    for kind, found in kinds.items():
        (member,) = TarReader(io.BytesIO(header(kind, 0) + bytes(1024))).members()
        assert member.kind == found
    sparse = header(XHD, 22) + padded(b"22 GNU.sparse.major=1\n") + header(b"0", 0)
    (member,) = TarReader(io.BytesIO(sparse)).members()
    assert member.kind == "sparse file"


@pytest.mark.parametrize("size", ["9" * 20, "-1", "1e9", "٣", ""])
def test_a_size_that_is_none(size: str) -> None:
    record = f" size={size}\n".encode()
    record = str(len(record) + 2).encode() + record
    content = header(XHD, len(record)) + padded(record) + header(b"0", 0)
    assert why(content).code == "packed-damaged"


def test_the_size_of_a_large_file_is_binary() -> None:
    large = header(b"0", 9 << 30)
    with pytest.raises(NotUnpacked):
        read(large)
    (member,) = [next(TarReader(io.BytesIO(large)).members())]
    assert member.size == 9 << 30
    for field in (b"\xff" * 12, b"\x80" + b"\xff" * 11, b"9" * 11 + b"\0", b"-1".ljust(12)):
        changed = bytearray(large)
        changed[124:136] = field
        changed[148:156] = b"%06o\0 " % (sum(changed[:148]) + sum(changed[156:]) + 256)
        assert why(bytes(changed)).code == "packed-damaged"


@pytest.mark.parametrize("pack", PACKERS)
def test_a_compressed_archive_is_written(tmp_path: Path, pack: type[bytes]) -> None:
    files = {"a/x": b"text", "a/large": struct.pack(">100000I", *range(100_000))}
    content = archive(files)
    parts = pack(content[:700]) + pack(content[700:])
    assert list(packed.unpack(io.BytesIO(parts), len(parts), tmp_path, 1 << 20)) == []
    assert {name: (tmp_path / name).read_bytes() for name in files} == files
    half = parts[: len(parts) // 2]
    ((_, why_not),) = packed.unpack(io.BytesIO(half), len(half), tmp_path, 1 << 20)
    assert why_not.code == "packed-damaged"


def test_a_file_of_xz_has_a_limit_of_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = lzma.compress(archive({"x": b"text"}))
    assert list(packed.unpack(io.BytesIO(content), len(content), tmp_path, 9)) == []
    monkeypatch.setattr(packed, "MAX_XZ_MEMORY", 1 << 20)
    ((_, why_not),) = packed.unpack(io.BytesIO(content), len(content), tmp_path, 9)
    assert why_not.code == "packed-damaged"

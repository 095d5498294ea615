"""Reads tar archives of others within limits, in the formats ustar, pax and GNU.

Python's ``tarfile`` reads a header of any size into memory, calls itself for each header of a
chain, and has no limits that a caller can set. Here each header is counted before it is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from proofmark.common.errors import ProofmarkError
from proofmark.common.message import Message

MAX_GIVEN_FILES = 200_000
"""Files of one folder that others give. 8,305 nodes with 20 outputs each have 166,000."""
MAX_ARCHIVE_HEADER_BYTES = 1 << 30
"""Bytes of all headers of one tar archive: `MAX_GIVEN_FILES` files and as many folders, each with
a pax header, have 600 MB."""
MAX_MEMBER_HEADERS = 16
"""Headers before one member of a tar archive. Real members have up to four: pax of all, pax, a long
name, a long link."""
MAX_MEMBER_HEADER_BYTES = 1 << 20
"""Bytes of these headers. A path has at most 4 KiB, an extended attribute of Linux 64 KiB."""
FILE, FOLDER, SPARSE = "file", "folder", "sparse file"
_BLOCK = 512
_PIECE = 1 << 16
_KINDS = {
    **dict.fromkeys((b"\0", b"0", b"7"), FILE),
    **{b"1": "hard link", b"2": "symbolic link", b"3": "device", b"4": "device"},
    **{b"5": FOLDER, b"6": "FIFO", b"S": SPARSE},
}
_WITHOUT_CONTENT = b"123456"
_LONG_NAME, _LONG_LINK, _PAX, _OLD_PAX, _PAX_OF_ALL = b"L", b"K", b"x", b"X", b"g"
_BEFORE_A_MEMBER = (_LONG_NAME, _LONG_LINK, _PAX, _OLD_PAX, _PAX_OF_ALL)
_SPARSE_RECORD = "GNU.sparse."


class Stream(Protocol):
    """Bytes that are read once, from the first to the last."""

    def read(self, count: int, /) -> bytes:
        """Return at most `count` bytes; none at the end."""


class NotUnpacked(ProofmarkError):
    """A file that is not unpacked; ``args`` has the `Message` why."""


@dataclass(frozen=True)
class TarMember:
    """A member of an archive.

    Attributes:
        name: its path, as the archive states it.
        kind: `FILE`, `FOLDER`, or in words what else it is.
        size: the bytes of its content in the archive.
        mode: the bits of its rights.
    """

    name: str
    kind: str
    size: int
    mode: int


class TarReader:
    """The members of an archive, in order.

    Attributes:
        bytes: the bytes that were read of the archive; of a compressed one those of its content.
    """

    def __init__(self, stream: Stream) -> None:
        self.bytes = 0
        self._stream, self._of_headers = stream, 0
        self._left = self._padding = 0

    def members(self) -> Iterator[TarMember]:
        """Yield the members. The content of each can be read until the next one is asked for.

        Raises:
            NotUnpacked: the archive is damaged or cut, or has too many or too large headers.
            Exception: of the stream.
        """
        of_all: dict[str, str] = {}
        own: dict[str, str] = {}
        count = size = 0
        while block := self._header():
            kind = block[156:157]
            if kind not in _BEFORE_A_MEMBER:
                member = _member(block, {**of_all, **own})
                self._left, self._padding = member.size, -member.size % _BLOCK
                yield member
                own, count, size = {}, 0, 0
                continue
            self._left = _number(block[124:136])
            self._padding = -self._left % _BLOCK
            count, size = count + 1, size + self._left
            if count > MAX_MEMBER_HEADERS:
                raise NotUnpacked(Message("archive-headers", most=MAX_MEMBER_HEADERS))
            if size > MAX_MEMBER_HEADER_BYTES:
                raise NotUnpacked(Message("archive-header-large", most=MAX_MEMBER_HEADER_BYTES))
            self._count(self._left)
            content = self.read(self._left)
            if kind == _LONG_NAME:
                own["path"] = _text(content)
            elif kind != _LONG_LINK:
                (of_all if kind == _PAX_OF_ALL else own).update(_records(content))

    def read(self, count: int) -> bytes:
        """Return the next `count` bytes of the content of the member, or those that it has left.

        Raises:
            NotUnpacked: the archive ends within them.
            Exception: of the stream.
        """
        content = self._exactly(min(count, self._left))
        self._left -= len(content)
        return content

    def _header(self) -> bytes:
        """Return the next header; empty at the end of the archive."""
        while self.read(_PIECE):
            pass  # of a member that was not read to its end
        self._exactly(self._padding)
        self._padding = 0
        first = block = self._exactly(_BLOCK, may_end=True)
        if not any(block):
            return b""
        signed = (*block[:148], *b" " * 8, *block[156:])
        if _number(block[148:156]) != sum(signed):
            raise _damaged("the checksum of a header is wrong")
        self._count(_BLOCK)
        more = block[156:157] == b"S" and block[482]  # the holes of a sparse file: GNU, old
        while more:
            more = self._exactly(_BLOCK)[504]
            self._count(_BLOCK)
        return first

    def _count(self, size: int) -> None:
        self._of_headers += size
        if self._of_headers > MAX_ARCHIVE_HEADER_BYTES:
            raise NotUnpacked(Message("archive-all-headers", most=MAX_ARCHIVE_HEADER_BYTES))

    def _exactly(self, count: int, *, may_end: bool = False) -> bytes:
        """Return the next `count` bytes; empty where the archive may end."""
        content = bytearray()
        while len(content) < count and (more := self._stream.read(count - len(content))):
            content += more
        self.bytes += len(content)
        if len(content) < count and (content or not may_end):
            raise _damaged("it is cut")
        return bytes(content)


def _member(block: bytes, records: Mapping[str, str]) -> TarMember:
    """Return the member of a header; `records` are those of the headers before it."""
    name, mark = _text(block[:100]), block[156:157]
    if block[257:263] == b"ustar\0" and (prefix := _text(block[345:500])):
        name = f"{prefix}/{name}"
    name = records.get("path", name)
    size = int(records["size"]) if "size" in records else _number(block[124:136])
    kind = _KINDS.get(mark, "member of an unknown kind")
    if kind == FILE and (name.endswith("/") or _SPARSE_RECORD in records):
        kind = FOLDER if name.endswith("/") else SPARSE
    # A link or a folder has no content, whatever size its header states.
    size = 0 if mark in _WITHOUT_CONTENT else size
    return TarMember(name, kind, size, _number(block[100:108]) & 0o7777)


def _number(field: bytes) -> int:
    """Return a number of a header: octal digits, or binary as GNU writes large ones."""
    if field[0] == 0x80 and not any(field[1:-7]):
        return int.from_bytes(field[-7:], "big")
    digits = field.partition(b"\0")[0].strip()
    if digits.translate(None, b"01234567"):
        raise _damaged("a number of a header is not octal")
    return int(digits or b"0", 8)


def _records(content: bytes) -> Iterator[tuple[str, str]]:
    """Yield the records of a pax header that are needed."""
    place = 0
    while place < len(content) and content[place]:
        length = content[place : place + 20].partition(b" ")[0]
        end = place + int(length) if length.isdigit() else place
        record = content[place + len(length) + 1 : end]
        key, equals, value = record.partition(b"=")
        if not equals or not value.endswith(b"\n") or end > len(content):
            raise _damaged("a pax header is not one")
        name, text = _text(key), _text(value[:-1])
        if name == "size" and not (text.isascii() and text.isdecimal() and len(text) < 19):
            raise _damaged("the size of a member is no number")
        if name in ("path", "size"):
            yield name, text
        elif name.startswith(_SPARSE_RECORD):
            yield _SPARSE_RECORD, ""
        place = end


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode("utf-8", "surrogateescape")


def _damaged(problem: str) -> NotUnpacked:
    return NotUnpacked(Message("packed-damaged", problem=problem))

"""Compressed files and tar archives of others: they are data, and are read within limits.

A file is compressed if it begins as one, whatever its name is. Of an archive only regular files
are read, by paths below it.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator, Mapping
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Any

from proofmark.common.input_limits import MAX_DEPTH, MAX_OUTPUT_BYTES
from proofmark.common.message import Message
from proofmark.packages.foreign.tar_reader import (
    FILE,
    FOLDER,
    MAX_GIVEN_FILES,
    NotUnpacked,
    Stream,
    TarMember,
    TarReader,
)

__all__ = ["NotUnpacked", "is_archive", "unpack", "unpacked"]

MAX_UNPACKED_BYTES = 8 << 30
"""Bytes of all files of one archive: 100 times those of 12,600 real outputs."""
MAX_PACKED_RATIO = 200
"""Bytes of a file per compressed byte. Outputs have 3 to 30, a file of zeros 1,000 and more."""
MAX_XZ_MEMORY = 256 << 20
"""Bytes of memory for a file of xz. ``xz -9`` needs 65 MiB, and a header can ask for 4 GiB."""


class _Gzip:
    """`zlib.decompressobj` with the interface of the other two: it keeps what it has not read."""

    def __init__(self) -> None:
        self._object = zlib.decompressobj(31)  # RFC 1952

    def decompress(self, packed: bytes, most: int) -> bytes:
        """Return at most `most` of the next bytes."""
        return self._object.decompress(self._object.unconsumed_tail + packed, most)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._object, name)

    @property
    def needs_input(self) -> bool:
        """Whether it has nothing left to read."""
        return not self._object.unconsumed_tail


_MAKERS: Mapping[bytes, Callable[[], Any]] = {
    b"\x1f\x8b": _Gzip,
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ\x00": lambda: lzma.LZMADecompressor(memlimit=MAX_XZ_MEMORY),
}
_ERRORS = (zlib.error, lzma.LZMAError, EOFError, OSError, ValueError)
_PIECE = 1 << 14
_TAR_MAGIC = slice(257, 262)
_LEAST_RATED, _LEAST_OF_ARCHIVE = 1 << 20, 256 << 20
"""Bytes below which a ratio says nothing, of a file and of an archive: outputs of like nodes are
alike, and so are compressed together by some hundred."""


def unpacked(content: bytes, limit: int = MAX_OUTPUT_BYTES, *, cut: bool = False) -> bytes:
    """Return `content`, or what it has compressed (gzip, bzip2, xz), of at most `limit` bytes.

    Args:
        limit: the largest size of the result.
        cut: whether `content` is the begin of a file, of which the begin is wanted.

    Raises:
        NotUnpacked: it is damaged, too large, or compressed by more than `MAX_PACKED_RATIO`.
    """
    if _maker(content) is None:
        return content
    found, stream = bytearray(), _Unpacking(BytesIO(content))
    try:
        while len(found) <= limit and (more := stream.read(limit + 1 - len(found))):
            found += more
    except _ERRORS as error:
        if not cut:
            raise NotUnpacked(Message("packed-damaged", problem=str(error))) from None
    if cut:
        return bytes(found[:limit])
    if len(found) > max(_LEAST_RATED, MAX_PACKED_RATIO * len(content)):
        raise NotUnpacked(Message("packed-ratio", ratio=MAX_PACKED_RATIO))
    if len(found) > limit:
        raise NotUnpacked(Message("packed-large", megabytes=limit >> 20))
    return bytes(found)


def _maker(head: bytes) -> Callable[[], Any] | None:
    return next((make for magic, make in _MAKERS.items() if head.startswith(magic)), None)


def is_archive(head: bytes) -> bool:
    """Return whether `head`, the first bytes of a file, begins a tar archive."""
    return unpacked(head, 512, cut=True)[_TAR_MAGIC] == b"ustar"


class _Unpacking:
    """The content of a file that may be compressed, as a stream."""

    def __init__(self, file: Stream) -> None:
        self._file, self._packed = file, file.read(_PIECE)
        self._make = _maker(self._packed)
        self._member: Any = self._make() if self._make else None

    def read(self, count: int) -> bytes:
        """Return some of the next bytes, at most `count`; none at the end.

        Raises:
            EOFError, OSError, ValueError, zlib.error or lzma.LZMAError: it is damaged or cut.
        """
        if self._make is None:
            found, self._packed = self._packed[:count], self._packed[count:]
            return found or self._file.read(min(count, _PIECE))
        while count:
            if self._member.eof:
                rest = self._member.unused_data.lstrip(b"\0")
                while not rest and (more := self._file.read(_PIECE)):
                    rest = more.lstrip(b"\0")
                if not rest:
                    return b""
                self._member, self._packed = self._make(), rest
            elif self._member.needs_input and not self._packed:
                self._packed = self._file.read(_PIECE)
                if not self._packed:
                    raise EOFError("it is cut")
            packed, self._packed = self._packed, b""
            if found := self._member.decompress(packed, count):
                return bytes(found)
        return b""


def unpack(archive: Stream, size: int, target: Path, most: int) -> Iterator[tuple[str, Message]]:
    """Write the regular files of a tar archive below `target`; yield what is left out, and why.

    Args:
        size: its bytes, as they are on the disk.
        target: a folder; the archive has its own.
        most: the bytes of a file that are needed; the rest of a larger file is not written.
    """
    files = total = 0
    try:
        reader = TarReader(_Unpacking(archive))
        for member in reader.members():
            if reader.bytes + member.size > max(_LEAST_OF_ARCHIVE, MAX_PACKED_RATIO * size):
                yield "", Message("packed-ratio", ratio=MAX_PACKED_RATIO)
                return
            if member.kind == FOLDER:
                continue
            total += member.size
            if files >= MAX_GIVEN_FILES or total > MAX_UNPACKED_BYTES:
                yield "", Message("archive-large", files=files)
                return
            files += 1
            if why := _refused(member):
                yield member.name, why
                continue
            content = reader.read(most)
            path = target.joinpath(*_parts(member.name))
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            except OSError as error:  # a name too long, or a file where another has a folder
                yield member.name, Message("archive-path", problem=f"{error.strerror}")
    except NotUnpacked as error:
        yield "", error.args[0]
    except _ERRORS as error:
        yield "", Message("packed-damaged", problem=str(error))


def _parts(name: str) -> tuple[str, ...]:
    return tuple(part for part in PurePosixPath(name).parts if part != ".")


def _refused(member: TarMember) -> Message | None:
    if member.kind != FILE:
        return Message("archive-special")
    parts = _parts(member.name)
    if not parts or parts[0].startswith("/") or ".." in parts or len(parts) > MAX_DEPTH:
        return Message("archive-path", problem="it is not below the archive")
    if member.size > MAX_OUTPUT_BYTES:
        return Message("packed-large", megabytes=MAX_OUTPUT_BYTES >> 20)
    return None

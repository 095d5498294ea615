"""Compressed files and tar archives of others: they are data, and are read within limits.

A file is compressed if it begins as one, whatever its name is. Of an archive only regular files
are read, by paths below it.
"""

from __future__ import annotations

import bz2
import lzma
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import IO, Any

from proofmark.common.errors import ProofmarkError
from proofmark.common.input_limits import (
    MAX_ADOPTED_FILES,
    MAX_DEPTH,
    MAX_OUTPUT_BYTES,
    MAX_PACKED_RATIO,
    MAX_UNPACKED_BYTES,
)
from proofmark.common.message import Message

_MAKERS: Mapping[bytes, Callable[[], Any]] = {
    b"\x1f\x8b": lambda: zlib.decompressobj(31),  # gzip, RFC 1952
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ\x00": lzma.LZMADecompressor,
}
_ERRORS = (zlib.error, lzma.LZMAError, EOFError, OSError, ValueError, tarfile.TarError)
_LONG_NAMES = (
    *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
)
_MOST_OF_HEADER = 1 << 20
_TAR_MAGIC = slice(257, 262)
_LEAST_RATED, _LEAST_OF_ARCHIVE = 1 << 20, 256 << 20
"""Bytes below which a ratio says nothing, of a file and of an archive: outputs of like nodes are
alike, and so are compressed together by some hundred."""


class NotUnpacked(ProofmarkError):
    """A file that is not unpacked; ``args`` has the `Message` why."""


def unpacked(content: bytes, limit: int = MAX_OUTPUT_BYTES, *, cut: bool = False) -> bytes:
    """Return `content`, or what it has compressed (gzip, bzip2, xz), of at most `limit` bytes.

    Args:
        content: of a file.
        limit: the largest size of the result.
        cut: whether `content` is the begin of a file, of which the begin is wanted.

    Raises:
        NotUnpacked: it is damaged, too large, or compressed by more than `MAX_PACKED_RATIO`.
    """
    make = next((each for magic, each in _MAKERS.items() if content.startswith(magic)), None)
    if make is None:
        return content
    found, rest = bytearray(), content
    try:
        while rest and len(found) <= limit:
            packed = make()
            found += packed.decompress(rest, limit + 1 - len(found))
            if not packed.eof:
                break
            rest = packed.unused_data.lstrip(b"\0")
    except _ERRORS as error:
        if not cut:
            raise NotUnpacked(Message("packed-damaged", problem=str(error))) from None
    if cut:
        return bytes(found[:limit])
    if len(found) > max(_LEAST_RATED, MAX_PACKED_RATIO * len(content)):
        raise NotUnpacked(Message("packed-ratio", ratio=MAX_PACKED_RATIO))
    if len(found) > limit:
        raise NotUnpacked(Message("packed-large", megabytes=limit >> 20))
    if not packed.eof:
        raise NotUnpacked(Message("packed-damaged", problem="it is cut"))
    return bytes(found)


def is_archive(head: bytes) -> bool:
    """Return whether `head`, the first bytes of a file, begins a tar archive."""
    return unpacked(head, 512, cut=True)[_TAR_MAGIC] == b"ustar"


def unpack(archive: IO[bytes], size: int, target: Path, most: int) -> Iterator[tuple[str, Message]]:
    """Write the regular files of a tar archive below `target`; yield what is left out, and why.

    Args:
        archive: the open archive.
        size: its bytes, as they are on the disk.
        target: a folder; the archive has its own.
        most: the bytes of a file that are needed; the rest of a larger file is not written.
    """
    files = total = 0
    try:
        with tarfile.open(fileobj=archive, mode="r|*", tarinfo=_Member) as members:
            for member in members:
                if member.isdir():
                    continue
                total += member.size
                if files >= MAX_ADOPTED_FILES or total > MAX_UNPACKED_BYTES:
                    yield "", Message("archive-large", files=files)
                    return
                if total > max(_LEAST_OF_ARCHIVE, MAX_PACKED_RATIO * size):
                    yield "", Message("packed-ratio", ratio=MAX_PACKED_RATIO)
                    return
                if why := _refused(member):
                    yield member.name, why
                    continue
                file = members.extractfile(member)
                assert file is not None
                content = file.read(most)
                path = target.joinpath(*_parts(member.name))
                try:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(content)
                except OSError as error:  # a name too long, or a file where another has a folder
                    yield member.name, Message("archive-path", problem=f"{error.strerror}")
                    continue
                files += 1
    except _ERRORS as error:
        yield "", Message("packed-damaged", problem=str(error))


class _Member(tarfile.TarInfo):
    """A member whose headers of long names have a limit: the library reads them into memory."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _Member:
        """Return the member of a header.

        Raises:
            ReadError: a header of a long name is too large.
        """
        return cls._within_limit(super().frombuf(buf, encoding, errors))

    @classmethod
    def _frombuf(cls, *words: Any, **names: Any) -> _Member:
        """Return the same for releases of Python that read each header by it (3.11.2-6+deb12u9)."""
        return cls._within_limit(super()._frombuf(*words, **names))  # type: ignore[misc]

    @staticmethod
    def _within_limit(member: Any) -> _Member:
        if member.type in _LONG_NAMES and member.size > _MOST_OF_HEADER:
            raise tarfile.ReadError("a header is too large")
        found: _Member = member
        return found


def _parts(name: str) -> tuple[str, ...]:
    return tuple(part for part in PurePosixPath(name).parts if part != ".")


def _refused(member: tarfile.TarInfo) -> Message | None:
    if not member.isreg():
        return Message("archive-special")
    parts = _parts(member.name)
    if not parts or parts[0].startswith("/") or ".." in parts or len(parts) > MAX_DEPTH:
        return Message("archive-path", problem="it is not below the archive")
    if member.size > MAX_OUTPUT_BYTES:
        return Message("packed-large", megabytes=MAX_OUTPUT_BYTES >> 20)
    return None

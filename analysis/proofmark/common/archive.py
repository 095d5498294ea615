"""A sealed archive: a plain tar with an index, which is written once and read in place.

``tar xf`` and `tarfile` unpack it without the kit. Its first member, `HEAD`, is JSON about the
archive. Its last member, `INDEX`, has the place of each folder, so that one read gives all small
files of a folder, and the headers of a million files are never read together.

Archives form a chain: each one has what is new since those before it. `Chain` reads them as one
folder, in which the newest archive that has a file gives its content.
"""

from __future__ import annotations

import errno
import io
import json
import os
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from proofmark.common.errors import bad_input
from proofmark.common.input_limits import MAX_ARCHIVE_INDEX_BYTES
from proofmark.common.strict_model import StrictModel
from proofmark.common.text import one_line, size

HEAD, INDEX = "evidence.json", "index.json"
_HEAD_BYTES = 8 * tarfile.BLOCKSIZE
"""The head has a fixed size: the place of the index is known after all other members."""
_SMALL = 1 << 20
"""Bytes of a folder that are read at once."""
PROBLEMS = {
    "link": "a link; accepted is a regular file",
    "special": "not a regular file",
    "large": "too large",
    "unreadable": "unreadable",
    "name": "a name that is not UTF-8",
}
"""Why an entry has no content: the kinds, with their texts."""


class ArchiveWriter:
    """Writes an archive into a new file.

    Args:
        file: the file, which can be read and written.
        time: the time of all members, in seconds since 1970.
    """

    def __init__(self, file: BinaryIO, time: int) -> None:
        self._file, self._time = file, time
        self._folders: dict[str, list[int]] = {}
        self._unread: dict[str, dict[str, str]] = {}
        self._removed: list[str] = []
        self._kept: dict[str, str] = {}
        self._add(HEAD, b" " * _HEAD_BYTES)

    def add(self, folder: str, files: Mapping[str, bytes], unread: Mapping[str, str]) -> None:
        """Add a part of a folder.

        Args:
            folder: its path, with slashes; empty for the top.
            files: the contents, by the name in the folder.
            unread: the entries without content, each with the kind of its problem.
        """
        begin, prefix = self._file.tell(), f"{folder}/" if folder else ""
        for name, content in files.items():
            self._add(prefix + name, content)
        self._folders.setdefault(folder, []).extend((begin, self._file.tell()))
        if unread:
            self._unread.setdefault(folder, {}).update(unread)

    def remove(self, names: Iterable[str]) -> None:
        """State that files of earlier archives are not there any more."""
        self._removed += names

    def keep(self, kinds: Mapping[str, str]) -> None:
        """State the files that were changed, and whose content of an earlier archive stays."""
        self._kept |= kinds

    @property
    def empty(self) -> bool:
        """Whether nothing was added, removed or kept."""
        return not (self._folders or self._unread or self._removed or self._kept)

    def archive(self) -> Archive:
        """Return what was written until now, as an archive without a head."""
        self._file.flush()
        index = Index(self._folders, self._unread, frozenset(self._removed), self._kept)
        return Archive(Descriptor(self._file.fileno()), {}, index)

    def finish(self, head: Mapping[str, Any]) -> None:
        """Write the index and the head, and flush the file to the disk."""
        index = _IndexMember(
            folders=self._folders, unread=self._unread, removed=self._removed, kept=self._kept
        )
        content = index.model_dump_json().encode()
        begin = self._file.tell() + tarfile.BLOCKSIZE
        self._add(INDEX, content)
        self._file.write(bytes(2 * tarfile.BLOCKSIZE))
        text = json.dumps({**head, "index": [begin, len(content)]}, indent=1).encode()
        if len(text) >= _HEAD_BYTES:
            raise ValueError("the head of an archive is too long")
        self._file.seek(tarfile.BLOCKSIZE)
        self._file.write(text.ljust(_HEAD_BYTES - 1) + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def _add(self, name: str, content: bytes) -> None:
        header = header_of(name, len(content), self._time)
        self._file.write(header + content + bytes(-len(content) % tarfile.BLOCKSIZE))


def header_of(name: str, length: int, time: int) -> bytes:
    """Return the header of a member, as `tarfile` makes it.

    A run has a million members. So `tarfile` makes one header, and the usual name, a short one,
    its length and the checksum are put into it (POSIX.1-1988, ustar).
    """
    if name.isascii() and len(name) <= tarfile.LENGTH_NAME and length < 8**11:
        header = bytearray(_without_name(time))
        header[: len(name)] = name.encode()
        header[124:135] = b"%011o" % length
        header[148:154] = b"%06o" % (sum(header) + _BLANK_CHECKSUM)
        return bytes(header)
    return _of_tarfile(name, length, time)


@cache
def _without_name(time: int) -> bytes:
    """Return a header. NUL stands in place of its name, length and checksum."""
    header = bytearray(_of_tarfile("", 0, time))
    header[124:135], header[148:156] = bytes(11), bytes(6) + b"\0 "
    return bytes(header)


_BLANK_CHECKSUM = 7 * ord(" ")
"""The checksum is computed with blanks in its field. One of the eight stays there."""


def _of_tarfile(name: str, length: int, time: int) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.mtime, info.mode = length, time, 0o644
    try:
        return info.tobuf(tarfile.USTAR_FORMAT, "ascii", "strict")
    except (ValueError, UnicodeError):  # a long or unusual name
        return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")


@dataclass(frozen=True)
class Index:
    """Where the content of an archive is.

    Attributes:
        folders: the begin and end of each part of a folder in the file, in bytes.
        unread: the entries without content, by folder and name, each with the kind of its problem.
        removed: the files of earlier archives that are not there any more.
        kept: the files whose earlier content stays, each with the kind of its change.
    """

    folders: Mapping[str, Sequence[int]]
    unread: Mapping[str, Mapping[str, str]]
    removed: frozenset[str]
    kept: Mapping[str, str]


class Descriptor:
    """An open file for reading, which is closed when nothing refers to it.

    Args:
        file: the number of a file that the caller closes itself.
    """

    def __init__(self, file: int) -> None:
        self.number = os.dup(file)

    def __del__(self) -> None:
        os.close(self.number)


@dataclass(frozen=True)
class Archive:
    """An archive.

    Attributes:
        file: the open file.
        head: what its first member states.
        index: where its content is.
    """

    file: Descriptor
    head: Mapping[str, Any]
    index: Index


def read_archive(file: BinaryIO, name: str) -> Archive:
    """Return the archive in an open file, which messages call `name`.

    Raises:
        BadInput: it is no archive of the kit, or its index is damaged.
    """
    number = file.fileno()
    try:
        head = json.loads(os.pread(number, _HEAD_BYTES, tarfile.BLOCKSIZE))
        begin, length = map(int, head["index"])
        if not 0 <= length <= MAX_ARCHIVE_INDEX_BYTES:
            raise ValueError(f"an index of {length} bytes")
        index = _IndexMember.model_validate_json(os.pread(number, length, begin))
    except (ValueError, TypeError, LookupError, AttributeError, OSError, RecursionError) as error:
        problem = f"damaged: {one_line(str(error))[:200]}"
        raise bad_input(name, "", problem, "a tar that proofmark sealed") from None
    found = Index(index.folders, index.unread, frozenset(index.removed), index.kept)
    return Archive(Descriptor(number), head, found)


class _IndexMember(StrictModel):
    """The content of the member `INDEX`."""

    folders: dict[str, list[int]]
    unread: dict[str, dict[str, str]]
    removed: list[str]
    kept: dict[str, str]


class _Entry(NamedTuple):
    """A member: an open file, begin and length in it; its content if it was read already."""

    file: int
    begin: int
    length: int
    content: bytes | None = None
    problem: str = ""


class Chain:
    """Archives as one folder. A file is named by its path with slashes.

    Args:
        archives: the oldest first.
    """

    def __init__(self, archives: Sequence[Archive]) -> None:
        self.archives = archives
        self._entries = lru_cache(maxsize=16)(self._read_folder)

    def read(self, name: str, limit: int, *, cut: bool = False) -> bytes:
        """Return the content of a file of at most `limit` bytes, or with `cut` its begin.

        Raises:
            OSError: there is no such file, or it is too large. ``strerror`` has the reason.
        """
        folder, _, last = name.rpartition("/")
        entry = self._entries(folder).get(last)
        if entry is None:
            number = errno.EISDIR if self.is_folder(name) else errno.ENOENT
            raise OSError(number, os.strerror(number), name)
        if entry.problem:
            raise OSError(errno.EINVAL, PROBLEMS[entry.problem], name)
        length = min(entry.length, limit) if cut else entry.length
        if length > limit:
            raise OSError(errno.EINVAL, f"{size(length)}, more than {size(limit)}", name)
        if entry.content is not None:
            return entry.content[:length]
        return _read_at(entry.file, entry.begin, length)

    def is_file(self, name: str) -> bool:
        """Return whether there is a regular file of this name."""
        folder, _, last = name.rpartition("/")
        entry = self._entries(folder).get(last)
        return entry is not None and not entry.problem

    def is_folder(self, name: str) -> bool:
        """Return whether there is a folder of this name."""
        return name in self._children or any(name in each.index.folders for each in self.archives)

    def exists(self, name: str) -> bool:
        """Return whether there is an entry of this name, of any kind."""
        folder, _, last = name.rpartition("/")
        return last in self._entries(folder) or self.is_folder(name)

    def names(self, folder: str) -> list[str]:
        """Return the sorted names of the entries of a folder.

        Raises:
            OSError: there is no such folder.
        """
        if not self.is_folder(folder):
            number = errno.ENOTDIR if self.exists(folder) else errno.ENOENT
            raise OSError(number, os.strerror(number), folder)
        return sorted({*self._entries(folder), *self._children.get(folder, ())})

    def folders(self) -> Iterable[str]:
        """Return all folders with files, the oldest first."""
        folders: list[str] = []
        for each in self.archives:
            folders += each.index.folders
        return dict.fromkeys(folders)

    def files(self, folder: str) -> Mapping[str, str]:
        """Return the names of the entries of a folder that are no folders, with their problems."""
        return {name: entry.problem for name, entry in self._entries(folder).items()}

    @cached_property
    def _children(self) -> Mapping[str, Sequence[str]]:
        """The names of the folders in each folder that has some."""
        children: dict[str, list[str]] = {}
        entered = {""}
        for folder in self.folders():
            while folder not in entered:
                entered.add(folder)
                parent, _, name = folder.rpartition("/")
                children.setdefault(parent, []).append(name)
                folder = parent
        return children

    def _read_folder(self, folder: str) -> Mapping[str, _Entry]:
        """Return the entries of a folder: of each name that of the newest archive."""
        found: dict[str, _Entry] = {}
        prefix = f"{folder}/" if folder else ""
        for archive in self.archives:
            removed = archive.index.removed
            if found and removed:
                found = {name: each for name, each in found.items() if prefix + name not in removed}
            places = archive.index.folders.get(folder, ())
            for begin, end in zip(places[::2], places[1::2], strict=True):
                found |= _part(archive.file.number, begin, end)
            for name, problem in archive.index.unread.get(folder, {}).items():
                found[name] = _Entry(-1, 0, 0, problem=problem)
        if not folder:
            found.pop(HEAD, None)
        return found


def _read_at(file: int, begin: int, length: int) -> bytes:
    """Return bytes of an open file.

    Raises:
        OSError: the file is shorter.
    """
    content = b""
    while len(content) < length:
        more = os.pread(file, length - len(content), begin + len(content))
        if not more:
            raise OSError(errno.EIO, f"the archive ends at byte {begin + len(content)}")
        content = content + more if content else more
    return content


def _part(file: int, begin: int, end: int) -> dict[str, _Entry]:
    """Return the members between two places of an archive, by the last part of their names.

    Raises:
        OSError: the archive is damaged.
    """
    whole = _read_at(file, begin, end - begin) if end - begin <= _SMALL else None
    found: dict[str, _Entry] = {}
    at = begin
    while at < end:
        if whole is None:
            block = _read_at(file, at, tarfile.BLOCKSIZE)
        else:
            block = whole[at - begin : at - begin + tarfile.BLOCKSIZE]
        if block[156:157] != tarfile.REGTYPE:  # an extended header
            return _part_of_tarfile(file, begin, end)
        try:
            name, length = block[:100].rstrip(b"\0").decode("ascii"), int(block[124:135], 8)
        except ValueError:
            raise OSError(errno.EIO, f"the archive is damaged at byte {at}") from None
        at += tarfile.BLOCKSIZE
        content = None if whole is None else whole[at - begin : at - begin + length]
        found[name.rpartition("/")[2]] = _Entry(file, at, length, content)
        at += -(-length // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE
    return found


def _part_of_tarfile(file: int, begin: int, end: int) -> dict[str, _Entry]:
    """Return the same as `_part`; `tarfile` reads the headers."""
    content = io.BytesIO(_read_at(file, begin, end - begin) + bytes(2 * tarfile.BLOCKSIZE))
    try:
        with tarfile.open(fileobj=content, mode="r:", errors="surrogateescape") as tar:
            return {
                info.name.rpartition("/")[2]: _Entry(file, begin + info.offset_data, info.size)
                for info in tar.getmembers()
            }
    except (tarfile.TarError, ValueError, RecursionError):
        raise OSError(errno.EIO, f"the archive is damaged after byte {begin}") from None


_MOUNTED: dict[str, Chain] = {}
"""The chains that this process reads, by the path at which their content seems to be."""


def mount(place: Path, chain: Chain) -> None:
    """Let the content of `chain` be read as the folder `place`, in this process and its workers.

    `proofmark.common.files` reads paths below `place` from the chain. The path exists on no disk.
    """
    _MOUNTED[f"{place}/"] = chain


def unmount(place: Path) -> None:
    """End the effect of `mount`."""
    _MOUNTED.pop(f"{place}/", None)


@contextmanager
def mounted(place: Path, chain: Chain) -> Iterator[None]:
    """Mount `chain` for the block."""
    mount(place, chain)
    try:
        yield
    finally:
        unmount(place)


def found_in(path: str | os.PathLike[str]) -> tuple[Chain, str] | None:
    """Return the chain in which `path` is, and the name there; None if it is on a disk."""
    if not _MOUNTED:
        return None
    text = os.fspath(path)
    for place, chain in _MOUNTED.items():
        if text.startswith(place):
            return chain, text[len(place) :]
        if len(text) == len(place) - 1 and place.startswith(text):
            return chain, ""
    return None

"""A sealed archive: a plain tar, which is written once and read in place.

Its headers alone say what is where, so ``tar xf``, `tarfile` and this module read the same files.
Each member is a regular file, and its header is exactly the one that `header_of` gives. The files
of a folder are one part of the archive. After the part of a folder come those of the folders in
it. The last member, `FACTS`, is JSON about the archive, and has what no header can state.

Archives form a chain: each one has what is new since those before it. `Chain` reads them as one
folder, in which the newest archive that has a file gives its content.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, BinaryIO, NamedTuple
from zlib import adler32

from pydantic import Field

from proofmark.common.errors import bad_input
from proofmark.common.input_limits import (
    MAX_DEPTH,
    MAX_EVIDENCE_BYTES,
    MAX_EVIDENCE_FILES,
    MAX_FACTS_BYTES,
    MAX_PATH_BYTES,
)
from proofmark.common.shared_models import StrictModel
from proofmark.common.text import one_line, size

FACTS = "evidence.json"
FORMAT = 2
_BLOCK = 512
_END = bytes(2 * _BLOCK)
_MOST = 2 * _BLOCK + MAX_PATH_BYTES
"""Bytes of the longest header."""
_EXTENDED = b"x"
_SMALL = 1 << 20
"""Bytes of an archive that are read at once."""
_RECENT = 16
"""Folders whose entries a chain has in memory. A cycle of references would keep its files open."""
PROBLEMS = {
    "link": "a link; accepted is a regular file",
    "special": "not a regular file",
    "large": "too large",
    "unreadable": "unreadable",
    "name": "a name that is not UTF-8",
    "deep": f"a folder at more than {MAX_DEPTH} levels",
}
"""Why an entry has no content: the kinds, with their texts."""
_Problem = Annotated[str, Field(pattern=f"^({'|'.join(PROBLEMS)})$")]
_Folder = Annotated[
    str, Field(pattern=f"^([^/]+/){{0,{MAX_DEPTH - 1}}}[^/]*$", max_length=MAX_PATH_BYTES)
]
_NO_NAMES = ("", ".", "..")


Parts = Mapping[str, Sequence[int]]
"""The begin and end, in bytes, of the part of each folder, in the order of the archive."""


class Change(StrEnum):
    """What happened to a file of the run; of a sealed file the sealed content counts."""

    CHANGED = "changed"
    REMOVED = "removed"
    ADDED = "added"
    """The file appeared in a finished execution."""
    SCRIPT = "another script"
    """The work folder has another script than the run. The archives have both."""


class Facts(StrictModel, extra="ignore", strict=True):
    """What an archive states beside its headers.

    Attributes:
        unread: the entries without content, by folder and name, each with the kind of its problem;
            an empty folder has none, and one with folders alone is not there. A member counts more.
        removed: the files of earlier archives that are not there any more.
        kept: the files that were changed, and whose content of an earlier archive stays.
    """

    format: int
    unread: dict[_Folder, dict[str, _Problem]] = {}
    removed: frozenset[str] = frozenset()
    kept: dict[str, Change] = {}


class _Layout:
    """The parts of an archive. It refuses what two readers could read in two ways."""

    def __init__(self) -> None:
        self.parts: dict[str, Sequence[int]] = {}
        self._folder: str | None = None
        self._part: list[int] = []
        self._names: set[str] = set()
        self._open = [("", {FACTS, *_NO_NAMES})]

    def add(self, name: str, begin: int, end: int) -> None:
        """Add the member between two places.

        Raises:
            ValueError: its name cannot be accepted, or not at this place of the archive.
        """
        folder, _, last = name.rpartition("/")
        if folder != self._folder:
            self._enter(folder, name)
            self._part = self.parts[folder] = [begin, end]
        names = self._names
        if last in names:
            raise ValueError(f"the name {name[:200]!r} of a member is none, or is there twice")
        names.add(last)
        self._part[1] = end

    def _enter(self, folder: str, name: str) -> None:
        path = f"{folder}/" if folder else ""
        if folder in self.parts or name.startswith("/") or path.count("/") > MAX_DEPTH:
            raise ValueError(f"the member {name[:200]!r} is in no place for it")
        while not path.startswith(self._open[-1][0]):
            self._open.pop()
        above, names = self._open[-1]
        for part in path[len(above) :].split("/")[:-1]:
            if part in names:
                raise ValueError(f"the folder of {name[:200]!r} is a file, or is there twice")
            names.add(part)
            above, names = f"{above}{part}/", set(_NO_NAMES)
            self._open.append((above, names))
        self._folder, self._names = folder, names
        if len(self.parts) > MAX_EVIDENCE_FILES:
            raise ValueError(f"more than {MAX_EVIDENCE_FILES} folders")


class ArchiveWriter:
    """Writes an archive into a new file.

    Args:
        file: the file, which can be read and written.
        time: the time of all members, in seconds since 1970.
    """

    def __init__(self, file: BinaryIO, time: int) -> None:
        self._file, self._time, self._digest, self._end = file, time, sha256(), 0
        self._layout = _Layout()
        self._unread: dict[str, dict[str, str]] = {}
        self._removed: set[str] = set()
        self._kept: dict[str, Change] = {}

    def add(self, folder: str, files: Mapping[str, bytes], unread: Mapping[str, str]) -> None:
        """Add files of a folder.

        Args:
            folder: its path, with slashes; empty for the top.
            files: the contents, by the name in the folder.
            unread: the entries without content, each with the kind of its problem.
        """
        prefix = f"{folder}/" if folder else ""
        for name, content in files.items():
            begin = self._end
            self._add(prefix + name, content)
            self._layout.add(prefix + name, begin, self._end)
        if unread or not files:
            self._unread.setdefault(folder, {}).update(unread)

    def remove(self, names: Iterable[str]) -> None:
        """State that files of earlier archives are not there any more."""
        self._removed.update(names)

    def keep(self, kinds: Mapping[str, Change]) -> None:
        """State the files that were changed, and whose content of an earlier archive stays."""
        self._kept |= kinds

    @property
    def empty(self) -> bool:
        """Whether nothing was added, removed or kept."""
        return not (self._layout.parts or self._unread or self._removed or self._kept)

    def archive(self) -> Archive:
        """Return what was written until now."""
        self._file.flush()
        removed = frozenset(self._removed)
        facts = Facts(format=FORMAT, unread=self._unread, removed=removed, kept=self._kept)
        return Archive(Descriptor(self._file.fileno()), self._time, self._layout.parts, facts)

    def finish(self, stated: Mapping[str, Any]) -> str:
        """Write the facts with what else the archive states, to the disk; return the SHA-256.

        Raises:
            OSError: there is no space, or too much is stated.
        """
        above = {folder.rpartition("/")[0] for folder in (*self._layout.parts, *self._unread)}
        unread = {name: each for name, each in self._unread.items() if each or name not in above}
        facts = {"unread": unread, "removed": sorted(self._removed), "kept": self._kept}
        content = json.dumps({**stated, **facts}, indent=1).encode()
        if len(content) > MAX_FACTS_BYTES:
            raise OSError(errno.EFBIG, f"states {size(len(content))}, more than {MAX_FACTS_BYTES}")
        self._add(FACTS, content, _END)
        self._file.flush()
        os.fsync(self._file.fileno())
        return self._digest.hexdigest()

    def _add(self, name: str, content: bytes, end: bytes = b"") -> None:
        header = header_of(name, len(content), self._time)
        written = header + content + bytes(-len(content) % _BLOCK) + end
        self._digest.update(written)
        self._end += self._file.write(written)


def header_of(name: str, length: int, time: int) -> bytes:
    """Return the header of a member, in the form ustar or pax (POSIX.1-2001)."""
    path = name.encode()
    if len(path) <= 100 and name.isascii():
        return _ustar(path, length, time)
    record = b" path=" + path + b"\n"
    total = len(record)
    while (whole := len(b"%d" % total) + len(record)) != total:
        total = whole
    record = b"%d" % total + record
    extended = _ustar(b"././@PaxHeader", total, time, _EXTENDED)
    short = name.encode("ascii", "replace")[:100]
    return extended + record + bytes(-total % _BLOCK) + _ustar(short, length, time)


def _ustar(name: bytes, length: int, time: int, kind: bytes = b"0") -> bytes:
    digits = b"%011o" % length
    before, between, after, rest = _same(time, kind)
    # The lower half of adler32 is 1 and the sum of so few bytes; `sum` takes ten times as long.
    number = b"%06o" % (rest + (adler32(digits, adler32(name)) & 0xFFFF) - 1)
    return name.ljust(100, b"\0") + before + digits + between + number + after


@cache
def _same(time: int, kind: bytes) -> tuple[bytes, bytes, bytes, int]:
    """Return the parts of a header between name, length and checksum, and the sum of all others."""
    before = b"0000644\0" + b"0000000\0" * 2
    between = b"\0%011o\0" % time
    after = b"\0 " + kind + bytes(100) + b"ustar\x0000" + bytes(247)
    # The checksum is computed with blanks in its field.
    rest = sum(before + between + after) + 7 * ord(" ")
    return before, between, after, rest


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
        time: of all members.
        facts: what no header can state.
        stated: the content of its last member, JSON.
    """

    file: Descriptor
    time: int
    parts: Parts
    facts: Facts
    stated: bytes = b""


def read_archive(file: BinaryIO, name: str, checked: Parts | None = None) -> Archive:
    """Return the archive in an open file, which messages call `name`.

    Args:
        checked: its parts, if each header of this file was checked before; else that is done now.

    Raises:
        BadInput: it is no archive of the kit, or is damaged.
    """
    number, layout = file.fileno(), _Layout()
    layout.parts.update(checked or {})
    try:
        length = os.fstat(number).st_size
        if length > MAX_EVIDENCE_BYTES:
            raise ValueError(f"it has {size(length)}, more than {size(MAX_EVIDENCE_BYTES)}")
        time = int(_read_at(number, 0, _BLOCK)[136:147], 8)
        if time < 0:
            raise ValueError("a negative time")
        end, at = length - len(_END), next(reversed(layout.parts.values()), (0, 0))[1]
        for member, begin, count in _members(number, at, end, time):
            if member == FACTS:
                break
            until = begin + count + -count % _BLOCK
            layout.add(member, at, until)
            at = until
        else:
            raise ValueError(f"it has no {FACTS}")
        if count > MAX_FACTS_BYTES:
            raise ValueError(f"{FACTS} has {size(count)}, more than {size(MAX_FACTS_BYTES)}")
        stated = _read_at(number, begin, count)
        facts = Facts.model_validate_json(stated)
        if facts.format != FORMAT:
            found = f"{facts.format}"
            raise bad_input(name, "format", found, f"{FORMAT}, or the kit that sealed it")
        if begin + count + -count % _BLOCK != end or _read_at(number, end, len(_END)) != _END:
            raise ValueError(f"{FACTS} is not its last member")
    except (ValueError, OSError) as error:
        problem = f"damaged: {one_line(str(error))[:200]}"
        raise bad_input(name, "", problem, "a tar that proofmark sealed") from None
    return Archive(Descriptor(number), time, layout.parts, facts, stated)


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
        self._recent: dict[str, Mapping[str, _Entry]] = {}

    def read(self, name: str, limit: int, *, cut: bool = False) -> bytes:
        """Return the content of a file of at most `limit` bytes, or with `cut` its begin.

        Raises:
            OSError: there is no such file, or it is too large. ``strerror`` has the reason.
        """
        entry = self._entry(name)
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
        entry = self._entry(name)
        return entry is not None and not entry.problem

    def is_folder(self, name: str) -> bool:
        """Return whether there is a folder of this name."""
        return name in self._children or name in self.folders

    def exists(self, name: str) -> bool:
        """Return whether there is an entry of this name, of any kind."""
        return self._entry(name) is not None or self.is_folder(name)

    def names(self, folder: str) -> list[str]:
        """Return the sorted names of the entries of a folder.

        Raises:
            OSError: there is no such folder.
        """
        if not self.is_folder(folder):
            number = errno.ENOTDIR if self.exists(folder) else errno.ENOENT
            raise OSError(number, os.strerror(number), folder)
        return sorted({*self._entries(folder), *self._children.get(folder, ())})

    def files(self, folder: str) -> Mapping[str, str]:
        """Return the names of the entries of a folder that are no folders, with their problems."""
        return {name: entry.problem for name, entry in self._entries(folder).items()}

    def contents(self, folder: str) -> dict[str, bytes]:
        """Return the contents of the files of a folder, if one read gave all of them."""
        found = self._entries(folder).items()
        return {name: each.content for name, each in found if each.content is not None}

    @cached_property
    def folders(self) -> Mapping[str, None]:
        """All folders with entries, and the empty ones, the oldest first."""
        folders = dict[str, None]()
        for each in self.archives:
            folders |= dict.fromkeys(each.parts) | dict.fromkeys(each.facts.unread)
        return folders

    @cached_property
    def _children(self) -> Mapping[str, Sequence[str]]:
        """The names of the folders in each folder that has some."""
        children: dict[str, list[str]] = {}
        entered = {""}
        for folder in self.folders:
            while folder not in entered:
                entered.add(folder)
                parent, _, name = folder.rpartition("/")
                children.setdefault(parent, []).append(name)
                folder = parent
        return children

    def _entry(self, name: str) -> _Entry | None:
        folder, _, last = name.rpartition("/")
        return self._entries(folder).get(last)

    def _entries(self, folder: str) -> Mapping[str, _Entry]:
        found = self._recent.pop(folder, None)
        if found is None:
            found = self._read_folder(folder)
            if len(self._recent) == _RECENT:
                del self._recent[next(iter(self._recent))]
        self._recent[folder] = found
        return found

    def _read_folder(self, folder: str) -> Mapping[str, _Entry]:
        """Return the entries of a folder: of each name that of the newest archive."""
        found: dict[str, _Entry] = {}
        prefix = f"{folder}/" if folder else ""
        for archive in self.archives:
            removed = archive.facts.removed
            if found and removed:
                found = {name: each for name, each in found.items() if prefix + name not in removed}
            for name, problem in archive.facts.unread.get(folder, {}).items():
                found[name] = _Entry(-1, 0, 0, problem=problem)
            if part := archive.parts.get(folder):
                found |= _part(archive, *part)
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


def _members(
    file: int, at: int, end: int, time: int, window: bytes = b""
) -> Iterator[tuple[str, int, int]]:
    """Yield name, begin and length of the members between two places of an archive.

    Args:
        at: the first place.
        window: the bytes between the places, as far as they are known.

    Raises:
        ValueError: a header is not as `header_of` makes it, or the archive is cut.
        OSError: the archive cannot be read.
    """
    base = at
    while at < end:
        place = at - base
        if place + _MOST > len(window) and base + len(window) < end:
            window, base, place = _read_at(file, at, min(_SMALL, end - at)), at, 0
        try:
            header, more = window[place : place + _BLOCK], 0
            if header[156:157] == _EXTENDED:
                count = int(header[124:135], 8)
                more = _BLOCK + count + -count % _BLOCK
                header = window[place : place + more + _BLOCK]
                name = header[_BLOCK : _BLOCK + count].partition(b"=")[2][:-1].decode()
            else:
                name = header.partition(b"\0")[0].decode("ascii")
            length = int(header[more + 124 : more + 135], 8)
            is_normal = length >= 0 and len(header) <= _MOST and "\0" not in name
            if not is_normal or header != header_of(name, length, time):
                raise ValueError("a header that proofmark does not write")
        except ValueError as error:
            raise ValueError(f"byte {at}: {error}") from None
        at += len(header)
        if at + length > end:
            raise ValueError(f"it is cut at byte {end}")
        yield name, at, length
        at += length + -length % _BLOCK


def _part(archive: Archive, begin: int, end: int) -> dict[str, _Entry]:
    """Return the members between two places of an archive, by the last part of their names.

    Raises:
        OSError: the file was changed after it was opened.
    """
    file, found = archive.file.number, dict[str, _Entry]()
    whole = _read_at(file, begin, end - begin) if end - begin <= _SMALL else b""
    try:
        for name, at, length in _members(file, begin, end, archive.time, whole):
            content = whole[at - begin : at - begin + length] if whole else None
            found[name.rpartition("/")[2]] = _Entry(file, at, length, content)
    except ValueError as error:
        raise OSError(errno.EIO, f"the archive was changed: {error}") from None
    return found


_MOUNTED: dict[str, Chain] = {}
"""The chains that this process reads, by the path at which their content seems to be."""


def mount(place: Path, chain: Chain) -> None:
    """Let the content of `chain` be read as the folder `place`, in this process and its workers.

    `proofmark.common.files` reads paths below `place` from the chain. The path exists on no disk.
    """
    _MOUNTED[f"{place}/"] = chain


@contextmanager
def mounted(place: Path, chain: Chain) -> Iterator[None]:
    """Mount `chain` for the block."""
    mount(place, chain)
    try:
        yield
    finally:
        _MOUNTED.pop(f"{place}/", None)


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

"""The files in a folder of others and in its archives. Nothing is changed there."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import translate
from pathlib import Path
from tempfile import TemporaryDirectory

from proofmark.common.errors import BadInput, InputError, bad_input
from proofmark.common.files import read_bytes
from proofmark.common.input_limits import MAX_OUTPUT_BYTES
from proofmark.packages.foreign.adopted import shown
from proofmark.packages.foreign.output_text import output_text
from proofmark.packages.foreign.packed import NotUnpacked, is_archive, unpack, unpacked
from proofmark.packages.foreign.tar_reader import MAX_GIVEN_FILES

MOST_NAMED = 10
"""The largest number of files that an error names."""


HEAD = 1 << 22
"""The bytes of a file in which its banners and its nodes are looked for."""
_ARCHIVE_HEAD = 1 << 16
_ARCHIVE = re.compile(r".*(\.tar(\.\w+)?|\.t[bgx]z2?)", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True)
class OutputFolder:
    """A folder of outputs; its archives are folders of it.

    Attributes:
        extracted: the folder with the files of its archives, by the same relative paths.
        paths: of all files, relative to `folder`, sorted. They may be links or special files.
        not_read: the folders, archives and files of archives that were not read, with the reason.
    """

    folder: Path
    extracted: Path
    paths: Sequence[str]
    not_read: Mapping[str, str]

    def read(self, path: str) -> bytes:
        """Return the content of a file, decompressed.

        Raises:
            OSError: as `read_bytes_below`, or it cannot be decompressed.
        """
        try:
            return unpacked(self._bytes(path, MAX_OUTPUT_BYTES, cut=False))
        except NotUnpacked as error:
            raise OSError(0, str(error.args[0])) from None

    def head(self, path: str) -> bytes:
        """Return the first `HEAD` bytes of the decompressed content.

        Raises:
            OSError: the file cannot be read.
        """
        return unpacked(self._bytes(path, HEAD, cut=True), HEAD, cut=True)

    def text(self, path: str) -> str:
        """Return the text of `head`; empty if the file cannot be read."""
        try:
            return text_of(self.head(path))
        except OSError:
            return ""

    def _bytes(self, path: str, limit: int, *, cut: bool) -> bytes:
        try:
            return read_bytes_below(self.folder, path, limit, cut=cut)
        except NotADirectoryError:  # below an archive
            return read_bytes_below(self.extracted, path, limit, cut=cut)


def text_of(content: bytes) -> str:
    """Return the text of the begin of a file, as readers see it."""
    return output_text(content).replace("\r\n", "\n")


@contextmanager
def opened(folder: Path, most: int = MAX_OUTPUT_BYTES) -> Iterator[OutputFolder]:
    """Yield the files below `folder`. No link is followed.

    Args:
        most: the bytes of a file of an archive that are needed.

    Raises:
        BadInput: `folder` is no folder, or there are too many files.
    """
    if not folder.is_dir():
        raise bad_input("FOLDER", "", f"{folder}: not a folder", "the folder of the outputs")
    found, not_read = _files_below(folder)
    with TemporaryDirectory(prefix="proofmark-adopt-") as place:
        paths: list[str] = []
        for path in found:
            if not _ARCHIVE.fullmatch(path) or not _extract(folder, path, place, most, not_read):
                paths.append(path)
                continue
            inner, unread = _files_below(Path(place, path))
            paths += (f"{path}/{name}" for name in inner)
            not_read |= {f"{path}/{name}": why for name, why in unread.items()}
            _check_number(folder, paths)
        yield OutputFolder(folder, Path(place), sorted(paths), dict(sorted(not_read.items())))


def _extract(folder: Path, path: str, place: str, most: int, not_read: dict[str, str]) -> bool:
    """Write the files of the archive `path`; return whether it is one."""
    try:
        if not is_archive(read_bytes_below(folder, path, _ARCHIVE_HEAD, cut=True)):
            return False
        target = Path(place, path)
        target.mkdir(parents=True)
        with open(folder / path, "rb", opener=_without_links) as archive:
            for name, why in unpack(archive, os.fstat(archive.fileno()).st_size, target, most):
                not_read[f"{path}/{name}".rstrip("/")] = why
    except OSError as error:
        not_read[path] = error.strerror or "unreadable"
        return False
    return True


def _without_links(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


@dataclass(frozen=True)
class FoundOutputs:
    """The files of an `OutputFolder`, by case.

    Attributes:
        matched: the cases of each file that matches a pattern.
        unmatched: the other files.
    """

    matched: Mapping[str, Sequence[str]]
    unmatched: Sequence[str]


def find_outputs(outputs: OutputFolder, patterns: Mapping[str, Sequence[str]]) -> FoundOutputs:
    """Return the files by the `patterns` of each case.

    A pattern is for the whole relative path, as in `fnmatch`: ``*`` also matches ``/``.

    Raises:
        BadInput: a pattern matches no file.
    """
    rules = []
    for case, of_case in patterns.items():
        rules += [(case, pattern, re.compile(translate(pattern))) for pattern in of_case]
    paths = outputs.paths
    matched: dict[str, Sequence[str]] = {}
    unmatched: list[str] = []
    used: set[tuple[str, str]] = set()
    for path in paths:
        fitting = [
            (case, pattern)
            for case, pattern, rule in rules
            if rule.fullmatch(f"/{path}") or rule.fullmatch(path)
        ]
        used.update(fitting)
        if fitting:
            matched[path] = list(dict.fromkeys(case for case, _ in fitting))
        else:
            unmatched.append(path)
    mistakes = [
        InputError("--case", case, f"{pattern!r}, which matches no file", _some(paths))
        for case, pattern, _ in rules
        if (case, pattern) not in used
    ]
    if mistakes:
        raise BadInput(*mistakes)
    return FoundOutputs(matched, unmatched)


def named_errors(problems: Mapping[str, str], accepted: str) -> list[InputError]:
    """Return an error for each of the first `MOST_NAMED` files, and one for the number of others.

    Args:
        problems: what was found, by the path of the file.
        accepted: what is accepted.
    """
    errors = [
        InputError(shown(path), "", found, accepted)
        for path, found in list(problems.items())[:MOST_NAMED]
    ]
    if more := len(problems) - len(errors):
        errors.append(InputError("FOLDER", "", f"{more} more files with this problem", accepted))
    return errors


def _files_below(folder: Path) -> tuple[list[str], dict[str, str]]:
    """Return the paths of all files below `folder`, and the folders that were not read."""
    paths: list[str] = []
    not_entered: dict[str, str] = {}
    waiting = [""]
    while waiting:
        name = waiting.pop()
        try:
            with os.scandir(folder / name) as entries:
                for entry in entries:
                    path = f"{name}/{entry.name}" if name else entry.name
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(path)
                    elif entry.is_dir():
                        not_entered[path] = "a link; accepted is a folder"
                    else:
                        paths.append(path)
        except OSError as error:
            not_entered[name or "."] = error.strerror or "unreadable"
        _check_number(folder, paths)
    return paths, not_entered


def _check_number(folder: Path, paths: Sequence[str]) -> None:
    if len(paths) > MAX_GIVEN_FILES:
        found = f"{folder}: more than {MAX_GIVEN_FILES:,} files"
        raise bad_input("FOLDER", "", found, "a smaller part of the folder")


def _some(paths: Sequence[str]) -> str:
    first = ", ".join(repr(shown(path)) for path in paths[:3])
    return f"a pattern for paths such as {first}" if first else "a folder with files"


def read_bytes_below(
    folder: Path, name: str, limit: int = MAX_OUTPUT_BYTES, *, cut: bool = False
) -> bytes:
    """Return the content of the file `name`, a path below `folder`, as `read_bytes`.

    No part of `name` may be a link, also if another user replaces a folder at this moment.

    Raises:
        OSError: as `read_bytes`, or a part of `name` is a link.
    """
    *parents, last = name.split("/")
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    place = os.open(folder, flags & ~os.O_NOFOLLOW)
    try:
        for parent in parents:
            inner = os.open(parent, flags, dir_fd=place)
            os.close(place)
            place = inner
        return read_bytes(last, limit, folder=place, cut=cut)
    finally:
        os.close(place)

"""Writes files atomically, and reads files and models with limits of size."""

from __future__ import annotations

import errno
import fnmatch
import hashlib
import os
import shutil
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader, TextIOWrapper
from pathlib import Path
from typing import BinaryIO, TextIO, TypeVar

from pydantic import BaseModel, ValidationError

from proofmark.common.archive import found_in
from proofmark.common.errors import bad_input
from proofmark.common.input_limits import MAX_OUTPUT_BYTES, MAX_RUN_FILE_BYTES
from proofmark.common.rights import rights_at
from proofmark.common.text import size as size_text

Model = TypeVar("Model", bound=BaseModel)


def read_json(path: Path, model: type[Model]) -> Model:
    """Return the model in a file of a run.

    Raises:
        BadInput: the file is missing, is not a regular file, is larger than `MAX_RUN_FILE_BYTES`
            or does not fit the model.
    """
    accepted = "a file that proofmark wrote"
    try:
        return model.model_validate_json(read_regular(path))
    except FileNotFoundError:
        raise bad_input(path, "", "no such file", "a complete run") from None
    except ValidationError as error:
        raise bad_input(path, "", f"unreadable: {error}", accepted) from None


def read_regular(path: Path, limit: int = MAX_RUN_FILE_BYTES) -> bytes:
    """Return the content of a file of a run, as `read_bytes`.

    Raises:
        BadInput: it is a link, another kind of file, larger than `limit` bytes, or unreadable.
        FileNotFoundError: there is no such file.
    """
    try:
        return read_bytes(path, limit)
    except FileNotFoundError:
        raise
    except OSError as error:
        accepted = f"a regular file of at most {limit} bytes"
        raise bad_input(path, "", error.strerror or "unreadable", accepted) from None


def write_whole(path: Path, text: str) -> None:
    """Write a file atomically: after a full disk the old file is still there.

    Raises:
        BadInput: the file cannot be written.
    """
    write_whole_bytes(path, text.encode())


def write_whole_bytes(path: Path, content: bytes, mode: int = 0o666) -> None:
    """Write bytes to a file with the rights `mode`, as `write_whole`.

    Raises:
        BadInput: the file cannot be written.
    """
    with rights_at(path), _replacing(path) as new, _created(new, mode) as file:
        file.write(content)


def copy_whole(source: Path, target: Path) -> None:
    """Copy a regular file, as `read_regular` and `write_whole`.

    Raises:
        BadInput: `source` cannot be read, or `target` cannot be written.
        FileNotFoundError: there is no file `source`.
    """
    write_whole_bytes(target, read_regular(source))


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, as `write_whole`.

    Raises:
        BadInput: the file cannot be written.
    """
    with rights_at(path), _replacing(path) as new, _created(new, 0o600) as file:
        file.write(text.encode())


@contextmanager
def replacing(path: Path) -> Iterator[TextIO]:
    """Open a file that replaces `path` when the block ends, as `write_whole`.

    Raises:
        BadInput: the file cannot be written.
    """
    with (
        _replacing(path) as new,
        _created(new, 0o666) as created,
        TextIOWrapper(created, encoding="utf-8") as file,
    ):
        yield file


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """Yield the name of a file to create. The file replaces `path` when the block ends."""
    new = path.with_name(f"{path.name}.new")
    try:
        new.unlink(missing_ok=True)  # left by an earlier process, or a symbolic link
        yield new
        new.rename(path)
    except OSError as error:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        found = f"cannot be written: {error.strerror}"
        raise bad_input(path, "", found, "a writable folder with free space") from None


def _created(path: Path, mode: int) -> BinaryIO:
    """Create a file. It is an error if the path exists, also as a link."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb")


def open_to_append(path: Path) -> TextIOWrapper:
    """Open a file for reading and appending. Create it if it is missing. A link is refused.

    Raises:
        BadInput: the file is a link, is not a regular file, or cannot be opened.
    """
    accepted = "a regular file that can be written"
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        with rights_at(path):
            number = os.open(path, flags, 0o666)
    except OSError as error:
        raise bad_input(path, "", f"cannot be opened: {error.strerror}", accepted) from None
    status = os.fstat(number)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        os.close(number)
        raise bad_input(path, "", "a link, or not a regular file", accepted)
    return os.fdopen(number, "a+", encoding="utf-8")


_CHUNK = 1 << 16


def read_bytes(
    path: Path | str,
    limit: int = MAX_OUTPUT_BYTES,
    *,
    folder: int | None = None,
    cut: bool = False,
) -> bytes:
    """Return the content of a regular file of at most `limit` bytes.

    It never waits for a writer, as a FIFO would, and follows no link: the target of a link can be
    a device, or a file of root. It makes few system calls, because a run has 100,000 small files.

    Args:
        limit: the largest size in bytes.
        folder: an open folder that `path` is relative to; None: the current folder.
        cut: whether only the begin of a larger file is wanted.

    Raises:
        OSError: the file is missing, not regular or too large. ``strerror`` has the reason.
    """
    if folder is None and (sealed := found_in(path)):
        chain, name = sealed
        return chain.read(name, limit, cut=cut)
    file, status = _open_regular(path, folder)
    try:
        if cut:
            return os.read(file, limit)
        if status.st_size > limit:
            raise _too_large(path, status.st_size, limit)
        content = os.read(file, min(_CHUNK, limit + 1))
        if len(content) == _CHUNK:
            with open(file, "rb", closefd=False) as rest:
                content += rest.read(limit + 1 - len(content))
            if len(content) > limit:  # it grew
                raise _too_large(path, len(content), limit)
        return content
    finally:
        os.close(file)


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


def read_text(path: Path | str, limit: int = MAX_OUTPUT_BYTES) -> str:
    """Return the text in a file, as `read_bytes`; bytes that are not UTF-8 are replaced.

    Raises:
        OSError: as `read_bytes`.
    """
    return read_bytes(path, limit).decode("utf-8", "replace")


def text_or_empty(path: Path | str, limit: int = MAX_OUTPUT_BYTES) -> str:
    """Return the text in a file, as `read_text`; an empty text if the file cannot be read."""
    try:
        return read_text(path, limit)
    except OSError:
        return ""


def sha256_of(path: Path | str, *, folder: int | None = None) -> str:
    """Return the SHA-256 of a regular file of any size as hexadecimal digits.

    `folder` is an open folder that `path` is relative to; None: the current folder.

    Raises:
        OSError: the file is missing, a link or not regular.
    """
    if folder is None and found_in(path):
        return hashlib.sha256(read_bytes(path)).hexdigest()
    file, status = _open_regular(path, folder)
    try:
        content = os.read(file, _CHUNK)
        digest, left = hashlib.sha256(content), status.st_size - len(content)
        while content and (left > 0 or len(content) == _CHUNK):
            content = os.read(file, _CHUNK)
            digest.update(content)
            left -= len(content)
        return digest.hexdigest()
    finally:
        os.close(file)


def make_folder(path: Path) -> None:
    """Make a folder, and those above it, unless it exists.

    Raises:
        BadInput: it cannot be made.
    """
    try:
        with rights_at(path):
            path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        found = f"cannot be made: {error.strerror}"
        raise bad_input(path, "", found, "a writable folder with free space") from None


@contextmanager
def new_folder(path: Path, *, shared: bool = False) -> Iterator[None]:
    """Create the folder `path` and those above it for the block; remove new ones without a use.

    If the block raises, all that it made is removed, and else the new folders that are empty. A
    folder that existed stays as it is. In a `shared` folder other processes make files of their
    own: only what is empty is removed.

    Raises:
        OSError: the folder cannot be created.
    """
    missing = [each for each in (path, *path.parents) if not each.exists()]
    path.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        if missing and not shared:
            shutil.rmtree(missing[-1], ignore_errors=True)
        raise
    finally:
        for each in missing:
            with suppress(OSError):
                each.rmdir()


def is_regular(path: Path) -> bool:
    """Return whether `path` is a regular file, and no link to one."""
    if sealed := found_in(path):
        chain, name = sealed
        return chain.is_file(name)
    try:
        with rights_at(path):
            return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def is_folder(path: Path) -> bool:
    """Return whether `path` is a folder, or a link to one."""
    if sealed := found_in(path):
        chain, name = sealed
        return chain.is_folder(name)
    with rights_at(path):
        return path.is_dir()


def exists(path: Path) -> bool:
    """Return whether there is a file, a folder, a link or something else at `path`."""
    if sealed := found_in(path):
        chain, name = sealed
        return chain.exists(name)
    with rights_at(path):
        return os.path.lexists(path)


def names_in(folder: Path | str) -> Collection[str]:
    """Return the names in a folder; nothing if there is no such folder.

    Raises:
        OSError: the folder cannot be listed.
    """
    try:
        if sealed := found_in(folder):
            chain, name = sealed
            return chain.names(name)
        with rights_at(folder):
            return os.listdir(folder)  # noqa: PTH208 (a run has 100,000 folders)
    except (FileNotFoundError, NotADirectoryError):
        return ()


def paths_in(folder: Path, pattern: str = "*") -> list[Path]:
    """Return the sorted paths in a folder whose names match `pattern`, as `fnmatch` has it.

    Raises:
        OSError: the folder cannot be listed.
    """
    return [folder / name for name in sorted(fnmatch.filter(names_in(folder), pattern))]


_REGULAR = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC


def _open_regular(path: Path | str, folder: int | None = None) -> tuple[int, os.stat_result]:
    """Open a regular file for reading; return its number and its status."""
    try:
        with rights_at(path):
            file = os.open(path, _REGULAR, dir_fd=folder)
    except OSError as error:
        if error.errno == errno.ELOOP:
            problem = "a link; accepted is a regular file"
            raise OSError(errno.ELOOP, problem, os.fspath(path)) from None
        if error.errno == errno.ENXIO:
            raise _unusable(path, _NOT_REGULAR) from None
        raise
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode):
        os.close(file)
        raise _unusable(path, _NOT_REGULAR)
    return file, status


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file for reading; a link is refused.

    Raises:
        OSError: it is missing, a link or not regular.
    """
    return os.fdopen(_open_regular(path)[0], "rb")


_NOT_REGULAR = "not a regular file"


def _too_large(path: Path | str, count: int, limit: int) -> OSError:
    problem = f"{size_text(count)}, more than {size_text(limit)}"
    return OSError(errno.EFBIG, problem, os.fspath(path))


def _unusable(path: Path | str, problem: str) -> OSError:
    return OSError(errno.EINVAL, problem, os.fspath(path))

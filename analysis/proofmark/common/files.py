"""Writes files atomically, and reads models from files."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Any, BinaryIO, TextIO, TypeVar

from pydantic import BaseModel, ValidationError

from proofmark.common.errors import bad_input

Model = TypeVar("Model", bound=BaseModel)
MAX_BYTES = 1 << 30
"""The largest file that is read whole. The plan of 8,305 nodes needs a few MiB."""


def read_json(path: Path, model: type[Model], context: Any = None) -> Model:
    """Return the model in a file of a run; `context` is the context of the validation.

    Raises:
        BadInput: the file is missing or does not fit the model.
    """
    try:
        return model.model_validate_json(read_regular(path).decode(), context=context)
    except FileNotFoundError:
        raise bad_input(path, "", "no such file", "a complete run") from None
    except (ValidationError, UnicodeDecodeError) as error:
        raise bad_input(path, "", f"unreadable: {error}", "a file that proofmark wrote") from None


def read_regular(path: Path, limit: int = MAX_BYTES) -> bytes:
    """Return the content of a regular file of at most `limit` bytes. A link is not followed.

    Raises:
        BadInput: it is a link, another kind of file, larger, or cannot be read.
        FileNotFoundError: there is no such file.
    """
    accepted = f"a regular file of at most {limit} bytes"
    try:
        # Without O_NONBLOCK the opening of a FIFO waits for its writer.
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise bad_input(path, "", f"cannot be read: {error.strerror}", accepted) from None
    with os.fdopen(number, "rb") as file:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise bad_input(path, "", "not a regular file", accepted)
        content = file.read(limit + 1)
    if len(content) > limit:
        raise bad_input(path, "", f"more than {limit} bytes", accepted)
    return content


def write_whole(path: Path, text: str) -> None:
    """Write a file atomically: after a full disk the old file is still there.

    Raises:
        BadInput: the file cannot be written.
    """
    write_whole_bytes(path, text.encode())


def write_whole_bytes(path: Path, content: bytes) -> None:
    """Write bytes to a file, as `write_whole`.

    Raises:
        BadInput: the file cannot be written.
    """
    with _replacing(path) as new, _created(new, 0o666) as file:
        file.write(content)


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, as `write_whole`.

    Raises:
        BadInput: the file cannot be written.
    """
    with _replacing(path) as new, _created(new, 0o600) as file:
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
    """Create a file. In the folder of another user, root gives the file to that user."""
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    if os.geteuid() == 0:
        owner = path.parent.stat()
        os.fchown(number, owner.st_uid, owner.st_gid)
    return os.fdopen(number, "wb")


def open_to_append(path: Path) -> TextIOWrapper:
    """Open a file for reading and appending. Create it if it is missing. A link is refused.

    Raises:
        BadInput: the file is a link, is not a regular file, or cannot be opened.
    """
    accepted = "a regular file that can be written"
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        number = os.open(path, flags, 0o666)
    except OSError as error:
        raise bad_input(path, "", f"cannot be opened: {error.strerror}", accepted) from None
    status = os.fstat(number)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        os.close(number)
        raise bad_input(path, "", "a link, or not a regular file", accepted)
    return os.fdopen(number, "a+", encoding="utf-8")


_CHUNK = 1 << 16


def read_bytes(path: str) -> bytes:
    """Return the content of a file with few system calls: a run has 100,000 small files."""
    file = os.open(path, os.O_RDONLY)
    try:
        content = os.read(file, _CHUNK)
        if len(content) == _CHUNK:
            with open(file, "rb", closefd=False) as rest:
                content += rest.read()
        return content
    finally:
        os.close(file)

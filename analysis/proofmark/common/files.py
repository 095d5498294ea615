"""Files that are there whole or not at all, and models that are read from them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO, TypeVar

from pydantic import BaseModel, ValidationError

from proofmark.common.errors import bad_input

Model = TypeVar("Model", bound=BaseModel)


def read_json(path: Path, model: type[Model], context: Any = None) -> Model:
    """Read one of a run's own files; `context` is that of its validation.

    Raises:
        BadInput: it is missing or does not fit the model.
    """
    try:
        return model.model_validate_json(path.read_text(), context=context)
    except FileNotFoundError:
        raise bad_input(path, "", "no such file", "a complete run") from None
    except (ValidationError, UnicodeDecodeError) as error:
        raise bad_input(path, "", f"unreadable: {error}", "a file that proofmark wrote") from None


def write_whole(path: Path, text: str) -> None:
    """Write a file that is there whole or not at all, also when the disk is full.

    Raises:
        BadInput: it cannot be written.
    """
    write_whole_bytes(path, text.encode())


def write_whole_bytes(path: Path, content: bytes) -> None:
    """Write a file as `write_whole` does, from bytes.

    Raises:
        BadInput: it cannot be written.
    """
    with _replacing(path) as new, new.open("xb") as file:
        file.write(content)


@contextmanager
def replacing(path: Path) -> Iterator[TextIO]:
    """Open a file for writing as `write_whole` writes it.

    Raises:
        BadInput: it cannot be written.
    """
    with _replacing(path) as new, new.open("x", encoding="utf-8") as file:
        yield file


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """Give the name of a file to create; if that goes well it takes the place of `path`."""
    new = path.with_name(f"{path.name}.new")
    try:
        new.unlink(missing_ok=True)  # of an earlier process, or a link to elsewhere
        yield new
        new.rename(path)
    except OSError as error:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        found = f"cannot be written: {error.strerror}"
        raise bad_input(path, "", found, "a folder that can be written, with room") from None


def open_to_append(path: Path) -> TextIOWrapper:
    """Open a file for reading and appending; make it if it is missing.

    Root works in the folder of another user: the file gets the owner of its folder, and a link
    to a file elsewhere is refused.

    Raises:
        BadInput: it is a link, it is no file, or it cannot be opened.
    """
    accepted = "a file that can be written"
    try:
        number = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    except OSError as error:
        raise bad_input(path, "", f"cannot be opened: {error.strerror}", accepted) from None
    there = os.fstat(number)
    if not stat.S_ISREG(there.st_mode) or there.st_nlink > 1:
        os.close(number)
        raise bad_input(path, "", "a link, or no file", accepted)
    if os.geteuid() == 0:
        owner = path.parent.stat()
        os.fchown(number, owner.st_uid, owner.st_gid)
    return os.fdopen(number, "a+", encoding="utf-8")


_AT_ONCE = 1 << 16


def read_bytes(path: str) -> bytes:
    """Read a small file; a run has some hundred thousand of them, and every call counts."""
    file = os.open(path, os.O_RDONLY)
    try:
        content = os.read(file, _AT_ONCE)
        if len(content) == _AT_ONCE:
            with open(file, "rb", closefd=False) as rest:
                content += rest.read()
        return content
    finally:
        os.close(file)

"""Reads files, JSON and times of others within limits, and writes files atomically.

A time is checked where it is read, so that no later computation or print can fail: a year of
``datetime`` is 1 to 9999, a naive time cannot be subtracted from one with a zone, and NaN is in
every order.
"""

from __future__ import annotations

import errno
import fnmatch
import hashlib
import json
import math
import os
import re
import shutil
import stat
from codecs import BOM_UTF8
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from io import BufferedReader, BytesIO, TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, TextIO, TypeVar

from pydantic import AfterValidator, BaseModel, ValidationError

from proofmark.common.archive import Chain, found_in
from proofmark.common.errors import bad_input
from proofmark.common.input_limits import MAX_DEPTH, MAX_OUTPUT_BYTES, MAX_RUN_FILE_BYTES
from proofmark.common.rights import rights_at
from proofmark.common.text import size as size_text

if TYPE_CHECKING:
    import polars as pl

Model = TypeVar("Model", bound=BaseModel)


def read_json(path: Path, model: type[Model]) -> Model:
    """Return the model in a file of a run.

    Raises:
        BadInput: the file is missing, is not a regular file, is larger than `MAX_RUN_FILE_BYTES`
            or does not fit the model.
    """
    try:
        return model.model_validate_json(read_regular(path, needed="a complete run"))
    except ValidationError as error:
        found = f"unreadable: {error}"
        raise bad_input(path, "", found, "a file that proofmark wrote") from None


def read_regular(path: Path, limit: int = MAX_RUN_FILE_BYTES, needed: str = "") -> bytes:
    """Return the content of a file of a run, as `read_bytes`.

    Raises:
        BadInput: it is a link, another kind of file, larger than `limit` bytes, or unreadable.
        FileNotFoundError: there is no such file; BadInput if `needed` says what is accepted.
    """
    try:
        return read_bytes(path, limit)
    except FileNotFoundError:
        if needed:
            raise bad_input(path, "", "no such file", needed) from None
        raise
    except OSError as error:
        accepted = f"a regular file of at most {limit} bytes"
        raise bad_input(path, "", error.strerror or "unreadable", accepted) from None


def regular_or_empty(path: Path, limit: int = MAX_RUN_FILE_BYTES) -> bytes:
    """Return the content of a file of a run, as `read_regular`; nothing if there is none."""
    try:
        return read_regular(path, limit)
    except FileNotFoundError:
        return b""


def write_atomic(path: Path, text: str) -> None:
    """Write a file atomically: after a full disk the old file is still there.

    Raises:
        BadInput: the file cannot be written.
    """
    write_atomic_bytes(path, text.encode())


def write_atomic_bytes(path: Path, content: bytes, mode: int = 0o666) -> None:
    """Write bytes to a file with the rights `mode`, as `write_atomic`.

    Raises:
        BadInput: the file cannot be written.
    """
    with _replacing(path, mode) as file:
        file.write(content)


def copy_whole(source: Path, target: Path) -> None:
    """Copy a regular file, as `read_regular` and `write_atomic`.

    Raises:
        BadInput: `source` cannot be read, or `target` cannot be written.
        FileNotFoundError: there is no file `source`.
    """
    write_atomic_bytes(target, read_regular(source))


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, as `write_atomic`.

    Raises:
        BadInput: the file cannot be written.
    """
    write_atomic_bytes(path, text.encode(), 0o600)


@contextmanager
def replacing(path: Path) -> Iterator[TextIO]:
    """Open a file that replaces `path` when the block ends, as `write_atomic`.

    Raises:
        BadInput: the file cannot be written.
    """
    with _replacing(path) as created, TextIOWrapper(created, encoding="utf-8") as file:
        yield file


@contextmanager
def _replacing(path: Path, mode: int = 0o666) -> Iterator[BinaryIO]:
    """Create a file, which is no link. It replaces `path` when the block ends."""
    new = path.with_name(f"{path.name}.new")
    with rights_at(path):
        try:
            new.unlink(missing_ok=True)  # left by an earlier process, or a symbolic link
            number = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            with os.fdopen(number, "wb") as file:
                yield file
            new.rename(path)
        except OSError as error:
            with suppress(OSError):
                new.unlink(missing_ok=True)
            found = f"cannot be written: {error.strerror}"
            raise bad_input(path, "", found, "a writable folder with free space") from None


def open_to_append(path: Path, mode: int = 0o666) -> TextIOWrapper:
    """Open a file for reading and appending. Create it if it is missing. A link is refused.

    Raises:
        BadInput: the file is a link, is not a regular file, or cannot be opened.
    """
    accepted = "a regular file that can be written"
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        with rights_at(path):
            number = os.open(path, flags, mode)
    except OSError as error:
        raise bad_input(path, "", f"cannot be opened: {error.strerror}", accepted) from None
    status = os.fstat(number)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        os.close(number)
        raise bad_input(path, "", "a link, or not a regular file", accepted)
    return os.fdopen(number, "a+", encoding="utf-8")


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
        content = os.read(file, status.st_size + 1)
        if len(content) != status.st_size:  # it grows, or this is a part of it
            with open(file, "rb", closefd=False) as rest:
                content += rest.read(limit + 1 - len(content))
            if len(content) > limit:
                raise _too_large(path, len(content), limit)
        return content
    finally:
        os.close(file)


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


def sha256_of(path: Path | str) -> str:
    """Return the SHA-256 of a regular file of any size as hexadecimal digits.

    Raises:
        OSError: the file is missing, a link or not regular.
    """
    if found_in(path):
        return hashlib.sha256(read_bytes(path)).hexdigest()
    with os.fdopen(_open_regular(path)[0], "rb", buffering=0) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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
    return _is(path, Chain.is_file, _is_regular)


def is_folder(path: Path) -> bool:
    """Return whether `path` is a folder, or a link to one."""
    return _is(path, Chain.is_folder, Path.is_dir)


def exists(path: Path) -> bool:
    """Return whether there is a file, a folder, a link or something else at `path`."""
    return _is(path, Chain.exists, os.path.lexists)


def _is(path: Path, sealed: Callable[[Chain, str], bool], there: Callable[[Path], bool]) -> bool:
    """Return the answer of the chain that has `path`, or else of the disk."""
    if found := found_in(path):
        return sealed(*found)
    with rights_at(path):
        return there(path)


def _is_regular(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


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


def contents_in(folder: Path | str) -> dict[str, bytes]:
    """Return the contents of the small files in a sealed folder; nothing of another folder."""
    sealed = found_in(folder)
    return sealed[0].contents(sealed[1]) if sealed else {}


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
        if error.errno == errno.ENXIO:
            raise _not_regular(path) from None
        if error.errno == errno.ELOOP:
            problem = "a link; accepted is a regular file"
            raise OSError(errno.ELOOP, problem, os.fspath(path)) from None
        raise
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode):
        os.close(file)
        raise _not_regular(path)
    return file, status


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file for reading; a link is refused.

    Raises:
        OSError: it is missing, a link or not regular.
    """
    return os.fdopen(_open_regular(path)[0], "rb")


def _not_regular(path: Path | str) -> OSError:
    return OSError(errno.EINVAL, "not a regular file", os.fspath(path))


def _too_large(path: Path | str, count: int, limit: int) -> OSError:
    problem = f"{size_text(count)}, more than {size_text(limit)}"
    return OSError(errno.EFBIG, problem, os.fspath(path))


_NESTING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[^][{}"]++', re.DOTALL)
"""All bytes of a JSON text that are not a bracket outside of a string."""
_LINE = re.compile(r'(?P<key>"[^"\\]*"\s*:\s*)?(?P<value>\S.*?),?')
"""A line of printed JSON: a pair, a value of a list, or a bracket."""
_NO_VALUE = re.compile(r'"[^"\\]*"\s*:,?')
_ESCAPED = dict(zip("\"'\\/bfnrt", "\"'\\/\b\f\n\r\t", strict=True))
_ESCAPE = re.compile(r"""\\(["'\\/bfnrt]|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2})""")


def parse_json(content: bytes) -> Any:
    """Return the value in JSON of at most `MAX_DEPTH` levels; the levels are counted first.

    Raises:
        ValueError: it is not JSON in UTF-8 (RFC 8259), has more levels, or has a number that is
            not finite: NaN, Infinity, 1e999.
    """
    if content.count(b"[") + content.count(b"{") > MAX_DEPTH and depth(content) > MAX_DEPTH:
        raise ValueError(f"nested more than {MAX_DEPTH} levels deep")
    value: Any = _DECODER.decode(content.removeprefix(BOM_UTF8).decode())
    return value


def parse_printed_json(text: str) -> Any:
    r"""Return the value in JSON that a program printed without escaping all characters.

    pbsnodes and qstat before OpenPBS 20 print a comment as it is, with its quotes and backslashes,
    and numbers such as ``0042``. They print one pair a line, and a line break within a text as
    ``\n``. If the text is not JSON, or names a key of an object twice, it is read again line by
    line: a line has one pair, and what cannot be read of it is left out.

    Raises:
        ValueError: it is no JSON even then, or has more than `MAX_DEPTH` levels.
    """
    try:
        parse_json(text.encode(errors="replace"))
        return json.loads(text, object_pairs_hook=_once)
    except ValueError:
        lines = [each for line in text.split("\n") if (each := _repaired(line.strip()))]
        return parse_json("\n".join(_with_commas(lines)).encode(errors="replace"))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key of an object occurs twice")
    return found


def _repaired(line: str) -> str:
    """Return a line of JSON without its comma, with one pair or value; empty if it has none."""
    match = _LINE.fullmatch(line)
    if match is None or _NO_VALUE.fullmatch(line):
        return ""
    key, value = match["key"] or "", match["value"]
    if value in ("{", "[", "{}", "[]", "}", "]"):
        return f"{key}{value}"
    try:
        parse_json(value.encode(errors="replace"))
    except ValueError:
        if value[:1] in ("{", "["):
            return ""
        quoted = len(value) > 1 and value[0] == value[-1] == '"'
        value = json.dumps(_ESCAPE.sub(_character, value[1:-1]) if quoted else value)
    return f"{key}{value}"


def _character(escape: re.Match[str]) -> str:
    return _ESCAPED.get(escape[1]) or chr(int(escape[1][1:], 16))


def _with_commas(lines: list[str]) -> Iterator[str]:
    """Yield the lines, with a comma between two values of an object or a list."""
    for line, following in zip(lines, [*lines[1:], "}"], strict=True):
        opens, ends = line.endswith(("{", "[")), following[0] in "}]"
        yield line if opens or ends else f"{line},"


def depth(content: bytes) -> int:
    """Return the number of nested objects and lists in `content`, which need not be JSON."""
    deepest = level = 0
    for bracket in _NESTING.sub(b"", content):
        level += 1 if bracket in b"{[" else -1
        deepest = max(deepest, level)
    return deepest


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse_constant(text)


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)

LATEST = 253_370_764_800.0
"""Begin of the year 9999, in seconds since 1970."""


def moment_of(text: Any) -> datetime:
    """Return a time in ISO 8601 with its zone, of the years 1970 to 9998.

    Raises:
        ValueError: it is none.
    """
    moment = datetime.fromisoformat(text) if isinstance(text, str) else None
    if moment is None or moment.tzinfo is None or not 1970 <= moment.year < 9999:
        raise ValueError(f"{text!r:.60} is no time of ISO 8601 with its zone")
    return moment


def moment_text(text: str) -> str:
    """Return `text`, which is a time as in `moment_of`.

    Raises:
        ValueError: it is none.
    """
    moment_of(text)
    return text


Moment = Annotated[str, AfterValidator(moment_text)]
"""A time as in `moment_of`, in a file that a model reads."""


def seconds_of(value: Any) -> float:
    """Return a number of seconds: of a duration, or since 1970. It is finite and not negative.

    Raises:
        ValueError: it is none, or later than `LATEST`.
    """
    number = value if isinstance(value, (int, float)) and not isinstance(value, bool) else math.nan
    if not 0 <= number <= LATEST:
        raise ValueError(f"{value!r:.60} is no number of seconds")
    return float(number)


def parquet(table: pl.DataFrame) -> bytes:
    """Return the bytes of the file of a table. `write_atomic_bytes` writes them."""
    content = BytesIO()
    table.write_parquet(content)
    return content.getvalue()

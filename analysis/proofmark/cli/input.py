"""Reads the standard input of commands, and the JSON that playbooks pass to them."""

from __future__ import annotations

import sys
from typing import IO, TypeVar

from pydantic import TypeAdapter, ValidationError

from proofmark.common.errors import bad_input
from proofmark.common.input_limits import MAX_RUN_FILE_BYTES
from proofmark.common.text import size

Content = TypeVar("Content")


def read_stdin(kind: type[Content]) -> Content:
    """Return the JSON in stdin as `kind`.

    Raises:
        BadInput: it is no JSON, does not fit `kind`, or is larger than `MAX_RUN_FILE_BYTES`.
    """
    return parse(TypeAdapter(kind), sys.stdin.buffer, "stdin")


def parse(adapter: TypeAdapter[Content], file: IO[bytes], name: str) -> Content:
    """Return the JSON in `file`, which messages call `name`.

    Raises:
        BadInput: it is no JSON, does not fit, or is larger than `MAX_RUN_FILE_BYTES`.
    """
    try:
        return adapter.validate_json(read_limited(file, name, MAX_RUN_FILE_BYTES))
    except ValidationError as error:
        (first, *_) = error.errors(include_url=False, include_input=False)
        key = ".".join(map(str, first["loc"]))
        raise bad_input(name, key, first["msg"], "JSON of the playbooks") from None


def read_limited(file: IO[bytes], name: str, limit: int) -> bytes:
    """Return the bytes of `file`, which messages call `name`.

    Raises:
        BadInput: it has more than `limit` bytes.
    """
    content = file.read(limit + 1)
    if len(content) > limit:
        raise bad_input(name, "", "more bytes", f"at most {size(limit)}")
    return content

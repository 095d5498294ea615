"""Parses JSON of others: files that programs wrote, and answers of BMCs and schedulers."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from proofmark.common.input_limits import MAX_DEPTH

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
    value: Any = _DECODER.decode(content.decode("utf-8-sig"))
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
        value = json.dumps(_unescaped(value[1:-1]) if quoted else value)
    return f"{key}{value}"


def _unescaped(text: str) -> str:
    """Return a text in which some characters are escaped and some are not."""
    return _ESCAPE.sub(lambda found: _ESCAPED.get(found[1]) or chr(int(found[1][1:], 16)), text)


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

"""The text of an output file: its compression, its encoding, and what Ansible put around it."""

from __future__ import annotations

import codecs
import json
import re
import zlib
from typing import Any

import yaml

from proofmark.common.input_limits import MAX_OUTPUT_BYTES

_ITEM = r'[ \t]*"(?:[^"\\\n]|\\.)*",?[ \t]*'
_JSON = re.compile(rf'(stdout_lines": \[)\n((?:{_ITEM}\n)+)')
_YAML = re.compile(r"((?:^|\n) *[\w.]*stdout_lines:[ ]*)\n((?:[ ]*- .*\n|[ ]*-\n)+)")
_TEXT = re.compile(r'"(?:[\w.]+\.)?stdout": ("(?:[^"\\\n]|\\.)*")')
_RESULT = re.compile(r"^(\w+: \[[^\]\n]+\][^{\n]*=> )(\{.*\})$", re.MULTILINE)
_MARK = "stdout"
_UNREADABLE = (ValueError, RecursionError)
"""What `json` raises for a text that is damaged, or that has too many levels."""


def program_lines(text: str) -> str:
    """Return `text` with the lines of registered outputs as the programs printed them.

    A result has its output twice, as a text and as a list of lines. The list counts.
    """
    if _MARK not in text:
        return text
    text = _RESULT.sub(_of_result, text)
    text, lists = _JSON.subn(lambda match: f"{match[1]}\n{_of_json(match[2])}", text)
    text, more = _YAML.subn(lambda match: f"{match[1]}\n{_of_yaml(match[2])}", text)
    return text if lists or more else _TEXT.sub(_of_text, text)


def _of_result(match: re.Match[str]) -> str:
    """Return a result in one line as the lines of its output; unchanged if it has none."""
    try:
        result = json.loads(match[2])
    except _UNREADABLE:
        return match[0]
    # A loop has a result for each item.
    items = result.get("results")
    results: list[Any] = items if isinstance(items, list) else [result]
    texts = [each["stdout"] for each in results if isinstance(each, dict) and _has_output(each)]
    return "\n".join([match[1], *texts]) if texts else match[0]


def _has_output(result: dict[str, Any]) -> bool:
    return isinstance(result.get("stdout"), str)


def _of_json(items: str) -> str:
    """Return the items of a list as lines; a damaged item is unchanged."""
    return "".join(f"{_text(line)}\n" for line in items[:-1].split("\n"))


def _text(line: str) -> str:
    """Return the text that a line states as JSON; the line itself if it is damaged."""
    try:
        text: str = json.loads(line.strip(" \t").removesuffix(","), strict=False)
    except _UNREADABLE:
        return line
    return text


def _of_yaml(items: str) -> str:
    """Return the items of a list as lines. An item in several lines is not recognised as a list."""
    lines = []
    for item in items[:-1].split("\n"):
        try:
            read = yaml.load(item, Loader=yaml.CBaseLoader)  # makes texts, lists and mappings only
        except (yaml.YAMLError, RecursionError):
            read = item
        lines.append(
            read[0] if isinstance(read, list) and read and isinstance(read[0], str) else item
        )
    return "".join(f"{line}\n" for line in lines)


def _of_text(match: re.Match[str]) -> str:
    text = _text(match[1])
    return f'"stdout":\n{text}\n' if "\n" in text else match[0]


_GZIP = b"\x1f\x8b"
_GZIP_WINDOW = 31
_ENCODINGS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_SAMPLE = 512
_DAMAGED = "\ngzip: unexpected end of file\n"


def output_text(content: bytes, limit: int = MAX_OUTPUT_BYTES) -> str:
    """Return the text in `content`: UTF-8, or UTF-16 (PowerShell), and both may be in gzip.

    Bytes that are not of the encoding are replaced. A gzip file that is damaged, or has more than
    `limit` bytes of text, ends with the message of gzip, which no finished output has. The lines
    of registered results are those of their programs.
    """
    content, damaged = _unpacked(content, limit)
    if content.startswith(b"\0\0"):  # a log that was truncated while it was open
        content = content.lstrip(b"\0")
    text = _decoded(content).replace("\xa0", " ")  # a blank of a word processor
    return program_lines(f"{text}{damaged}")


def _decoded(content: bytes) -> str:
    for mark, encoding in _ENCODINGS.items():
        if content.startswith(mark):
            return content.decode(encoding, "replace")
    sample = content[:_SAMPLE]
    if sample and sample.count(0) * 3 > len(sample):  # ASCII in UTF-16 without a mark
        little = sample[1::2].count(0) > sample[::2].count(0)
        return content.decode("utf-16-le" if little else "utf-16-be", "replace")
    return content.decode("utf-8", "replace")


def _unpacked(content: bytes, limit: int) -> tuple[bytes, str]:
    """Return the content of all members of a gzip file, and the words that mark a damaged one."""
    parts: list[bytes] = []
    rest = content
    while rest.startswith(_GZIP):
        unpacker = zlib.decompressobj(_GZIP_WINDOW)
        try:
            parts.append(unpacker.decompress(rest, limit + 1))
        except zlib.error:
            return b"".join(parts), _DAMAGED
        limit -= len(parts[-1])
        if limit < 0 or not unpacker.eof:
            return b"".join(parts), _DAMAGED
        rest = unpacker.unused_data
    return (b"".join(parts) if parts else content), ""

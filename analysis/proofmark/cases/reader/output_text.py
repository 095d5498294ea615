"""The text of an output file: its compression, its encoding, and what Ansible put around it."""

from __future__ import annotations

import codecs
import zlib

from proofmark.cases.reader.ansible_results import program_lines
from proofmark.common.input_limits import MAX_OUTPUT_BYTES

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
    return program_lines(f"{_decoded(content)}{damaged}")


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

"""OSU Micro-Benchmarks: the sizes that prove the end of an output (their options)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from proofmark.cases.reader.builder import ReadingBuilder
from proofmark.cases.reader.command_line import StartedCommand, size_of, value_of
from proofmark.cases.reader.program import Program
from proofmark.common.message import NOTHING, Message

_ELEMENT = 8
"""Bytes of the largest element. Collectives that compute begin with one element, not one byte."""
_MEMORY = 1 << 29
"""Bytes that limit the largest size times the ranks, without the option `-M`."""
_LARGEST = (
    (".*(?:Fetch_and_op|Compare_and_swap) .*", 8),
    (
        ".*Bandwidth.*|(?:(?:CUDA|ROCM|OPENACC|SYCL) )?"
        "(?:(?:Multi|Multi-threaded|Multi-process|Persistent|Put|Get) )?Latency",
        1 << 22,
    ),
    (".*", 1 << 20),
)
"""A pattern of the name of the benchmark, and its largest size without `-m`, in bytes. The first
pattern that matches counts."""


class Osu(Program):
    """All programs with a table of sizes. None of them prints a line at its end."""

    sized = "bytes"

    def missing_sizes(self, request: StartedCommand, builders: Sequence[ReadingBuilder]) -> Message:
        """Return which size has no row: sizes double up to that of `-m`, or to the default."""
        sizes = sorted(_sizes(builders))
        if not sizes:
            return NOTHING
        requested = value_of(request, "-m")
        least, _, most = (requested or "").rpartition(":")
        largest = size_of(most) if most else _default(builders)
        smallest = size_of(least) if least else 0
        if largest is None or smallest is None:
            return Message("reader-no-option-size", option="-m", word=f"{requested}")
        memory = size_of(value_of(request, "-M")) or _MEMORY
        largest = max(min(largest, memory // (request.ranks or 1)), smallest)
        if sizes[0] > max(smallest, _ELEMENT):
            return Message("reader-first-row", bytes=sizes[0], least=smallest)
        intact = all(builder.value is not None for builder in builders)
        for size, following in pairwise(sizes):
            # A row that cannot be read has its own INVALID reading.
            if intact and following != (2 * size or 1):
                return Message("reader-no-row-between", least=size, most=following)
        if (2 * sizes[-1] or 1) <= largest:
            if not requested:
                return Message("reader-last-row-default", bytes=sizes[-1], most=largest)
            asked = {"option": "-m", "word": requested}
            return Message("reader-last-row", bytes=sizes[-1], most=largest, **asked)
        return NOTHING


def _sizes(builders: Iterable[ReadingBuilder]) -> set[int]:
    found = (builder.parameters.get("bytes") for builder in builders)
    return {size for size in found if isinstance(size, int)}


def _default(builders: Sequence[ReadingBuilder]) -> int:
    name = next((builder.benchmark for builder in builders if builder.benchmark), "")
    return next(size for pattern, size in _LARGEST if re.fullmatch(pattern, name, re.ASCII))

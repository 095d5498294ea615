"""The command line of a run: exact sizes, the requested rows, the requested message sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from proofmark.cases.reader.builder import ReadingBuilder
from proofmark.cases.reader.spec_command import CommandLine, Doubling, Operations
from proofmark.cases.reader.values import parameter
from proofmark.common.message import NOTHING, Message

_ELEMENT = 8
"""Bytes of the largest element. Collectives that compute begin with one element, not one byte."""


@dataclass(frozen=True)
class StartedCommand:
    """What was started.

    Attributes:
        arguments: of the program, without its name.
        ranks: the number of ranks; None if it is not known.
    """

    arguments: Sequence[str]
    ranks: int | None = None


def exact_sizes(rule: CommandLine, request: StartedCommand) -> dict[str, int]:
    """Return the sizes in the command line, by parameter; without those that cannot be read."""
    sizes = {}
    for name, option in rule.exact.items():
        if (size := _size(_value(request, option))) is not None:
            sizes[name] = size
    return sizes


def has_requested_rows(
    rule: Operations, request: StartedCommand, builders: Iterable[ReadingBuilder]
) -> bool:
    """Return whether the readings have an intact row for each requested operation."""
    words = request.arguments
    repeats = _value(request, rule.repeats) or "1"
    if not repeats.isdecimal() or any(option in words for option in rule.unless):
        return False
    metrics = [metric for option, metric in rule.options.items() if option in words]
    rows = {
        (builder.metric, builder.parameters.get(rule.numbered))
        for builder in builders
        if not builder.problems
    }
    needed = set()
    for metric in metrics or rule.otherwise:
        needed |= {(metric, row) for row in range(int(repeats))}
    return needed <= rows


def selected_metrics(rule: CommandLine, request: StartedCommand) -> set[str]:
    """Return the metrics that the options of `request` select by `rule.phases`."""
    # mdtest prints each word in quotes: single ones, or double ones (1.9.3).
    words = {word.strip("'\"") for word in request.arguments}
    chosen: list[set[str]] = []
    for group in rule.phases:
        named = [names for option, names in group.items() if option in words]
        # Without an option of a group, the program runs all of its phases.
        chosen.append(set().union(*named) or set().union(*group.values()))
    return set.intersection(*chosen)


def missing_sizes(
    rule: Doubling, request: StartedCommand, builders: Sequence[ReadingBuilder]
) -> Message:
    """Return which requested sizes have no row; `NOTHING` if all have one."""
    sizes = sorted(_sizes_of(rule, builders))
    if not sizes:
        return NOTHING
    requested = _value(request, rule.option)
    least, _, most = (requested or "").rpartition(":")
    largest = _size(most) if most else _default(rule, builders)
    smallest = _size(least) if least else 0
    if largest is None or smallest is None:
        return Message("reader-no-option-size", option=rule.option, word=f"{requested}")
    memory = _size(_value(request, rule.memory_option)) or rule.memory
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
        asked = {"option": rule.option, "word": requested}
        return Message("reader-last-row", bytes=sizes[-1], most=largest, **asked)
    return NOTHING


def _sizes_of(rule: Doubling, builders: Iterable[ReadingBuilder]) -> set[int]:
    found = (builder.parameters.get(rule.parameter) for builder in builders)
    return {size for size in found if isinstance(size, int)}


def _default(rule: Doubling, builders: Sequence[ReadingBuilder]) -> int | None:
    name = next((builder.benchmark for builder in builders if builder.benchmark), "")
    fitting = (each.size for each in rule.largest if each.benchmark.fullmatch(name))
    return next(fitting, None)


def _value(request: StartedCommand, option: str) -> str | None:
    """Return the word after the last `option`, or the end of a word `option=`; None without it."""
    found = None
    words: Mapping[int, str] = dict(enumerate(request.arguments))
    for place, word in words.items():
        if word == option:
            found = words.get(place + 1, "")
        elif word.startswith(f"{option}="):
            found = word[len(option) + 1 :]
    return found


def _size(word: str | None) -> int | None:
    try:
        size = parameter("suffixed", word or "")
    except ValueError:
        return None
    return size if isinstance(size, int) else None

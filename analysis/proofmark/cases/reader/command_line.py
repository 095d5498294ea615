"""The command line of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from proofmark.cases.reader.values import parameter


@dataclass(frozen=True)
class StartedCommand:
    """What was started.

    Attributes:
        arguments: of the program, without its name.
        ranks: the number of ranks; None if it is not known.
    """

    arguments: Sequence[str]
    ranks: int | None = None


def value_of(request: StartedCommand, option: str) -> str | None:
    """Return the word after the last `option`, or the end of a word `option=`; None without it."""
    found = None
    words = request.arguments
    for place, word in enumerate(words):
        if word == option:
            found = words[place + 1] if place + 1 < len(words) else ""
        elif word.startswith(f"{option}="):
            found = word[len(option) + 1 :]
    return found


def size_of(word: str | None) -> int | None:
    """Return the size in a word such as `16m`, bytes; None if it has none."""
    try:
        size = parameter("suffixed", word or "")
    except ValueError:
        return None
    return size if isinstance(size, int) else None

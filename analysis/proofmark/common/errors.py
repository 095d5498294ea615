"""Errors a user can act on: which file, which key, what was found, what is accepted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches


def nearest(word: str, words: Iterable[str]) -> str:
    """Return ``", did you mean 'x'?"`` for the closest of `words`, or an empty string."""
    close = get_close_matches(word, sorted(words), n=1, cutoff=0.5)
    return f", did you mean {close[0]!r}?" if close else ""


@dataclass(frozen=True)
class InputError:
    """One thing wrong with an input.

    Attributes:
        file: the file, or the option, that holds the mistake; with ``:line`` where known.
        key: the place inside it, dotted (``sweep.ranks``); empty where there is none.
        found: what stands there.
        accepted: what may stand there.
    """

    file: str
    key: str
    found: str
    accepted: str

    def __str__(self) -> str:
        """Render as one line: where, what was found, what is accepted."""
        where = f"{self.file}: {self.key}" if self.key else self.file
        return f"{where}: found {self.found}; accepted: {self.accepted}"


class ProofmarkError(Exception):
    """Base class of all exceptions of the package."""


class BadInput(ProofmarkError):
    """Input that cannot be used; holds every mistake found, not just the first. Exit code 3."""

    def __init__(self, *mistakes: InputError) -> None:
        self.mistakes = mistakes
        super().__init__("\n".join(str(mistake) for mistake in mistakes))

    def __reduce__(self) -> tuple[type[BadInput], tuple[InputError, ...]]:
        """Let another process raise it here."""
        return type(self), self.mistakes


def bad_input(file: object, key: str, found: str, accepted: str) -> BadInput:
    """Build the common case: a `BadInput` of one mistake."""
    return BadInput(InputError(str(file), key, found, accepted))


class Stopped(ProofmarkError):
    """The run was stopped from outside; the same command goes on with it."""

"""Exceptions of the package, and the nodes that failed in a command.

An error of input has file, key, value found and values accepted. A command collects its failed
nodes while it runs. The option ``--failed-nodes-fd`` writes them as JSON, and the playbooks mark
these hosts as failed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from proofmark.common.text import one_line


def nearest(word: str, words: Iterable[str]) -> str:
    """Return ``", did you mean 'x'?"`` with the closest of `words`, or an empty text."""
    close = closest(word, words)
    return f", did you mean {close!r}?" if close else ""


def closest(word: str, words: Iterable[str]) -> str:
    """Return the closest of `words`, or an empty text.

    Of equally close words, one with the same letters as `word` is preferred: letters were swapped.
    """
    close = get_close_matches(word, sorted(words), n=3, cutoff=0.5)
    return min(close, key=lambda each: sorted(each) != sorted(word), default="")


@dataclass(frozen=True)
class InputError:
    """One error of an input.

    Attributes:
        file: the file or the option that contains the error; with ``:line`` if it is known.
        key: the dotted key in the file (``sweep.ranks``); empty if the error has no key.
        found: the value at that place.
        accepted: the values that are accepted there.
        code: the code of the reason; empty if the place is enough.
        nodes: the nodes with the error, as a node set; empty if it is of no node.
        command: the command that mends it; empty if none does.
    """

    file: str
    key: str
    found: str
    accepted: str
    code: str = ""
    nodes: str = ""
    command: str = ""

    def __str__(self) -> str:
        """Return one line: the place, the value found, the values accepted."""
        place = self.key or (f"on {self.nodes}" if self.nodes else "")
        where = f"{self.file}: {place}" if place else self.file
        where = f"{where}: {self.code}" if self.code else where
        mends = f"; run: {self.command}" if self.command else ""
        return one_line(f"{where}: found {self.found}; accepted: {self.accepted}{mends}")


class ProofmarkError(Exception):
    """Base class of all exceptions of the package."""


class BadInput(ProofmarkError):
    """Input that cannot be used, with all errors that were found. Exit code 3."""

    def __init__(self, *mistakes: InputError) -> None:
        self.mistakes = mistakes
        super().__init__("\n".join(str(mistake) for mistake in mistakes))

    def __reduce__(self) -> tuple[type[BadInput], tuple[InputError, ...]]:
        """Return how to rebuild the exception in another process."""
        return type(self), self.mistakes


class KeyMistake(ValueError):
    """A check of several keys of a model found one of them wrong.

    Attributes:
        accepted: what is accepted there.
    """

    def __init__(self, accepted: str, *key: str | int) -> None:
        super().__init__(f"{'.'.join(map(str, key))}: {accepted}")
        self.key = key
        self.accepted = accepted


class NothingToRun(BadInput):
    """The machine can run no step of a suite. Another machine can perhaps run some."""


def bad_input(file: object, key: str, found: str, accepted: str) -> BadInput:
    """Return a `BadInput` with one error."""
    return BadInput(InputError(str(file), key, found, accepted))


def refuse(mistakes: Iterable[InputError]) -> None:
    """Raise a `BadInput` with all of `mistakes`, if there are any."""
    if found := [*mistakes]:
        raise BadInput(*found)


class OutsideError(ProofmarkError):
    """A program or a machine outside of the kit refused, or did not answer. Exit code 3."""


class Stopped(ProofmarkError):
    """A signal stopped the run. The same command continues it."""


@dataclass(frozen=True)
class NodeFailure:
    """Why a node failed.

    Attributes:
        text: the reason, for persons.
        code: one word in capital letters; empty if the command has none.
    """

    text: str
    code: str = ""

    def __str__(self) -> str:
        """Return one line, with the code if there is one."""
        return f"{self.code}: {self.text}" if self.code else self.text


_reasons: dict[str, NodeFailure] = {}


def note_failed_nodes(reasons: Mapping[str, NodeFailure]) -> None:
    """Collect the nodes in `reasons`. A node keeps its first reason."""
    for node, reason in reasons.items():
        _reasons.setdefault(node, reason)


def note_input_errors(errors: Iterable[InputError]) -> None:
    """Collect the nodes that `errors` name."""
    from proofmark.common.nodesets import unfold  # its library costs time; few commands fail

    for error in errors:
        try:
            nodes = unfold([error.nodes]) if error.nodes else []
        except ValueError:
            continue  # a node may report any text as its name
        failure = NodeFailure(f"{error.file}: {error.found}", error.code)
        note_failed_nodes(dict.fromkeys(nodes, failure))


def take_failed_nodes() -> dict[str, NodeFailure]:
    """Return the collected reasons by node, and forget them."""
    taken = dict(_reasons)
    _reasons.clear()
    return taken


def failed_nodes_json() -> bytes:
    """Return the collected reasons by node as JSON, and forget them."""
    return json.dumps({node: f"{why}" for node, why in take_failed_nodes().items()}).encode()

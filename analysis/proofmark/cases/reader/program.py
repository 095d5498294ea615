"""What the rules of a case cannot state of its program: documents of JSON, requested rows.

A program that needs it has a class in a module of `programs`; the key `program` of `read:` names
the module. An installed package adds one by an entry point.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from proofmark.cases.reader.builder import ReadingBuilder
from proofmark.cases.reader.command_line import StartedCommand
from proofmark.cases.reader.values import Parameter
from proofmark.common.message import NOTHING, Message
from proofmark.common.plugins import Plugins


@dataclass(frozen=True)
class Item:
    """One measurement in a document.

    Attributes:
        values: metric → its place in the document, for a reason, and the value at this place.
        parameters: parameter → the value at its place; None: the document does not have it.
        settings: the options of the measurement.
        problems: why its figures are INVALID.
    """

    values: Mapping[str, tuple[str, object]]
    parameters: Mapping[str, object] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)
    problems: Sequence[str] = ()


class Program:
    """A program without documents of JSON, which requests no rows. Each method accepts any input.

    Attributes:
        units: metric → unit of its documents; empty: it prints none.
        keys: the keys that each document has. `adopt` recognises a document by them.
        stated: the parameters that each document has.
        numbered: the parameter that numbers the readings of one metric, from 0, if a document has
            no numbers.
        refused: lines beside a document that make its figures INVALID.
        sized: the parameter of rows whose sizes prove the end of an output.
    """

    units: Mapping[str, str] = {}
    keys: tuple[str, ...] = ()
    stated: frozenset[str] = frozenset()
    numbered: str = ""
    refused: tuple[re.Pattern[str], ...] = ()
    sized: str = ""

    def is_own(self, document: object) -> bool:
        """Return whether the program printed `document`."""
        return all(truth(at(document, key)) for key in self.keys)

    def is_partial(self, document: object) -> bool:
        """Return whether `document` is a report of a program that still runs."""
        return False

    def problems(self, document: object) -> Iterator[str]:
        """Yield why all figures of `document` are INVALID."""
        yield from ()

    def items(self, document: object) -> Iterator[Item]:
        """Yield the measurements in `document`."""
        yield from ()

    def exact_sizes(self, request: StartedCommand) -> Mapping[str, int]:
        """Return the sizes in a command line, by parameter. The program may print them rounded."""
        return {}

    def has_requested_rows(
        self, request: StartedCommand, builders: Iterable[ReadingBuilder]
    ) -> bool:
        """Return whether the readings are all that was requested: the program has ended."""
        return False

    def selected_metrics(self, request: StartedCommand) -> set[str] | None:
        """Return the metrics that `request` selects; None: all."""
        return None

    def facts(self, printed: Mapping[str, Parameter]) -> Mapping[str, Parameter]:
        """Return the values of a run that count instead of what it printed, or that it lacks."""
        return {}

    def missing_sizes(self, request: StartedCommand, builders: Sequence[ReadingBuilder]) -> Message:
        """Return which requested size has no row; `NOTHING` if all have one."""
        return NOTHING


PROGRAMS = Plugins(Program, "proofmark.cases.reader.programs", "a case", "read.program")
"""The programs that rules alone cannot read."""


def at(value: object, *keys: str) -> object:
    """Return the value below `keys` in a document; None if it has none."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def truth(value: object) -> bool:
    """Return whether a document has a value: 0 is one; null, false and an empty value are none."""
    return value is not None and value is not False and value not in ("", [], {})


def first_of(*values: object) -> object:
    """Return the first of `values` that is not empty, else the last one."""
    return next((value for value in values if truth(value)), values[-1])


def words_of(value: object) -> str:
    """Return a text of a document; an empty text for another value."""
    return value if isinstance(value, str) else ""

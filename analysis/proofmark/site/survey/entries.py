"""The entries of a partition's facts: facts with sources, assumptions and questions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Fact:
    """A value that was found, and its source."""

    value: Any
    source: str


@dataclass(frozen=True)
class Assumed:
    """A usual value without a source; `reason` states it."""

    value: Any
    reason: str


@dataclass(frozen=True)
class Question:
    """A fact that was not found.

    Attributes:
        answer: lines of YAML that a person may use as the answer.
    """

    text: str
    answer: tuple[str, ...] = ()


Entry = Fact | Assumed | Question
Found = dict[str, Entry]
"""Entries by dotted key below ``partition``."""

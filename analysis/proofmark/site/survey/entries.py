"""The entries of a partition's facts: facts with sources, assumptions and questions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

TEMPLATES = ("{{", "{%", "{#")
"""Ansible evaluates a text with one of these."""


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
        text: the question, in one line.
        answer: lines of YAML below ``partition`` that a person may use as the answer.
    """

    text: str
    answer: tuple[str, ...] = ()


Entry = Fact | Assumed | Question
Found = dict[str, Entry]
"""Entries by dotted key below ``partition``."""


def harmless(text: str) -> bool:
    """Return whether `text` can be a value of an inventory: Ansible must not evaluate it."""
    return not any(mark in text for mark in TEMPLATES)

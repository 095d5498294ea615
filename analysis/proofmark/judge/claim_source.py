"""Claims: statements about systems that plug-ins check on records. No verdict depends on them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import polars as pl

from proofmark.common.message import Message
from proofmark.common.plugins import Plugins

Word = Literal["holds", "does not hold", "cannot be told"]
WORDS: tuple[Word, ...] = ("holds", "does not hold", "cannot be told")


@dataclass(frozen=True)
class NodeHardware:
    """The hardware of one node of a system.

    Attributes:
        cores: the number of cores.
        tiles: the number of pairs of cores that share a level 2 cache; 0 if there are none.
        peak_gflops: Rpeak nominal in GFlop/s (P1, equations 1 and 2); None if unknown.
    """

    cores: int
    tiles: int = 0
    peak_gflops: float | None = None


Machines = Mapping[str, NodeHardware]
"""Machines by system."""


@dataclass(frozen=True)
class Statement:
    """A statement of a paper.

    Attributes:
        id: ``C1.1`` … ``C5.4``, of paper P1 … P5.
        statement: the claim of the paper.
    """

    id: str
    statement: str
    systems: tuple[str, ...]

    @property
    def paper(self) -> str:
        """Return the paper, ``P1`` … ``P5``."""
        return f"P{self.id[1]}"


@dataclass(frozen=True)
class Answer:
    """The answer to a claim from figures of one origin.

    `missing` lists the gaps of the sweep. `elsewhere` is true if the claim is about a system
    without figures.
    """

    claim: Statement
    origin: str
    word: Word
    sentence: str
    numbers: Mapping[str, float] = field(default_factory=dict)
    missing: tuple[Message, ...] = ()
    elsewhere: bool = False

    def as_json(self) -> dict[str, object]:
        """Return the form of ``proofmark verdict --claims --json``."""
        return {
            "claim": self.claim.id,
            "paper": self.claim.paper,
            "statement": self.claim.statement,
            "systems": list(self.claim.systems),
            "origin": self.origin,
            "answer": self.word,
            "sentence": self.sentence,
            "numbers": dict(self.numbers),
            "missing": list(self.missing),
        }


class ClaimSource(ABC):
    """The claims of a plug-in.

    Attributes:
        machines: the systems of the claims, as their authors describe them.
    """

    machines: ClassVar[Machines]

    @abstractmethod
    def answers(self, records: pl.DataFrame, machines: Machines) -> list[Answer]:
        """Return the answer to every claim from the valid records of each origin.

        Args:
            records: a table with the columns of records.parquet; its texts are Categorical.
            machines: the systems that a site declares; for others the plug-in has its own.
        """


SOURCES = Plugins(ClaimSource, "proofmark.judge.claims", "claims")
"""All plug-ins with claims: entry points of this group."""

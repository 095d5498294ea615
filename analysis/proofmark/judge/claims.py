"""Claims: statements about systems that plug-ins check on records. No verdict depends on them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import polars as pl

from proofmark.common.errors import BadInput, bad_input
from proofmark.common.message import Message
from proofmark.common.plugins import Plugins
from proofmark.judge.verdict import Verdict
from proofmark.runs.run import Run, site_of
from proofmark.site.hardware import UNRECORDED
from proofmark.site.machines import declared
from proofmark.site.partition import PREDICTED

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


def answers_of(runs: Iterable[tuple[Run, Verdict]]) -> list[Answer]:
    """Return the answer to every claim from the valid figures of all `runs` together.

    Raises:
        BadInput: two simulations of a system imitate different MPI libraries.
    """
    systems: set[str] = set()
    for name in SOURCES.names():
        systems.update(SOURCES.get(name).machines)
    tables: list[pl.DataFrame] = []
    machines: dict[str, NodeHardware] = {}
    selectors: dict[str, str] = {}
    for run, verdict in runs:
        _add_selector(run, selectors)
        tables.append(verdict.results.aggregates.table(systems))
        machine = machine_of(run)
        machines |= {run.plan.system: machine} if machine else {}
    records = pl.concat(tables)
    answers: list[Answer] = []
    for name in SOURCES.names():
        answers += SOURCES.get(name)().answers(records, machines)
    return answers


def _add_selector(run: Run, selectors: dict[str, str]) -> None:
    """Add the selector of a simulation to those of other runs, by system."""
    partition = site_of(run).partition
    if partition.origin != PREDICTED:
        return
    selector = partition.launch.mpi
    known = selectors.setdefault(run.plan.system, selector)
    if selector != known:
        raise bad_input(run.folder, "selector", selector, known)


def machine_of(run: Run) -> NodeHardware | None:
    """Return the node of the run's system as the site declares it, else that of the papers.

    None if neither has it.
    """
    site, system = site_of(run), run.plan.system
    node = site.partition.node
    if not node.topology:
        return _published(system)
    mode = run.plan.current_mode
    if mode == UNRECORDED:  # the cores are the same in each mode
        mode = site.partition.current_mode
    try:
        machine = declared(site, node, mode)
    except BadInput:
        # The topology is in a file of the inventory, which is missing on this machine.
        return _published(system)
    tiles = {core.tile for core in machine.topology.cores if core.tile is not None}
    peak = machine.symbols.get("rpeak_nominal")
    cores = len(machine.topology.cores)
    shared = len(tiles) if len(tiles) < cores else 0
    return NodeHardware(cores, shared, peak / 1e9 if peak else None)


def _published(system: str) -> NodeHardware | None:
    """Return the node of `system` as the authors of claims about it describe it."""
    known = (SOURCES.get(name).machines for name in SOURCES.names())
    return next((machines[system] for machines in known if system in machines), None)

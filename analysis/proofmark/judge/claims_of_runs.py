"""The claims for runs: the answers from their figures, and the machine of a run."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from proofmark.common.errors import BadInput, bad_input
from proofmark.judge.claim_source import SOURCES, Answer, NodeHardware
from proofmark.judge.verdict import Verdict
from proofmark.runs.run import Run, site_of
from proofmark.site.machines import declared
from proofmark.site.partition import PREDICTED


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
    # The mode of imported figures is not known. The cores are the same in each mode.
    mode = site.partition.current_mode if run.plan.imported else run.plan.current_mode
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

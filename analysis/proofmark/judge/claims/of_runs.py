"""The claims for runs: the answers from their figures, and the machine of a run."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from proofmark.common.errors import BadInput
from proofmark.judge.claims import answers
from proofmark.judge.claims.model import PAPERS, Answer, Machine
from proofmark.judge.verdict import Verdict
from proofmark.runs.run import Run, site_of
from proofmark.site.machines import declared


def answers_of(runs: Iterable[tuple[Run, Verdict]]) -> list[Answer]:
    """Return the answer to every claim from the valid figures of all `runs` together."""
    tables: list[pl.DataFrame] = []
    machines: dict[str, Machine] = {}
    for run, verdict in runs:
        tables.append(verdict.results.aggregates.table())
        machine = machine_of(run)
        machines |= {run.plan.system: machine} if machine else {}
    return answers(pl.concat(tables), machines)


def machine_of(run: Run) -> Machine | None:
    """Return the node of the run's system as the site declares it, else that of the papers.

    None if neither has it.
    """
    site, system = site_of(run), run.plan.system
    hardware = site.partition.hardware
    if hardware == "discovered":
        return PAPERS.get(system)
    # The mode of imported figures is not known. The cores are the same in each mode.
    mode = site.partition.current_mode if run.plan.imported else run.plan.current_mode
    try:
        machine = declared(site, hardware, mode)
    except BadInput:
        # The topology is in a file of the inventory, which is missing on this machine.
        return PAPERS.get(system)
    tiles = {core.tile for core in machine.topology.cores if core.tile is not None}
    peak = machine.symbols.get("rpeak_nominal")
    cores = len(machine.topology.cores)
    shared = len(tiles) if len(tiles) < cores else 0
    return Machine(cores, shared, peak / 1e9 if peak else None)

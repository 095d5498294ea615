"""The claims on runs: what stands of their figures, and the machine that they were measured on."""

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
    """Answer every claim from the figures of `runs` together; INVALID ones do not count."""
    tables: list[pl.DataFrame] = []
    machines: dict[str, Machine] = {}
    for run, verdict in runs:
        tables.append(verdict.results.aggregates.table())
        machine = machine_of(run)
        machines |= {run.plan.system: machine} if machine else {}
    return answers(pl.concat(tables), machines)


def machine_of(run: Run) -> Machine | None:
    """Return the node of the run's system as its site declares it, else as the papers have it."""
    site, system = site_of(run), run.plan.system
    hardware = site.partition.hardware
    if hardware == "discovered":
        return PAPERS.get(system)
    try:
        machine = declared(site, hardware, run.plan.current_mode)
    except BadInput:
        # Its topology stands in a file of the inventory, which is not on this machine.
        return PAPERS.get(system)
    tiles = {core.tile for core in machine.topology.cores if core.tile is not None}
    peak = machine.symbols.get("rpeak_nominal")
    cores = len(machine.topology.cores)
    shared = len(tiles) if len(tiles) < cores else 0
    return Machine(cores, shared, peak / 1e9 if peak else None)

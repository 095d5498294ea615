"""The claims on runs: what stands of their figures, and the machine that they were measured on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import polars as pl

from proofmark.claims import answers
from proofmark.claims.model import PAPERS, Answer, Machine
from proofmark.errors import BadInput
from proofmark.machines import declared
from proofmark.runs import Run, site_of
from proofmark.verdict import Result, Verdict

NAMES = ("origin", "system", "case", "benchmark", "metric", "value", "unit", "mode", "placement")


def answers_of(runs: Iterable[tuple[Run, Verdict]]) -> list[Answer]:
    """Answer every claim from the figures of `runs` together; INVALID ones do not count."""
    results: list[Result] = []
    machines: dict[str, Machine] = {}
    for run, verdict in runs:
        results += verdict.results
        machine = machine_of(run)
        machines |= {run.plan.system: machine} if machine else {}
    return answers(table_of(results), machines)


def table_of(results: Sequence[Result]) -> pl.DataFrame:
    """Return figures, each the median of its repeats, as a table for `answers`."""
    records = [result.record for result in results if result.verdict != "INVALID"]
    columns = {name: [getattr(record, name) for record in records] for name in NAMES}
    columns["environment_hash"] = [record.environment_hash for record in records]
    columns["parameters"] = [
        json.dumps(dict(record.parameters), sort_keys=True) for record in records
    ]
    text = {name: pl.Float64 if name == "value" else pl.String for name in columns}
    return pl.DataFrame(columns, schema=text).with_columns(valid=pl.lit(True))


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

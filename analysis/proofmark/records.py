"""Records: one row per number, read from the raw outputs of a run and from nothing else."""

from __future__ import annotations

import errno
import json
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from proofmark.cases import Benchmarks
from proofmark.collect import Node
from proofmark.cpu import cpu_list
from proofmark.plan import Step
from proofmark.reader import Reading, read_output
from proofmark.runs import Run
from proofmark.site import Site
from proofmark.software import Software

Scalar = str | int | float


@dataclass(frozen=True)
class Record:
    """One number (contract, "Record"); `attempt` counts the times its step was run, from 1."""

    run: str
    step: str
    attempt: int
    system: str
    partition: str
    node: str
    origin: str
    case: str
    benchmark: str
    metric: str
    value: float | None
    unit: str
    repeat: int
    mode: str
    placement: str
    parameters: Mapping[str, Scalar]
    environment_hash: str
    valid: bool
    reason: str


@dataclass(frozen=True)
class Attempt:
    """One execution of a step, as its folder tells.

    Attributes:
        number: 1 for the step's own folder, then 2, 3, … for ``again-1``, ``again-2``, …
        rc: the exit code.
        host: the node that ran the command.
        start: UTC in ISO 8601, as is `end`.
        timed_out: whether the watchdog stopped it.
        binding: per rank ``{"rank", "host", "cpus"}`` as the rank itself saw it.
    """

    number: int
    folder: Path
    rc: int
    host: str
    start: str
    end: str
    timed_out: bool
    seconds: float
    binding: Sequence[Mapping[str, Any]]


def attempts(folder: Path) -> list[Attempt]:
    """Return the finished executions of the step in `folder`, oldest first."""
    agains = sorted(folder.glob("again-*"), key=lambda path: int(path.name.removeprefix("again-")))
    found = (_attempt(path, number) for number, path in enumerate([folder, *agains], start=1))
    return [attempt for attempt in found if attempt is not None]


def _attempt(folder: Path, number: int) -> Attempt | None:
    if not (folder / "rc").exists():
        return None
    try:
        when = json.loads((folder / "when.json").read_text())
        binding = json.loads((folder / "binding.json").read_text())
        rc = int((folder / "rc").read_text())
        host, start, end = (str(when[key]) for key in ("host", "start", "end"))
        late, seconds = bool(when["timed_out"]), float(when["seconds"])
    except (OSError, ValueError, KeyError, TypeError):
        # The loop writes these files before rc: what is damaged now was damaged afterwards.
        return Attempt(number, folder, -1, "", "", "", False, 0.0, [])
    return Attempt(number, folder, rc, host, start, end, late, seconds, binding)


def read_run(
    run: Run, benchmarks: Benchmarks, site: Site, software: Software, nodes: Mapping[str, Node]
) -> list[Record]:
    """Read every finished step of `run`; `nodes` are those collected so far."""
    return [
        record
        for group in run.plan.groups
        for job in group.jobs
        for step in job.steps
        for attempt in attempts(run.folder / "steps" / step.id)
        for record in _read_attempt(
            run, group.mode, step, attempt, benchmarks, site, software, nodes
        )
    ]


def _read_attempt(
    run: Run,
    mode: str,
    step: Step,
    attempt: Attempt,
    benchmarks: Benchmarks,
    site: Site,
    software: Software,
    nodes: Mapping[str, Node],
) -> Iterator[Record]:
    case = benchmarks.case(step.case)
    try:
        text = (attempt.folder / step.output).read_bytes().decode("utf-8", errors="replace")
    except FileNotFoundError:
        text = ""
    node = nodes.get(attempt.host)
    trouble = step_trouble(step, attempt) or (
        node.trouble(step.id, attempt.start, attempt.end) if node else ""
    )
    for reading in read_output(case.reader(), step.case, text):
        checked = _checked(reading, step, attempt, trouble)
        yield Record(
            run=run.id,
            step=step.id,
            attempt=attempt.number,
            system=run.plan.system,
            partition=run.plan.partition,
            node=reading.node or attempt.host,
            origin=site.partition.origin,
            case=step.case,
            benchmark=reading.benchmark,
            metric=reading.metric,
            value=reading.value,
            unit=reading.unit,
            repeat=step.repeat,
            mode=mode,
            placement=step.placement,
            parameters=_parameters(step, reading),
            environment_hash=software.packages[step.package].environment_hash,
            valid=checked.valid,
            reason=checked.reason,
        )


def step_trouble(step: Step, attempt: Attempt) -> str:
    """Return why no number of this execution counts, or an empty string.

    The program's exit code, the watchdog and the CPUs that each rank was really bound to.
    """
    if attempt.timed_out:
        return f"timed out after {attempt.seconds:.0f} s (limit {step.timeout} s)"
    if attempt.rc < 0:
        return "when.json, binding.json or rc is damaged"
    if attempt.rc > 128:
        return f"killed by {_signal_name(attempt.rc - 128)}"
    if attempt.rc:
        meaning = {126: " (not executable)", 127: " (no such program)"}.get(attempt.rc, "")
        said = last_words(attempt.folder / "stderr")
        return f"exit code {attempt.rc}{meaning}" + (f": {said}" if said else "")
    return _binding_trouble(step, attempt.binding)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def last_words(path: Path) -> str:
    """Return the line of `path` that best says what went wrong, shortened; empty if there is none.

    A full file system is named wherever it stands; else the last line that is not blank.
    """
    try:
        text = path.read_bytes()[-20_000:].decode("utf-8", errors="replace")
    except OSError:
        return ""
    lines = [line.strip() for line in text.splitlines() if line.strip(" -=#*\t")]
    telling = [line for line in lines if os.strerror(errno.ENOSPC) in line] or lines
    return telling[-1][:160] if telling else ""


def _binding_trouble(step: Step, binding: Sequence[Mapping[str, Any]]) -> str:
    if not step.cpus or step.launch == "threads":
        # OpenMP binds its threads after the process has noted where it may run.
        return ""
    if len(binding) != len(step.cpus):
        return f"{len(binding)} of {len(step.cpus)} ranks said where they ran"
    for entry in binding:
        rank = int(entry["rank"])
        asked = set(step.cpus[rank][1]) if rank < len(step.cpus) else set()
        ran = cpu_list(str(entry["cpus"]))
        if ran != asked:
            return f"rank {rank} ran on CPUs {entry['cpus']}, asked for {_ranges(asked)}"
    return ""


def _ranges(cpus: set[int]) -> str:
    return ",".join(map(str, sorted(cpus)))


def _checked(reading: Reading, step: Step, attempt: Attempt, trouble: str) -> Reading:
    """Add to a reading's own validity what the step and the question tell."""
    if not reading.valid:
        return replace(
            reading, reason=f"{trouble}; {reading.reason}" if trouble else reading.reason
        )
    if trouble:
        return replace(reading, valid=False, reason=trouble)
    asked = {**step.parameters, **step.derived, "ranks": step.ranks, "threads": step.threads}
    for name, printed in reading.parameters.items():
        if name in asked and str(asked[name]) != str(printed):
            reason = f"asked for {name} {asked[name]}, the output says {printed}"
            return replace(reading, valid=False, reason=reason)
    hosts = {str(entry["host"]) for entry in attempt.binding} | {attempt.host}
    if reading.node and reading.node not in hosts:
        reason = f"the output names node {reading.node}, the step ran on {', '.join(sorted(hosts))}"
        return replace(reading, valid=False, reason=reason)
    return reading


def _parameters(step: Step, reading: Reading) -> dict[str, Scalar]:
    own: dict[str, Scalar] = dict(step.parameters)
    if step.launch == "mpi":
        own["ranks"] = step.ranks
    if step.threads > 1 or step.launch == "threads":
        own["threads"] = step.threads
    return dict(sorted({**own, **reading.parameters}.items()))


SCHEMA: Mapping[str, Any] = {
    "run": pl.String,
    "step": pl.String,
    "attempt": pl.Int64,
    "system": pl.String,
    "partition": pl.String,
    "node": pl.String,
    "origin": pl.String,
    "case": pl.String,
    "benchmark": pl.String,
    "metric": pl.String,
    "value": pl.Float64,
    "unit": pl.String,
    "repeat": pl.Int64,
    "mode": pl.String,
    "placement": pl.String,
    "parameters": pl.String,
    "environment_hash": pl.String,
    "valid": pl.Boolean,
    "reason": pl.String,
}
"""Columns of records.parquet; ``parameters`` is JSON with sorted keys."""


def table(records: Sequence[Record]) -> pl.DataFrame:
    """Return the records as one tidy table (`SCHEMA`)."""
    rows = [
        {**asdict(record), "parameters": json.dumps(dict(record.parameters), sort_keys=True)}
        for record in records
    ]
    return pl.DataFrame(rows, schema=dict(SCHEMA))

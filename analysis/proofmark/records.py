"""Records: one row per number, read from the raw outputs of a run and from nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import polars as pl

from proofmark.attempts import Attempt, attempts, step_trouble
from proofmark.cases import Benchmarks
from proofmark.collect import Node
from proofmark.copies import apart, spread
from proofmark.node.software import Software
from proofmark.nodesets import folded
from proofmark.plan import Step
from proofmark.reader.engine import Reading, read_output
from proofmark.runs import Run
from proofmark.site import Site

Scalar = str | int | float


@dataclass(frozen=True, slots=True)
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


def read_run(
    run: Run, benchmarks: Benchmarks, site: Site, software: Software, nodes: Mapping[str, Node]
) -> list[Record]:
    """Read every finished step of `run`; `nodes` are those collected so far."""
    reader = _Reader(run, benchmarks, site, software, nodes)
    return [
        record
        for group in run.plan.groups
        for job in group.jobs
        for step in job.steps
        for record in reader.step(group.mode, step)
    ]


class _Reader:
    """Reads steps; what is the same for all the nodes of a step is worked out once."""

    def __init__(
        self,
        run: Run,
        benchmarks: Benchmarks,
        site: Site,
        software: Software,
        nodes: Mapping[str, Node],
    ) -> None:
        self._run, self._benchmarks, self._software = run, benchmarks, software
        self._nodes, self._partition = nodes, site.partition
        self._folded: dict[tuple[str, ...], str] = {}

    def step(self, mode: str, step: Step) -> Iterator[Record]:
        """Yield what all executions of `step` give, on all its nodes."""
        asked = {**step.parameters, **step.derived, "ranks": step.ranks, "threads": step.threads}
        for folder, hosts in (step.instances() or {"": []}).items():
            where = self._run.folder / "steps" / step.id / folder
            for attempt in attempts(where):
                yield from self._attempt(mode, step, asked, folder, hosts, attempt)

    def _attempt(
        self,
        mode: str,
        step: Step,
        asked: Mapping[str, Scalar],
        folder: str,
        hosts: Sequence[str],
        attempt: Attempt,
    ) -> Iterator[Record]:
        case = self._benchmarks.case(step.case)
        try:
            text = (attempt.folder / step.output).read_bytes().decode("utf-8", errors="replace")
        except FileNotFoundError:
            text = ""
        node = self._nodes.get(attempt.host)
        trouble = (
            step_trouble(step, attempt, hosts, self._partition.stand_ins)
            or (node.trouble(step.id, attempt.start, attempt.end) if node else "")
            or _misplaced(hosts, attempt)
        )
        readings = read_output(case.reader(), step.case, text)
        if case.together and step.copies > 1:
            file = f"{self._benchmarks.folder / step.case}.yml"
            trouble = trouble or apart(step, case.together, attempt.folder, readings, file)
            readings = [*readings, *spread(case.together, readings)]
        there = tuple(hosts) or tuple(sorted({bound.host for bound in attempt.ranks}))
        several = self._name_of(there) if len(there) > 1 else ""
        name = f"{step.id}/{folder}" if folder else step.id
        environment_hash = self._software.packages[step.package].environment_hash
        for reading in readings:
            checked = _checked(reading, asked, attempt, trouble)
            yield Record(
                run=self._run.id,
                step=name,
                attempt=attempt.number,
                system=self._run.plan.system,
                partition=self._run.plan.partition,
                node=several or reading.node or attempt.host,
                origin=self._partition.origin,
                case=step.case,
                benchmark=reading.benchmark,
                metric=reading.metric,
                value=reading.value,
                unit=reading.unit,
                repeat=step.repeat,
                mode=mode,
                placement=step.placement,
                parameters=_parameters(step, reading),
                environment_hash=environment_hash,
                valid=checked.valid,
                reason=checked.reason,
            )

    def _name_of(self, hosts: tuple[str, ...]) -> str:
        if hosts not in self._folded:
            self._folded[hosts] = folded(hosts)
        return self._folded[hosts]


def _misplaced(hosts: Sequence[str], attempt: Attempt) -> str:
    """Return why the output in the folder of `hosts` is not theirs, or an empty string.

    Whose it is says the node itself; a folder's name is only where it should be found.
    """
    if not hosts or _short(attempt.host) == _short(hosts[0]):
        return ""
    return f"measured on {attempt.host}, in the folder of {hosts[0]}"


def _short(host: str) -> str:
    return host.partition(".")[0]


def _checked(
    reading: Reading, asked: Mapping[str, Scalar], attempt: Attempt, trouble: str
) -> Reading:
    """Add to a reading's own validity what the step and the question tell."""
    if not reading.valid:
        return replace(
            reading, reason=f"{trouble}; {reading.reason}" if trouble else reading.reason
        )
    if trouble:
        return replace(reading, valid=False, reason=trouble)
    for name, printed in reading.parameters.items():
        if name in asked and not _same(asked[name], printed):
            reason = f"asked for {name} {asked[name]}, the output says {printed}"
            return replace(reading, valid=False, reason=reason)
    if not reading.node or reading.node == attempt.host:
        return reading
    hosts = {bound.host for bound in attempt.ranks} | {attempt.host}
    if reading.node not in hosts:
        reason = f"the output names node {reading.node}, the step ran on {', '.join(sorted(hosts))}"
        return replace(reading, valid=False, reason=reason)
    return reading


def _same(asked: Scalar, printed: Scalar) -> bool:
    if isinstance(asked, (int, float)) and isinstance(printed, (int, float)):
        return asked == printed
    return str(asked) == str(printed)


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

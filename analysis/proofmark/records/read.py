"""Reads the records of a run: one record per value in the raw outputs."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from proofmark.cases.models import Benchmarks
from proofmark.cases.reader.command_line import Request
from proofmark.cases.reader.engine import Reading, read_output
from proofmark.common.files import read_bytes
from proofmark.common.host_names import HostTable
from proofmark.common.message import NOTHING, Message, joined
from proofmark.common.nodesets import folded, is_name
from proofmark.common.parallel import parallel_map
from proofmark.plan.plan import Step
from proofmark.records.binding import BindingCheck
from proofmark.records.columns import (
    NO_VALUE,
    VIRTUAL,
    Execution,
    Measurand,
    RecordBatch,
    RecordBuilder,
    Records,
    Scalar,
    intern,
)
from proofmark.records.columns import Record as Record
from proofmark.records.concurrency import concurrency_error, spread
from proofmark.records.conditions import Conditions
from proofmark.records.disturbance import tick_reason, without_disturbed
from proofmark.records.hosts import HostNames
from proofmark.records.imported_output import imported_error, repeats_in_output
from proofmark.records.network import NetworkCheck
from proofmark.records.os_noise import load_error, noise_reason
from proofmark.records.parquet_table import SCHEMA as SCHEMA
from proofmark.records.parquet_table import table as table
from proofmark.records.physical_bounds import Bounds, StepBounds
from proofmark.records.printed_layout import FILE as LAYOUT
from proofmark.records.printed_layout import file_system_reason, layout_content, layout_error
from proofmark.records.requirements import not_run, read_before
from proofmark.records.scratch_files import FILE as SCRATCH_FILES
from proofmark.records.scratch_files import scratch_content, scratch_error
from proofmark.records.sensor_readings import bmc_readings, sensor_readings
from proofmark.records.validity import invalid_reason, says_no_space
from proofmark.runs.adopted import adopted_files
from proofmark.runs.attempts import Attempt, attempts, imported_attempts
from proofmark.runs.binding_file import UNREADABLE, damage
from proofmark.runs.bmc_telemetry import read_looks
from proofmark.runs.decisions import read_decisions
from proofmark.runs.files_report import files_reports
from proofmark.runs.nodes import Node
from proofmark.runs.noise_file import Shares, read_noise, shares_of
from proofmark.runs.run import Run, reported_names
from proofmark.runs.run_files import StepFiles
from proofmark.runs.telemetry_file import Interval, read_telemetry
from proofmark.site.adopted_site import IMPORTED
from proofmark.site.ceilings import UNIVERSAL, Ceilings, ceilings_of, of_nodes
from proofmark.site.inventory import Site
from proofmark.site.partition import PREDICTED
from proofmark.software.software import Software

SLICE = 1000
"""The number of measurements of a step that one process reads at a time."""
ONE_PROCESS = 2000
"""One process reads a run with at most this number of measurements: a second costs more time."""

Instances = Sequence[tuple[str, Sequence[str]]]
"""The folders of the measurements of a step, below the folder of the step, with their nodes."""


def read_run(
    run: Run,
    benchmarks: Benchmarks,
    site: Site,
    software: Software,
    nodes: Mapping[str, Node],
    steps: Collection[str] | None = None,
) -> Records:
    """Return the records of every finished step of `run`.

    A step that was not run because its files were not written has INVALID records.

    A large run is read by one process per processor.

    Args:
        run: the run.
        benchmarks: its cases.
        site: its site.
        software: its programs.
        nodes: the reports of its nodes, by host.
        steps: the ids of the steps to read; None: all steps.
    """
    reader = _Reader(run, benchmarks, site, software, nodes)
    tasks = [task for task in _tasks(run) if steps is None or task[1].id in steps]
    large = sum(len(instances) for _, _, instances in tasks) > ONE_PROCESS
    records = Records.joined(run.id, parallel_map(reader.read, tasks, large=large))
    return without_disturbed(records, benchmarks.cases)


Task = tuple[str, Step, Instances]
"""A mode, a step that is planned in it, and the measurements of the step to read."""


def _tasks(run: Run) -> Iterator[Task]:
    for group in run.plan.groups:
        for job in group.jobs:
            for step in job.steps:
                instances = list(step.instances().items()) or [("", [])]
                for first in range(0, len(instances), SLICE):
                    yield group.mode, step, instances[first : first + SLICE]


class Disturbance(NamedTuple):
    """Why an execution was disturbed, or `NOTHING`; and what took CPU time from its ranks."""

    reason: Message = NOTHING
    shares: Shares = ()


UNDISTURBED = Disturbance()


class _Reader:
    """Reads the steps of a run."""

    def __init__(
        self,
        run: Run,
        benchmarks: Benchmarks,
        site: Site,
        software: Software,
        nodes: Mapping[str, Node],
    ) -> None:
        self.run, self.benchmarks, self.software = run, benchmarks, software
        self.not_run = read_decisions(run.files).not_run
        self.partition = site.partition
        self.names = HostNames(reported_names(run, site), site.partition_hosts)
        self.conditions = Conditions(run, site, nodes)
        # The speed of an emulated node is that of the machine below it, or of a model.
        self.emulated = self.partition.origin in VIRTUAL
        self.adopted = adopted_files(run.files) if run.plan.imported else None
        self.origin = IMPORTED if run.plan.imported else self.partition.origin
        self.looks = read_looks(run.files)
        self.network_check: NetworkCheck | None = None
        if network := self.partition.fabric.network:
            required = not self.emulated
            self.network_check = NetworkCheck(run.files, network, self.names, required=required)
        known = {} if self.emulated else nodes
        self._ceilings = {
            host: ceilings_of(node.newest) for host, node in known.items() if node.jobs
        }
        self._with_ceilings = HostTable.of(self._ceilings)

    def ceilings(self, hosts: Sequence[str]) -> Ceilings:
        """Return the physical ceilings of `hosts` together."""
        found = (self._with_ceilings.find(host) for host in hosts)
        return of_nodes(self._ceilings[host] if host else UNIVERSAL for host in found)

    def read(self, task: Task) -> RecordBatch:
        """Return the records of all executions of a step in the folders of `task`."""
        mode, step, instances = task
        reader = _StepReader(self, mode, step)
        step_folder = str(self.run.files.step(step.id).folder)
        if why := self.not_run.get(step.id):
            reader.take(step.id, [], not_run(step_folder, why))
            return reader.builder.batch()
        for folder, hosts in instances:
            name = f"{step.id}/{folder}" if folder else step.id
            place = f"{step_folder}/{folder}" if folder else step_folder
            for attempt in attempts(place) if self.adopted is None else imported_attempts(place):
                reader.take(name, hosts, attempt)
        return reader.builder.batch()


class _StepReader:
    """Reads the executions of one step; the measurands are the same for all of its nodes."""

    def __init__(self, about: _Reader, mode: str, step: Step) -> None:
        self.builder = RecordBuilder()
        self._about, self._mode, self._step = about, mode, step
        self._case = about.benchmarks.case(step.case)
        imported = about.adopted is not None
        self._request = None if imported else Request(step.arguments, step.ranks)
        self._planned = step.planned
        self._binding_check = BindingCheck(step, about.partition.host_cpus, about.names)
        self._measurands: dict[tuple[object, ...], tuple[int, Message]] = {}
        between = len(step.nodes) > 1 and step.scope != "each-node" and not about.emulated
        self._step_bounds = StepBounds(step, self._case, between_nodes=between)
        self._machines: dict[tuple[int, Ceilings], int] = {}
        self._bounds: dict[tuple[int, int], Bounds] = {}

    def take(self, name: str, hosts: Sequence[str], attempt: Attempt) -> None:
        """Add the records of one execution.

        Args:
            name: the folder of the execution, below ``steps/``.
            hosts: the nodes of the instance; empty for a step without instances.
            attempt: the execution.
        """
        step, case = self._step, self._case
        content, unread = b"", NOTHING
        try:
            content = read_bytes(f"{attempt.path}/{step.output}")
        except FileNotFoundError:
            pass  # the reader reports an empty output
        except OSError as error:
            unread = damage(step.output, error)
        text = content.decode("utf-8", "replace")
        readings = read_output(case.reader(), step.case, text, self._request)
        if (adopted := self._about.adopted) is not None:
            nodes = hosts or step.nodes
            names = self._about.names
            why = imported_error(adopted.get(name), content, nodes, readings, names) or unread
            for number, repeat in enumerate(repeats_in_output(readings)):
                self._add(name, hosts, nodes, attempt, step.repeat + number, repeat, why)
            return
        nodes = hosts or sorted(attempt.binding_report.hosts)
        invalid = unread or self._invalid_reason(hosts, nodes, attempt, content)
        if case.concurrent and step.copies > 1:
            file = f"{self._about.benchmarks.folder / step.case}.yml"
            invalid = invalid or concurrency_error(
                step, case.concurrent, attempt.files.folder, readings, file
            )
            readings = [*readings, *spread(case.concurrent, readings)]
        disturbed, damaged = self._disturbance(attempt)
        sensed, damaged_sensors = self._sensed(attempt)
        invalid = invalid or damaged or damaged_sensors
        self._add(name, hosts, nodes, attempt, step.repeat, readings, invalid, disturbed)
        if not invalid:
            about, begin = self._about, attempt.start_s
            by_bmc = bmc_readings(step.case, nodes, about.looks, begin, begin + attempt.seconds)
            self._take_sensors([*sensor_readings(step.case, sensed), *by_bmc])

    def _add(
        self,
        name: str,
        hosts: Sequence[str],
        nodes: Sequence[str],
        attempt: Attempt,
        repeat: int,
        readings: Sequence[Reading],
        invalid: Message,
        disturbed: Disturbance = UNDISTURBED,
    ) -> None:
        """Add an execution and its readings.

        Args:
            name: the folder of the execution, below ``steps/``.
            hosts: the nodes of the instance; empty for a step without instances.
            nodes: the nodes that measured, as far as they are known.
            attempt: the execution.
            repeat: the number of the repeat.
            readings: the readings of its output.
            invalid: why the execution is INVALID, or `NOTHING`.
            disturbed: why it was disturbed, and by what.
        """
        step, builder = self._step, self.builder
        simulated = self._about.origin == PREDICTED  # by a machine that is none of its nodes
        several = _node_set(tuple(nodes)) if len(nodes) > 1 or (simulated and nodes) else ""
        builder.executions.append(
            Execution(
                *(name, attempt.number, repeat, attempt.steal, attempt.others, disturbed.reason),
                start=attempt.start_s,
                ended=attempt.ended,
                seconds=attempt.seconds,
                disturbers=disturbed.shares,
            )
        )
        measured_on = hosts or step.nodes
        machine = len(measured_on), self._about.ceilings(measured_on)
        for reading in readings:
            measurand, contradiction = self._measurand(reading)
            builder.measurand.append(measurand)
            builder.value.append(NO_VALUE if reading.value is None else reading.value)
            reason = None
            if invalid or contradiction or not reading.valid or reading.node:
                reason = _reason(reading, invalid, contradiction, attempt)
            if reason is None and reading.value is not None:
                bounds = self._bounds_of(measurand, reading, *machine)
                reason = bounds.error(reading.metric, reading.value, reading.unit) or None
            builder.reason.append(-1 if reason is None else intern(builder.reasons, reason))
            node = several or _node(reading, attempt, hosts or step.nodes)
            builder.node.append(intern(builder.nodes, node))
        builder.execution += [len(builder.executions) - 1] * len(readings)

    def _take_sensors(self, readings: Sequence[Reading]) -> None:
        """Add the figures of the sensors of each node to the last execution."""
        builder = self.builder
        for reading in readings:
            assert reading.value is not None
            measurand, _ = self._measurand(reading)
            machine = 1, self._about.ceilings([str(reading.node)])
            bounds = self._bounds_of(measurand, reading, *machine)
            reason = bounds.error(reading.metric, reading.value, reading.unit)
            builder.execution.append(len(builder.executions) - 1)
            builder.measurand.append(measurand)
            builder.value.append(reading.value)
            builder.reason.append(intern(builder.reasons, reason) if reason else -1)
            builder.node.append(intern(builder.nodes, str(reading.node)))

    def _invalid_reason(
        self, hosts: Sequence[str], nodes: Sequence[str], attempt: Attempt, content: bytes
    ) -> Message:
        conditions = self._about.conditions
        all_nodes = dict.fromkeys([attempt.host, *nodes])
        step, known = self._step, {self._step.output: content}
        if step.writes is not None:
            known[SCRATCH_FILES] = scratch_content(attempt.path)
        if step.layout is not None:
            known[LAYOUT] = layout_content(attempt.path)
        return (
            self._wrong_load(hosts, attempt)
            or self._failed(
                invalid_reason(step, attempt, self._binding_check, hosts, known), attempt
            )
            or (read_before(self._about.run.files.step(step.id)) if step.reads else NOTHING)
            or conditions.invalid_reason(step, self._mode, all_nodes, attempt)
            or self._wrong_files(attempt, known)
            or layout_error(step.layout, known.get(LAYOUT, b""))
            or self._wrong_network(hosts, attempt)
        )

    def _failed(self, reason: Message, attempt: Attempt) -> Message:
        """Return the reason of a failed execution, with the problem of its scratch folder."""
        if not reason or not self._step.uses_scratch:
            return reason
        reports = files_reports(self._about.run.files, self._step.id, attempt)
        return joined((reason, file_system_reason(reports)))

    def _wrong_files(self, attempt: Attempt, known: Mapping[str, bytes]) -> Message:
        about, step = self._about, self._step
        if step.writes is None:
            return NOTHING
        mounts = about.conditions.mounts(step, attempt)
        return scratch_error(step, known[SCRATCH_FILES], about.partition, mounts)

    def _wrong_load(self, hosts: Sequence[str], attempt: Attempt) -> Message:
        about, load = self._about, self._step.load
        if load is None:
            return NOTHING
        return load_error(load, attempt, hosts, about.partition.host_cpus, about.names)

    def _wrong_network(self, hosts: Sequence[str], attempt: Attempt) -> Message:
        check, step = self._about.network_check, self._step
        return check.invalid_reason(step, hosts or step.nodes, attempt) if check else NOTHING

    def _disturbance(self, attempt: Attempt) -> tuple[Disturbance, Message]:
        """Return why an execution was disturbed, and why that is not known, or `NOTHING`."""
        stability = self._case.stability
        try:
            nodes = read_noise(attempt.path)
        except (OSError, *UNREADABLE) as error:
            return UNDISTURBED, damage(StepFiles(Path(attempt.path)).noise.name, error)
        if nodes:
            return Disturbance(noise_reason(nodes, stability), shares_of(nodes)), NOTHING
        return Disturbance(tick_reason(attempt.steal, attempt.others, stability)), NOTHING

    def _sensed(self, attempt: Attempt) -> tuple[list[Interval], Message]:
        """Return what the sensors of real nodes showed, and why it is not known, or `NOTHING`."""
        if self._about.partition.host_cpus is not None:
            return [], NOTHING  # the sensors of a virtual node are those of the machine below it
        try:
            return read_telemetry(attempt.path), NOTHING
        except (OSError, *UNREADABLE) as error:
            return [], damage(StepFiles(Path(attempt.path)).telemetry.name, error)

    def _bounds_of(
        self, measurand: int, reading: Reading, nodes: int, ceilings: Ceilings
    ) -> Bounds:
        """Return the bounds of a reading; like nodes share them."""
        key = measurand, intern(self._machines, (nodes, ceilings))
        if key not in self._bounds:
            self._bounds[key] = self._step_bounds.of(reading, ceilings, nodes)
        return self._bounds[key]

    def _measurand(self, reading: Reading) -> tuple[int, Message]:
        """Return the number of the measurand, and how the output contradicts the plan."""
        key = (reading.benchmark, reading.metric, reading.unit, *reading.parameters.items())
        known = self._measurands.get(key)
        if known is None:
            step, plan = self._step, self._about.run.plan
            package = self._about.software.packages.get(step.package)
            measurand = Measurand(
                system=plan.system,
                partition=plan.partition,
                origin=self._about.origin,
                case=step.case,
                benchmark=reading.benchmark,
                metric=reading.metric,
                unit=reading.unit,
                mode=self._mode,
                placement=step.placement,
                environment_hash=package.environment_hash if package else "",
                parameters=json.dumps({**step.recorded, **reading.parameters}, sort_keys=True),
            )
            place = intern(self.builder.measurands, measurand)
            known = self._measurands[key] = place, _contradiction(self._planned, reading)
        return known


@lru_cache(maxsize=1 << 16)
def _node_set(hosts: tuple[str, ...]) -> str:
    return folded(hosts)


def _node(reading: Reading, attempt: Attempt, planned: Sequence[str]) -> str:
    """Return the node of a reading: that in the output, of the execution, or else as planned."""
    named = reading.node if reading.node and is_name(reading.node) else attempt.host
    return named or _node_set(tuple(planned))


def _reason(
    reading: Reading, invalid: Message, contradiction: Message, attempt: Attempt
) -> Message | None:
    """Return why a reading is INVALID; None for a valid one.

    Args:
        reading: one value of an output.
        invalid: why the execution is INVALID; `NOTHING` if it is valid.
        contradiction: how the output contradicts the plan; `NOTHING` if it does not.
        attempt: the execution.
    """
    if not reading.valid:
        return joined((invalid, _of_output(reading.reason)))
    if invalid or contradiction:
        return invalid or contradiction
    if not reading.node or reading.node == attempt.host:
        return None
    hosts = {*attempt.binding_report.hosts, attempt.host}
    if reading.node in hosts:
        return None
    fields = {"node": repr(reading.node[:80]), "nodes": ", ".join(sorted(hosts))}
    return Message("output-of-node", **fields)


def _of_output(problem: str) -> Message:
    """Return the problem of an output as a message."""
    code = "output-no-space" if says_no_space(problem) else "output"
    return Message(code, problem=problem)


def _contradiction(planned: Mapping[str, Scalar], reading: Reading) -> Message:
    """Return the first parameter that the output has other than planned, or `NOTHING`."""
    for name, printed in reading.parameters.items():
        if name in planned and not _same(planned[name], printed):
            return Message("output-of-plan", name=name, planned=planned[name], printed=printed)
    return NOTHING


def _same(planned: Scalar, printed: Scalar) -> bool:
    if isinstance(planned, (int, float)) and isinstance(printed, (int, float)):
        return planned == printed
    return str(planned) == str(printed)

"""The checks of an execution: the first one that fails is why it is INVALID.

Its exit code, a signal and its time limit, the layout of its files, its binding, its load and its
conditions are checked. The copies of a program must measure at the same time: ``copies.json`` has
the start and the end of each copy, by one clock. The start of an MPI program takes longer than some
measurements. So the measurements must overlap; the commands need not. The case computes the seconds
of a measurement from the output, and the measurement ends with the command.
"""

from __future__ import annotations

import errno
import math
import os
import re
import signal
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from statistics import median

from proofmark.cases.reader.engine import Reading
from proofmark.cases.vocabulary import Scalar
from proofmark.common.expressions import render
from proofmark.common.files import parse_json, read_bytes
from proofmark.common.grouping import gathered
from proofmark.common.input_limits import MAX_LAYOUT_BYTES, MAX_SMALL_BYTES
from proofmark.common.message import NOTHING, Message, joined
from proofmark.common.nodesets import folded
from proofmark.common.text import one_line
from proofmark.plan.file_layout import FileLayout
from proofmark.plan.plan import Step
from proofmark.records.binding import BindingCheck
from proofmark.records.disturbance import load_error
from proofmark.records.run_facts import RunFacts, scratch_error
from proofmark.runs.attempts import (
    UNREADABLE,
    Attempt,
    FilesReport,
    changed_output,
    files_reports,
    interrupted,
    last_words,
)
from proofmark.runs.run_files import StepFiles
from proofmark.site.file_systems import LayoutTool, kinds

COPY = "pair"
"""The parameter that numbers the copies: the script prints it before the output of each."""
MIN_OVERLAP = 0.5
"""The least share of the longest measurement during which all copies must measure."""


def concurrency_error(
    step: Step, measured_s: str, folder: Path, readings: Sequence[Reading], file: str
) -> Message:
    """Return why the copies of `step` did not measure at the same time, or `NOTHING`.

    Args:
        measured_s: the expression of the case for the seconds that a copy measured.

    Raises:
        BadInput: the case's expression for the seconds cannot be computed.
    """
    try:
        entries = parse_json(read_bytes(StepFiles(folder).copies))
        ends = {int(each["copy"]): float(each["end"]) for each in entries}
        starts = {int(each["copy"]): float(each["start"]) for each in entries}
    except (OSError, *UNREADABLE):
        return Message("copies-unknown", file=StepFiles.copies.path)
    if not all(map(math.isfinite, [*starts.values(), *ends.values()])):
        return Message(
            "file-damaged", file=StepFiles.copies.path, problem="a time that is not finite"
        )
    if sorted(ends) != list(range(1, step.copies + 1)):
        return Message("copies-silent", reported=len(ends), copies=step.copies)
    seconds = dict.fromkeys(ends, 0.0)
    for reading in readings:
        copy = reading.parameters.get(COPY)
        if not isinstance(copy, int) or copy not in seconds or not reading.value:
            return Message("copies-other", axis=COPY, copy=f"{copy}")
        names: Mapping[str, object] = {
            **step.derived,
            **reading.parameters,
            reading.metric: reading.value,
        }
        seconds[copy] += float(render(measured_s, names, file=file, key="concurrent"))
    begins = {copy: max(starts[copy], ends[copy] - seconds[copy]) for copy in ends}
    overlap = min(ends.values()) - max(begins.values())
    longest = max(ends[copy] - begins[copy] for copy in ends)
    if overlap < MIN_OVERLAP * longest:
        return Message(
            "copies-apart",
            copies=step.copies,
            overlap=f"{max(0.0, overlap):.2f}",
            longest=f"{longest:.2f}",
            share=f"{MIN_OVERLAP:.0%}",
        )
    return NOTHING


def spread(readings: Sequence[Reading], metrics: Container[str]) -> list[Reading]:
    """Return the spread of the copies, (largest - smallest) ÷ median in percent, as readings.

    There is one reading, ``<metric>_spread``, for each metric and size; it has no number of a copy.

    Args:
        metrics: those of the case. A spread that it does not have is left out.
    """
    groups = gathered(
        ((each.benchmark, each.metric, *sorted(_without_copy(each).items())), each)
        for each in readings
    )
    spreads: list[Reading] = []
    for group in groups.values():
        values = [reading.value for reading in group if reading.value is not None]
        first = group[0]
        if f"{first.metric}_spread" not in metrics or len(values) < 2:
            continue
        invalid = next((reading.reason for reading in group if not reading.valid), NOTHING)
        spreads.append(
            Reading(
                case=first.case,
                benchmark=first.benchmark,
                metric=f"{first.metric}_spread",
                value=100 * (max(values) - min(values)) / median(values),
                unit="%",
                parameters=_without_copy(first),
                valid=not invalid,
                reason=invalid,
                node=first.node,
            )
        )
    return spreads


def _without_copy(reading: Reading) -> dict[str, Scalar]:
    return {key: value for key, value in reading.parameters.items() if key != COPY}


_SIGNALS = {number.value: number.name for number in signal.Signals}

_SUFFIXES = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}


def invalid_reason(
    step: Step,
    attempt: Attempt,
    binding_check: BindingCheck,
    hosts: Sequence[str] = (),
) -> Message:
    """Return why an execution is INVALID by its own files, or `NOTHING`.

    Its outputs, its end, its nodes and the reported binding are checked.

    Args:
        hosts: the nodes of the instance; empty for a step without instances.
    """
    return (
        attempt.damage
        or changed_output(attempt.contents)
        or _end_invalid_reason(step, attempt)
        # The first node of an instance runs it. Any node of another step may run its launcher.
        or binding_check.names.wrong_host(hosts[:1] or step.nodes, [attempt.host])
        or binding_check.invalid_reason(hosts or step.nodes, attempt.binding)
    )


def _end_invalid_reason(step: Step, attempt: Attempt) -> Message:
    """Return why an execution is INVALID by its end, or `NOTHING`.

    It must end within its time limit and with exit code 0, and no process may survive it.
    """
    if attempt.timed_out:
        return Message("timed-out", seconds=f"{attempt.seconds:.0f}", limit=step.timeout)
    if attempt.rc - 128 in _SIGNALS:
        return Message("killed", signal=_SIGNALS[attempt.rc - 128])
    if attempt.rc:
        message = last_words(attempt.files.stderr)
        fields: dict[str, str | int] = {"code": attempt.rc}
        if message:
            fields["message"] = message
        if code := {126: "no-execution", 127: "no-program"}.get(attempt.rc):
            fields["program"] = step.program
        elif any(os.strerror(number) in message for number in (errno.ENOSPC, errno.EDQUOT)):
            return Message("no-space", **fields)
        else:
            code = "exit-code"
        return Message(f"{code}-said" if message else code, **fields)
    if attempt.survivors:
        return Message("processes-left", processes=", ".join(attempt.survivors))
    return NOTHING


def layout_error(layout: FileLayout | None, content: bytes) -> Message:
    """Return why files do not have `layout`, or `NOTHING`.

    A default of the file system may override the layout of a folder, and a full or inactive target
    is replaced by another one.

    Args:
        layout: the requested layout; None: any.
        content: ``layout.txt`` of the execution.
    """
    if layout is None:
        return NOTHING
    text = content.decode("utf-8", "replace")
    if not text.strip():
        return Message("layout-unknown", file=StepFiles.layout.path)
    found = [layout_of(tool, text) for tool in kinds()[layout.kind].steps]
    best = max(found, key=lambda values: len(values.keys() & layout.values.keys()))
    for axis, planned in layout.values.items():
        if axis not in best:
            return Message(
                "layout-without", file=StepFiles.layout.path, axis=axis, text=one_line(text[:200])
            )
        if other := sorted(best[axis] - {planned}):
            return Message("layout-other", axis=axis, found=other[0], planned=planned)
    return NOTHING


def layout_of(tool: LayoutTool, text: str) -> dict[str, set[int]]:
    """Return the values of each axis in `text`, the print of `tool` for several files."""
    values = {
        axis: {_size_of_word(value) for value in pattern.findall(text)}
        for axis, pattern in tool.found.items()
    }
    return {axis: known for axis, known in values.items() if known}


def _size_of_word(word: str) -> int:
    match = re.fullmatch(r"(\d+)([a-z]?)", word.lower(), re.ASCII)
    assert match is not None  # the patterns of the tools have this form
    return int(match[1]) * _SUFFIXES[match[2]]


def file_system_reason(reports: Mapping[str, FilesReport]) -> Message:
    """Return what failed in the scratch folder, and on which nodes; `NOTHING` if nothing failed."""
    problems = gathered(
        (report.problem, host) for host, report in reports.items() if report.problem
    )
    sound = [host for host, report in reports.items() if not report.problem]
    if not problems:
        return NOTHING
    folder = next(iter(reports.values())).folder
    parts = [_failed_on(problem, folded(hosts)) for problem, hosts in problems.items()]
    rest = [Message("scratch-worked-on", nodes=folded(sound))] if sound else []
    return Message("scratch-failed", folder=folder, problems=(*parts, *rest))


def _failed_on(problem: Message, nodes: str) -> Message:
    code = "scratch-full-on" if problem.code == "files-full" else "scratch-failed-on"
    return Message(code, problem=problem, nodes=nodes)


def read_before(step: StepFiles) -> Message:
    """Return why the page cache of a node may have the files of a reading step, or `NOTHING`."""
    number = interrupted(step)
    if not number:
        return NOTHING
    return Message("read-before-once") if number == 1 else Message("read-before", times=number)


@dataclass(frozen=True)
class Executed:
    """One execution of a step, and what was read of its files.

    Attributes:
        hosts: the nodes of the instance; empty for a step without instances.
        nodes: the nodes that measured, as far as they are known.
        content: the output; empty if it cannot be read.
        unread: why the output cannot be read, or `NOTHING`.
        damage: why the samples beside it cannot be read, or `NOTHING`.
    """

    step: Step
    attempt: Attempt
    hosts: Sequence[str]
    nodes: Sequence[str]
    content: bytes
    readings: Sequence[Reading]
    unread: Message = NOTHING
    damage: Message = NOTHING


class ExecutionChecks:
    """Checks the executions of one step."""

    def __init__(self, facts: RunFacts, mode: str, step: Step) -> None:
        self._facts, self._mode, self._step = facts, mode, step
        self._binding_check = BindingCheck(step, facts.partition.host_cpus, facts.names)
        # The files of one node, and why they are wrong: those of most nodes are the same.
        self._scratch: tuple[bytes, object, Message] = b"", None, NOTHING
        self._in_order: tuple[Callable[[Executed], Message], ...] = (
            attrgetter("unread"),
            self._script,
            self._load,
            self._end,
            self._cached_files,
            self._nodes,
            self._written_files,
            self._layout,
            self._network,
            self._copies,
            attrgetter("damage"),
        )

    def first_failed(self, executed: Executed) -> Message:
        """Return why `executed` is INVALID, or `NOTHING`.

        Raises:
            BadInput: an expression of the case cannot be computed.
        """
        return next((why for check in self._in_order if (why := check(executed))), NOTHING)

    def _script(self, executed: Executed) -> Message:
        """Return that a script is not that of the run: of the step, of its job, or of all jobs."""
        job = (executed.attempt.job_attempt or "").partition("/")[0]
        own = {("steps", self._step.id), ("jobs", job)}
        for path in self._facts.other_scripts:
            _, *parts = path.split("/")
            if len(parts) == 1 or tuple(parts[:2]) in own:
                return Message("other-script", file=path)
        return NOTHING

    def _load(self, executed: Executed) -> Message:
        load, facts = self._step.load, self._facts
        if load is None:
            return NOTHING
        host_cpus = facts.partition.host_cpus
        return load_error(load, executed.attempt, executed.hosts, host_cpus, facts.names)

    def _end(self, executed: Executed) -> Message:
        """Return the reason of a failed execution, with the problem of its scratch folder."""
        attempt = executed.attempt
        reason = invalid_reason(self._step, attempt, self._binding_check, executed.hosts)
        if not reason or not self._step.uses_scratch:
            return reason
        reports = files_reports(self._facts.run.files, self._step.id, attempt)
        return joined((reason, file_system_reason(reports)))

    def _cached_files(self, executed: Executed) -> Message:
        step = self._step
        return read_before(self._facts.run.files.step(step.id)) if step.reads else NOTHING

    def _nodes(self, executed: Executed) -> Message:
        attempt, names = executed.attempt, self._facts.names
        first = names.node(executed.hosts or self._step.nodes, attempt.host)
        nodes = dict.fromkeys([first, *executed.nodes])
        return self._facts.conditions.invalid_reason(self._step, self._mode, nodes, attempt)

    def _written_files(self, executed: Executed) -> Message:
        facts, step = self._facts, self._step
        if step.writes is None:
            return NOTHING
        mounts = facts.conditions.mounts(step, executed.attempt)
        content = executed.attempt.contents.content(StepFiles.scratch_files.path, MAX_SMALL_BYTES)
        last, reported, _ = self._scratch
        if content != last or mounts is not reported:
            reason = scratch_error(step, content, facts.partition, mounts)
            self._scratch = content, mounts, reason
        return self._scratch[2]

    def _layout(self, executed: Executed) -> Message:
        layout = self._step.layout
        if layout is None:
            return NOTHING
        return layout_error(
            layout, executed.attempt.contents.content(StepFiles.layout.path, MAX_LAYOUT_BYTES)
        )

    def _network(self, executed: Executed) -> Message:
        check, step = self._facts.network_check, self._step
        if check is None:
            return NOTHING
        return check.invalid_reason(step, executed.hosts or step.nodes, executed.attempt)

    def _copies(self, executed: Executed) -> Message:
        step, benchmarks = self._step, self._facts.benchmarks
        concurrent = benchmarks.case(step.case).concurrent
        if concurrent is None or step.copies < 2:
            return NOTHING
        file, folder = f"{benchmarks.folder / step.case}.yml", executed.attempt.files.folder
        return concurrency_error(step, concurrent, folder, executed.readings, file)

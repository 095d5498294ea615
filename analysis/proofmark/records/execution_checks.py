"""The checks of an execution: the first one that fails is why it is INVALID."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from proofmark.cases.reader.engine import Reading
from proofmark.common.input_limits import MAX_LAYOUT_BYTES, MAX_SMALL_BYTES
from proofmark.common.message import NOTHING, Message, joined
from proofmark.plan.plan import Step
from proofmark.records.binding import BindingCheck
from proofmark.records.concurrency import concurrency_error
from proofmark.records.os_noise import load_error
from proofmark.records.printed_layout import file_system_reason, layout_error
from proofmark.records.requirements import read_before
from proofmark.records.run_facts import RunFacts
from proofmark.records.scratch_files import scratch_error
from proofmark.records.validity import invalid_reason
from proofmark.runs.attempts import Attempt
from proofmark.runs.files_report import files_reports
from proofmark.runs.run_files import StepFiles


@dataclass(frozen=True)
class Executed:
    """One execution of a step, and what was read of its files.

    Attributes:
        step: the step.
        attempt: the execution.
        hosts: the nodes of the instance; empty for a step without instances.
        nodes: the nodes that measured, as far as they are known.
        content: the output; empty if it cannot be read.
        readings: the readings of the output.
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
    """Checks the executions of one step.

    Args:
        facts: the run.
        mode: the mode in which the step is planned.
        step: the step.
    """

    def __init__(self, facts: RunFacts, mode: str, step: Step) -> None:
        self._facts, self._mode, self._step = facts, mode, step
        self._binding_check = BindingCheck(step, facts.partition.host_cpus, facts.names)
        self._in_order: tuple[Callable[[Executed], Message], ...] = (
            self._unread,
            self._load,
            self._end,
            self._cached_files,
            self._nodes,
            self._written_files,
            self._layout,
            self._network,
            self._copies,
            self._damage,
        )

    def first_failed(self, executed: Executed) -> Message:
        """Return why `executed` is INVALID, or `NOTHING`.

        Raises:
            BadInput: an expression of the case cannot be computed.
        """
        return next((why for check in self._in_order if (why := check(executed))), NOTHING)

    def _unread(self, executed: Executed) -> Message:
        return executed.unread

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
        return scratch_error(step, content, facts.partition, mounts)

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

    def _damage(self, executed: Executed) -> Message:
        return executed.damage

"""The state of one step, from its folder."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from proofmark.common.files import moment_of, parse_json, read_bytes, seconds_of
from proofmark.common.input_limits import MAX_SMALL_BYTES
from proofmark.plan.step import Step
from proofmark.runs.attempts import results, running_execution
from proofmark.runs.binding_file import UNREADABLE, damage
from proofmark.runs.disturbed_steps import disturbed_executions
from proofmark.runs.run_files import StepFiles


@dataclass(frozen=True)
class StepState:
    """One step at one moment.

    Attributes:
        state: ``waiting``, ``running``, ``interrupted``, ``done`` (with any exit code), or
            ``unreadable``: the folder of the step cannot be listed. ``imported``: others ran it.
        rc: the exit code of the newest result; None if it has none that can be read.
        seconds: how long the newest result took.
        started: the start of a running execution, or of the newest result, seconds since 1970.
        ended: the end of the newest result, seconds since 1970.
        problem: why a file of the step cannot be read; empty if all can.
        disturbed: the number of its executions, if it has scope ``job`` and all of them were
            disturbed; else 0.
    """

    step: Step
    state: str
    rc: int | None = None
    seconds: float | None = None
    started: float | None = None
    ended: float | None = None
    problem: str = ""
    disturbed: int = 0

    @property
    def failed(self) -> bool:
        """Whether the step has a result other than exit code 0, or one that cannot be read."""
        return self.state == "done" and self.rc != 0


def state_of(files: StepFiles, step: Step, *, active: bool) -> StepState:
    """Return the state of `step`; a damaged file of it is its `StepState.problem`.

    Args:
        active: whether a process works on the run.
    """
    try:
        finished = results(files)
        if not finished:
            return _unfinished(files, step, active)
        disturbed = disturbed_executions(finished) if step.scope == "job" else 0
        return replace(_of_result(step, finished[-1]), disturbed=disturbed)
    except OSError as error:
        return StepState(step, "unreadable", problem=damage(files.folder.name, error))


def _of_result(step: Step, newest: StepFiles) -> StepState:
    name = newest.exit_code.name
    try:
        rc = int(read_bytes(newest.exit_code, MAX_SMALL_BYTES))
        name = newest.when.name
        when = parse_json(read_bytes(newest.when, MAX_SMALL_BYTES))
        seconds = seconds_of(when["seconds"])
        started, ended = _moment(when.get("start")), _moment(when.get("end"))
    except (OSError, *UNREADABLE) as error:
        return StepState(step, "done", problem=damage(name, error))
    return StepState(step, "done", rc=rc, seconds=seconds, started=started, ended=ended)


def _unfinished(files: StepFiles, step: Step, active: bool) -> StepState:
    running = running_execution(files)
    if running is None:
        return StepState(step, "waiting")
    try:
        started = running.started.stat().st_mtime
    except (FileNotFoundError, NotADirectoryError):  # it is being started, or it has just ended
        started = None
    return StepState(step, "running" if active else "interrupted", started=started)


def _moment(text: Any) -> float | None:
    """Return a time in ISO 8601 with its zone in seconds since 1970; None if it is not one."""
    try:
        return moment_of(text).timestamp()
    except ValueError:
        return None

"""The state of one step, from its folder, and the disturbed steps of a run.

The script of a step writes the file ``disturbed`` into an execution that was disturbed. The script
of a job repeats a step of which all executions were disturbed. It writes a line of
``jobs/<id>/attempt-<n>/repeats`` for each change: ``<word> <execution> <step> <folder>``, where
``folder`` is a disturbed folder below ``steps/``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from proofmark.common.files import (
    exists,
    moment_of,
    parse_json,
    read_bytes,
    seconds_of,
    text_or_empty,
)
from proofmark.common.input_limits import MAX_RUN_FILE_BYTES, MAX_SMALL_BYTES
from proofmark.plan.step import Step
from proofmark.runs.attempts import (
    UNREADABLE,
    ReadOnce,
    damage,
    has_result,
    results,
    running_execution,
)
from proofmark.runs.run_files import RunFiles, StepFiles
from proofmark.runs.samples import (
    NodeNoise,
    Other,
    disturbers,
    read_noise,
    read_samples,
    shares_of,
)

EXECUTIONS = 3
"""The largest number of executions of a step by a job: the first one and two repeats of it."""
LOST_STEPS, LOST_S = 5, 120
"""A job ends when at least so many steps in a row, over so many seconds, were disturbed."""
WAITING, RUNNING, GAVE_UP = "waits", "runs", "left"
"""A disturbed step will be repeated; is being repeated; was disturbed in all executions."""
_STATES = {"wait": WAITING, "start": RUNNING, "left": GAVE_UP}
_NOTE = re.compile(r"(wait|start|end|left) ([1-9]) (\S+) (\S+)")
_NAMED = 3
"""The largest number of processes that a cause names, and of steps whose samples are read."""


@dataclass(frozen=True)
class Repeat:
    """A step of which all executions were disturbed.

    Attributes:
        execution: the number of the execution that waits, runs or was the last one, at most
            `EXECUTIONS`. A further attempt of the job begins with the second.
        state: `WAITING`, `RUNNING` or `GAVE_UP`.
        folder: a disturbed folder below ``steps/``: that of the step, or of one of its nodes.
    """

    step: str
    execution: int
    state: str
    folder: str


def disturbed_executions(executions: Collection[StepFiles]) -> int:
    """Return the number of `executions` if all of them were disturbed, else 0."""
    return len(executions) if all(exists(each.disturbed) for each in executions) else 0


def needs_execution(files: RunFiles, step: Step) -> bool:
    """Return whether a job has to run `step`: it has no result, or all of them were disturbed.

    Of a step of each node, one such node is enough. A step that shares its files with another step
    does not run again alone. The script of a job has the same rule.
    """
    if not has_result(files.step(step.id)):
        return True
    if step.reads or step.kept:
        return False
    folders = (files.step(folder) for folder in step.folders())
    return any(disturbed_executions(results(folder)) for folder in folders)


def repeats_of_job(files: RunFiles, job: str) -> dict[str, Repeat]:
    """Return the disturbed steps that the attempts of `job` noted last, by id."""
    found: dict[str, Repeat] = {}
    for notes in files.job(job).repeats():
        for line in text_or_empty(notes, MAX_RUN_FILE_BYTES).splitlines():
            if not (note := _NOTE.fullmatch(line)):
                continue  # a full disk cut it
            word, execution, step, folder = note.groups()
            found.pop(step, None)
            if word in _STATES:
                found[step] = Repeat(step, int(execution), _STATES[word], folder)
    return found


def pending(repeats: Iterable[Repeat]) -> list[Repeat]:
    """Return the repeats that run or wait, the running ones first."""
    unfinished = (each for each in repeats if each.state != GAVE_UP)
    return sorted(unfinished, key=lambda each: each.state != RUNNING)


def disturbing(files: RunFiles, repeats: Sequence[Repeat], running: Iterable[Step] = ()) -> str:
    """Return what disturbs the steps that run now, else what disturbed the newest of `repeats`.

    Of the processes with the largest shares of CPU time the busiest is named: its user, number and
    command.

    Args:
        repeats: the disturbed steps, of which the first and the last are read.
    """
    nodes: list[NodeNoise] = []
    for step in running:
        for folder in step.folders()[:_NAMED]:
            if execution := running_execution(files.step(folder)):
                nodes += read_samples(execution)
    if not shares_of(nodes):
        nodes = []
        read = dict.fromkeys((*repeats[:_NAMED], *repeats[-_NAMED:]))
        samples = [_newest(files.step(each.folder)) for each in read]
        for _, found in sorted(samples, key=lambda timed: timed[0])[-_NAMED:]:
            nodes += found
    busiest: dict[str, tuple[Other, str]] = {}
    for node in nodes:
        for other in node.others:
            if other.name not in busiest or other.seconds > busiest[other.name][0].seconds:
                busiest[other.name] = other, node.host
    several = len({node.host for node in nodes}) > 1
    parts: list[str] = []
    for name, share in shares_of(nodes)[:_NAMED]:
        other, host = busiest.get(name, (Other(name, 0.0), ""))
        if not other.pid:
            parts += map(str, disturbers(((name, share),)))
            continue
        place = f" on {host}" if several else ""
        about = f"{100 * share:.0f} % of a CPU, pid {other.pid}{place}"
        about += f" of {other.user or 'an unknown user'}"
        about += f": {other.command}" if other.command else ""
        parts.append(f"{name} ({about})")
    return ", ".join(parts)


def _newest(step: StepFiles) -> tuple[float, list[NodeNoise]]:
    """Return the time and the samples of the newest execution of a step; none if it has none."""
    try:
        newest = results(step)[-1]
        moment = newest.noise.stat().st_mtime
        return moment, read_noise(ReadOnce(f"{newest.folder}"))
    except (OSError, IndexError, *UNREADABLE):
        return 0.0, []  # the reader of the records reports the damage


@dataclass(frozen=True)
class StepState:
    """One step at one moment.

    Attributes:
        state: ``waiting``, ``running``, ``interrupted``, ``done`` (with any exit code), or
            ``unreadable``: the folder of the step cannot be listed. The kind of the run, if the
            kit does not start its steps.
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
    def finished(self) -> bool:
        """Whether a job has nothing to do for the step; so of one that the kit does not start."""
        return self.state not in ("waiting", "running", "interrupted", "unreadable")

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

"""What the controller saw of a stability run: each submission of a job, and the time that counts.

Between two looks at the nodes that are too far apart, the controller did not look. That time counts
only while a job ran, and no node is known to be up in it. The same holds for the time beside a line
that cannot be read.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from proofmark.common.files import exists, moment_of
from proofmark.common.message import Message
from proofmark.plan.plan import Job
from proofmark.runs.job_folder import JobFolder, Look, State
from proofmark.runs.run import Run
from proofmark.runs.run_files import QueueFiles

BLIND_S = 600.0
"""Two looks that are further apart leave a time in which the controller did not look."""
Span = tuple[float, float]
"""Begin and end, in seconds since 1970."""


@dataclass(frozen=True)
class JobRun:
    """One submission of a job.

    Attributes:
        submitted, started, ended: in seconds since 1970; NaN if it did not start, or not end.
        state: the last known state.
        reason: in the words of the scheduler.
        withdrawn: whether the kit cancelled it: it says nothing about the machine.
        open: whether it may still be in the queue.
    """

    job: Job
    submitted: float
    started: float
    ended: float
    state: State
    reason: str
    withdrawn: bool
    open: bool


def job_runs(run: Run) -> list[JobRun]:
    """Return all submissions of the jobs of a stability run, by the time of their submission."""
    found: list[JobRun] = []
    for job in run.plan.jobs():
        found += _of(run, job)
    return sorted(found, key=lambda each: (each.submitted, each.job.id))


def _of(run: Run, job: Job) -> Iterator[JobRun]:
    folder = JobFolder(run, job)
    lines = [line for line in folder.history() if line["job"]]
    if not lines:
        return
    parts: list[list[Mapping[str, str]]] = []
    name = lines[0]["job"]  # the first line of a submission has its name, later ones its id
    for line in lines:
        previous = parts[-1][-1] if parts else None
        begins = line["job"] == name and State[line["state"]] is State.WAITING
        if previous is None or (begins and (previous["job"] != name or _final(previous))):
            parts.append([])
        parts[-1].append(line)
    for place, part in enumerate(parts):
        still = place == len(parts) - 1 and exists(folder.ticket)
        yield _job_run(job, part, still=still)


def _final(line: Mapping[str, str]) -> bool:
    return State[line["state"]].final


def _job_run(job: Job, lines: Sequence[Mapping[str, str]], *, still: bool) -> JobRun:
    last = lines[-1]
    state = State[last["state"]]
    times = [*map(_seconds, (line["time"] for line in lines))]
    running = [
        time
        for time, line in zip(times, lines, strict=True)
        if State[line["state"]] is State.RUNNING
    ]
    end = math.nan if still else max(times)  # a clock that was set back makes no job shorter
    ran = state in (State.ENDED, State.ENDED_UNKNOWN, State.FAILED, State.KILLED, State.NODE_FAILED)
    # A short job can end before the first look at it.
    started = running[0] if running else end if ran or state is State.TIME_LIMIT else math.nan
    withdrawn = any(line["by_kit"] for line in lines)
    return JobRun(job, times[0], started, end, state, last["reason"], withdrawn, still)


def damaged_histories(run: Run) -> list[Message]:
    """Return a message for each job whose history has lost lines: its counts are not proven."""
    found = []
    for group in run.plan.groups:
        for job in group.jobs:
            folder = JobFolder(run, job)
            damage = folder.damage()
            if not damage and not folder.history() and folder.files.attempts():
                damage = f"{QueueFiles.history.path}: no line, although the job ran"
            if damage:
                found.append(Message("job-damaged", job=job.id, problem=damage))
    return found


def _seconds(time: str) -> float:
    return moment_of(time).timestamp()


def joined_spans(spans: Iterable[Span]) -> list[Span]:
    """Return the union of `spans`, in order and without overlap."""
    merged: list[Span] = []
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((begin, end))
    return merged


def seen_pairs(looks: Sequence[Look]) -> Iterator[tuple[Look, Look]]:
    """Yield two looks that follow each other, if the controller looked in the time between."""
    for one, other in pairwise(looks):
        if other.time - one.time <= BLIND_S and not other.cut:
            yield one, other


def seen_spans(looks: Sequence[Look], jobs: Iterable[JobRun]) -> list[Span]:
    """Return the time that counts: between two looks, and while a job ran."""
    seen = [(one.time, other.time) for one, other in seen_pairs(looks)]
    ran = [(each.started, each.ended) for each in jobs if each.started <= each.ended]
    return joined_spans([*seen, *ran])


def length(spans: Iterable[Span], begin: float, end: float = math.inf) -> float:
    """Return the length of `spans` between `begin` and `end`, in seconds."""
    return sum(max(0.0, min(end, high) - max(begin, low)) for low, high in spans)


def moment(spans: Iterable[Span], begin: float, seconds: float) -> float:
    """Return when `spans` have lasted `seconds` since `begin`; infinity if they have not."""
    for low, high in spans:
        low = max(low, begin)
        if high - low >= seconds:
            return low + seconds
        seconds -= max(0.0, high - low)
    return math.inf

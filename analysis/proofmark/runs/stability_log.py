"""What the controller saw of a stability run: each submission of a job, and nodes that are down.

``node-states.jsonl`` has a line for each look at the nodes. Between two looks that are too far
apart, the controller did not look. That time counts only while a job ran.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

from proofmark.common.errors import BadInput
from proofmark.common.files import exists, open_to_append, read_bytes
from proofmark.common.input_limits import MAX_HISTORY_BYTES
from proofmark.common.json_text import parse_json
from proofmark.common.message import Message
from proofmark.common.moments import moment_of, seconds_of
from proofmark.common.text import one_line
from proofmark.plan.plan import Job
from proofmark.runs.job_folder import MOST_DAMAGED, JobFolder
from proofmark.runs.job_state import State
from proofmark.runs.run import Run
from proofmark.runs.run_files import RunFiles

LOOK_S = 60.0
"""The time between two looks at the nodes."""
BLIND_S = 600.0
"""Two looks that are further apart leave a time in which the controller did not look."""
Span = tuple[float, float]
"""Begin and end, in seconds since 1970."""


@dataclass(frozen=True)
class JobRun:
    """One submission of a job.

    Attributes:
        job: the job of the plan.
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
    found = (each for group in run.plan.groups for job in group.jobs for each in _of(run, job))
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
        still = place == len(parts) - 1 and exists(folder.files.ticket)
        yield _job_run(job, part, still=still)


def _final(line: Mapping[str, str]) -> bool:
    return State[line["state"]].final


def _job_run(job: Job, lines: Sequence[Mapping[str, str]], *, still: bool) -> JobRun:
    last = lines[-1]
    state = State[last["state"]]
    running = [_seconds(line["time"]) for line in lines if State[line["state"]] is State.RUNNING]
    end = math.nan if still else _seconds(last["time"])
    ran = state in (State.ENDED, State.ENDED_UNKNOWN, State.FAILED, State.KILLED, State.NODE_FAILED)
    # A short job can end before the first look at it.
    started = running[0] if running else end if ran or state is State.TIME_LIMIT else math.nan
    withdrawn = any(line["by_kit"] for line in lines)
    submitted = _seconds(lines[0]["time"])
    return JobRun(job, submitted, started, end, state, last["reason"], withdrawn, still)


def _seconds(time: str) -> float:
    return moment_of(time).timestamp()


@dataclass(frozen=True)
class Look:
    """One look at the nodes: the time in seconds since 1970, and those that are down."""

    time: float
    down: Mapping[str, str]


def add_look(files: RunFiles, look: Look) -> None:
    """Add a look at the nodes. A full disk is reported by the job that it stops."""
    with suppress(OSError, BadInput), open_to_append(files.node_states) as file:
        file.write(json.dumps({"time": look.time, "down": dict(look.down)}) + "\n")


def looks_at(files: RunFiles) -> list[Look]:
    """Return the looks at the nodes that can be read, in order."""
    return _read_looks(files)[0]


def unread_of_stability(run: Run) -> list[Message]:
    """Return a message for each history of a job and each list of looks that is damaged."""
    jobs = [job for group in run.plan.groups for job in group.jobs]
    damages = {job.id: JobFolder(run, job).damage() for job in jobs}
    found = [Message("job-damaged", job=job, problem=why) for job, why in damages.items() if why]
    if damaged := _read_looks(run.files)[1]:
        file, lines = run.files.node_states.name, ", ".join(map(str, damaged[:MOST_DAMAGED]))
        found.append(Message("looks-damaged", file=file, lines=lines))
    return found


def _read_looks(files: RunFiles) -> tuple[list[Look], list[int]]:
    """Return the looks that can be read, in order, and the numbers of the other lines."""
    found: list[Look] = []
    damaged: list[int] = []
    try:
        lines = read_bytes(files.node_states, MAX_HISTORY_BYTES).splitlines()
    except FileNotFoundError:
        return [], []
    for number, line in enumerate(lines, 1):
        try:
            values = parse_json(line)
            down = {f"{node}": one_line(f"{state}") for node, state in values["down"].items()}
            found.append(Look(seconds_of(values["time"]), down))
        except (ValueError, KeyError, TypeError, AttributeError):  # the process was killed
            damaged.append(number)
    return sorted(found, key=lambda look: look.time), damaged


def joined_spans(spans: Iterable[Span]) -> list[Span]:
    """Return the union of `spans`, in order and without overlap."""
    merged: list[Span] = []
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((begin, end))
    return merged


def seen_spans(looks: Sequence[Look], jobs: Iterable[JobRun]) -> list[Span]:
    """Return the time that counts: between two looks, and while a job ran."""
    pairs = pairwise(looks)
    seen = [(one.time, other.time) for one, other in pairs if other.time - one.time <= BLIND_S]
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

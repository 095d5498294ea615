"""Flux (flux-core 0.61 and later): a job is a Flux instance, in which its script runs.

After the manual pages of flux-core: flux-batch(1), flux-jobs(1), flux-cancel(1), flux-resource(1),
flux-exec(1); and its source: job-exec.c (SIGALRM at the time limit), broker.c (SIGPIPE).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from proofmark.common.errors import bad_input
from proofmark.common.nodesets import hostlist, unfold
from proofmark.common.text import one_line, whole_number
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.machine.scheduler import (
    BUSY,
    DOWN,
    IDLE,
    NO_SUCH_JOB,
    Ask,
    JobStatuses,
    NodeState,
    NodeStates,
    NodeUse,
    QueueLimits,
    Queues,
    Request,
    Scheduler,
    SchedulerError,
    SchedulerUnavailable,
    is_down,
)
from proofmark.machine.scheduler_commands import (
    ask_scheduler,
    job_id,
    says,
    unreadable,
    words_of,
)
from proofmark.runs.job_folder import JobStatus, State

NEEDED = (0, 61)
"""The version with ``--taskmap=hostfile:`` (NEWS.md)."""

_STATES = words_of("flux").jobs

_ACTIVE = (State.WAITING, State.HELD, State.RUNNING, State.UNKNOWN)

_ID = r"\s*([fƒ][0-9A-Za-z]+)\s*"

_FIELDS = "{id.f58plain}|{status_abbrev}|{urgency}|{queue}|{exception.type}|{exception.note}"

_STOPPED = re.compile(r"(?:(\S+): )?(Scheduling is stopped.*)")
"""A line of ``flux queue status``, which begins with the name of a named queue."""


class Flux(Scheduler):
    """Flux (flux-core 0.61 and later)."""

    poll_s = 15.0
    isolates_jobs = True
    stop_command = "flux"
    replaced_launchers: ClassVar[Mapping[str, str]] = {"hydra": "flux"}  # flux run speaks PMI-1

    def header(self, request: Request) -> list[str]:
        """Return the directives, ``# flux: OPTION``, quoted as for a shell.

        Raises:
            BadInput: the queue has a reservation or memory, which Flux jobs cannot request.
        """
        queue = request.queue
        for key, value in (
            ("reservation", queue.reservation),
            ("memory_per_node", queue.memory_per_node),
        ):
            if value:
                found = f"{value!r}, and a Flux job cannot request it"
                raise bad_input("partition", f"queue.{key}", found, "no value")
        options = {
            "job-name": request.name,
            "nodes": str(len(request.nodes)),
            "requires": f"host:{hostlist(request.nodes)}",
            "time-limit": f"{request.seconds}s",
            "output": f"{request.log}",
            "error": f"{request.log}",
            "setopt": "output.mode=append",
            "queue": queue.name,
            "bank": queue.account,
        }
        words = [f"--{name}={value}" for name, value in options.items() if value]
        if queue.exclusive:
            words += ["--exclusive"]
        else:
            words += [f"--nslots={len(request.nodes)}", f"--cores-per-slot={request.cpus}"]
        return [f"# flux: {line}" for line in [*map(shlex.quote, words), *queue.options]]

    def fan_out(self, request: Request) -> list[str]:
        """Return ``on_all`` by flux exec: once in each broker of the job, one per node.

        It takes no resources of the job, so that the script may start ranks by flux run.
        """
        return ["on_all() {", 'exec flux exec --noinput sh "$@"', "}"]

    def submit(self, script: Path, request: Request) -> str:
        """Submit `script`; the id has an ``f`` in place of the letter ƒ."""
        output = ask_scheduler("flux", "batch", str(script), final="flux")
        return job_id("flux batch", output, _ID, submitted=True).strip().replace("ƒ", "f")

    def queue_limits(self, ask: Ask) -> Queues:
        """Return the limits of all queues; an instance without queues has one without a name."""
        form = "{queuem}|{submission}|{scheduling}|{limits.timelimit}|{limits.max.nnodes}"
        limits: Queues = {}
        for line in ask("flux", "queue", "list", "--no-header", f"--format={form}").splitlines():
            if line.count("|") != 4:
                raise NodeError(Outcome.UNEXPECTED, f"flux queue list: {line[:200]}")
            name, submission, scheduling, longest, most = line.split("|")
            seconds = float(longest) if re.fullmatch(r"[0-9]{1,15}(\.[0-9]+)?", longest) else 0
            closed = [word for word in (submission, scheduling) if word in ("disabled", "stopped")]
            limits[name.removesuffix("*")] = QueueLimits(
                default=not name or name.endswith("*"),
                max_walltime_s=int(seconds) or None,
                max_nodes=whole_number(most),
                closed=", ".join(closed),
                source="flux queue list",
            )
        return limits

    def find(self, name: str) -> str:
        """Return the id of the job `name`; empty if there is none."""
        return job_id("flux jobs", _jobs("{id.f58plain}", f"--name={name}"), _ID)

    def states(self, ids: Sequence[str]) -> JobStatuses:
        """Return the state of each job, by one flux jobs for all jobs of this user."""
        found = _listed(_jobs(_FIELDS, "-a"))
        return {job: found[job] for job in ids if job in found}

    def ended(self, job: str) -> JobStatus | None:
        """Return the state by a flux jobs for this job alone."""
        try:
            return _listed(_jobs(_FIELDS, job)).get(job)
        except SchedulerError as error:
            # Flux has removed it, or lost it in a restart.
            if says(error.answer, f"JobID {job} unknown"):
                return NO_SUCH_JOB
            raise

    def cancel(self, ids: Sequence[str]) -> None:
        """Cancel the jobs; one that has ended, or that Flux does not know any more, is no error."""
        for job in ids:  # flux cancel fails if one of several jobs has ended
            try:
                ask_scheduler("flux", "cancel", job, final="flux")
            except SchedulerError:
                status = self.ended(job)
                if status is None or status.state in _ACTIVE:
                    raise

    def nodes(self, names: Sequence[str]) -> NodeStates:
        """Return the state of each node, by one flux resource, and the reasons by another.

        A node of which only some cores are allocated is in two states. A drained node is down.
        """
        command = ("flux", "resource", "list", "--no-header", "--states=free,allocated,down")
        output = ask_scheduler(*command, "--format={state}|{nodelist}")
        shown = {"free": IDLE, "allocated": BUSY, "down": DOWN}
        sets = dict(line.split("|", 1) for line in output.splitlines() if "|" in line)
        try:
            states: dict[str, NodeState] = {}
            for word, state in shown.items():
                for node in unfold([sets[word]]) if sets.get(word) else ():
                    states[node] = state
        except ValueError as error:
            raise SchedulerUnavailable(f"flux resource: {error}") from None
        known = {name: states[name] for name in names if name in states}
        if not any(map(is_down, known.values())):
            return known
        reasons = _drain_reasons()
        return {
            name: NodeState(NodeUse.DOWN, reasons.get(name, "")) if is_down(state) else state
            for name, state in known.items()
        }

    def unfit(self) -> str:
        """Return why this Flux is too old; its version is that of its commands."""
        printed = ask_scheduler("flux", "--version")
        # Other lines have the versions of libraries, and an address. A suffix is a candidate (-rc1)
        # or a number of commits (-35-gabc): git describe.
        version = re.search(r"^commands:\s*v?(\d+)\.(\d+)", printed, re.MULTILINE)
        if version is None:
            raise SchedulerError(f"flux --version: no version: {one_line(printed[:200])!r}")
        if (int(version[1]), int(version[2])) >= NEEDED:
            return ""
        return f"flux-core {version[1]}.{version[2]} is older than {NEEDED[0]}.{NEEDED[1]}"


def _drain_reasons() -> dict[str, str]:
    """Return ``drained`` and the reason of each drained node; nothing if Flux does not list them.

    A reason is any text; it is the last field.
    """
    command = ("flux", "resource", "drain", "--no-header", "--format={nodelist}|{reason}")
    reasons: dict[str, str] = {}
    with suppress(SchedulerError, ValueError):
        for line in ask_scheduler(*command).splitlines():
            nodes, _, reason = line.partition("|")
            reasons |= dict.fromkeys(unfold([nodes]), f"drained {one_line(reason)}".strip())
    return reasons


def _jobs(fields: str, *options: str) -> str:
    """Return the `fields` of the jobs of this user."""
    command = ("flux", "jobs", "--no-header", "--count=0", f"--format={fields}", *options)
    return ask_scheduler(*command)


def _listed(output: str) -> dict[str, JobStatus]:
    """Return the states of the jobs that a flux jobs with `_FIELDS` lists; the note is any text."""
    rows = [line.split("|", 5) for line in output.splitlines() if line.count("|") >= 5]
    if output.strip() and not rows:
        raise unreadable("flux jobs", "a list of jobs", output)
    waits = any(_STATES.get(row[1]) is State.WAITING for row in rows)
    stopped = _stopped_queues() if waits else {}
    return {job: _state(fields, stopped) for job, *fields in rows}


def _state(fields: Sequence[str], stopped: Mapping[str, str]) -> JobStatus:
    """Return the state of a job; `stopped` are the queues that start no job, with the reason."""
    status, urgency, queue, exception, note = fields
    state = _STATES.get(status, State.UNKNOWN)
    words = [status, exception, one_line(note)]
    if state is State.WAITING and urgency == "0":
        state = State.HELD  # flux-submit(1), --urgency
    elif state is State.WAITING and queue in stopped:
        state, words = State.UNAVAILABLE, [status, stopped[queue]]
    return JobStatus(state, " ".join(filter(None, words)))


def _stopped_queues() -> dict[str, str]:
    """Return what Flux says of each queue that starts no job, by its name; it may have no name."""
    with suppress(SchedulerError):
        lines = ask_scheduler("flux", "queue", "status").splitlines()
        found = [match for line in lines if (match := _STOPPED.fullmatch(line))]
        return {match[1] or "": one_line(match[0]) for match in found}
    return {}

"""Grid Engine 6 and later: Sun, Univa, and Son of Grid Engine (Debian)."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

from proofmark.machine.scheduler import (
    Request,
    Scheduler,
    SchedulerError,
    SchedulerUnavailable,
    as_argument,
    ask_scheduler,
    one_by_one,
    user_name,
)
from proofmark.runs.job_state import JobStatus, State

_UNAVAILABLE = ("nable to send message", "nable to contact", "commlib error", "got no connection")

_STATES = (
    ("E", State.HELD),  # Eqw: its start failed; an administrator must clear it
    ("d", State.RUNNING),  # is being deleted
    ("h", State.HELD),
    ("s", State.SUSPENDED),  # by a user
    ("S", State.SUSPENDED),  # with its queue
    ("T", State.SUSPENDED),  # by a threshold
    ("w", State.WAITING),  # qw, Rq: waits
    ("q", State.WAITING),
    ("r", State.RUNNING),
    ("t", State.RUNNING),  # is sent to its node
    ("R", State.WAITING),  # run again
)
"""`man qstat`: a job has several letters; the first entry here that matches is its state."""

_FAILURES = {
    "0": State.ENDED_UNKNOWN,
    "19": State.KILLED,  # before its exit status could be written
    "21": State.NODE_FAILED,  # its host is unknown
    "22": State.NODE_FAILED,  # while the node was registering
    "25": State.REQUEUED,
    "26": State.FAILED,  # its output file cannot be opened
    "27": State.NODE_FAILED,  # no shell
    "28": State.NODE_FAILED,  # no such folder
    "37": State.TIME_LIMIT,
    "100": State.KILLED,  # by a signal after it had started
}
"""`man sge_status`: the number that qacct prints as `failed`; any other is NODE_FAILED."""


class GridEngine(Scheduler):
    """Grid Engine 6 and later: Sun, Univa, and Son of Grid Engine (Debian)."""

    poll_s = 15.0
    isolates_jobs = True
    stop_command = "qdel"

    def header(self, request: Request) -> list[str]:
        """Return the directives, ``#$ OPTION``, without the nodes."""
        queue, count = request.queue, len(request.nodes)
        slots = f"{queue.parallel_environment or 'proofmark'} {count * queue.slots_per_node}"
        options = {
            "-N": request.name,
            "-S": "/bin/sh",
            "-pe": slots if count > 1 or queue.parallel_environment else "",
            "-l": f"h_rt={request.seconds}",
            "-j": "y",
            "-o": shlex.quote(f"{request.log}"),
            "-r": "n",  # a job that is run again is a new attempt, which the kit starts
            "-A": queue.account,
            "-ar": queue.reservation,
        }
        lines = [f"{flag} {value}" for flag, value in options.items() if value]
        lines += ["-l exclusive=true"] if queue.exclusive else []
        by_hand = f'# qsub -q "$(cat {shlex.quote(str(request.host_file))})" job.sh'
        return [*(f"#$ {line}" for line in [*lines, *queue.options]), by_hand]

    def host_list(self, request: Request) -> str:
        """Return the queue instances of the nodes, which `submit` passes as an argument."""
        name = request.queue.name or "all.q"
        return as_argument(",".join(f"{name}@{node}" for node in request.nodes), request)

    def fan_out(self, request: Request) -> list[str]:
        """Return ``on_all`` by qrsh inside the job, one qrsh per node."""
        return one_by_one(request.nodes, 'qrsh -inherit -nostdin "$node"')

    def submit(self, script: Path, request: Request) -> str:
        """Submit `script`."""
        instances = ("-q", self.host_list(request))
        command = ("qsub", "-terse", *instances, str(script))
        output = ask_scheduler(*command, unavailable=_UNAVAILABLE)
        return output.split()[-1]

    def find(self, name: str) -> str:
        """Return the id of the job `name`; empty if there is none."""
        return next((job for job, _, job_name in _queue() if job_name == name), "")

    def states(self, ids: Sequence[str]) -> Mapping[str, JobStatus]:
        """Return the state of each job, by one qstat, which lists no ended job."""
        return {job: _state(letters) for job, letters, _ in _queue() if job in ids}

    def ended(self, job: str) -> JobStatus | None:
        """Return the final state by qacct, whose records are some seconds late."""
        try:
            output = ask_scheduler("qacct", "-j", job, unavailable=_UNAVAILABLE)
        except (SchedulerUnavailable, SchedulerError):
            return None
        fields = dict(
            line.split(None, 1) for line in output.splitlines() if len(line.split(None, 1)) == 2
        )
        failed = fields.get("failed", "").strip()
        if not failed:
            return None
        number = failed.split()[0]
        if failed != "0" and fields.get("deleted_by", "NONE").strip() not in ("NONE", "unknown"):
            return JobStatus(State.CANCELLED, f"by {fields['deleted_by'].strip()}")
        return JobStatus(_FAILURES.get(number, State.NODE_FAILED), "" if number == "0" else failed)

    def cancel(self, ids: Sequence[str]) -> None:
        """Delete the jobs; a job that has ended is no error."""
        ask_scheduler("qdel", ",".join(ids), unavailable=_UNAVAILABLE, success=(0, 1))

    def nodes(self, names: Sequence[str]) -> Mapping[str, str]:
        """Return the state of each node, by one qstat for all queue instances and no jobs."""
        output = ask_scheduler("qstat", "-f", "-u", "nobody", unavailable=_UNAVAILABLE)
        states: dict[str, str] = {}
        for words in (line.split() for line in output.splitlines() if "@" in line):
            node, slots, flags = words[0].partition("@")[2], words[2], "".join(words[5:6])
            down = any(letter in flags for letter in "auEdDc")
            used = slots.split("/")[1] != "0"
            states[node] = f"down {flags}" if down else "busy" if used else "idle"
        return {name: states[name] for name in names if name in states}


def _queue() -> list[tuple[str, str, str]]:
    """Return number, state letters and name of every job of this user."""
    output = ask_scheduler("qstat", "-xml", "-u", user_name(), unavailable=_UNAVAILABLE)
    try:
        jobs = ElementTree.fromstring(output).iter("job_list")
    except ElementTree.ParseError:
        raise SchedulerUnavailable(f"qstat: the output is not XML: {output[-100:]!r}") from None
    return [
        (
            job.findtext("JB_job_number", ""),
            job.findtext("state", ""),
            job.findtext("JB_name", ""),
        )
        for job in jobs
    ]


def _state(letters: str) -> JobStatus:
    state = next((state for letter, state in _STATES if letter in letters), State.UNKNOWN)
    return JobStatus(state, letters)

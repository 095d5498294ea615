"""Grid Engine 6 and later: Sun's, Univa's, and Debian's Son of Grid Engine."""

from __future__ import annotations

import getpass
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

from proofmark.machine.scheduler import (
    Request,
    Scheduler,
    SchedulerError,
    SchedulerUnavailable,
    ask_scheduler,
    one_by_one,
)
from proofmark.runs.job_state import JobStatus, State

_SILENT = ("nable to send message", "nable to contact", "commlib error", "got no connection")

_STATES = (
    ("E", State.HELD),  # Eqw: could not be started, waits for somebody to clear it
    ("d", State.RUNNING),  # is being deleted
    ("h", State.HELD),
    ("s", State.SUSPENDED),  # by somebody
    ("S", State.SUSPENDED),  # with its queue
    ("T", State.SUSPENDED),  # by a threshold
    ("w", State.WAITING),  # qw, Rq: waits
    ("q", State.WAITING),
    ("r", State.RUNNING),
    ("t", State.RUNNING),  # on its way to its node
    ("R", State.WAITING),  # run again
)
"""`man qstat`: letters that stand together; the first of these decides."""

_FAILURES = {
    "0": State.ENDED_UNKNOWN,
    "19": State.KILLED,  # before its exit status could be written
    "21": State.NODE_FAILED,  # not known where it ran
    "22": State.NODE_FAILED,  # while the node was registering
    "25": State.REQUEUED,
    "26": State.FAILED,  # its output file cannot be opened
    "27": State.NODE_FAILED,  # no shell
    "28": State.NODE_FAILED,  # no such folder
    "37": State.TIME_LIMIT,
    "100": State.KILLED,  # by a signal after it had started
}
"""`man sge_status`: the number that qacct shows as `failed`; others mean that the node failed."""


class GridEngine(Scheduler):
    """Grid Engine 6 and later: Sun's, Univa's, and Debian's Son of Grid Engine."""

    poll_s = 15.0
    isolates_jobs = True
    stop_command = "qdel"

    def header(self, request: Request) -> list[str]:
        """Return the lines of ``#$``."""
        queue, count = request.queue, len(request.nodes)
        at = ",".join(f"{queue.name or 'all.q'}@{node}" for node in request.nodes)
        slots = f"{queue.parallel_environment or 'proofmark'} {count * queue.slots_per_node}"
        chosen = {
            "-N": request.name,
            "-S": "/bin/sh",
            "-q": at,
            "-pe": slots if count > 1 or queue.parallel_environment else "",
            "-l": f"h_rt={request.seconds}",
            "-j": "y",
            "-o": shlex.quote(f"{request.log}"),
            "-r": "n",  # a job that is run again is a new attempt, which we start
            "-A": queue.account,
            "-ar": queue.reservation,
        }
        lines = [f"{flag} {value}" for flag, value in chosen.items() if value]
        lines += ["-l exclusive=true"] if queue.exclusive else []
        return [f"#$ {line}" for line in [*lines, *queue.options]]

    def fan_out(self, request: Request) -> list[str]:
        """Start it by qrsh inside the job, on one node after the other."""
        return one_by_one(request.nodes, 'qrsh -inherit -nostdin "$node"')

    def submit(self, script: Path, request: Request) -> str:
        """Submit `script`."""
        said = ask_scheduler("qsub", "-terse", str(script), silent=_SILENT)
        return said.split()[-1]

    def find(self, name: str) -> str:
        """Return the job that is called `name`."""
        return next((job for job, _, called in _queue() if called == name), "")

    def states(self, ids: Sequence[str]) -> Mapping[str, JobStatus]:
        """Ask qstat once for all jobs of this user; it forgets one as soon as that has ended."""
        return {job: _state(letters) for job, letters, _ in _queue() if job in ids}

    def ended(self, job: str) -> JobStatus | None:
        """Ask the accounts, which lag some seconds behind."""
        try:
            said = ask_scheduler("qacct", "-j", job, silent=_SILENT)
        except (SchedulerUnavailable, SchedulerError):
            return None
        told = dict(
            line.split(None, 1) for line in said.splitlines() if len(line.split(None, 1)) == 2
        )
        failed = told.get("failed", "").strip()
        if not failed:
            return None
        number = failed.split()[0]
        if failed != "0" and told.get("deleted_by", "NONE").strip() not in ("NONE", "unknown"):
            return JobStatus(State.CANCELLED, f"by {told['deleted_by'].strip()}")
        return JobStatus(_FAILURES.get(number, State.NODE_FAILED), "" if number == "0" else failed)

    def cancel(self, ids: Sequence[str]) -> None:
        """Delete the jobs; one that has ended is none to complain about."""
        ask_scheduler("qdel", ",".join(ids), silent=_SILENT, good=(0, 1))

    def nodes(self, names: Sequence[str]) -> Mapping[str, str]:
        """Ask qstat once for the queue instances."""
        said = ask_scheduler("qstat", "-f", "-u", "nobody", silent=_SILENT)
        told: dict[str, str] = {}
        for words in (line.split() for line in said.splitlines() if "@" in line):
            node, slots, flags = words[0].partition("@")[2], words[2], "".join(words[5:6])
            down = any(letter in flags for letter in "auEdDc")
            used = slots.split("/")[1] != "0"
            told[node] = f"down {flags}" if down else "busy" if used else "idle"
        return {name: told[name] for name in names if name in told}


def _queue() -> list[tuple[str, str, str]]:
    """Return number, state and name of every job."""
    said = ask_scheduler("qstat", "-xml", "-u", getpass.getuser(), silent=_SILENT)
    try:
        jobs = ElementTree.fromstring(said).iter("job_list")
    except ElementTree.ParseError:
        raise SchedulerUnavailable(f"qstat: no XML but {said[-100:]!r}") from None
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

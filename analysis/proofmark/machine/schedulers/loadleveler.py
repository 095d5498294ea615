"""LoadLeveler (3 and later)."""

from __future__ import annotations

import getpass
from collections.abc import Mapping, Sequence
from pathlib import Path

from proofmark.common.nodesets import short_name
from proofmark.machine.scheduler import Request, Scheduler, SchedulerError, ask_scheduler, ssh_to
from proofmark.runs.job_state import JobStatus, State

_UNAVAILABLE = ("annot connect", "nable to connect", "annot contact", "timed out", "not responding")

_NO_JOBS = "There is currently no job status to report"

_STATES = {
    "C": State.ENDED_UNKNOWN,  # completed
    "CA": State.CANCELLED,
    "CK": State.RUNNING,  # writes a checkpoint
    "CP": State.RUNNING,  # completes
    "D": State.WAITING,  # deferred
    "E": State.SUSPENDED,  # preempted: its processes are stopped until it is resumed
    "EP": State.RUNNING,  # is being preempted
    "H": State.HELD,
    "HS": State.HELD,
    "I": State.WAITING,
    "MP": State.WAITING,  # is being resumed
    "NQ": State.WAITING,  # not queued: the limit of jobs is reached
    "NR": State.UNAVAILABLE,  # not run: a dependency was not met
    "P": State.WAITING,
    "R": State.RUNNING,
    "RM": State.CANCELLED,
    "RP": State.RUNNING,  # is being removed
    "S": State.HELD,  # by the system
    "ST": State.RUNNING,  # starts
    "TX": State.KILLED,  # terminated
    "V": State.NODE_FAILED,  # vacated
    "VP": State.RUNNING,  # is being vacated
    "X": State.REFUSED,
    "XP": State.RUNNING,  # is being rejected
}
"""LoadLeveler: Using and Administering, "LoadLeveler job states"; the short form of llq."""


class LoadLeveler(Scheduler):
    """LoadLeveler (3 and later)."""

    poll_s = 30.0
    isolates_jobs = True
    stop_command = "llcancel"

    def header(self, request: Request) -> list[str]:
        """Return the keyword statements, ``# @ KEYWORD = VALUE``."""
        queue = request.queue
        machines = " ".join(f'"{node}"' for node in request.nodes)
        keywords = {
            "job_name": request.name,
            "job_type": "parallel" if len(request.nodes) > 1 else "serial",
            "node": str(len(request.nodes)) if len(request.nodes) > 1 else "",
            "tasks_per_node": "1" if len(request.nodes) > 1 else "",
            "requirements": f"(Machine == {{{machines}}})",
            "node_usage": "not_shared" if queue.exclusive else "shared",
            "wall_clock_limit": request.clock,
            "output": str(request.log),
            "error": str(request.log),
            "restart": "no",  # a job that is run again is a new attempt, which the kit starts
            "class": queue.name,
            "account_no": queue.account,
            "ll_res_id": queue.reservation,
        }
        lines = [f"{name} = {value}" for name, value in keywords.items() if value]
        return [f"# @ {line}" for line in [*lines, *queue.options, "queue"]]

    def fan_out(self, request: Request) -> list[str]:
        """Return ``on_all`` by ssh: LoadLeveler has no command that starts a process on a node."""
        return ssh_to(request.nodes)

    def submit(self, script: Path, request: Request) -> str:
        """Submit `script`; submit filters of the site may print lines before the job id."""
        output = ask_scheduler("llsubmit", str(script), unavailable=_UNAVAILABLE)
        for line in output.splitlines():
            if line.startswith("llsubmit: The job ") and line.count('"') == 2:
                return line.split('"')[1]
        raise SchedulerError(f"llsubmit: {output.strip()[-200:]}")

    def find(self, name: str) -> str:
        """Return the id of the job `name`; empty if there is none."""
        return next((job for job, _, job_name in _queue() if job_name == name), "")

    def states(self, ids: Sequence[str]) -> Mapping[str, JobStatus]:
        """Return the state of each job, by one llq for all jobs of this user."""
        states = {job: _state(code) for job, code, _ in _queue()}
        return {job: states[job] for job in ids if job in states}

    def ended(self, job: str) -> JobStatus | None:
        """Return None: only administrators can read the history."""
        return None

    def cancel(self, ids: Sequence[str]) -> None:
        """Cancel the jobs."""
        ask_scheduler("llcancel", *ids, unavailable=_UNAVAILABLE)

    def nodes(self, names: Sequence[str]) -> Mapping[str, str]:
        """Return the state of each node, by one llstatus."""
        output = ask_scheduler("llstatus", "-r", "%n", "%sta", unavailable=_UNAVAILABLE)
        states = dict(line.split("!", 1) for line in output.splitlines() if line.count("!") == 1)
        by_short_name = {short_name(name): state for name, state in states.items()}
        known = {name: states.get(name, by_short_name.get(name, "")) for name in names}
        return {name: _node(state) for name, state in known.items() if state}


def _queue() -> list[tuple[str, str, str]]:
    """Return id, state and name of every job; jobs of the kit have one job step, number 0."""
    fields = ("%id", "%st", "%jn")
    output = ask_scheduler("llq", "-u", getpass.getuser(), "-r", *fields, unavailable=_UNAVAILABLE)
    if _NO_JOBS in output:
        return []
    rows = (line.split("!") for line in output.splitlines() if line.count("!") == 2)
    return [(step.removesuffix(".0"), code, name) for step, code, name in rows]


def _state(code: str) -> JobStatus:
    return JobStatus(_STATES.get(code, State.UNKNOWN), code)


def _node(state: str) -> str:
    if state == "Idle":
        return "idle"
    return "busy" if state in ("Run", "Busy") else f"down {state}"

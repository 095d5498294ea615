"""LoadLeveler (3 and later)."""

from __future__ import annotations

import getpass
from collections.abc import Mapping, Sequence
from pathlib import Path

from proofmark.common.nodesets import short_name
from proofmark.machine.scheduler import Request, Scheduler, SchedulerError, ask_scheduler, ssh_to
from proofmark.runs.job_state import JobStatus, State

_SILENT = ("annot connect", "nable to connect", "annot contact", "timed out", "not responding")

_NOTHING = "There is currently no job status to report"

_STATES = {
    "C": State.ENDED_UNKNOWN,  # completed
    "CA": State.CANCELLED,
    "CK": State.RUNNING,  # writes a checkpoint
    "CP": State.RUNNING,  # completes
    "D": State.WAITING,  # deferred
    "E": State.SUSPENDED,  # preempted: its processes stand still until it is resumed
    "EP": State.RUNNING,  # is being preempted
    "H": State.HELD,
    "HS": State.HELD,
    "I": State.WAITING,
    "MP": State.WAITING,  # is being resumed
    "NQ": State.WAITING,  # not queued: over the limit of jobs
    "NR": State.UNAVAILABLE,  # will not run: a step that it depends on
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
        """Return the lines of ``# @``."""
        queue = request.queue
        machines = " ".join(f'"{node}"' for node in request.nodes)
        chosen = {
            "job_name": request.name,
            "job_type": "parallel" if len(request.nodes) > 1 else "serial",
            "node": str(len(request.nodes)) if len(request.nodes) > 1 else "",
            "tasks_per_node": "1" if len(request.nodes) > 1 else "",
            "requirements": f"(Machine == {{{machines}}})",
            "node_usage": "not_shared" if queue.exclusive else "shared",
            "wall_clock_limit": request.clock,
            "output": str(request.log),
            "error": str(request.log),
            "restart": "no",  # a job that is run again is a new attempt, which we start
            "class": queue.name,
            "account_no": queue.account,
            "ll_res_id": queue.reservation,
        }
        lines = [f"{name} = {value}" for name, value in chosen.items() if value]
        return [f"# @ {line}" for line in [*lines, *queue.options, "queue"]]

    def fan_out(self, request: Request) -> list[str]:
        """Start it by ssh: nothing of LoadLeveler's starts a plain command on every node."""
        return ssh_to(request.nodes)

    def submit(self, script: Path, request: Request) -> str:
        """Submit `script`; filters of the site may talk before the answer."""
        said = ask_scheduler("llsubmit", str(script), silent=_SILENT)
        for line in said.splitlines():
            if line.startswith("llsubmit: The job ") and line.count('"') == 2:
                return line.split('"')[1]
        raise SchedulerError(f"llsubmit: {said.strip()[-200:]}")

    def find(self, name: str) -> str:
        """Return the job that is called `name`."""
        return next((job for job, _, called in _queue() if called == name), "")

    def states(self, ids: Sequence[str]) -> Mapping[str, JobStatus]:
        """Ask llq once for all jobs of this user."""
        found = {job: _state(word) for job, word, _ in _queue()}
        return {job: found[job] for job in ids if job in found}

    def ended(self, job: str) -> JobStatus | None:
        """Return nothing: the history is the administrators'."""
        return None

    def cancel(self, ids: Sequence[str]) -> None:
        """Cancel the jobs."""
        ask_scheduler("llcancel", *ids, silent=_SILENT)

    def nodes(self, names: Sequence[str]) -> Mapping[str, str]:
        """Ask llstatus once."""
        said = ask_scheduler("llstatus", "-r", "%n", "%sta", silent=_SILENT)
        told = dict(line.split("!", 1) for line in said.splitlines() if line.count("!") == 1)
        short = {short_name(name): state for name, state in told.items()}
        found = {name: told.get(name, short.get(name, "")) for name in names}
        return {name: _node(state) for name, state in found.items() if state}


def _queue() -> list[tuple[str, str, str]]:
    """Return job, state and name of every job; a job has one step here, of number 0."""
    said = ask_scheduler("llq", "-u", getpass.getuser(), "-r", "%id", "%st", "%jn", silent=_SILENT)
    if _NOTHING in said:
        return []
    told = (line.split("!") for line in said.splitlines() if line.count("!") == 2)
    return [(step.removesuffix(".0"), word, name) for step, word, name in told]


def _state(word: str) -> JobStatus:
    return JobStatus(_STATES.get(word, State.UNKNOWN), word)


def _node(state: str) -> str:
    if state in ("Idle",):
        return "idle"
    return "busy" if state in ("Run", "Busy") else f"down {state}"

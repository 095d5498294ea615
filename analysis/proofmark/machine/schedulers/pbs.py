"""PBS Pro and OpenPBS (12 and later, which answer in JSON)."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from proofmark.machine.controller_tools import ask_tool
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.machine.scheduler import (
    DrainingScheduler,
    NodeStatus,
    Request,
    SchedulerUnavailable,
    ask_scheduler,
)
from proofmark.runs.job_state import JobStatus, State

_SILENT = ("annot connect to", "onnection refused", "ommunication failure", "timed out")

_UNKNOWN_JOB = 153

_FINISHED_JOB = 35

_STATES = {
    "B": State.RUNNING,  # of an array
    "E": State.RUNNING,  # ends
    "F": State.ENDED_UNKNOWN,  # or what its exit status says
    "H": State.HELD,
    "M": State.VANISHED,  # moved to another server
    "Q": State.WAITING,
    "R": State.RUNNING,
    "S": State.SUSPENDED,
    "T": State.WAITING,  # on its way to another host
    "U": State.SUSPENDED,  # its workstation is in use
    "W": State.WAITING,  # for its time
    "X": State.ENDED_UNKNOWN,  # of an array
}
"""PBS Professional Reference Guide, "Job States"."""

_EXITS = {
    -1: State.NODE_FAILED,  # could not be started, before its files were there
    -2: State.NODE_FAILED,  # nor after
    -3: State.NODE_FAILED,  # the same, to be tried again
    -4: State.NODE_FAILED,  # aborted when its node's daemon started
    -5: State.NODE_FAILED,
    -6: State.NODE_FAILED,
    -24: State.KILLED,  # used too many processors
    -25: State.KILLED,
    -26: State.KILLED,  # virtual memory
    -27: State.KILLED,  # memory
    -28: State.TIME_LIMIT,  # of processor time
    -29: State.TIME_LIMIT,
}
"""PBS Professional Administrator's Guide, "Job Exit Codes"."""

_TERMINATED, _LIMIT = 91, 93  # substates of F

_DOWN = ("down", "offline", "unresolvable", "stale", "maintenance", "Stale", "unknown", "sleep")

TIMEOUT_S = 60

AT_ONCE = 500
"""Names on one command line."""

OUT = {"offline", "down", "stale", "provisioning", "maintenance"}


class Pbs(DrainingScheduler):
    """PBS Pro and OpenPBS (12 and later, which answer in JSON)."""

    poll_s = 15.0
    isolates_jobs = True
    stop_command = "qdel"

    def header(self, request: Request) -> list[str]:
        """Return the lines of ``#PBS``."""
        queue = request.queue
        place = "scatter:excl" if queue.exclusive else "scatter"
        chosen = {
            "-N": request.name,
            "-l select=": "+".join(f"1:host={node}" for node in request.nodes),
            "-l place=": place,
            "-l walltime=": request.clock,
            "-j": "oe",
            "-o": shlex.quote(f"{request.log}"),
            "-r": "n",  # a job that is run again is a new attempt, which we start
            "-q": queue.reservation or queue.name,  # a reservation is a queue of that name
            "-A": queue.account,
        }
        lines = [
            f"{flag}{value}" if flag.endswith("=") else f"{flag} {value}"
            for flag, value in chosen.items()
            if value
        ]
        return [f"#PBS {line}" for line in [*lines, *queue.options]]

    def fan_out(self, request: Request) -> list[str]:
        """Start it by pbsdsh, once on every virtual node that the job was given: one a host."""
        return ["on_all() {", 'exec pbsdsh -- sh "$@"', "}"]

    def submit(self, script: Path, request: Request) -> str:
        """Submit `script`."""
        return ask_scheduler("qsub", str(script), silent=_SILENT).split()[-1]

    def find(self, name: str) -> str:
        """Return the job that is called `name`."""
        found = ask_scheduler("qselect", "-N", name, silent=_SILENT).split()
        return found[0] if found else ""

    def states(self, ids: Sequence[str]) -> Mapping[str, JobStatus]:
        """Ask qstat once, for ended ones too."""
        codes = (0, _UNKNOWN_JOB, _FINISHED_JOB)
        said = ask_scheduler("qstat", "-x", "-f", "-F", "json", *ids, silent=_SILENT, good=codes)
        try:
            jobs: dict[str, dict[str, Any]] = (
                json.loads(said).get("Jobs", {}) if said.strip() else {}
            )
        except ValueError:
            raise SchedulerUnavailable(f"qstat: no JSON but {said[-100:]!r}") from None
        return {job: _state(told) for job, told in jobs.items() if job in ids}

    def ended(self, job: str) -> JobStatus | None:
        """Return nothing: `states` asks the history already, where the server keeps one."""
        return None

    def cancel(self, ids: Sequence[str]) -> None:
        """Delete the jobs; one that has ended is none to complain about."""
        ask_scheduler("qdel", *ids, silent=_SILENT, good=(0, _UNKNOWN_JOB, _FINISHED_JOB))

    def nodes(self, names: Sequence[str]) -> Mapping[str, str]:
        """Ask pbsnodes once."""
        said = json.loads(ask_scheduler("pbsnodes", "-a", "-F", "json", silent=_SILENT))
        told: dict[str, dict[str, Any]] = said.get("nodes", {})
        wanted = set(names)
        return {
            name: _node(str(node.get("state", "")), str(node.get("comment", "")))
            for name, node in told.items()
            if name in wanted
        }

    def node_status(self, nodes: Sequence[str]) -> dict[str, NodeStatus]:
        """Read state, jobs and comment of each node."""
        found: dict[str, NodeStatus] = {}
        for some in _parts(nodes):
            told = json.loads(_pbsnodes("-v", "-F", "json", *some)).get("nodes", {})
            for name, each in told.items():
                states = set(str(each.get("state", "")).split(","))
                found[name] = NodeStatus(
                    bool(states & OUT), not each.get("jobs"), str(each.get("comment", ""))
                )
        if missing := sorted(set(nodes) - found.keys()):
            raise NodeError(Outcome.UNEXPECTED, f"pbsnodes does not know {', '.join(missing[:5])}")
        return found

    def drain(self, nodes: Sequence[str], reason: str) -> None:
        """Let the nodes take no further job."""
        for some in _parts(nodes):
            _pbsnodes("-o", "-C", reason, *some)

    def resume(self, nodes: Sequence[str]) -> None:
        """Let the nodes take jobs again, and take our comment from them."""
        for some in _parts(nodes):
            _pbsnodes("-r", "-C", "", *some)

    def missing_permission(self, node: str) -> str:
        """Return why we may not drain, or nothing: its comment is set to what it is."""
        try:
            _pbsnodes("-C", self.node_status([node])[node].reason, node)
        except NodeError as failed:
            return failed.text
        return ""


def _state(told: Mapping[str, Any]) -> JobStatus:
    letter, comment = str(told.get("job_state", "")), str(told.get("comment", ""))
    state = _STATES.get(letter, State.UNKNOWN)
    code, substate = told.get("Exit_status"), told.get("substate")
    if state is State.ENDED_UNKNOWN and isinstance(code, int) and code < 0:
        state, comment = _EXITS.get(code, State.KILLED), f"exit status {code}; {comment}"
    elif state is State.ENDED_UNKNOWN and substate == _LIMIT:
        state = State.TIME_LIMIT
    elif state is State.ENDED_UNKNOWN and substate == _TERMINATED:
        state = State.CANCELLED
    elif letter == "Q" and comment.startswith(("Can Never Run", "Not Running: Node")):
        state = State.UNAVAILABLE
    return JobStatus(state, " ".join(filter(None, (letter, comment))))


def _node(state: str, comment: str) -> str:
    if any(word.startswith(_DOWN) for word in state.replace(",", " ").split()):
        return " ".join(filter(None, ("down", state, comment)))
    return "idle" if state == "free" else "busy"


def _parts(nodes: Sequence[str]) -> list[Sequence[str]]:
    return [nodes[at : at + AT_ONCE] for at in range(0, len(nodes), AT_ONCE)]


def _pbsnodes(*arguments: str) -> str:
    return ask_tool("pbsnodes", *arguments, timeout_s=TIMEOUT_S)

"""PBS Pro and OpenPBS (12 and later, which answer in JSON)."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from proofmark.machine.scheduler import NoAnswer, Request, ask
from proofmark.runs.job_state import Report, State

POLL_S = 15.0
APART = True

_SILENT = ("annot connect to", "onnection refused", "ommunication failure", "timed out")
_UNKNOWN_JOB = 153
_FINISHED_JOB = 35

_STATES = {
    "B": State.RUNNING,  # of an array
    "E": State.RUNNING,  # ends
    "F": State.OVER,  # or what its exit status says
    "H": State.HELD,
    "M": State.VANISHED,  # moved to another server
    "Q": State.WAITING,
    "R": State.RUNNING,
    "S": State.SUSPENDED,
    "T": State.WAITING,  # on its way to another host
    "U": State.SUSPENDED,  # its workstation is in use
    "W": State.WAITING,  # for its time
    "X": State.OVER,  # of an array
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


def header(request: Request) -> list[str]:
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


def fan_out(request: Request) -> list[str]:
    """Start it by pbsdsh, once on every virtual node that the job was given: one a host."""
    return ["on_all() {", 'exec pbsdsh -- sh "$@"', "}"]


def submit(script: Path, request: Request) -> str:
    """Submit `script`."""
    return ask("qsub", str(script), silent=_SILENT).split()[-1]


def find(name: str) -> str:
    """Return the job that is called `name`."""
    found = ask("qselect", "-N", name, silent=_SILENT).split()
    return found[0] if found else ""


def states(ids: Sequence[str]) -> Mapping[str, Report]:
    """Ask qstat once, for ended ones too."""
    codes = (0, _UNKNOWN_JOB, _FINISHED_JOB)
    said = ask("qstat", "-x", "-f", "-F", "json", *ids, silent=_SILENT, good=codes)
    try:
        jobs: dict[str, dict[str, Any]] = json.loads(said).get("Jobs", {}) if said.strip() else {}
    except ValueError:
        raise NoAnswer(f"qstat: no JSON but {said[-100:]!r}") from None
    return {job: _state(told) for job, told in jobs.items() if job in ids}


def _state(told: Mapping[str, Any]) -> Report:
    letter, comment = str(told.get("job_state", "")), str(told.get("comment", ""))
    state = _STATES.get(letter, State.UNKNOWN)
    code, substate = told.get("Exit_status"), told.get("substate")
    if state is State.OVER and isinstance(code, int) and code < 0:
        state, comment = _EXITS.get(code, State.KILLED), f"exit status {code}; {comment}"
    elif state is State.OVER and substate == _LIMIT:
        state = State.TIME_LIMIT
    elif state is State.OVER and substate == _TERMINATED:
        state = State.CANCELLED
    elif letter == "Q" and comment.startswith(("Can Never Run", "Not Running: Node")):
        state = State.UNAVAILABLE
    return Report(state, " ".join(filter(None, (letter, comment))))


def ended(job: str) -> Report | None:
    """Return nothing: `states` asks the history already, where the server keeps one."""
    return None


def cancel(ids: Sequence[str]) -> None:
    """Delete the jobs; one that has ended is none to complain about."""
    ask("qdel", *ids, silent=_SILENT, good=(0, _UNKNOWN_JOB, _FINISHED_JOB))


_DOWN = ("down", "offline", "unresolvable", "stale", "maintenance", "Stale", "unknown", "sleep")


def nodes(names: Sequence[str]) -> Mapping[str, str]:
    """Ask pbsnodes once."""
    said = json.loads(ask("pbsnodes", "-a", "-F", "json", silent=_SILENT))
    told: dict[str, dict[str, Any]] = said.get("nodes", {})
    wanted = set(names)
    return {
        name: _node(str(node.get("state", "")), str(node.get("comment", "")))
        for name, node in told.items()
        if name in wanted
    }


def _node(state: str, comment: str) -> str:
    if any(word.startswith(_DOWN) for word in state.replace(",", " ").split()):
        return " ".join(filter(None, ("down", state, comment)))
    return "idle" if state == "free" else "busy"

"""Technical Computing Suite of Fujitsu (V4): pjsub, pjstat, pjdel.

After its manuals, which RIKEN publishes: Job Operation Software, Command Reference (J2UL-2549) and
End-user's Guide (J2UL-2534). Never tried on a real one.
"""

from __future__ import annotations

import csv
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from proofmark.common.errors import bad_input
from proofmark.machine.on_all import one_by_one
from proofmark.machine.scheduler import NodeState, Request, Scheduler, SchedulerError
from proofmark.machine.scheduler_commands import (
    ask_scheduler,
    job_id,
    submitted_id,
    unreadable,
)
from proofmark.runs.job_state import JobStatus, State

_UNAVAILABLE = ("PJM 0090", "PJM 0091", "PJM 0190", "PJM 0191", "PJM 0290", "PJM 0291")
"""Messages of pjsub, pjdel and pjstat: the manager does not answer now; "Retry the command"."""

_ACCEPT_LIMIT = "PJM 0072"
"""Message of pjsub: the upper limit on the number of accepted jobs has been reached."""

_NAME_WIDTH = 10
"""The characters of a job's name that pjstat prints."""

_ID = r".*PJM 0000 pjsub Job ([0-9]+) submitted\."

_STATES = {
    **dict.fromkeys(("ACC", "QUE", "RNA"), State.WAITING),
    **dict.fromkeys(("RNP", "RUN", "RNE", "RNO", "RSM"), State.RUNNING),
    **dict.fromkeys(("SPP", "SPD"), State.SUSPENDED),
    **dict.fromkeys(("HLD", "ERR"), State.HELD),  # ERR stays until it is released or deleted
    "EXT": State.ENDED_UNKNOWN,  # or the state of its PJM code
    "CCL": State.CANCELLED,
    "RJT": State.REFUSED,
}
"""The column ST of pjstat."""

_CODES = {
    **dict.fromkeys(("2", "3", "29"), State.REFUSED),
    **dict.fromkeys(
        ("1", "6", "7", "8"), State.CANCELLED
    ),  # by pjdel, a step, a deadline, the site
    **dict.fromkeys(("12", "13", "23"), State.KILLED),  # memory, disk, OOM killer
    **dict.fromkeys(("9", "20", "22"), State.NODE_FAILED),  # nodes rebuilt, down, interconnect
    **dict.fromkeys(
        ("21", "25", "26", "27", "28"), State.NODE_FAILED
    ),  # before or after the script
    **dict.fromkeys(("140", "160", "180"), State.NODE_FAILED),  # internal: nodes, Tofu, storage
    **dict.fromkeys(("30", "100", "120"), State.KILLED),  # internal: suspension, manager, scheduler
    "11": State.TIME_LIMIT,
    "16": State.FAILED,  # its folder or its output file cannot be reached
    "18": State.PREEMPTED,  # by another job or a deadline, after its guaranteed time
}
"""Command Reference, pjstat, PC: the PJM codes of jobs that did not end by themselves."""

_REACH = 'reach=$(command -v pjrsh) || reach="ssh -o BatchMode=yes -o ConnectTimeout=30"'
"""How a process starts on another node of the job: pjrsh, which not every site has, else ssh."""


class Pjsub(Scheduler):
    """Technical Computing Suite (V4)."""

    poll_s = 30.0
    isolates_jobs = True
    stop_command = "pjdel"

    def header(self, request: Request) -> list[str]:
        """Return the directives, ``#PJM OPTION``, and the move to the first node of the job.

        pjsub takes a number of nodes and no names. So each job gets all nodes of its resource
        group, and its script continues on the first one that the plan has.

        Raises:
            BadInput: their number is not declared, or the queue has a reservation or memory.
        """
        queue, nodes = request.queue, len(request.nodes)
        for key in ("reservation", "memory_per_node"):
            if value := getattr(queue, key):
                found = f"{value!r}, and the kit does not request it from pjsub"
                raise bad_input("partition", f"queue.{key}", found, "no value")
        if not queue.all_nodes or nodes > queue.all_nodes:
            found = f"{queue.all_nodes or 'no value'}, and a job on {nodes} nodes"
            accepted = "the number of nodes of the resource group: pjsub takes it, and no names"
            raise bad_input("partition", "queue.all_nodes", found, accepted)
        resources = [f"node={queue.all_nodes}", f"elapse={request.clock}"]
        resources += [f"rscgrp={queue.name}"] if queue.name else []
        ranks = max(map(len, request.tasks), default=1)
        options = {
            "-N": request.name,
            "-L": f'"{",".join(resources)}"',
            "--mpi": f'"max-proc-per-node={ranks}"',
            "-o": shlex.quote(f"{request.log}"),
            "-g": queue.account,
        }
        lines = [f"{flag} {value}" for flag, value in options.items() if value]
        # A job that is run again is a new attempt, which the kit starts.
        lines += ["-j", "--norestart", *queue.options]
        return [*(f"#PJM {line}" for line in lines), *_move(request)]

    def fan_out(self, request: Request) -> list[str]:
        """Return ``on_all`` by `_REACH`."""
        return one_by_one(request.nodes, '$reach "$node"')

    def submit(self, script: Path, request: Request) -> str:
        """Submit `script`."""
        output = ask_scheduler(
            "pjsub",
            str(script),
            unavailable=_UNAVAILABLE,
            limit=lambda code, message: _ACCEPT_LIMIT in message,
        )
        return submitted_id("pjsub", output, _ID)

    def find(self, name: str) -> str:
        """Return the id of the job `name`; empty if there is none.

        pjstat cuts names, and those of a run begin alike: the whole name is read by ``-s``.
        """
        for job, row in _listed(_pjstat()).items():
            shown = row.get("JOB_NAME", "").strip()
            cut = len(shown) == _NAME_WIDTH and name.startswith(shown)
            if shown != name and not cut:
                continue
            number = job_id("pjstat", job, "([0-9]+)")
            if shown == name or _whole_name(number) == name:
                return number
        return ""

    def states(self, ids: Sequence[str]) -> Mapping[str, JobStatus]:
        """Return the state of each job, by one pjstat, which lists no ended job."""
        rows = _listed(_pjstat())
        return {job: _state(rows[job]) for job in ids if job in rows}

    def ended(self, job: str) -> JobStatus | None:
        """Return the state from the history of pjstat, which some sites do not keep."""
        try:
            rows = _listed(_pjstat("-H", "day=30", job))
        except SchedulerError:
            return None
        return _state(rows[job]) if job in rows else None

    def cancel(self, ids: Sequence[str]) -> None:
        """Delete the jobs; a job that has ended is no error."""
        for job in ids:
            try:
                ask_scheduler("pjdel", job, unavailable=_UNAVAILABLE)
            except SchedulerError:
                if job in _listed(_pjstat()):
                    raise

    def nodes(self, names: Sequence[str]) -> Mapping[str, NodeState]:
        """Return nothing: the kit reads no listing of nodes of this scheduler."""
        return {}


def _move(request: Request) -> list[str]:
    """Return the lines that start the script again on the first node, if it runs on another."""
    again = shlex.join(["env", "MOVED=yes", "sh", f"{request.script}"])
    return [
        _REACH,
        f"first={shlex.quote(request.nodes[0])}",
        "read -r here </proc/sys/kernel/hostname",
        # As same_host of hosts.sh.
        'if [ $# = 0 ] && [ -z "${MOVED-}" ] && [ "$here" != "$first" ] &&',
        '[ "${here%%.*}" != "$first" ] && [ "$here" != "${first%%.*}" ]; then',
        f'exec $reach "$first" {shlex.quote(again)}',
        "fi",
    ]


def _pjstat(*options: str) -> str:
    fields = "--choose=jid,jnam,st,pc,ermsg"
    return ask_scheduler("pjstat", "-v", "--data", fields, *options, unavailable=_UNAVAILABLE)


def _whole_name(job: str) -> str:
    """Return the name of a job from its statistics; empty if it is no longer listed."""
    form = ("-s", "--data", "--choose=jid,jnam")
    output = ask_scheduler("pjstat", *form, job, unavailable=_UNAVAILABLE)
    rows = [line.split(",") for line in output.splitlines()]
    return next((row[2].strip() for row in rows if len(row) > 2 and row[1].strip() == job), "")


def _listed(output: str) -> dict[str, dict[str, str]]:
    """Return the jobs in a CSV of pjstat by their id: its line ``H,…`` names the columns."""
    try:
        rows = list(csv.reader(output.splitlines()))
    except csv.Error:
        rows = []
    start = next((at for at, row in enumerate(rows) if row[:2] == ["H", "JOB_ID"]), None)
    if start is None:
        if output.strip():
            raise unreadable("pjstat", "a list of jobs", output)
        return {}
    heads = rows[start]
    jobs = (dict(zip(heads, row, strict=False)) for row in rows[start + 1 :] if row[:1] == [""])
    return {row["JOB_ID"].strip(): row for row in jobs if "JOB_ID" in row}


def _state(row: Mapping[str, str]) -> JobStatus:
    """Return the state of a job: that of its PJM code, if it did not end by itself."""
    word, code = row.get("ST", "").strip(), row.get("PC", "").strip()
    state = _STATES.get(word, State.UNKNOWN)
    if state is State.ENDED_UNKNOWN:
        state = _CODES.get(code, state)
    code = f"PJM code {code}" if code not in ("", "-", "0") else ""
    reason = row.get("REASON", "").strip(" -")
    return JobStatus(state, " ".join(filter(None, (word, code, reason))))

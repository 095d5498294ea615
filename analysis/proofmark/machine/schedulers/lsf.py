"""IBM Spectrum LSF (10.1).

After the "IBM Spectrum LSF command reference": bsub, bjobs, bhosts, bkill, blaunch. Never tried on
a real LSF.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from proofmark.common.errors import bad_input
from proofmark.common.files import parse_printed_json
from proofmark.machine.scheduler import (
    BUSY,
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
)
from proofmark.machine.scheduler_commands import (
    ask_scheduler,
    directives,
    job_id,
    named_blocks,
    one_by_one,
    state_of,
    states_of,
    unreadable,
    waiting_status,
    words_of,
)
from proofmark.runs.job_folder import JobStatus, State

_FULL = "Pending job threshold reached"
"""The message of bsub at MAX_PEND_JOBS of the user, of a group or of the cluster.

Seen at several sites. bsub tries again for ever, each minute, if LSB_NTRIES does not limit it.
"""

_FAILED = 255
"""The exit code of bjobs if a job is unknown, of bkill and of bsub for each failure."""

_STATES = words_of("lsf").jobs

_ENDED = ("DONE", "EXIT")

_TASKS = re.compile(r"^ *(?:TASK|PROC)LIMIT *\n *(?:[0-9]+ +)*([0-9]{1,9}) *$", re.MULTILINE)
"""The limit of the slots of a job in ``bqueues -l``: the last number is the largest."""

HOST_STATES = words_of("lsf").nodes

_REASONS = words_of("lsf").ends


class Lsf(Scheduler):
    """IBM Spectrum LSF (10.1)."""

    poll_s = 15.0
    isolates_jobs = True
    stop_command = "bkill"

    def header(self, request: Request) -> list[str]:
        """Return the directives, ``#BSUB OPTION``.

        A host file names the nodes with their slots; bsub then refuses ``-n``, ``-m`` and ``-R``.

        Raises:
            BadInput: the job requests memory.
        """
        queue = request.queue
        if queue.memory_per_node:
            found = "a value, and LSF takes no memory with a host file"
            raise bad_input("partition", "queue.memory_per_node", found, "no value")
        options = {
            "-J": request.name,
            # Minutes on this host: without it LSF counts those of the submission host, and divides
            # them by the CPU factor of the node.
            "-W": f"{-(-request.seconds // 60)}/{request.nodes[0]}",
            "-o": _word(f"{request.log}"),  # is appended, with standard error
            "-q": queue.name,
            "-P": queue.account,
            "-U": queue.reservation,
            "-hostfile": _word(f"{request.host_file}"),
        }
        exclusive = ["-x"] if queue.exclusive else []
        # -rn: a job that is run again is a new attempt, which the kit starts
        return directives("#BSUB", options, [*exclusive, "-rn", *queue.options])

    def host_list(self, request: Request) -> str:
        """Return the host file: each host with its slots."""
        return "".join(f"{node} {request.cpus}\n" for node in request.nodes)

    def fan_out(self, request: Request) -> list[str]:
        """Return ``on_all`` by blaunch, one for each node."""
        return one_by_one(request.nodes, 'blaunch -n "$node"')

    def submit(self, script: Path, request: Request) -> str:
        """Submit `script`: ``bsub < script`` reads the directives; an argument is not read.

        Esub programs of the site may print lines before ``Job <123> is submitted …``.
        """
        text = script.read_text(encoding="utf-8")
        output = ask_scheduler(
            "bsub",
            text=text,
            final="lsf",
            limit=lambda code, message: _FULL in message,
        )
        return job_id("bsub", output, r"Job <([0-9]+)>.*", submitted=True)

    def queue_limits(self, ask: Ask) -> Queues:
        """Return the run limits, the slots of a job and the states of all queues.

        ``bqueues`` names no default.
        """
        limits: Queues = {}
        for name, block in named_blocks(ask("bqueues", "-l"), "QUEUE: +").items():
            status = next(iter(re.findall(r"\b(?:Open|Closed):\w+", block)), "")
            most = block.rpartition("MAXIMUM LIMITS:")[2]
            minutes = re.search(r"^ *RUNLIMIT *\n *([0-9.]+) min", most, re.MULTILINE)
            tasks = _TASKS.search(most)
            limits[name] = QueueLimits(
                max_walltime_s=round(float(minutes[1]) * 60) if minutes else None,
                max_cpus=int(tasks[1]) if tasks else None,
                closed="" if status == "Open:Active" else status,
                source="bqueues -l",
            )
        return limits

    def find(self, name: str) -> str:
        """Return the id of the job `name`; empty if there is none."""
        jobs = _bjobs("jobid job_name", "-J", name)
        return next((job["JOBID"] for job in jobs if job.get("JOB_NAME") == name), "")

    def states(self, ids: Sequence[str]) -> JobStatuses:
        """Return the state of each job, by one bjobs, which lists ended jobs for an hour."""
        jobs = _bjobs("jobid stat exit_reason pend_reason", "-a", *ids)
        return {job["JOBID"]: _state(job) for job in jobs if job["JOBID"] in ids}

    def ended(self, job: str) -> JobStatus | None:
        """Return that LSF has no such job if bjobs says so of this id; `states` lists the others.

        The record of such a job has an ``ERROR`` in place of its fields.
        """
        records = _records("jobid", "-a", job)
        unknown = any(each.get("JOBID") == job and "ERROR" in each for each in records)
        return NO_SUCH_JOB if unknown else None

    def cancel(self, ids: Sequence[str]) -> None:
        """Kill the jobs; one that has ended, or that LSF does not know any more, is no error."""
        for job in ids:  # bkill has one exit code for all failures
            try:
                ask_scheduler("bkill", job, final="lsf")
            except SchedulerError:
                listed = _bjobs("jobid stat", "-a", job)
                if any(each.get("STAT") not in _ENDED for each in listed):
                    raise

    def nodes(self, names: Sequence[str]) -> NodeStates:
        """Return the state of each node, by one bhosts."""
        # -X: also the hosts of a condensed host group, which is one line otherwise.
        output = ask_scheduler("bhosts", "-X", "-w")
        rows = [line.split() for line in output.splitlines()]
        states = {row[0]: _node(row[1], row[4]) for row in rows if len(row) >= 6}
        return {name: states[name] for name in names if name in states}


def _word(text: str) -> str:
    """Return a value for a ``#BSUB`` line, in quotes if bsub could split it.

    bsub does not read the line as a shell does: a value in quotes ends at the next quote of the
    same kind, without an escape, and its blanks in a row become one.

    Raises:
        BadInput: no quotes can keep it whole.
    """
    if re.fullmatch(r"[A-Za-z0-9_@%+=:,./-]+", text):
        return text
    mark = next((each for each in "\"'" if each not in text), "")
    if not mark or " ".join(text.split()) != text:
        found = f"{text!r}, which no line of #BSUB can have"
        accepted = "one kind of quotes, and single blanks between words"
        raise bad_input("partition", "scheduler", found, accepted)
    return f"{mark}{text}{mark}"


def _bjobs(fields: str, *options: str) -> list[dict[str, str]]:
    """Return the jobs that bjobs lists."""
    return [job for job in _records(fields, *options) if "ERROR" not in job]


def _records(fields: str, *options: str) -> list[dict[str, str]]:
    """Return the records of bjobs; that of a job which LSF does not have has an ``ERROR``."""
    command = ("bjobs", "-json", "-o", fields, *options)
    output = ask_scheduler(*command, success=(0, _FAILED))
    if not output.strip():
        return []
    try:
        records: list[dict[str, Any]] = parse_printed_json(output)["RECORDS"]
        return [
            {key: str(value) for key, value in job.items()}
            for job in records
            if str(job.get("JOBID", "")).isdecimal()
        ]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise unreadable("bjobs", "JSON of jobs", output) from None


def _state(job: Mapping[str, str]) -> JobStatus:
    name, said = job.get("STAT", ""), job.get("EXIT_REASON", "")
    state = _STATES.get(name, State.UNKNOWN)
    if name == "EXIT":
        state = _REASONS.get(said.partition(":")[0].strip(), state)
    elif name == "PEND":
        said = job.get("PEND_REASON", "")  # also of hosts that the job does not request
        return waiting_status("lsf", said, f"{name} {said}".strip())
    return JobStatus(state, " ".join(filter(None, (name, said))))


def _node(status: str, jobs: str) -> NodeState:
    """Return the state of a host with a number of used slots (``bhosts -w``: STATUS, NJOBS)."""
    state = state_of(states_of([status], HOST_STATES), status, "")
    return BUSY if state.use is NodeUse.IDLE and jobs != "0" else state

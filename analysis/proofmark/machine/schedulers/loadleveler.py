"""LoadLeveler (3 and later)."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from pathlib import Path

from proofmark.common.grouping import flat
from proofmark.common.host_names import HostTable
from proofmark.common.rights import starting_user
from proofmark.machine.scheduler import (
    NO_SUCH_JOB,
    Ask,
    JobStatuses,
    NodeStates,
    QueueLimits,
    Queues,
    Request,
    Scheduler,
)
from proofmark.machine.scheduler_commands import (
    ask_scheduler,
    job_id,
    named_blocks,
    ssh_to,
    state_of,
    states_of,
    unreadable,
    words_of,
)
from proofmark.runs.job_folder import JobStatus, State

_NO_JOBS = "There is currently no job status to report"

_ROW = re.compile("([A-Za-z0-9_.-]+)!([^!]*)!([^!]*)")
"""A line of ``llq -r %id %st %jn``."""

_WIDTH = 500
"""A longer statement is continued on further lines."""

_MCM_AFFINITY = "mcm_distribute,mcm_mem_pref,mcm_sni_none"
"""One task of a memory domain after the other, with its memory and any adapter."""

_STATES = words_of("loadleveler").jobs

NODE_STATES = words_of("loadleveler").nodes


class LoadLeveler(Scheduler):
    """LoadLeveler (3 and later)."""

    poll_s = 30.0
    isolates_jobs = True
    stop_command = "llcancel"
    own_launcher = "poe"

    def header(self, request: Request) -> list[str]:
        """Return the keyword statements, ``# @ KEYWORD = VALUE``.

        ``task_geometry`` assigns the ranks to nodes. It excludes ``node`` and ``tasks_per_node``,
        and a serial job has neither it nor ``network.MPI``.
        """
        queue = request.queue
        machines = " ".join(f'"{node}"' for node in request.nodes)
        tasks = request.tasks or [[rank] for rank, _ in enumerate(request.nodes)]
        parallel = sum(map(len, tasks)) > 1
        groups = " ".join(f"({','.join(map(str, ranks))})" for ranks in tasks)
        keywords = {
            "job_name": request.name,
            "job_type": "parallel" if parallel else "serial",
            "task_geometry": f"{{{groups}}}" if parallel else "",
            "requirements": f"(Machine == {{{machines}}})",
            "node_usage": "not_shared" if queue.exclusive else "shared",
            "resources": "" if queue.exclusive else _resources(request),
            "wall_clock_limit": request.clock,
            "output": str(request.log),
            "error": str(request.log),
            "restart": "no",  # a job that is run again is a new attempt, which the kit starts
            "class": queue.name,
            "account_no": queue.account,
            "ll_res_id": queue.reservation,
        }
        lines = [f"{name} = {value}" for name, value in keywords.items() if value]
        statements = [f"# @ {line}" for line in [*lines, *_options(request, parallel), "queue"]]
        return flat(map(_continued, statements))

    def fan_out(self, request: Request) -> list[str]:
        """Return ``on_all`` by ssh: LoadLeveler has no command that starts a process on a node."""
        return ssh_to(request.nodes)

    def submit(self, script: Path, request: Request) -> str:
        """Submit `script`; submit filters of the site may print lines before the job id."""
        output = ask_scheduler("llsubmit", str(script), final="loadleveler")
        return job_id(
            "llsubmit", output, r'llsubmit: The job "([A-Za-z0-9_.-]+)".*', submitted=True
        )

    def queue_limits(self, ask: Ask) -> Queues:
        """Return the hard limit of the wall clock of each class; ``llclass`` names no default."""
        limits: Queues = {}
        for name, block in named_blocks(ask("llclass", "-l"), " *Name: *").items():
            hard = re.search(r"^ *Wall_clock_limit:.*\(([0-9]{1,9}) seconds", block, re.MULTILINE)
            seconds = int(hard[1]) if hard else None
            limits[name] = QueueLimits(max_walltime_s=seconds, source="llclass -l")
        return limits

    def find(self, name: str) -> str:
        """Return the id of the job `name`; empty if there is none."""
        return next((job for job, _, job_name in _queue() if job_name == name), "")

    def states(self, ids: Sequence[str]) -> JobStatuses:
        """Return the state of each job, by one llq for all jobs of this user."""
        states = {_key(job): _state(code) for job, code, _ in _queue()}
        return {job: states[_key(job)] for job in ids if _key(job) in states}

    def ended(self, job: str) -> JobStatus | None:
        """Return that LoadLeveler has no such job if llq says so of this id.

        Only administrators can read the history.
        """
        listed = {_key(name): code for name, code, _ in _queue(job)}
        if _key(job) in listed:
            return _state(listed[_key(job)])
        return None if listed else NO_SUCH_JOB

    def cancel(self, ids: Sequence[str]) -> None:
        """Cancel the jobs."""
        ask_scheduler("llcancel", *ids)

    def nodes(self, names: Sequence[str]) -> NodeStates:
        """Return the state of each node: that of its startd, by one llstatus.

        ``%sta`` would be its availability, 1 or 0.
        """
        output = ask_scheduler("llstatus", "-r", "%n", "%sts")
        states = dict(line.split("!", 1) for line in output.splitlines() if line.count("!") == 1)
        listed = HostTable.of(states)
        known = {name: states.get(listed.find(name) or name, "") for name in names}
        return {
            name: state_of(states_of([state], NODE_STATES), state, "")
            for name, state in known.items()
            if state
        }


def _resources(request: Request) -> str:
    """Return what one task uses; LoadLeveler multiplies it by the tasks of a node."""
    memory = request.queue.memory_per_node
    tasks = max(map(len, request.tasks), default=1)
    share = f" ConsumableMemory({memory // tasks // 2**20} mb)" if memory else ""
    return f"ConsumableCpus({request.threads}){share}"


def _options(request: Request, parallel: bool) -> list[str]:
    """Return the statements of the site, and what they need in this job.

    LoadLeveler binds the tasks to processors by ``rset_mcm_affinity``.
    """
    stated = {}
    for line in request.queue.options:
        keyword, _, value = (word.strip() for word in line.partition("="))
        stated[keyword.lower()] = value
    # A serial job must not name the network of MPI.
    lines = [
        line
        for line in request.queue.options
        if parallel or line.partition("=")[0].strip().lower() != "network.mpi"
    ]
    if stated.get("rset", "").lower() == "rset_mcm_affinity":
        if "mcm_affinity_options" not in stated:
            lines.append(f"mcm_affinity_options = {_MCM_AFFINITY}")
        if "task_affinity" not in stated:
            lines.append(f"task_affinity = cpu({request.threads})")
    return lines


def _continued(statement: str) -> list[str]:
    """Return the lines of a statement: a backslash continues it on the next comment line."""
    if len(statement) <= _WIDTH:
        return [statement]
    lines = textwrap.wrap(
        statement,
        _WIDTH,
        subsequent_indent="#   ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [*(f"{line} \\" for line in lines[:-1]), lines[-1]]


def _queue(*ids: str) -> list[tuple[str, str, str]]:
    """Return id, state and name of these jobs, or of every job of this user.

    Jobs of the kit have one job step, number 0.
    """
    which = ids or ("-u", starting_user().name)
    form = ("-r", "%id", "%st", "%jn")
    output = ask_scheduler("llq", *which, *form)
    rows = [match.groups() for line in output.splitlines() if (match := _ROW.fullmatch(line))]
    if not rows and _NO_JOBS not in output:
        raise unreadable("llq", "a list of jobs", output)
    return [(step.removesuffix(".0"), code, name) for step, code, name in rows]


def _key(job: str) -> tuple[str, str]:
    """Return short host name and number of a job: llsubmit prints the long name, llq the short."""
    host, _, number = job.rpartition(".")
    return host.partition(".")[0], number


def _state(code: str) -> JobStatus:
    return JobStatus(_STATES.get(code, State.UNKNOWN), code)

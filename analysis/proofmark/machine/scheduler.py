"""The base classes of schedulers, the request of a job, and calls of scheduler commands."""

from __future__ import annotations

import os
import pwd
import re
import shlex
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, TypeVar

from proofmark.common.child_environment import of_jobs
from proofmark.common.errors import ProofmarkError, bad_input
from proofmark.common.plugins import Plugins
from proofmark.common.processes import run_command
from proofmark.common.text import one_line
from proofmark.machine.listing import NodeListing
from proofmark.runs.job_state import JobStatus
from proofmark.runs.run_files import JobFiles
from proofmark.site.execution import Queue

_TIMEOUT_S = 60
"""Longer than the timeouts of the clients of Slurm and PBS."""


class SchedulerUnavailable(ProofmarkError):
    """The scheduler did not answer; the command may be repeated."""


class SchedulerError(ProofmarkError):
    """The scheduler refused a command."""


@dataclass(frozen=True)
class Request:
    """The resources and settings that a job requests.

    Attributes:
        name: unique to this job of this run; at most 15 characters, the first one a letter.
        nodes: the job gets exactly these.
        seconds: the time limit of the job.
        log: absolute path; the output of the job is appended.
        queue: the site's settings of its scheduler.
        independent: whether each node measures alone, so that the job continues if a node fails.
        cpus: the CPUs that the job requests on each node.
        tasks: the numbers of the ranks on each node, of the step with the most ranks. They are
            0, 1, … without a gap, and each node has one at least.
        threads: the largest number of CPUs of a rank.
    """

    name: str
    nodes: Sequence[str]
    seconds: int
    log: Path
    queue: Queue
    independent: bool = False
    cpus: int = 1
    tasks: Sequence[Sequence[int]] = ()
    threads: int = 1

    @property
    def host_file(self) -> Path:
        """The file of `Scheduler.host_list`, beside the messages of the job."""
        return JobFiles(self.log.parent).hosts

    @property
    def clock(self) -> str:
        """The time limit as ``HH:MM:SS``."""
        minutes, seconds = divmod(self.seconds, 60)
        return f"{minutes // 60:02d}:{minutes % 60:02d}:{seconds:02d}"


class Scheduler(ABC):
    """Base class of schedulers.

    All methods except `header`, `host_list` and `fan_out` call commands of the scheduler. They
    raise `SchedulerUnavailable` if it does not answer.

    Attributes:
        poll_s: the longest pause between two polls, in seconds.
        isolates_jobs: whether two jobs never run on the same node at the same time.
        stop_command: the program that ends a job; empty if jobs are child processes.
        listing: lists its nodes; None if they cannot be listed.
        own_launcher: the launcher of the scheduler's own MPI, which the probe of programs does not
            recognize; empty if there is none.
    """

    poll_s: ClassVar[float]
    isolates_jobs: ClassVar[bool]
    stop_command: ClassVar[str]
    listing: ClassVar[type[NodeListing] | None] = None
    own_launcher: ClassVar[str] = ""

    @abstractmethod
    def header(self, request: Request) -> list[str]:
        """Return the first lines of the job script.

        Raises:
            BadInput: the scheduler cannot run such a job.
        """

    def host_list(self, request: Request) -> str:
        """Return the text of `Request.host_file`; empty if the header names the nodes.

        Raises:
            BadInput: the scheduler cannot take so many nodes.
        """
        return ""

    @abstractmethod
    def fan_out(self, request: Request) -> list[str]:
        """Return the lines of the shell function ``on_all SCRIPT ARGUMENT…`` of the job script.

        The function runs the script by sh on every node of the job, waits for all, and forwards
        SIGTERM. It is the last command of its shell, so that it may ``exec``.
        """

    @abstractmethod
    def submit(self, script: Path, request: Request) -> str:
        """Submit `script` and return the id of the job.

        Raises:
            SchedulerError: the scheduler refuses the job.
        """

    @abstractmethod
    def find(self, name: str) -> str:
        """Return the id of the job `name` that has not ended; empty if there is none."""

    @abstractmethod
    def states(self, ids: Sequence[str]) -> Mapping[str, JobStatus]:
        """Return the state of each job, by one call; jobs that it does not list are omitted."""

    @abstractmethod
    def ended(self, job: str) -> JobStatus | None:
        """Return the state of a job that `states` does not list; None if it is unknown.

        It is asked for by its id: a listing can leave out a job that still waits or runs.
        """

    @abstractmethod
    def cancel(self, ids: Sequence[str]) -> None:
        """End the jobs; the method need not wait for their end."""

    @abstractmethod
    def nodes(self, names: Sequence[str]) -> Mapping[str, str]:
        """Return ``idle``, ``busy`` or ``down …`` of each node whose state is known."""


@dataclass(frozen=True)
class NodeStatus:
    """The status of a node, as the scheduler reports it.

    Attributes:
        out: whether the node gets no new jobs.
        idle: whether no job runs on the node.
        reason: why the node is out; empty if no reason was given.
        state: the states for which the node is out, in the words of the scheduler.
        reserved: whether the node is only out because it is in a reservation, whose jobs start.
    """

    out: bool
    idle: bool
    reason: str = ""
    state: str = field(default="", compare=False)
    reserved: bool = field(default=False, compare=False)

    @property
    def why(self) -> str:
        """The reason for which the node is out; without one its state."""
        return self.reason or (f"state {self.state}, no reason is given" if self.state else "")


UNLISTED = "does not list the node"
"""The end of the reason of a node that the scheduler does not list."""


class DrainingScheduler(Scheduler):
    """Base class of schedulers whose nodes can be drained and resumed.

    Its own methods raise `NodeError` if the scheduler refuses or does not answer, or if its answer
    cannot be read.

    Attributes:
        keeps_reasons: whether `node_status` returns the whole reason that `drain` got.
    """

    keeps_reasons: ClassVar[bool] = True

    @abstractmethod
    def node_status(self, nodes: Sequence[str]) -> dict[str, NodeStatus]:
        """Return the status of each node; a node that the scheduler does not list is out."""

    @staticmethod
    def unlisted(program: str) -> NodeStatus:
        """Return the status of a node that `program` does not list. It must not be changed."""
        return NodeStatus(out=True, idle=False, reason=f"{program} {UNLISTED}")

    @abstractmethod
    def drain(self, nodes: Sequence[str], reason: str) -> None:
        """Drain the nodes: jobs that run continue, and no new job starts."""

    @abstractmethod
    def resume(self, nodes: Sequence[str]) -> None:
        """Resume the nodes: new jobs may start."""

    @abstractmethod
    def reservations(self) -> dict[str, list[str]]:
        """Return the nodes of each reservation that is active now."""

    @abstractmethod
    def missing_permission(self, node: str) -> str:
        """Return why this user may not drain `node`; empty if the user may. It changes nothing.

        Raises:
            NodeError: UNKNOWN if the scheduler does not report the rights; the text has the
                command that shows them. Another outcome if the scheduler does not answer.
        """


class ReservingScheduler(DrainingScheduler):
    """Base class of schedulers that can reserve nodes for the jobs of one user.

    Jobs that run on reserved nodes continue. A new job starts there only if it names the
    reservation (`Queue.reservation`) and is one of the user. The methods raise `NodeError` if the
    scheduler refuses or does not answer.
    """

    @abstractmethod
    def reserve(self, name: str, nodes: Sequence[str], user: str) -> None:
        """Reserve exactly `nodes` from now on, without an end that matters.

        An active reservation of this name is changed.
        """

    @abstractmethod
    def delete_reservation(self, name: str) -> None:
        """Delete the reservation `name`."""


def user_name() -> str:
    """Return the name of this process's user, which schedulers list; a number if there is none."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"{os.geteuid()}"


Kind = TypeVar("Kind", bound=Scheduler)

SCHEDULERS = Plugins(Scheduler, "proofmark.machine.schedulers", "partition", "scheduler")
"""All schedulers; those of a site are entry points of this group."""


def scheduler(name: str) -> Scheduler:
    """Return the scheduler `name`.

    Raises:
        BadInput: there is no such scheduler.
    """
    return SCHEDULERS.get(name)()


def draining(name: str) -> DrainingScheduler:
    """Return the scheduler `name` if it is a `DrainingScheduler`.

    Raises:
        BadInput: there is no such scheduler, or the kit cannot drain its nodes.
    """
    return _of_kind(name, DrainingScheduler, "drain")


def reserving(name: str) -> ReservingScheduler:
    """Return the scheduler `name` if it is a `ReservingScheduler`.

    Raises:
        BadInput: there is no such scheduler, or the kit cannot reserve its nodes.
    """
    return _of_kind(name, ReservingScheduler, "reserve")


def _of_kind(name: str, kind: type[Kind], verb: str) -> Kind:
    chosen = scheduler(name)
    if isinstance(chosen, kind):
        return chosen
    accepted = (other for other in SCHEDULERS.names() if issubclass(SCHEDULERS.get(other), kind))
    found = f"{name!r}, whose nodes the kit cannot {verb}"
    raise bad_input("partition", "scheduler", found, ", ".join(accepted))


def ask_scheduler(
    *command: str,
    text: str = "",
    unavailable: Collection[str] = (),
    success: Collection[int] = (0,),
) -> str:
    """Run a command of a scheduler and return its standard output.

    Args:
        command: the program and its arguments.
        text: its standard input.
        unavailable: parts of the messages that the command prints if its server does not answer.
        success: the exit codes of success.

    Raises:
        BadInput: there is no such program.
        SchedulerUnavailable: the server does not answer, the command ran for a minute, or it could
            not be started.
        SchedulerError: the command failed for another reason; with its message.
    """
    try:
        done = run_command(
            command,
            text=text,
            timeout_s=_TIMEOUT_S,
            environment=clean(os.environ),
            new_session=True,  # Ctrl-C must not interrupt the command
        )
    except FileNotFoundError:
        found = f"no program {command[0]!r} in PATH"
        accepted = "a scheduler whose commands are installed on this host"
        raise bad_input("partition", "scheduler", found, accepted) from None
    except subprocess.TimeoutExpired:
        raise SchedulerUnavailable(f"{command[0]} did not answer within {_TIMEOUT_S} s") from None
    except OSError as error:
        raise SchedulerUnavailable(f"{command[0]}: {error.strerror}") from None
    if done.returncode in success:
        return done.stdout
    message = " / ".join((done.stderr or done.stdout).split("\n")).strip(" /")[-300:]
    if any(part in message for part in unavailable):
        raise SchedulerUnavailable(f"{command[0]}: {message}")
    raise SchedulerError(f"{command[0]}: {message or f'exit code {done.returncode}'}")


def job_id(program: str, output: str, pattern: str) -> str:
    """Return the id of a job that `program` printed as the last line with one; empty if no output.

    Args:
        program: the command.
        output: what it printed.
        pattern: a regular expression of an id, which is the first group of it in a line.

    Raises:
        SchedulerUnavailable: no line has an id; whether there is a job is not known.
    """
    found = [match for line in output.splitlines() if (match := re.fullmatch(pattern, line))]
    if not found and output.strip():
        raise unreadable(program, "an id of a job", output)
    return found[-1][1] if found else ""


def submitted_id(program: str, output: str, pattern: str) -> str:
    """Return the id of the job that `program` has submitted; see `job_id`.

    Raises:
        SchedulerUnavailable: there is no id; the scheduler may have the job nevertheless.
    """
    if found := job_id(program, output, pattern):
        return found
    raise unreadable(program, "an id of a job", output)


def unreadable(program: str, form: str, output: str) -> SchedulerUnavailable:
    """Return the exception for an output that is not of this form; the command may be repeated."""
    return SchedulerUnavailable(f"{program}: the output is not {form}: {one_line(output[-200:])!r}")


def clean(environment: Mapping[str, str]) -> dict[str, str]:
    """Return `environment` for the commands of a scheduler, which pass it on to the job.

    It is that of a job, without variables that would override the options of the job script.
    """
    removed = (
        "SBATCH_",
        "SLURM_JOB",
        "SLURM_STEP",
        "SQUEUE_",
        "SINFO_",
        "PBS_",
        "LSB_",
        "VIRTUAL_ENV",
    )
    passed = of_jobs(environment)
    return {name: value for name, value in passed.items() if not name.startswith(removed)}


MAX_ARGUMENT = 131_071
"""The longest argument of a command in bytes: execve(2), MAX_ARG_STRLEN, without the final NUL."""


def as_argument(text: str, request: Request) -> str:
    """Return `text`, which names the nodes of `request` in one argument of a command.

    Raises:
        BadInput: it is longer than an argument of a command can be.
    """
    if len(text) <= MAX_ARGUMENT:
        return text
    fewer = len(request.nodes) * MAX_ARGUMENT // len(text)
    found = f"a job of {len(request.nodes)} nodes, whose list has {len(text):,} bytes"
    accepted = f"at most about {fewer} nodes: the list is an argument of {MAX_ARGUMENT:,} bytes"
    raise bad_input("partition", "nodes_per_job", found, accepted)


def one_by_one(nodes: Sequence[str], command: str) -> list[str]:
    """Return ``on_all`` for a scheduler whose command starts a process on one node.

    `command` is for the node ``"$node"``. The script and its arguments are appended as one quoted
    text, which the shell on the node splits again. The local node, ``$HOST``, needs no `command`.
    """
    quote = r"s/'/'\\\\''/g; 1s/^/'/; \$s/\$/'/"
    return [
        "on_all() {",
        "text=sh",
        f'for word; do text="$text $(printf "%s\\n" "$word" | sed "{quote}")"; done',
        "pids=",
        "trap 'kill $pids 2>/dev/null' TERM",
        f"for node in {shlex.join(nodes)}; do",
        'if [ "${node%%.*}" = "${HOST%%.*}" ]; then sh "$@" </dev/null &',
        f'else {command} "$text" </dev/null & fi',
        'pids="$pids $!"',
        "done",
        "failed=0",
        'for pid in $pids; do wait "$pid" || failed=$?; done',
        'return "$failed"',
        "}",
    ]


def ssh_to(nodes: Sequence[str]) -> list[str]:
    """Return ``on_all`` by ssh, for a scheduler without a command for the nodes of a job."""
    return one_by_one(nodes, 'ssh -o BatchMode=yes -o ConnectTimeout=30 "$node"')

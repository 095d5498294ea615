"""A scheduler: what a job requests of it, how its commands are called, how nodes are drained."""

from __future__ import annotations

import os
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from proofmark.common.command import run_command
from proofmark.common.errors import ProofmarkError, bad_input
from proofmark.common.plugins import Plugins
from proofmark.runs.job_state import JobStatus
from proofmark.site.execution import Queue

_ANSWER_S = 60
"""Longer than the time after which the clients of Slurm and PBS give up by themselves."""


class SchedulerUnavailable(ProofmarkError):
    """The scheduler does not answer: neither yes nor no."""


class SchedulerError(ProofmarkError):
    """The scheduler answered, and would not do it."""


@dataclass(frozen=True)
class Request:
    """What a job asks its scheduler for.

    Attributes:
        name: unique to this job of this run, at most 15 characters, the first one a letter.
        nodes: exactly these.
        seconds: after which the scheduler may stop it.
        log: absolute; gets what the job says, at its end.
        independent: every node measures by itself, so that a lost one stops no other.
    """

    name: str
    nodes: Sequence[str]
    seconds: int
    log: Path
    queue: Queue
    independent: bool = False

    @property
    def clock(self) -> str:
        """The time limit as ``HH:MM:SS``."""
        minutes, seconds = divmod(self.seconds, 60)
        return f"{minutes // 60:02d}:{minutes % 60:02d}:{seconds:02d}"


class Scheduler(ABC):
    """A scheduler; all methods but `header` and `fan_out` call its commands.

    These raise `SchedulerUnavailable` if it cannot be reached.

    Attributes:
        poll_s: the longest pause between two polls.
        isolates_jobs: whether jobs that share a node never run there at the same time.
        stop_command: the program that ends a job.
    """

    poll_s: ClassVar[float]
    isolates_jobs: ClassVar[bool]
    stop_command: ClassVar[str]

    @abstractmethod
    def header(self, request: Request) -> list[str]:
        """Return the first lines of the job script."""

    @abstractmethod
    def fan_out(self, request: Request) -> list[str]:
        """Return the shell function ``on_all SCRIPT ARGUMENT…`` of the job script.

        It runs the script by sh on every node of the job, waits for all, and passes TERM on. It is
        the last command of its shell, so it may ``exec``.
        """

    @abstractmethod
    def submit(self, script: Path, request: Request) -> str:
        """Submit `script` and return the id of the job.

        Raises:
            SchedulerError: the scheduler does not take it.
        """

    @abstractmethod
    def find(self, name: str) -> str:
        """Return the id of the job called `name` that has not ended, or nothing."""

    @abstractmethod
    def states(self, ids: Sequence[str]) -> Mapping[str, JobStatus]:
        """Return the state of each job, by one call; unknown jobs are left out."""

    @abstractmethod
    def ended(self, job: str) -> JobStatus | None:
        """Return how a job ended that `states` has no longer; None if that is unknown."""

    @abstractmethod
    def cancel(self, ids: Sequence[str]) -> None:
        """End the jobs; it need not wait."""

    @abstractmethod
    def nodes(self, names: Sequence[str]) -> Mapping[str, str]:
        """Return ``idle``, ``busy`` or ``down …`` of each node whose state is known."""


@dataclass(frozen=True)
class NodeStatus:
    """What a scheduler reports of a node.

    Attributes:
        out: whether it takes no new jobs.
        idle: whether no job is on it.
        reason: why it is out.
    """

    out: bool
    idle: bool
    reason: str = ""


class DrainingScheduler(Scheduler):
    """A scheduler that takes nodes out of service and returns them.

    Its methods raise `NodeError` if the scheduler refuses.
    """

    @abstractmethod
    def node_status(self, nodes: Sequence[str]) -> dict[str, NodeStatus]:
        """Return the status of each node."""

    @abstractmethod
    def drain(self, nodes: Sequence[str], reason: str) -> None:
        """Let the nodes take no further job."""

    @abstractmethod
    def resume(self, nodes: Sequence[str]) -> None:
        """Let the nodes take jobs again."""

    @abstractmethod
    def missing_permission(self, node: str) -> str:
        """Return why this user may not drain `node`; empty if they may."""


SCHEDULERS = Plugins(Scheduler, "proofmark.machine.schedulers", "partition", "scheduler")
"""All schedulers; a site's own are entry points of this group."""


def scheduler(name: str) -> Scheduler:
    """Return the scheduler `name`.

    Raises:
        BadInput: there is no such scheduler.
    """
    return SCHEDULERS.get(name)()


def draining(name: str) -> DrainingScheduler:
    """Return the scheduler `name`, which can drain nodes.

    Raises:
        BadInput: there is no such scheduler, or the kit cannot drain its nodes.
    """
    found = scheduler(name)
    if isinstance(found, DrainingScheduler):
        return found
    able = (
        each for each in SCHEDULERS.names() if issubclass(SCHEDULERS.get(each), DrainingScheduler)
    )
    raise bad_input("partition", "scheduler", f"{name!r}: it drains no nodes", ", ".join(able))


def ask_scheduler(
    *command: str, silent: Collection[str] = (), good: Collection[int] = (0,), text: str = ""
) -> str:
    """Run a command of a scheduler and return what it prints; `text` is its input.

    Args:
        command: the program and its arguments.
        silent: parts of a message that says that nobody answers.
        good: the exit codes of an answer.
        text: what it reads.

    Raises:
        BadInput: there is no such program.
        SchedulerUnavailable: it says so, or says nothing within a minute.
        SchedulerError: it fails for another reason; its message.
    """
    try:
        done = run_command(
            command,
            text=text,
            timeout_s=_ANSWER_S,
            environment=clean(os.environ),
            new_session=True,  # a Ctrl-C is ours; the answer comes nevertheless
        )
    except FileNotFoundError:
        found = f"no program {command[0]!r} in PATH"
        raise bad_input("partition", "scheduler", found, "its commands where this runs") from None
    except subprocess.TimeoutExpired:
        raise SchedulerUnavailable(f"{command[0]} did not answer within {_ANSWER_S} s") from None
    if done.returncode in good:
        return done.stdout
    said = " / ".join((done.stderr or done.stdout).split("\n")).strip(" /")[-300:]
    if any(part in said for part in silent):
        raise SchedulerUnavailable(f"{command[0]}: {said}")
    raise SchedulerError(f"{command[0]}: {said or f'exit code {done.returncode}'}")


def clean(environment: Mapping[str, str]) -> dict[str, str]:
    """Return `environment` without what would change a job behind the back of its script."""
    foreign = ("SBATCH_", "SLURM_JOB", "SLURM_STEP", "SQUEUE_", "SINFO_", "PBS_", "VIRTUAL_ENV")
    return {name: value for name, value in environment.items() if not name.startswith(foreign)}


def one_by_one(nodes: Sequence[str], command: str) -> list[str]:
    """Return ``on_all`` for a scheduler that starts something on one node at a time.

    `command` reaches ``"$node"``; the script and its arguments are appended as one text, which the
    shell there splits again. This node, ``$HOST``, needs none.
    """
    quote = r"s/'/'\\\\''/g; 1s/^/'/; \$s/\$/'/"
    return [
        "on_all() {",
        "text=sh",
        f'for word; do text="$text $(printf "%s\\n" "$word" | sed "{quote}")"; done',
        "pids=",
        "trap 'kill $pids 2>/dev/null' TERM",
        f"for node in {' '.join(nodes)}; do",
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
    """Return ``on_all`` by ssh, for where nothing else reaches the nodes of a job."""
    return one_by_one(nodes, 'ssh -o BatchMode=yes -o ConnectTimeout=30 "$node"')

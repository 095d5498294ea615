"""No scheduler: a job is a child of this process and starts at once, on one node."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from proofmark.common.errors import bad_input
from proofmark.common.files import open_to_append
from proofmark.common.processes import Process
from proofmark.common.rights import starting_user
from proofmark.machine.scheduler import (
    DrainingScheduler,
    JobStatuses,
    NodeStates,
    NodeStatus,
    NodeStatuses,
    Request,
    Scheduler,
)
from proofmark.runs.job_folder import JobStatus, State

_GRACE_S = 60
"""Time for a job to end after SIGTERM.

A step needs up to 2 s to kill its program; then the job writes its files. A loaded machine takes
many times as long.
"""

_children: dict[str, Process] = {}


class ChildJobs(Scheduler):
    """A job is a child of this process, starts at once, and ends with this process."""

    poll_s = 0.2
    isolates_jobs = False
    stop_command = ""

    def submit(self, script: Path, request: Request) -> str:
        """Start `script`; its output is appended to its log, and it ends with this process."""
        user = starting_user()
        identity = user.words or ["setpriv"]
        with open_to_append(request.log) as messages:
            # In a new session Ctrl-C of the terminal does not reach the job; `cancel` stops it.
            child = Process(
                [*identity, "--pdeathsig", "TERM", "sh", str(script)],
                stdin=subprocess.DEVNULL,
                stdout=messages,
                stderr=messages,
                env=user.environment(),
                start_new_session=True,
            )
        _children[str(child.pid)] = child
        return str(child.pid)

    def find(self, name: str) -> str:
        """Return an empty id: a job ends with the process that started it."""
        return ""

    def states(self, ids: Sequence[str]) -> JobStatuses:
        """Return the state of each child process."""
        return {job: _state(_children[job].poll()) for job in ids if job in _children}

    def ended(self, job: str) -> JobStatus | None:
        """Return CANCELLED: the job ended with the process that started it."""
        return JobStatus(State.CANCELLED, "the process that started it was killed")

    def cancel(self, ids: Sequence[str]) -> None:
        """Send SIGTERM to the children: each stops its step, and the step stops its program."""
        for child in [_children[job] for job in ids if job in _children]:
            child.terminate()
            try:
                child.wait(timeout=_GRACE_S)
            except subprocess.TimeoutExpired:
                # Kills the job and run.sh of its step; the next start of the step ends the rest.
                child.kill()
                child.wait()

    def nodes(self, names: Sequence[str]) -> NodeStates:
        """Return no states: no scheduler watches the node."""
        return {}


def _state(code: int | None) -> JobStatus:
    if code is None:
        return JobStatus(State.RUNNING)
    if code == 0:
        return JobStatus(State.ENDED)
    reason = f"exit code {code}" if code > 0 else f"signal {signal.Signals(-code).name}"
    return JobStatus(State.FAILED, reason)


class NoScheduler(ChildJobs, DrainingScheduler):
    """No scheduler: a job is a child of this process and starts at once."""

    def header(self, request: Request) -> list[str]:
        """Return no lines.

        Raises:
            BadInput: the job requests more than one node.
        """
        if len(request.nodes) != 1:
            found = f"'none', with a job of {len(request.nodes)} nodes"
            raise bad_input("partition", "scheduler", found, "'none' with jobs of 1 node")
        return []

    def fan_out(self, request: Request) -> list[str]:
        """Return no lines: a job of one node runs its steps itself."""
        return []

    def node_status(self, nodes: Sequence[str]) -> NodeStatuses:
        """Return that every node is in service and idle."""
        return {node: NodeStatus(out=False, idle=True) for node in nodes}

    def drain(self, nodes: Sequence[str], reason: str) -> None:
        """Do nothing; the journal records it."""

    def resume(self, nodes: Sequence[str]) -> None:
        """Do nothing; the journal records it."""

    def reservations(self) -> dict[str, list[str]]:
        """Return no reservation: nobody can reserve a node."""
        return {}

    def missing_permission(self, node: str) -> str:
        """Return an empty text: no permission is needed."""
        return ""

"""No scheduler: the job runs here, now, as a child of this process."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from proofmark.common.errors import bad_input
from proofmark.machine.scheduler import DrainingScheduler, NodeStatus, Request
from proofmark.runs.job_state import JobStatus, State

_GRACE_S = 60
"""A stopped step needs up to 2 s to end its program by force; then the job writes its notes.

A loaded machine takes many times as long.
"""

_children: dict[str, subprocess.Popen[bytes]] = {}


class NoScheduler(DrainingScheduler):
    """No scheduler: the job runs here, now, as a child of this process."""

    poll_s = 0.2
    isolates_jobs = False
    stop_command = "kill"

    def header(self, request: Request) -> list[str]:
        """Return nothing: there is nobody to read it.

        Raises:
            BadInput: the job wants more than this one node.
        """
        if len(request.nodes) != 1:
            found = f"none, for {len(request.nodes)} nodes"
            raise bad_input("partition", "scheduler", found, "1 node")
        return []

    def fan_out(self, request: Request) -> list[str]:
        """Return nothing: a job of one node runs its steps itself."""
        return []

    def submit(self, script: Path, request: Request) -> str:
        """Start `script`; it appends its messages to its log, and stops when this process ends."""
        with request.log.open("ab") as messages:
            # A session of its own: the terminal's Ctrl-C does not reach the job; `cancel` stops it.
            child = subprocess.Popen(
                ["setpriv", "--pdeathsig", "TERM", "sh", str(script)],
                stdin=subprocess.DEVNULL,
                stdout=messages,
                stderr=messages,
                start_new_session=True,
            )
        _children[str(child.pid)] = child
        return str(child.pid)

    def find(self, name: str) -> str:
        """Return nothing: a job does not outlive the process that started it."""
        return ""

    def states(self, ids: Sequence[str]) -> Mapping[str, JobStatus]:
        """Ask whether the children still run, and how they ended."""
        return {job: _state(_children[job].poll()) for job in ids if job in _children}

    def ended(self, job: str) -> JobStatus | None:
        """Say of a job of an earlier process that it died with that."""
        return JobStatus(State.CANCELLED, "who ran it was killed")

    def cancel(self, ids: Sequence[str]) -> None:
        """Stop the children: each stops its step, which stops its program."""
        for child in [_children[job] for job in ids if job in _children]:
            child.terminate()
            try:
                child.wait(timeout=_GRACE_S)
            except subprocess.TimeoutExpired:
                # The job and its step's run.sh; the next start of that step ends what it leaves.
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()

    def nodes(self, names: Sequence[str]) -> Mapping[str, str]:
        """Return nothing: nobody watches over the node."""
        return {}

    def node_status(self, nodes: Sequence[str]) -> dict[str, NodeStatus]:
        """Return that every node is at our disposal."""
        return {node: NodeStatus(out=False, idle=True) for node in nodes}

    def drain(self, nodes: Sequence[str], reason: str) -> None:
        """Do nothing; the journal notes it."""

    def resume(self, nodes: Sequence[str]) -> None:
        """Do nothing; the journal notes it."""

    def missing_permission(self, node: str) -> str:
        """Return that nothing is missing."""
        return ""


def _state(code: int | None) -> JobStatus:
    if code is None:
        return JobStatus(State.RUNNING)
    if code == 0:
        return JobStatus(State.ENDED)
    said = f"exit code {code}" if code > 0 else f"signal {signal.Signals(-code).name}"
    return JobStatus(State.FAILED, said)

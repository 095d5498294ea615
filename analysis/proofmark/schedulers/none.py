"""No scheduler: the job runs here, now, as a child of this process."""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from proofmark.errors import bad_input
from proofmark.plan import Job
from proofmark.schedulers import State, Ticket

_GRACE_S = 15
"""A stopped step needs up to 2 s to end its program by force; then the job writes its notes."""


@dataclass
class _Child:
    process: subprocess.Popen[bytes]
    reason: str = ""


def header(job: Job) -> list[str]:
    """Return nothing: there is nobody to read it.

    Raises:
        BadInput: the job wants more than this one node.
    """
    if len(job.nodes) != 1:
        raise bad_input("partition", "scheduler", f"none, for {len(job.nodes)} nodes", "1 node")
    return []


def submit(script: Path, log: Path) -> Ticket:
    """Start `script`; its messages go to the end of `log`. It stops when this process dies."""
    with log.open("ab") as messages:
        # A session of its own: the terminal's Ctrl-C reaches us alone; we stop the job in order.
        child = subprocess.Popen(
            ["setpriv", "--pdeathsig", "TERM", "sh", str(script)],
            stdin=subprocess.DEVNULL,
            stdout=messages,
            stderr=messages,
            start_new_session=True,
        )
    return _Child(child)


def state(ticket: Ticket) -> State:
    """Ask whether the child still runs, and how it ended."""
    assert isinstance(ticket, _Child)
    code = ticket.process.poll()
    if code is None:
        return State.RUNNING
    if code == 0:
        return State.ENDED
    ticket.reason = f"exit code {code}" if code > 0 else f"signal {signal.Signals(-code).name}"
    return State.FAILED


def cancel(ticket: Ticket) -> None:
    """Stop the child: it stops its step, which stops its program."""
    assert isinstance(ticket, _Child)
    ticket.process.terminate()
    try:
        ticket.process.wait(timeout=_GRACE_S)
    except subprocess.TimeoutExpired:
        # The job and its step's run.sh; the next start of that step ends what it leaves.
        os.killpg(ticket.process.pid, signal.SIGKILL)
        ticket.process.wait()

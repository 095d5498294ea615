"""Commands of the controller that answer for nodes: Slurm's, PBS's."""

from __future__ import annotations

import subprocess

from proofmark.common.command import run_command
from proofmark.machine.outcome import NodeError, Outcome


def ask_tool(*command: str, timeout_s: float) -> str:
    """Run a command and return what it prints.

    Raises:
        NodeError: there is no such program, nothing comes in time, or it refuses.
    """
    try:
        done = run_command(command, timeout_s=timeout_s)
    except FileNotFoundError:
        raise NodeError(Outcome.UNREACHABLE, f"{command[0]}: no such program") from None
    except subprocess.TimeoutExpired:
        problem = f"{command[0]} did not answer within {timeout_s:g} s"
        raise NodeError(Outcome.NO_ANSWER, problem) from None
    if done.returncode:
        told = (done.stderr or done.stdout).strip()
        raise NodeError(Outcome.UNEXPECTED, f"{' '.join(command[:2])}: {told}")
    return done.stdout

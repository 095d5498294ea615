"""Runs commands of the controller that report on nodes: those of Slurm, PBS and BMCs."""

from __future__ import annotations

import subprocess

from proofmark.common.processes import run_command
from proofmark.machine.outcome import NodeError, Outcome


def ask_tool(*command: str, timeout_s: float) -> str:
    """Run a command and return what it prints.

    Raises:
        NodeError: it did not start, gave no answer in time, or its exit code is not 0.
    """
    try:
        done = run_command(command, timeout_s=timeout_s)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise no_exit_code(command[0], error) from None
    if done.returncode:
        message = (done.stderr or done.stdout).strip()
        raise NodeError(Outcome.UNEXPECTED, f"{' '.join(command[:2])}: {message}")
    return done.stdout


def no_exit_code(
    program: str, error: OSError | subprocess.TimeoutExpired, node: str = ""
) -> NodeError:
    """Return the failure of a program that did not start, or not end in time.

    `node` is the name of the node that the program should have reached.
    """
    place = f"{node}: " if node else ""
    if isinstance(error, subprocess.TimeoutExpired):
        problem = f"{place}{program} did not answer within {error.timeout:g} s"
        return NodeError(Outcome.NO_ANSWER, problem)
    reason = "no such program" if isinstance(error, FileNotFoundError) else error.strerror
    return NodeError(Outcome.UNREACHABLE, f"{program}: {reason}")

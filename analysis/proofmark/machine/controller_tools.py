"""Runs commands of the controller that report on nodes: those of schedulers."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Collection

from proofmark.common.child_environment import of_schedulers
from proofmark.common.processes import run_command
from proofmark.machine.outcome import NodeError, Outcome

LONGEST_COMMAND = 120
"""The limit of a command in a message, in characters: it may name thousands of nodes."""


def ask_tool(*command: str, timeout_s: float, unavailable: Collection[str] = ()) -> str:
    """Run a command and return what it prints. It gets the variables of `ask_scheduler`.

    Args:
        command: the program and its arguments.
        timeout_s: the time limit, in seconds.
        unavailable: parts of the messages that the command prints if its server does not answer.

    Raises:
        NodeError: it did not start, it or its server gave no answer, or its exit code is not 0.
    """
    try:
        environment = of_schedulers(os.environ)
        done = run_command(command, timeout_s=timeout_s, environment=environment)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise no_exit_code(command[0], error) from None
    if done.returncode:
        message, shown = (done.stderr or done.stdout).strip(), shlex.join(command)
        if len(shown) > LONGEST_COMMAND:
            shown = f"{shown[: LONGEST_COMMAND - 1]}…"
        silent = any(part in message for part in unavailable)
        outcome = Outcome.NO_ANSWER if silent else Outcome.UNEXPECTED
        raise NodeError(outcome, f"{shown}: {message or f'exit code {done.returncode}'}")
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

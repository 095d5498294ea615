"""Calls of the commands of schedulers, and what they print."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Collection

from proofmark.common.child_environment import of_schedulers
from proofmark.common.errors import bad_input
from proofmark.common.processes import run_command
from proofmark.common.rights import starting_user
from proofmark.common.text import one_line
from proofmark.machine.scheduler import (
    Request,
    SchedulerError,
    SchedulerUnavailable,
    SubmitLimitReached,
)

_TIMEOUT_S = 60
"""Longer than the timeouts of the clients of Slurm and PBS."""


def ask_scheduler(
    *command: str,
    text: str = "",
    unavailable: Collection[str] = (),
    success: Collection[int] = (0,),
    limit: Callable[[int, str], bool] = lambda code, message: False,
) -> str:
    """Run a command of a scheduler and return its standard output.

    Args:
        command: the program and its arguments.
        text: its standard input.
        unavailable: parts of the messages that the command prints if its server does not answer.
        success: the exit codes of success.
        limit: whether an exit code with a message means that too many jobs are submitted now.

    Raises:
        BadInput: there is no such program.
        SubmitLimitReached: as `limit` says.
        SchedulerUnavailable: the server does not answer, the command ran for a minute, or it could
            not be started.
        SchedulerError: the command failed for another reason; with its message.
    """
    if shutil.which(command[0]) is None:
        found = f"no program {command[0]!r} in PATH"
        accepted = "a scheduler whose commands are installed on this host"
        raise bad_input("partition", "scheduler", found, accepted)
    try:
        user = starting_user()
        done = run_command(
            [*user.words, *command],
            text=text,
            timeout_s=_TIMEOUT_S,
            environment=of_schedulers(user.environment()),
            new_session=True,  # Ctrl-C must not interrupt the command
        )
    except subprocess.TimeoutExpired:
        raise SchedulerUnavailable(f"{command[0]} did not answer within {_TIMEOUT_S} s") from None
    except OSError as error:
        raise SchedulerUnavailable(f"{command[0]}: {error.strerror}") from None
    if done.returncode in success:
        return done.stdout
    message = " / ".join((done.stderr or done.stdout).split("\n")).strip(" /")[-300:]
    if any(part in message for part in unavailable):
        raise SchedulerUnavailable(f"{command[0]}: {message}")
    text = f"{command[0]}: {message or f'exit code {done.returncode}'}"
    if limit(done.returncode, message):
        raise SubmitLimitReached(text)
    raise SchedulerError(text, code=done.returncode)


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

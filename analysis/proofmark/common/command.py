"""Runs external programs; each call is traced with its duration and exit code."""

from __future__ import annotations

import logging
import shlex
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from proofmark.common.environment import without_secrets
from proofmark.common.script_names import script_names, without_passwords
from proofmark.common.text import one_line

TRACE = logging.getLogger("proofmark.trace")
"""Logger of one line per call of another program or machine.

A line has the names of scripts in the input (`script_names`), and nothing else of input and output.
"""


def run_command(
    words: Sequence[str],
    *,
    text: str = "",
    timeout_s: float | None = None,
    environment: Mapping[str, str] | None = None,
    new_session: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end. Bytes of its output that are not UTF-8 are replaced.

    The program gets no secrets (`without_secrets`).

    Args:
        words: the program and its arguments.
        text: its standard input; surrogates are bytes that are not UTF-8 (`os.fsdecode`).
        timeout_s: the time limit in seconds; the program is killed at the limit.
        environment: its environment, except secrets; None: that of this process.
        new_session: whether it has a session of its own, which signals of the terminal skip.

    Raises:
        FileNotFoundError: the program does not exist.
        subprocess.TimeoutExpired: the time limit has passed.
    """
    with traced(call_line(words, text)) as outcome:
        done = subprocess.run(
            words,
            input=text.encode(errors="surrogateescape"),
            capture_output=True,
            timeout=timeout_s,
            env=without_secrets(environment),
            check=False,
            start_new_session=new_session,
        )
        outcome.append(f"exit code {done.returncode}")
    printed, messages = (each.decode(errors="replace") for each in (done.stdout, done.stderr))
    return subprocess.CompletedProcess(done.args, done.returncode, printed, messages)


@contextmanager
def traced(call: str) -> Iterator[list[str]]:
    """Trace the block as one call; yield the list to which the block appends its outcome.

    The outcome of a block that raises is the type of the exception.
    """
    outcome: list[str] = []
    began = time.monotonic()
    try:
        yield outcome
    except BaseException as error:
        outcome.append(type(error).__name__)
        raise
    finally:
        trace(call, ", ".join(outcome), time.monotonic() - began)


def trace(call: str, outcome: str, seconds: float) -> None:
    """Write the line of one call that took `seconds`."""
    if TRACE.isEnabledFor(logging.INFO):
        shown = without_passwords(one_line(call))
        TRACE.info("%s: %s after %.3f s", shown, one_line(outcome), seconds)


def call_line(words: Sequence[str], text: str, node: str = "") -> str:
    """Return a command as its line in the trace: ``NODE: COMMAND < SCRIPT ARGUMENT…``."""
    place = f"{node}: " if node else ""
    scripts = script_names(text) if TRACE.isEnabledFor(logging.INFO) else ""
    return f"{place}{shlex.join(words)}{scripts and f' < {scripts}'}"

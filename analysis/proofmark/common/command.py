"""Runs external programs; each call is traced with its duration and exit code."""

from __future__ import annotations

import logging
import shlex
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from proofmark.common.text import one_line

TRACE = logging.getLogger("proofmark.trace")
"""Gets a line for each call of another program or machine; never what a call reads or prints."""


def run_command(
    words: Sequence[str],
    *,
    text: str = "",
    timeout_s: float | None = None,
    environment: Mapping[str, str] | None = None,
    new_session: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; bytes that are no UTF-8 are replaced in what it prints.

    Args:
        words: the program and its arguments.
        text: its standard input; surrogates stand for bytes that are no UTF-8 (`os.fsdecode`).
        timeout_s: after so many seconds it is killed.
        environment: all its variables; None: those of this process.
        new_session: whether signals of the terminal do not reach it.

    Raises:
        FileNotFoundError: there is no such program.
        subprocess.TimeoutExpired: it did not end in time.
    """
    with traced(shlex.join(words)) as outcome:
        done = subprocess.run(
            words,
            input=text.encode(errors="surrogateescape"),
            capture_output=True,
            timeout=timeout_s,
            env=environment,
            check=False,
            start_new_session=new_session,
        )
        outcome.append(f"exit code {done.returncode}")
    printed, messages = (each.decode(errors="replace") for each in (done.stdout, done.stderr))
    return subprocess.CompletedProcess(done.args, done.returncode, printed, messages)


@contextmanager
def traced(call: str) -> Iterator[list[str]]:
    """Trace what is done within; give the list that gets the outcome, an error is one itself."""
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
        TRACE.info("%s: %s after %.3f s", one_line(call), outcome, seconds)

"""Runs external programs; each call is traced with its duration and exit code."""

from __future__ import annotations

import logging
import re
import shlex
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from proofmark.common.child_environment import without_secrets
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


# Names the scripts in the standard input of ``sh -s``, for the trace.
#
# A script of the kit begins with ``#!/bin/sh`` and a comment whose first word is its file name. A
# script in a Python module begins with ``#: NAME.sh``. The line ``set -- ARGUMENT…`` before it has
# its arguments. No other part of an input is shown, because an input can begin with a password.

_HEADER = re.compile(r"^(?:#!/bin/sh\n# |#: )([\w-]+\.sh)\b", re.MULTILINE)
_ARGUMENTS = "\nset -- "
_LONGEST = 200
"""Characters of the arguments that are shown."""
_SECRET = re.compile(r"(pass\w*|token|secret)=[^\s,'\"]+", re.IGNORECASE)


def script_names(text: str) -> str:
    """Return the names of the scripts in `text`, with their arguments; empty if it has none."""
    shown: list[str] = []
    end = 0
    for header in _HEADER.finditer(text):
        _, found, arguments = f"\n{text[end : header.start()]}".rpartition(_ARGUMENTS)
        words = without_passwords(arguments.strip()) if found else ""
        words = f"{words[:_LONGEST]}…" if len(words) > _LONGEST else words
        shown.append(f"{header[1]} {words}".strip())
        end = header.end()
    return "; ".join(shown)


def without_passwords(words: str) -> str:
    """Return `words` of a command line without the values of passwords, as in ``password=x``."""
    return _SECRET.sub(r"\1=***", words)

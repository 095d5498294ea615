"""Runs a builder as a child process that writes its output to a log."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from proofmark.common.errors import Stopped
from proofmark.common.files import open_to_append
from proofmark.common.processes import Process, on_stop_signal, traced
from proofmark.common.progress_lines import IDLE_S

GRACE_S = 60.0
"""The time between SIGTERM and SIGKILL."""
END_BYTES = 1 << 20
"""What is read of the output: its end has the errors."""


def run(
    command: Sequence[str],
    environment: Mapping[str, str],
    log: Path,
    idle: Callable[[], None] = lambda: None,
    folder: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run `command`. Append its output to `log`. Return its exit code and the end of its output.

    Args:
        idle: is called after each `IDLE_S` seconds.
        folder: its working directory; None: that of this process.

    Raises:
        BadInput: `log` is not a regular file that can be written.
        Stopped: this process received SIGINT or SIGTERM; the builder and its children have ended.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with open_to_append(log) as file, on_stop_signal(_stop), traced(shlex.join(command)) as outcome:
        begin = file.seek(0, os.SEEK_END)
        started = Process(
            command,
            cwd=folder,
            env={**environment, "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        with started as process:
            try:
                while process.returncode is None:
                    try:
                        process.wait(IDLE_S)
                    except subprocess.TimeoutExpired:
                        idle()
            except BaseException:
                _end(process)
                raise
        outcome.append(f"exit code {process.returncode}")
    with log.open("rb") as written:
        written.seek(max(begin, written.seek(0, os.SEEK_END) - END_BYTES))
        output = written.read().decode(errors="replace")
    return subprocess.CompletedProcess(command, process.returncode, output)


def _end(process: Process) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        process.killed = number == signal.SIGKILL
        try:
            os.killpg(process.pid, number)
            process.wait(GRACE_S)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue


def _stop(name: str) -> None:
    raise Stopped(name)

"""Runs a builder as a child process and writes its output to a log."""

from __future__ import annotations

import os
import select
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from proofmark.common.errors import Stopped
from proofmark.common.files import open_to_append
from proofmark.common.processes import Process, on_stop_signal, traced
from proofmark.common.progress_lines import IDLE_S

GRACE_S = 60.0
"""The time between SIGTERM and SIGKILL."""

Say = Callable[[str], None]
"""A function that prints one line."""


def run(
    command: Sequence[str],
    environment: Mapping[str, str],
    log: Path,
    line_read: Say,
    idle: Callable[[], None] = lambda: None,
    folder: Path | None = None,
) -> int:
    """Run `command`, append its output to `log`, and return its exit code.

    Args:
        idle: is called after each `IDLE_S` seconds, also if there is output.
        folder: its working directory; None: that of this process.

    Raises:
        BadInput: `log` is not a regular file that can be written.
        Stopped: this process received SIGINT or SIGTERM; the builder and its children have ended.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    opened = open_to_append(log)
    with opened as file, on_stop_signal(_stop), traced(shlex.join(command)) as outcome:
        started = Process(
            command,
            cwd=folder,
            env={**environment, "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        with started as process:
            assert process.stdout is not None
            try:
                for line in _lines(process.stdout.fileno(), idle):
                    file.buffer.write(line + b"\n")
                    file.buffer.flush()
                    line_read(line.decode(errors="replace"))
                code = process.wait()
                outcome.append(f"exit code {code}")
                return code
            except BaseException:
                _end(process)
                raise


def _lines(pipe: int, idle: Callable[[], None]) -> Iterator[bytes]:
    rest, due = b"", time.monotonic() + IDLE_S
    while True:
        ready = select.select([pipe], [], [], max(0.0, due - time.monotonic()))[0]
        if time.monotonic() >= due:
            idle()
            due = time.monotonic() + IDLE_S
        if not ready:
            continue
        read = os.read(pipe, 65536)
        if not read:
            break
        *whole, rest = (rest + read).split(b"\n")
        yield from whole
    if rest:
        yield rest


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

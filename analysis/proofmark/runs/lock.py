"""The lock of a run: one process at a time works on a run."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from proofmark.common.errors import bad_input
from proofmark.common.files import open_to_append
from proofmark.runs.run import Run


@contextmanager
def lock(run: Run) -> Iterator[None]:
    """Hold the lock of `run` for the block. The kernel releases it if the process is killed.

    Raises:
        BadInput: another process holds the lock, or its file is a link.
    """
    with open_to_append(run.files.lock) as file:
        if not _taken(file, fcntl.LOCK_EX):
            file.seek(0)
            found = f"{run.id}: in use by {file.read().strip() or 'another process'}"
            accepted = "one process at a time; another run id or fresh=true starts another run"
            raise bad_input("run_id", "", found, accepted)
        file.truncate(0)
        file.write(f"process {os.getpid()} on {os.uname().nodename}\n")
        file.flush()
        yield


def is_locked(run: Run) -> bool:
    """Return whether a process holds the lock of `run`. It writes nothing."""
    try:
        with run.files.lock.open() as file:
            return not _taken(file, fcntl.LOCK_SH)
    except FileNotFoundError:
        return False


def _taken(file: TextIO, kind: int) -> bool:
    """Return whether the lock was taken. `is_locked` holds it for an instant: try twice."""
    for pause in (0.1, 0.0):
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            time.sleep(pause)
    return False

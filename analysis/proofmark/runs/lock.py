"""The lock of a run: one process works on it at a time."""

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
    """Hold `run` for this process; the lock ends with the process, however it ends.

    Raises:
        BadInput: another process holds it, or its file is a link.
    """
    with open_to_append(run.files.lock) as file:  # root and the run user hold it in turn
        if not _taken(file, fcntl.LOCK_EX):
            file.seek(0)
            found = f"{run.id}: in use by {file.read().strip() or 'another process'}"
            accepted = "one at a time; another run id or fresh=true starts a run of its own"
            raise bad_input("run_id", "", found, accepted)
        file.truncate(0)
        file.write(f"process {os.getpid()} on {os.uname().nodename}\n")
        file.flush()
        yield


def is_locked(run: Run) -> bool:
    """Return whether a process holds `run`; write nothing."""
    try:
        with run.files.lock.open() as file:
            return not _taken(file, fcntl.LOCK_SH)
    except FileNotFoundError:
        return False


def _taken(file: TextIO, kind: int) -> bool:
    """Take a lock, if need be at the second try: who only asks holds it for an instant."""
    for pause in (0.1, 0.0):
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            time.sleep(pause)
    return False

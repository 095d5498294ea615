"""The lock of a run: one process at a time works on a run.

The lock is a file in the folder of the run. Commands that change nodes also hold the lock of the
run's state, which stays if the folder is removed.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from proofmark.common.errors import BadInput, InputError
from proofmark.common.files import open_to_append
from proofmark.runs.run import Run
from proofmark.runs.run_files import RunFiles

_MAX_NOTE = 200
"""Characters of the lock that name the process."""


class Busy(BadInput):
    """Another process works on the run."""


@contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Hold the lock of the run in `folder` for the block. It ends with the process.

    Raises:
        Busy: another process holds the lock.
        BadInput: its file is a link, or cannot be opened.
    """
    with open_to_append(RunFiles(folder).lock) as file:
        if not _taken(file, fcntl.LOCK_EX):
            file.seek(0)
            note = file.read(_MAX_NOTE).strip()
            user = note if note and note.isprintable() else "another process"
            found = f"{folder.name}: in use by {user}"
            accepted = "one process at a time; another run id or fresh=true starts another run"
            raise Busy(InputError("run_id", "", found, accepted))
        file.truncate(0)
        file.write(f"process {os.getpid()} on {os.uname().nodename}\n")
        file.flush()
        yield


def is_locked(run: Run) -> bool:
    """Return whether a process holds the lock of `run`. It writes nothing."""
    return is_lock_held(run.folder)


def is_lock_held(folder: Path) -> bool:
    """Return whether a process holds the lock of the run in `folder`. It writes nothing."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        number = os.open(RunFiles(folder).lock, flags)
    except OSError:
        return False
    with os.fdopen(number) as file:
        return not _taken(file, fcntl.LOCK_SH)


def _taken(file: TextIO, kind: int) -> bool:
    """Return whether the lock was taken. `is_locked` holds it for an instant: try twice."""
    for pause in (0.1, 0.0):
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            time.sleep(pause)
    return False

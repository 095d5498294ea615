"""One installation at a time in a folder; a second one says for whom it waits."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from pydantic import AwareDatetime, ValidationError

from proofmark.common.files import open_to_append
from proofmark.common.strict_model import StrictModel
from proofmark.common.text import duration
from proofmark.software.build_process import IDLE_S, Say

POLL_S = 0.5
"""The time between two attempts to take the lock."""
LONGEST_NOTE = 1000
"""Characters of the file of the lock."""


class Holder(StrictModel):
    """The process that holds the lock of a folder, as the file of the lock names it.

    Attributes:
        process: its number.
        host: its host.
        since: the time at which it took the lock.
        work: the environment that it installs.
    """

    process: int
    host: str
    since: AwareDatetime
    work: str


@contextmanager
def one_at_a_time(
    path: Path, work: str, say: Say, pause: Callable[[float], None] = time.sleep
) -> Iterator[None]:
    """Hold the lock in the file `path` for the block. It ends with the process.

    While another process holds it, `say` gets a line at once and one after each `IDLE_S` seconds.

    Args:
        path: the file of the lock.
        work: the environment that is installed.
        say: gets each line.
        pause: waits for some seconds.

    Raises:
        BadInput: `path` is a link, or cannot be opened.
    """
    with open_to_append(path) as file:
        waited = 0.0
        while not _taken(file):
            if waited % IDLE_S == 0:
                say(_line(_holder(file), waited))
            pause(POLL_S)
            waited += POLL_S
        if waited:
            say(f"the other installation has ended after {duration(waited)}")
        me = Holder(process=os.getpid(), host=os.uname().nodename, since=_now(), work=work)
        file.truncate(0)
        file.write(f"{me.model_dump_json()}\n")
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)


def _taken(file: TextIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(file: TextIO) -> Holder | None:
    """Return the process that the file names; None if it names none."""
    file.seek(0)
    with suppress(ValidationError, UnicodeError):
        return Holder.model_validate_json(file.read(LONGEST_NOTE))
    return None


def _line(holder: Holder | None, waited: float) -> str:
    so_far = f"waited for {duration(waited)}"
    if holder is None:
        return f"waiting for another installation in the same folder; {so_far}"
    since = f"{holder.since.astimezone():%Y-%m-%d %H:%M:%S}"
    busy = duration(max(0.0, (_now() - holder.since).total_seconds()))
    return (
        f"waiting for process {holder.process} on {holder.host}, which installs {holder.work} in "
        f"the same folder since {since} ({busy}); {so_far}"
    )


def _now() -> datetime:
    return datetime.now(UTC)

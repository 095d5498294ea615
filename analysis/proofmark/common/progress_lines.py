"""Progress messages of the commands, on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread

from proofmark.common.text import duration, one_line

IDLE_S = 30.0
"""A command that works prints a line at least once in this time, in seconds."""


Say = Callable[[str], None]
"""Takes one line for a person."""


def say(line: str) -> None:
    """Print `line` as one line and flush it. A stderr that takes nothing ends no command.

    A message of a BMC or a scheduler cannot begin a line of its own (`one_line`).
    """
    with suppress(OSError):
        print(one_line(line), file=sys.stderr, flush=True)


@contextmanager
def while_working(what: str, tell: Say = say) -> Iterator[None]:
    """Print `what` at once, and with the time so far after each `IDLE_S`, until the block ends.

    It is for work that prints nothing by itself: a child process whose output is read at its end.

    Args:
        what: the work, as a sentence that a time can follow.
    """
    ended, begun = Event(), time.monotonic()

    def repeat() -> None:
        while not ended.wait(IDLE_S):
            tell(f"{what}, for {duration(time.monotonic() - begun)}")

    tell(what)
    thread = Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()

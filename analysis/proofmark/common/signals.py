"""Handlers of SIGINT and SIGTERM, so that a command ends without processes left behind."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from proofmark.common.errors import Stopped

NUMBERS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def on_stop_signal(handle: Callable[[str], object]) -> Iterator[None]:
    """Call `handle` with the name of each SIGINT and SIGTERM during the block.

    Only the main thread can set a handler. In another thread this does nothing.
    """

    def handler(number: int, _frame: FrameType | None) -> None:
        handle(signal.Signals(number).name)

    chosen = NUMBERS if threading.current_thread() is threading.main_thread() else ()
    previous = {number: signal.signal(number, handler) for number in chosen}
    try:
        yield
    finally:
        for number, earlier in previous.items():
            signal.signal(number, earlier)


class StopSignals:
    """The first signal of a block. Further signals change nothing."""

    def __init__(self) -> None:
        self.received = ""
        self._send: Callable[[str], object] | None = None

    @contextmanager
    def sent_to(self, send: Callable[[str], object]) -> Iterator[None]:
        """Call `send` with the name of the signal when it comes, or at once if it has come."""
        self._send = send
        if self.received:
            send(self.received)
        try:
            yield
        finally:
            self._send = None

    def note(self, name: str) -> None:
        """Store the first signal, and send it."""
        if not self.received:
            self.received = name
            if self._send:
                self._send(name)


@contextmanager
def stop_signals() -> Iterator[StopSignals]:
    """Yield the record of the signals of the block.

    Raises:
        Stopped: a signal came. It is raised at the end of the block.
    """
    signals = StopSignals()
    with on_stop_signal(signals.note):
        yield signals
    if signals.received:
        raise Stopped(signals.received)

"""SIGINT and SIGTERM as a request that is handled where nothing is left behind."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from proofmark.common.errors import Stopped

NUMBERS = (signal.SIGINT, signal.SIGTERM)


class StopSignals:
    """The first signal that came; further ones change nothing."""

    def __init__(self) -> None:
        self.received = ""
        self._send: Callable[[str], object] | None = None

    @contextmanager
    def sent_to(self, send: Callable[[str], object]) -> Iterator[None]:
        """Call `send` with the name of the signal as soon as it comes, or if it has come."""
        self._send = send
        if self.received:
            send(self.received)
        try:
            yield
        finally:
            self._send = None

    def note(self, number: int, _frame: FrameType | None) -> None:
        """Handle a signal."""
        if not self.received:
            self.received = signal.Signals(number).name
            if self._send:
                self._send(self.received)


@contextmanager
def stop_signals() -> Iterator[StopSignals]:
    """Give the signals that come; only the main thread gets any.

    Raises:
        Stopped: a signal came; it is raised at the end.
    """
    signals = StopSignals()
    chosen = NUMBERS if threading.current_thread() is threading.main_thread() else ()
    previous = {number: signal.signal(number, signals.note) for number in chosen}
    try:
        yield signals
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    if signals.received:
        raise Stopped(signals.received)

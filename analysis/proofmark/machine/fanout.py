"""Calls one function for many hosts in parallel, by threads."""

from __future__ import annotations

import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable
from typing import TypeVar

from proofmark.common.errors import Stopped
from proofmark.common.processes import trace
from proofmark.common.text import one_line
from proofmark.machine.outcome import NodeError, Outcome

STOP_SIGNALS = (KeyboardInterrupt, SystemExit, Stopped)
"""Exceptions that end the command. Any other exception is the failure of one host."""

Host = TypeVar("Host")
Result = TypeVar("Result")


def fan_out(
    hosts: Iterable[Host],
    work: Callable[[Host], Result],
    at_once: int,
    stop: threading.Event | None = None,
) -> dict[Host, Result | NodeError]:
    """Return the result of `work` or its failure for each host, in the order of `hosts`.

    After `stop` no call begins, and the calls that run are awaited. Any exception of `work` is the
    failure of its host (`node_error`), except `STOP_SIGNALS`: these are raised when the calls have
    ended.
    """
    every = list(hosts)
    waiting = deque(every)
    results: dict[Host, Result | NodeError] = {}
    errors: list[BaseException] = []

    # Workers pull hosts from one queue; ThreadPoolExecutor costs as much CPU per task as a request.
    def worker() -> None:
        while not errors and not (stop and stop.is_set()):
            try:
                host = waiting.popleft()
            except IndexError:
                return
            begin = time.monotonic()
            try:
                results[host] = work(host)
            except STOP_SIGNALS as error:
                errors.append(error)
            except BaseException as error:
                results[host] = node_error(error, host, begin)

    threads = [
        threading.Thread(target=worker, daemon=True) for _ in range(min(at_once, len(every)))
    ]
    try:
        for thread in threads:
            thread.start()
    finally:
        for thread in threads:
            if thread.ident is not None:
                thread.join()
    if errors:
        raise errors[0]
    return {host: results.get(host, _stopped()) for host in every}


def node_error(error: BaseException, host: object, begin: float) -> NodeError:
    """Return `error` as the failure of one host: UNEXPECTED if it is no `NodeError`.

    An unexpected exception is traced with the place in the code that raised it.

    Args:
        error: the exception.
        host: the host, for the trace.
        begin: the `time.monotonic` at which the work began.
    """
    if isinstance(error, NodeError):
        return error
    text = one_line(f"{type(error).__name__}: {str(error)[:1000]}").rstrip(": ")
    frames = traceback.extract_tb(error.__traceback__)[-1:]
    places = [f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in frames]
    trace(f"work on {host}", " at ".join([text, *places]), time.monotonic() - begin)
    return NodeError(Outcome.UNEXPECTED, text)


def _stopped() -> NodeError:
    return NodeError(Outcome.STOPPED, "stopped before this node")


def split(
    results: dict[Host, Result | NodeError],
) -> tuple[dict[Host, Result], dict[Host, NodeError]]:
    """Return the results, and the failures."""
    good: dict[Host, Result] = {}
    bad: dict[Host, NodeError] = {}
    for host, result in results.items():
        if isinstance(result, NodeError):
            bad[host] = result
        else:
            good[host] = result
    return good, bad

"""Calls one function for many hosts in parallel, by threads, or a scheduler for many nodes at once.

One host that fails, or one refused node, does not stop the others.
"""

from __future__ import annotations

import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from time import monotonic
from typing import TypeVar

from proofmark.common.errors import Stopped
from proofmark.common.nodesets import folded
from proofmark.common.processes import trace
from proofmark.common.text import one_line
from proofmark.machine.outcome import NodeError, Outcome

ONE_BY_ONE_S = 600.0
"""The time limit for calls of the scheduler for one node each, after it refused all together."""

STOP_SIGNALS = (KeyboardInterrupt, SystemExit, Stopped)
"""Exceptions that end the command. Any other exception is the failure of one host."""

Host = TypeVar("Host")

Result = TypeVar("Result")


def call_for_nodes(
    call: Callable[[Sequence[str]], object], nodes: Sequence[str]
) -> dict[str, NodeError]:
    """Call the scheduler for all nodes; return the nodes for which it failed.

    A node that the scheduler does not have makes its command fail for all. Therefore a refused
    command is repeated for each node.
    """
    begin = monotonic()
    try:
        if nodes:
            call(nodes)
        return {}
    except STOP_SIGNALS:
        raise
    except Exception as error:
        failure = node_error(error, folded(nodes), begin)
    if len(nodes) == 1 or failure.outcome is not Outcome.UNEXPECTED:
        return dict.fromkeys(nodes, failure)
    failed: dict[str, NodeError] = {}
    for node in nodes:
        in_time = monotonic() < begin + ONE_BY_ONE_S
        failed |= call_for_nodes(call, [node]) if in_time else {node: failure}
    return failed


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

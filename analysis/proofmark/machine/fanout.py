"""Calls one function for many hosts in parallel, by threads."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import TypeVar

from proofmark.machine.outcome import NodeError, Outcome

Host = TypeVar("Host")
Result = TypeVar("Result")


def fan_out(
    hosts: Iterable[Host],
    work: Callable[[Host], Result],
    at_once: int,
    stop: threading.Event | None = None,
) -> dict[Host, Result | NodeError]:
    """Return the result of `work` or its failure for each host, in the order of `hosts`.

    After `stop` no call begins, and the calls that run are awaited. An exception that is not a
    `NodeError` is raised when they have ended.
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
            try:
                results[host] = work(host)
            except NodeError as failed:
                results[host] = failed
            except BaseException as error:
                errors.append(error)

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

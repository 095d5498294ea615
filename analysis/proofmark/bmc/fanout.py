"""One function over many hosts at once, by threads: nearly all the time is waiting."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import TypeVar

from proofmark.bmc.outcome import Failed, Outcome

Host = TypeVar("Host")
Result = TypeVar("Result")


def fan_out(
    hosts: Iterable[Host],
    work: Callable[[Host], Result],
    at_once: int,
    stop: threading.Event | None = None,
) -> dict[Host, Result | Failed]:
    """Return what `work` gave for each host, or how it failed; in the order of `hosts`.

    After `stop` no further host is begun; an act that has begun is ended.
    """
    every = list(hosts)
    found: dict[Host, Result | Failed] = {}
    rest = iter(every)
    with ThreadPoolExecutor(max_workers=max(1, min(at_once, len(every)))) as pool:
        running: dict[Future[Result], Host] = {}
        while True:
            if not (stop and stop.is_set()):
                # Twice as many as there are threads: they never wait for us, nor the memory grow.
                for host in islice(rest, 2 * at_once - len(running)):
                    running[pool.submit(_unless, stop, work, host)] = host
            if not running:
                break
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                host = running.pop(done)
                try:
                    found[host] = done.result()
                except Failed as failed:
                    found[host] = failed
    return {host: found.get(host, _stopped()) for host in every}


def _unless(stop: threading.Event | None, work: Callable[[Host], Result], host: Host) -> Result:
    if stop and stop.is_set():
        raise _stopped()
    return work(host)


def _stopped() -> Failed:
    return Failed(Outcome.STOPPED, "told to stop before this node's turn")


def split(found: dict[Host, Result | Failed]) -> tuple[dict[Host, Result], dict[Host, Failed]]:
    """Return what worked, and what failed."""
    good: dict[Host, Result] = {}
    bad: dict[Host, Failed] = {}
    for host, result in found.items():
        if isinstance(result, Failed):
            bad[host] = result
        else:
            good[host] = result
    return good, bad

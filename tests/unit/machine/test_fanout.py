"""One function for many hosts at once: order, failures, the limit of threads, and a stop."""

from __future__ import annotations

import threading

from proofmark.machine.fanout import fan_out, split
from proofmark.machine.outcome import NodeError, Outcome


def test_results_keep_order_and_failures_within_the_limit_of_threads() -> None:
    active, most_active, guard = [0], [0], threading.Lock()

    def work(number: int) -> int:
        with guard:
            active[0] += 1
            most_active[0] = max(most_active[0], active[0])
        try:
            if number % 10 == 3:
                raise NodeError(Outcome.BUSY, "x")
            return number
        finally:
            with guard:
                active[0] -= 1

    results = fan_out(range(100), work, 7)
    good, bad = split(results)
    assert list(results) == list(range(100)) and len(bad) == 10 and len(good) == 90
    assert most_active[0] <= 7


def test_after_a_stop_no_further_host_is_started() -> None:
    stop = threading.Event()
    done: list[int] = []

    def work(number: int) -> None:
        done.append(number)
        stop.set()

    _, bad = split(fan_out(range(50), work, 1, stop))
    assert len(done) + len(bad) == 50 and len(done) == 1

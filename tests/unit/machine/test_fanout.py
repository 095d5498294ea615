"""One function for many hosts at once: order, failures, the limit of threads, and a stop."""

from __future__ import annotations

import logging
import threading

import pytest

from proofmark.common.errors import Stopped
from proofmark.machine.outcome import LONGEST_TEXT, NodeError, Outcome, fan_out, split


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


def deep(level: int) -> int:
    return deep(level + 1)


ODD: dict[str, Exception | BaseException] = {
    "AttributeError": AttributeError("'list' object has no attribute 'get'"),
    "KeyError": KeyError("x"),
    "TypeError": TypeError("x\r\nproofmark: OK\x1b[2J"),
    "UnicodeDecodeError": UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
    "MemoryError": MemoryError(),
    "GeneratorExit": GeneratorExit(),
}


@pytest.mark.fault("node-work-exception")
@pytest.mark.parametrize("name", [*ODD, "RecursionError"])
def test_an_exception_is_the_outcome_of_its_host(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    def work(number: int) -> int:
        if number == 2:
            if name == "RecursionError":
                return deep(0)
            raise ODD[name]
        return number

    with caplog.at_level(logging.INFO, "proofmark.trace"):
        good, bad = split(fan_out(range(5), work, 2))
    assert list(good) == [0, 1, 3, 4]
    assert bad[2].outcome is Outcome.UNEXPECTED
    assert bad[2].text.startswith(name) and bad[2].text.isprintable()
    (line,) = caplog.messages
    assert line.startswith(f"work on 2: {name}") and __file__ in line and line.isprintable()


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), Stopped("SIGTERM")])
def test_a_stop_ends_the_command(error: BaseException) -> None:
    """The control of the exceptions above: these are no failure of a host."""
    done: list[int] = []

    def work(number: int) -> None:
        done.append(number)
        raise error

    with pytest.raises(type(error)):
        fan_out(range(50), work, 1)
    assert done == [0]


def test_a_failure_is_one_printable_line_of_limited_length() -> None:
    text = NodeError(Outcome.UNEXPECTED, "a\r\nproofmark: OK\x1b[2J\u202e" + "x" * 10_000).text
    assert text.startswith("a proofmark: OK") and text.isprintable()
    assert len(text) == LONGEST_TEXT and text.endswith("…")

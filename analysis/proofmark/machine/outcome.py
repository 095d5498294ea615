"""Outcomes of an operation on a node, the exception that carries one, and operations on many nodes.

One function is called for many hosts in parallel, by threads, or a scheduler for many nodes at
once. One host that fails, or one refused node, does not stop the others.
"""

from __future__ import annotations

import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from time import monotonic
from typing import TypeVar

from proofmark.common.errors import OutsideError, Stopped
from proofmark.common.nodesets import folded
from proofmark.common.processes import trace
from proofmark.common.text import one_line

LONGEST_TEXT = 400
"""The limit of the text of a failure in characters: a BMC may send any text."""


class Outcome(StrEnum):
    """How an operation on a node ended."""

    OK = "OK"
    UNREACHABLE = "UNREACHABLE"
    """No connection to the address."""
    NO_ANSWER = "NO_ANSWER"
    """The connection is open, but no response arrived in time."""
    DENIED = "DENIED"
    """Wrong user or password; there is no retry, because BMCs lock accounts."""
    BAD_CERTIFICATE = "BAD_CERTIFICATE"
    BUSY = "BUSY"
    """The BMC answered every attempt with 429 or 503."""
    UNEXPECTED = "UNEXPECTED"
    """A response that the protocol does not allow here, or an exception; the text quotes it."""
    REFUSED = "REFUSED"
    """The firmware does not offer the requested setting or reset."""
    BLOCKED = "BLOCKED"
    """The firmware refuses every change in its present state, for example a lockdown."""
    CANNOT_SET = "CANNOT_SET"
    """The back end sets nothing; a person has to set the machine."""
    CANNOT_RESTORE = "CANNOT_RESTORE"
    """The firmware does not report a value that the change would replace."""
    CHANGED = "CHANGED"
    """Another person or controller has changed the mode that the run had set."""
    REPLACED = "REPLACED"
    """The serial number is not that of the node that was changed."""
    BAD_JOURNAL = "BAD_JOURNAL"
    """The journal of the node is damaged."""
    FOREIGN_PENDING = "FOREIGN_PENDING"
    """A setting that this kit did not request waits for the next boot."""
    HELD = "HELD"
    """Another user or program has drained the node."""
    NOT_DRAINED = "NOT_DRAINED"
    """Jobs still run on the node after the drain limit."""
    NOT_RESET = "NOT_RESET"
    """A restart was requested, but the node still has the boot id of before."""
    NO_RETURN = "NO_RETURN"
    """The node did not boot within the boot limit."""
    NOT_APPLIED = "NOT_APPLIED"
    """The node restarted and is in the mode of before."""
    OTHER_MODE = "OTHER_MODE"
    """The node restarted and is in a mode that was not requested."""
    UNKNOWN = "UNKNOWN"
    """The scheduler does not report it; the text has the command that shows it."""
    UNPROVEN = "UNPROVEN"
    """The operating system does not show enough to distinguish the modes."""
    STOPPED = "STOPPED"
    """The command was stopped before or during the operation on this node."""


TEMPORARY = (Outcome.UNREACHABLE, Outcome.NO_ANSWER, Outcome.BUSY)
"""Outcomes of a BMC that may answer later, for example while its node boots."""


class NodeError(OutsideError):
    """An operation on one node failed, with its outcome.

    Attributes:
        text: one printable line of at most `LONGEST_TEXT` characters.
        refused: whether the other side answered that it has not executed the request.
    """

    def __init__(self, outcome: Outcome, text: str, *, refused: bool = False) -> None:
        line = one_line(text)
        if len(line) > LONGEST_TEXT:
            line = f"{line[: LONGEST_TEXT - 1]}…"
        self.outcome, self.text, self.refused = outcome, line, refused
        super().__init__(f"{outcome}: {line}")


NodeErrors = dict[str, NodeError]
"""Why an operation failed, by node."""
ONE_BY_ONE_S = 600.0
"""The time limit for calls of the scheduler for one node each, after it refused all together."""

STOP_SIGNALS = (KeyboardInterrupt, SystemExit, Stopped)
"""Exceptions that end the command. Any other exception is the failure of one host."""

Host = TypeVar("Host")

Result = TypeVar("Result")


def call_for_nodes(call: Callable[[Sequence[str]], object], nodes: Sequence[str]) -> NodeErrors:
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
    failed: NodeErrors = {}
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
    stopped = NodeError(Outcome.STOPPED, "stopped before this node")
    return {host: results.get(host, stopped) for host in every}


def node_error(error: BaseException, host: object, begin: float) -> NodeError:
    """Return `error` as the failure of one host: UNEXPECTED if it is no `NodeError`.

    An unexpected exception is traced with the place in the code that raised it.

    Args:
        begin: the `time.monotonic` at which the work began.
    """
    if isinstance(error, NodeError):
        return error
    text = one_line(f"{type(error).__name__}: {str(error)[:1000]}").rstrip(": ")
    frames = traceback.extract_tb(error.__traceback__)[-1:]
    places = [f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in frames]
    trace(f"work on {host}", " at ".join([text, *places]), time.monotonic() - begin)
    return NodeError(Outcome.UNEXPECTED, text)


def split(
    results: dict[Host, Result | NodeError],
) -> tuple[dict[Host, Result], dict[Host, NodeError]]:
    """Return the results, and the failures."""
    bad = {host: each for host, each in results.items() if isinstance(each, NodeError)}
    good = {host: each for host, each in results.items() if not isinstance(each, NodeError)}
    return good, bad

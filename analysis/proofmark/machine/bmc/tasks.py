"""Tasks of a BMC: the work that it goes on with after status 202 (DSP0266, task monitor)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from proofmark.machine.bmc.client import RedfishConnection, Response, messages_of
from proofmark.machine.bmc.collection import path_of_member, read_members
from proofmark.machine.outcome import TEMPORARY, NodeError, Outcome

ACCEPTED = 202
GONE = (404, 410)
"""The task has ended, and the BMC has forgotten it."""
ENDED = (200, 201, 204, *GONE)
FAILED = ("Exception", "Killed", "Cancelled")
NOT_BEGUN = ("", "New", "Starting", "Pending", "Suspended", "Service")
"""States of a task that may wait for the next boot; without a state it is not known."""

TASKS = "/redfish/v1/TaskService/Tasks"
UPDATES = "/redfish/v1/UpdateService/"
"""The target of each task that updates firmware (its ``Payload``) is below this path."""
MISSING = (404, 405, 501)


@dataclass(frozen=True)
class Waits:
    """How long a BMC is waited for.

    Attributes:
        poll_s: seconds between two looks, if the BMC names no time.
        limit_s: seconds after which the wait has failed.
    """

    poll_s: float
    limit_s: float


def monitor_of(response: Response) -> str:
    """Return the path of the task monitor in a response; empty if the work is done, or unknown."""
    if response.status != ACCEPTED:
        return ""
    body = response.body
    of_task = body.path("@odata.id") if "TaskState" in body.content else ""
    return response.location or body.path("TaskMonitor") or of_task


def await_task(
    bmc: RedfishConnection, monitor: str, waits: Waits, waits_for_boot: Callable[[], bool]
) -> None:
    """Wait for the end of the task with the path `monitor`.

    Args:
        bmc: the connection.
        monitor: the path of the task monitor, or of the task.
        waits: how long.
        waits_for_boot: returns whether the BMC shows the change of the task already, so that a task
            that has not begun waits for the next boot only.

    Raises:
        NodeError: NOT_APPLIED: the task failed; BUSY: it has not ended in time.
    """
    end = time.monotonic() + waits.limit_s
    while True:
        state, said, pause = "", "", 0.0
        try:
            response = bmc.request("GET", monitor, accept=(ACCEPTED, *ENDED))
        except NodeError as error:
            if error.refused:
                raise NodeError(Outcome.NOT_APPLIED, f"the task failed: {error.text}") from None
            if error.outcome not in TEMPORARY:
                raise
            said = error.text
        else:
            if response.status in GONE:
                return
            state, said = response.body.text("TaskState"), messages_of(response.body)
            pause = response.retry_after
            bad = response.body.text("TaskStatus") == "Critical"
            if state in FAILED or (bad and state in ("", "Completed")):
                text = f"task {monitor} is {state or 'over'}: {said or 'no message'}"
                raise NodeError(Outcome.NOT_APPLIED, text)
            if state == "Completed" or (not state and response.status in ENDED):
                return
            if state in NOT_BEGUN[1:] and waits_for_boot():
                return
        left = end - time.monotonic()
        if left <= 0:
            if state in NOT_BEGUN and waits_for_boot():
                return
            text = f"task {monitor} is {state or 'not at its end'} after {waits.limit_s:g} s"
            raise NodeError(Outcome.BUSY, f"{text}: {said or 'no message'}")
        time.sleep(min(pause or waits.poll_s, left))


def open_update(bmc: RedfishConnection) -> str:
    """Return the task that updates firmware and has not ended; empty if the BMC shows none.

    A reset would interrupt the update, or execute it.

    Raises:
        NodeError: a request failed, or an answer has another form.
    """
    if bmc.request("GET", TASKS, accept=(200, *MISSING)).status != 200:
        return ""  # a BMC need not have tasks
    for member in read_members(bmc, TASKS):
        task = member
        if "TaskState" not in member.content:
            # A BMC forgets tasks that have ended.
            path = path_of_member(member)
            task = bmc.request("GET", path, accept=(200, *GONE)).body
        state, target = task.text("TaskState"), task.part("Payload").text("TargetUri")
        if target.startswith(UPDATES) and state not in ("", "Completed", *FAILED):
            return f"task {task.text('Id')} updates firmware and is {state}: wait for its end"
    return ""

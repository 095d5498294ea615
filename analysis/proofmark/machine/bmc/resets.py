"""How a system is restarted: the reset types that its BMC lists (DSP2046, ComputerSystem.Reset)."""

from __future__ import annotations

import time
from dataclasses import dataclass

from proofmark.common.errors import nearest
from proofmark.machine.bmc.client import RedfishConnection
from proofmark.machine.bmc.json_body import BodyPart
from proofmark.machine.bmc.tasks import Waits, await_task, monitor_of
from proofmark.machine.outcome import TEMPORARY, NodeError, Outcome

RESTARTS = ("GracefulRestart", "ForceRestart", "PowerCycle")
"""One request that restarts; the first one that the BMC lists is sent. The node is drained."""
OFF, ON = ("GracefulShutdown", "ForceOff"), ("On", "ForceOn")
"""Two requests that restart, for a BMC that lists no restart."""
DOWN = ("Off", "PoweringOff", "Paused")
"""States of a host that no restart reaches."""
LISTED = "ResetType@Redfish.AllowableValues"
INFO = "@Redfish.ActionInfo"


@dataclass(frozen=True)
class ResetWay:
    """How a system is restarted.

    Attributes:
        target: the path of the action.
        kinds: the reset types of one request, in the order in which they are tried.
        off: the reset types that switch the host off; needed if `kinds` is empty.
        on: the reset types that switch it on.
        problem: why the system cannot be restarted; empty if it can.
    """

    target: str = ""
    kinds: tuple[str, ...] = ()
    off: tuple[str, ...] = ()
    on: tuple[str, ...] = ()
    problem: str = ""


def reset_way(bmc: RedfishConnection, system: BodyPart, chosen: str) -> ResetWay:
    """Return how `system` is restarted, by what its BMC lists. Change nothing.

    Args:
        bmc: the connection.
        system: the resource of the system.
        chosen: the only reset type that may be used (``firmware.reset_type``); empty for any. A BMC
            that lists none gets this one.

    Raises:
        NodeError: a request failed, or an answer has another form.
    """
    action = system.part("Actions").part("#ComputerSystem.Reset")
    target = action.path("target")
    if not target:
        return ResetWay(problem="the system has no reset action")
    listed = _listed(bmc, action)
    power = system.text("PowerState")
    problem = f"the host is {power}: switch it on first" if power in DOWN else ""
    if not listed and not chosen:
        text = f"the BMC lists no reset types, neither in {LISTED} nor in {INFO}"
        problem = f"{text}; set firmware.reset_type to one that it executes"
    if chosen:
        if listed and chosen not in listed:
            hint = nearest(chosen, listed)
            problem = f"no reset type {chosen!r}{hint}; offered: {', '.join(listed)}"
        return ResetWay(target, (chosen,), (), (), problem)
    kinds, off, on = (
        tuple(kind for kind in order if kind in listed) for order in (RESTARTS, OFF, ON)
    )
    if listed and not kinds and not (off and on):
        accepted = f"{', '.join(RESTARTS)}, or {OFF[1]} and {ON[0]}"
        found = ", ".join(listed)
        problem = f"no reset type restarts the host: found {found}; accepted: {accepted}"
    return ResetWay(target, kinds, off, on, problem)


def _listed(bmc: RedfishConnection, action: BodyPart) -> list[str]:
    """Return the reset types of the action; empty if the BMC lists none."""
    if listed := action.texts(LISTED):
        return listed
    linked = isinstance(action.content.get(INFO), dict)
    path = action.link(INFO) if linked else action.path(INFO)
    if not path:
        return []
    response = bmc.request("GET", path, accept=(200, 404))
    parameters = response.body.items("Parameters") if response.status == 200 else []
    named = (each for each in parameters if each.text("Name") == "ResetType")
    return next((each.texts("AllowableValues") for each in named), [])


def restart(bmc: RedfishConnection, system: str, way: ResetWay, waits: Waits) -> None:
    """Request the restart of the system with the path `system`; do not wait for its boot.

    A reset type that the BMC refuses is followed by the next one that it lists.

    Raises:
        NodeError: the BMC refused each reset type (`refused`), there was no answer, or the host did
            not switch off or on in time.
    """
    if way.kinds:
        try:
            _first_accepted(bmc, way.target, way.kinds, waits)
        except NodeError as error:
            tried = f"tried {', '.join(way.kinds)}; firmware.reset_type names another one"
            text = f"{error.text} ({tried})" if error.refused else error.text
            raise NodeError(error.outcome, text, refused=error.refused) from None
        return
    refusal: NodeError | None = None
    for kind in way.off:
        try:
            _first_accepted(bmc, way.target, (kind,), waits)
        except NodeError as error:
            if not error.refused:
                raise
            refusal = error
            continue
        refusal = None
        if _is_off(bmc, system, waits):
            switch_on(bmc, way, waits)
            return
    if refusal:
        raise refusal
    text = f"the host is not off {waits.limit_s:g} s after {way.off[-1]}"
    raise NodeError(Outcome.NOT_RESET, text)


def switch_on(bmc: RedfishConnection, way: ResetWay, waits: Waits) -> None:
    """Switch a host on that a restart has switched off; repeat it while the BMC refuses it.

    Raises:
        NodeError: the BMC refuses it at the end of the wait.
    """
    end = time.monotonic() + waits.limit_s
    while True:
        try:
            _first_accepted(bmc, way.target, way.on, waits)
        except NodeError as error:
            repeated = error.refused or error.outcome in TEMPORARY
            if not repeated or time.monotonic() > end:
                text = f"the host is off and was not switched on: {error.text}"
                raise NodeError(Outcome.NO_RETURN, text) from None
            time.sleep(waits.poll_s)
        else:
            return


def _first_accepted(
    bmc: RedfishConnection, target: str, kinds: tuple[str, ...], waits: Waits
) -> None:
    """Send the first of `kinds` that the BMC accepts, and that its task does not fail.

    Raises:
        NodeError: it refuses the last one, or there was no answer.
    """
    for number, kind in enumerate(kinds, 1):
        try:
            response = bmc.request("POST", target, {"ResetType": kind}, accept=(200, 202, 204))
            if monitor := monitor_of(response):
                _await_reset(bmc, monitor, waits)
        except NodeError as error:
            last = number == len(kinds) or error.outcome is Outcome.DENIED
            if last or not error.refused:
                raise
        else:
            return


def _await_reset(bmc: RedfishConnection, monitor: str, waits: Waits) -> None:
    """Wait for the task of a reset; one that has not ended in time is shown by the boot."""
    try:
        await_task(bmc, monitor, waits, lambda: False)
    except NodeError as error:
        if error.outcome is Outcome.NOT_APPLIED:
            raise NodeError(Outcome.UNEXPECTED, error.text, refused=True) from None


def _is_off(bmc: RedfishConnection, system: str, waits: Waits) -> bool:
    end = time.monotonic() + waits.limit_s
    while True:
        try:
            if bmc.get(system).body.text("PowerState") == "Off":
                return True
        except NodeError as error:
            if error.outcome not in TEMPORARY:
                raise
        if time.monotonic() > end:
            return False
        time.sleep(waits.poll_s)

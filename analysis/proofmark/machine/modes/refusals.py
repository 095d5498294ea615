"""Refuses nodes that others have replaced or changed."""

from __future__ import annotations

from collections.abc import Mapping

from proofmark.machine.bmc.back_end import BackEnd
from proofmark.machine.bmc.bmc_model import FirmwareState, foreign_pending, format_settings
from proofmark.machine.modes.target_mode import SHOWN
from proofmark.machine.modes.verification import Observation
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.runs.journal import RESTORED, NodeHistory

SOMEBODY_ELSE = (
    "Another controller or person has changed the mode: restore it there first, then repeat this "
    "command. take_over=true (--take-over) changes the node all the same"
)


def serials_of(state: FirmwareState, observation: Observation | None) -> dict[str, str]:
    """Return the serial numbers of a node that are known, by their source."""
    serials = {"BMC": state.serial, "SMBIOS": observation.serial if observation else ""}
    return {source: serial for source, serial in serials.items() if serial}


def refuse_replaced(before: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Accept a node with the serial numbers that it had; each source counts that has both.

    Raises:
        NodeError: REPLACED: a serial number differs.
    """
    for source, serial in now.items():
        if before.get(source, serial) != serial:
            text = f"serial number {serial} ({source}); the node had {before[source]}"
            raise NodeError(Outcome.REPLACED, text)


def refuse_foreign(state: FirmwareState, history: NodeHistory) -> None:
    """Accept a node that has no pending setting of another user.

    Raises:
        NodeError: FOREIGN_PENDING: a setting waits for the next boot.
    """
    if foreign := foreign_pending(state, history.staged):
        text = f"waits for the next boot: {format_settings(foreign)}"
        raise NodeError(Outcome.FOREIGN_PENDING, text)


def refuse_changed(
    back_end: BackEnd, history: NodeHistory, state: FirmwareState, observation: Observation | None
) -> None:
    """Accept a node in the mode that the run has set, or in the one before the run.

    Raises:
        NodeError: CHANGED: another user or program has set another mode.
    """
    known = history.mode and history.mode != RESTORED and not history.in_flight
    if not known or not back_end.sets or observation is None:
        return
    if back_end.reads_current_values and history.mode_attributes:
        of_run: Mapping[str, object] = history.mode_attributes
        found: Mapping[str, object] = {name: state.current.get(name) for name in of_run}
        before: Mapping[str, object] = history.original or {}
    else:
        now = observation.as_json()
        of_run = {key: history.mode_seen.get(key) for key in SHOWN}
        found, before = {key: now[key] for key in SHOWN}, history.original_seen
    wrong = [name for name, value in of_run.items() if found[name] != value]
    if any(found[name] != before.get(name) for name in wrong):
        now, before = ({name: values[name] for name in wrong} for values in (found, of_run))
        text = f"found {format_settings(now)}; the run had set {format_settings(before)}"
        raise NodeError(Outcome.CHANGED, f"{text}. {SOMEBODY_ELSE}")

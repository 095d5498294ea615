"""State machine for one node's mode change, and the proof of a mode by its operating system.

Every action is journaled before and after, so that an interrupted change can be resumed. A resumed
change does not replay the journal: it reads the state of the machine and does what is missing.
Nodes that others have replaced or changed are refused.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

from proofmark.common.errors import BadInput
from proofmark.machine.bmc.back_end import (
    BackEnd,
    FirmwareState,
    Host,
    Shell,
    foreign_pending,
    format_settings,
    not_settable,
    refused_settings,
    to_change,
    typed,
)
from proofmark.machine.node_commands import PROBE
from proofmark.machine.outcome import TEMPORARY, NodeError, Outcome
from proofmark.runs.journal import RESTORED, Journal, NodeHistory
from proofmark.site.firmware import Firmware, Scalar, Settings
from proofmark.site.node.cpu import cpu_list, knl_mode, system_serial
from proofmark.site.node.probe_text import read_stream
from proofmark.site.node.topology import NumaShape, numa_shape_of_domains, same_numa_shape

LOOK_ALIKE = ("All2All", "Hemisphere", "Quadrant")
"""Cluster modes of a Xeon Phi with the same NUMA domains: only SMBIOS distinguishes them."""

IN_SMBIOS = ("cluster", "memory")
"""The settings of a mode that SMBIOS tables can contain."""


@dataclass(frozen=True)
class Observation:
    """The state of a node at one moment.

    Attributes:
        boot_id: changes with each boot.
        settings: settings of the mode in its SMBIOS tables; empty if there are none.
        smbios_missing: why the SMBIOS tables could not be read; empty if they could.
        clock: its time of day, in seconds since 1970.
        serial: the serial number in its SMBIOS tables; empty if it cannot be read.
    """

    boot_id: str
    numa_shape: NumaShape
    settings: Mapping[str, str]
    smbios_missing: str
    clock: int
    serial: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the observation for a journal."""
        return {
            "boot_id": self.boot_id,
            "numa": str(self.numa_shape),
            "smbios": dict(self.settings),
        }


@dataclass(frozen=True)
class ExpectedState:
    """The state that a node must show in a mode; `settings` as in the inventory."""

    settings: Mapping[str, str]
    numa_shape: NumaShape


def read_observation(text: str, source: str, smbios: Literal["knl"] | None) -> Observation:
    """Read the output of ``mode-probe.sh``.

    Args:
        smbios: whose SMBIOS tables contain the mode; None if no table does.

    Raises:
        BadInput: the output is damaged.
    """
    stream = read_stream(text, source, "mode")
    boot = stream.pairs("boot")
    try:
        table = bytes.fromhex("".join(stream.lines("smbios")))
        settings = knl_mode(table, source) if smbios == "knl" and table else {}
        # Hardware threads and bytes of each domain; a domain of MCDRAM has no CPUs.
        domains = [
            (len(cpu_list(values["cpus"])), int(values["memory_kb"]) << 10)
            for values in stream.tables("numa").values()
        ]
        return Observation(
            boot["id"],
            numa_shape_of_domains(domains),
            settings,
            stream.absent.get("smbios", ""),
            int(boot["clock"]),
            _serial(table, source),
        )
    except (KeyError, ValueError) as error:
        found, accepted = f"an unreadable value ({error})", "the output of mode-probe.sh"
        raise stream.wrong("", found, accepted) from None


def _serial(table: bytes, source: str) -> str:
    """Return the serial number of the node; empty if the table is damaged, as on old machines."""
    try:
        return system_serial(table, source)
    except BadInput:
        return ""


def matching_modes(
    observation: Observation, expected_states: Mapping[str, ExpectedState]
) -> list[str]:
    """Return the modes that the observation does not exclude."""
    seen = observation.settings
    return [
        name
        for name, expected in expected_states.items()
        if same_numa_shape(observation.numa_shape, expected.numa_shape)
        and all(seen[key] == expected.settings[key] for key in seen.keys() & expected.settings)
    ]


def look_alikes(
    mode: str, expected_states: Mapping[str, ExpectedState], smbios: str | None
) -> list[str]:
    """Return the modes that no observation distinguishes from `mode`.

    Args:
        smbios: whose SMBIOS tables contain a mode; None if no table does.
    """
    goal = expected_states[mode]
    shown = IN_SMBIOS if smbios else ()
    return [
        name
        for name, other in expected_states.items()
        if other.settings != goal.settings
        and same_numa_shape(other.numa_shape, goal.numa_shape)
        and all(other.settings.get(key) == goal.settings.get(key) for key in shown)
    ]


def verify_mode(
    observation: Observation,
    mode: str,
    expected_states: Mapping[str, ExpectedState],
    smbios: str | None,
) -> None:
    """Accept a node that shows `mode` and cannot be in another mode.

    Args:
        smbios: whose SMBIOS tables contain the mode; None if no table does.

    Raises:
        NodeError: OTHER_MODE, or UNPROVEN if the observation matches several modes.
    """
    expected, modes = expected_states[mode], matching_modes(observation, expected_states)
    if mode not in modes:
        settings = ", ".join(f"{name} {value}" for name, value in observation.settings.items())
        text = (
            f"not in mode {mode}; declared modes that match: {', '.join(modes) or 'none'}; "
            f"NUMA domains: {observation.numa_shape}{'; SMBIOS: ' if settings else ''}{settings}"
        )
        raise NodeError(Outcome.OTHER_MODE, text)
    if smbios and not observation.settings and expected.settings.get("cluster") in LOOK_ALIKE:
        reason = observation.smbios_missing or "the tables do not contain the mode"
        text = f"{', '.join(LOOK_ALIKE)} look alike without SMBIOS: {reason}"
        raise NodeError(Outcome.UNPROVEN, text)
    others = [name for name in modes if expected_states[name].settings != expected.settings]
    if others:
        text = f"modes that match: {mode}, {', '.join(others)}; NUMA domains: "
        raise NodeError(Outcome.UNPROVEN, f"{text}{observation.numa_shape}")


SHOWN = ("numa", "smbios")
"""The parts of an observation that the mode determines."""


@dataclass(frozen=True)
class TargetMode:
    """The mode that a node shall be in.

    Attributes:
        mode: its name; ``RESTORED`` for the state before the first change.
        verify: raises `NodeError` if the observation does not prove the mode.
        settings: the abstract settings of the mode; the firmware of a node has their attributes.
        unseen: whether another mode differs only in attributes that the node does not show, and
            that its BMC reports.
        look_alikes: the modes that nothing distinguishes from this one after a boot.
    """

    mode: str
    attributes: Settings
    verify: Callable[[Observation], None]
    settings: Mapping[str, str] = field(default_factory=dict)
    unseen: bool = False
    look_alikes: tuple[str, ...] = ()

    def shown_by(self, observation: Observation) -> bool:
        """Return whether `observation` proves the mode."""
        try:
            self.verify(observation)
        except NodeError:
            return False
        return True


def original_state(history: NodeHistory) -> TargetMode:
    """Return the target of restore: the attributes and the observation before the first change."""
    original, shown = dict(history.original or {}), dict(history.original_seen)

    def verify(observation: Observation) -> None:
        if history.original is None:
            return  # stopped before the first request: the node is unchanged
        now = observation.as_json()
        if any(now[key] != shown.get(key) for key in SHOWN):
            text = ", ".join(f"{key} {now[key]}, before {shown.get(key)}" for key in SHOWN)
            raise NodeError(Outcome.OTHER_MODE, text)

    return TargetMode(RESTORED, original, verify)


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


T = TypeVar("T")
UNCHANGED = NodeHistory()
"""The history of a node that the run has not changed."""


@dataclass(frozen=True)
class ModeTransition:
    """Changes the mode of nodes of one partition, one node per call, from any thread.

    Attributes:
        mode_attributes: all attributes that a mode of the partition sets; restore resets these.
        stop: no wait continues after it is set.
        mode_settings: all abstract settings of the modes of the partition, each with its value.
    """

    firmware: Firmware
    back_end: BackEnd
    shell: Shell
    mode_attributes: Settings
    stop: threading.Event
    mode_settings: Collection[tuple[str, str]] = ()

    def observe(self, node: str) -> Observation:
        """Return the state that the node's operating system shows.

        Raises:
            NodeError: the node cannot be reached, or its output is damaged.
        """
        return self._observation(node, self.shell(node, PROBE))

    def _observation(self, node: str, printed: str) -> Observation:
        try:
            return read_observation(printed, node, self.firmware.smbios)
        except BadInput as error:
            raise NodeError(Outcome.UNEXPECTED, str(error)) from None

    def check(
        self, host: Host, history: NodeHistory, target: TargetMode
    ) -> tuple[FirmwareState, Observation | None]:
        """Return the firmware state and the observation of a node; change nothing.

        The observation is None if a reset of the node is in flight and it cannot be reached.

        Raises:
            NodeError: the node cannot be brought into the mode; the outcome is the reason.
        """
        state = self.back_end.read(host, {**self.mode_attributes, **target.attributes})
        refuse_replaced(history.serials, serials_of(state, None))
        refuse_foreign(state, history)
        try:
            observation = self.observe(host.node)
        except NodeError:
            if not history.in_flight:
                raise
            return state, None
        refuse_replaced(history.serials, serials_of(state, observation))
        if not self.back_end.sets and not target.shown_by(observation):
            self.back_end.stage(host, state, target.attributes)
        return state, observation

    def resolved(self, target: TargetMode, state: FirmwareState) -> TargetMode:
        """Return `target` with the firmware's attributes for its abstract settings.

        Raises:
            NodeError: REFUSED: the firmware does not offer a setting.
        """
        attributes = {**self.back_end.attributes(state, target.settings), **target.attributes}
        return replace(target, attributes=typed(attributes, state.offers), settings={})

    def prove(
        self, host: Host, target: TargetMode, printed: str, history: NodeHistory = UNCHANGED
    ) -> Observation:
        """Return the observation that proves that a node is in the mode; change nothing.

        The firmware is read if the node does not show all settings of the mode.

        Args:
            printed: the output of `PROBE` on the node.

        Raises:
            NodeError: the node is in another mode, or the output is damaged.
        """
        observation = self._observation(host.node, printed)
        target.verify(observation)
        if history.awaits_boot(observation.boot_id, target.mode):
            text = f"its settings wait for a boot; it has still the boot id {observation.boot_id}"
            raise NodeError(Outcome.NOT_RESET, text)
        if target.unseen or target.settings:  # only the firmware proves the whole mode
            state = self.back_end.read(host, target.attributes)
            wanted = self.resolved(target, state).attributes
            if wrong := to_change(state, wanted):
                current = {name: state.current.get(name) for name in wrong}
                text = f"not in mode {target.mode}: the firmware has {format_settings(current)}"
                raise NodeError(Outcome.OTHER_MODE, text)
        return observation

    def arrived(
        self,
        history: NodeHistory,
        state: FirmwareState,
        observation: Observation | None,
        target: TargetMode,
    ) -> bool:
        """Return whether a node is in the mode, with no reset in flight and no pending setting."""
        if observation is None or history.in_flight or history.unsettled or state.pending:
            return False
        if history.awaits_boot(observation.boot_id, target.mode):
            return False
        if self.back_end.reads_current_values and to_change(state, target.attributes):
            return False
        return target.shown_by(observation)

    def original(self, state: FirmwareState) -> dict[str, Scalar]:
        """Return the attributes of modes that `state` has and that can be set again."""
        names = {**self.mode_attributes}
        for setting, value in self.mode_settings:
            with suppress(NodeError):  # the firmware does not offer it
                names |= self.back_end.attributes(state, {setting: value})
        return {
            name: state.current[name]
            for name in names
            if name in state.current and not any(not_settable(state, name))
        }

    def refuse(self, history: NodeHistory, state: FirmwareState, target: TargetMode) -> None:
        """Accept a node whose firmware can be changed to `target`, and changed back.

        Raises:
            NodeError: BLOCKED, REFUSED or CANNOT_RESTORE.
        """
        if state.blocked:
            if state.pending or to_change(state, target.attributes):
                raise NodeError(Outcome.BLOCKED, state.blocked)
            return  # a blocked BMC has each attribute as read-only
        if refused := list(refused_settings(target.attributes, state.offers, state.current)):
            raise NodeError(Outcome.REFUSED, "; ".join(refused))
        if state.no_reset and to_change(state, target.attributes):
            raise NodeError(Outcome.REFUSED, state.no_reset)
        if target.mode == RESTORED or not self.back_end.sets:
            return
        before = state if history.original is None else replace(state, current=history.original)
        if problems := list(self.back_end.not_restorable(before, target.attributes)):
            raise NodeError(Outcome.CANNOT_RESTORE, "; ".join(problems))

    def run(
        self, host: Host, target: TargetMode, journal: Journal, checked: FirmwareState
    ) -> Observation:
        """Bring one node into the mode; return the observation that proves it.

        The node must be drained.

        Args:
            checked: the state that `check` returned. It must not have changed: the original state
                of a node is recorded only if two readings agree.

        Raises:
            NodeError: a step failed, with its outcome.
        """
        history = journal.history()
        if history.in_flight:
            self._await_pending_reset(host, journal, history.in_flight)
        if history.task:
            self.back_end.await_outstanding(host, history.task)
        observation = self.observe(host.node)
        names = {**self.mode_attributes, **target.attributes}
        state = self._answer(lambda: self.back_end.read(host, names))
        serials = serials_of(state, observation)
        refuse_replaced(history.serials, serials)
        refuse_foreign(state, history)
        self.refuse(history, state, target)
        if target.mode != RESTORED:
            self._record_original(host, history, journal, (checked, state), observation)
        before = dict(state.current)
        changes = to_change(state, target.attributes)
        # A task that has ended is a result: values in effect with nothing pending stay.
        if changes or state.pending or (history.unsettled and not history.task):
            boot_id = observation.boot_id if changes else ""
            values = dict(target.attributes)
            journal.intent("stage", attributes=values, before=before, boot_id=boot_id)
            try:
                self._stage(host, state, target.attributes, journal)
            except NodeError as error:
                raise self._withdraw(error, host, values, before, journal) from None
        unshown = not (self.back_end.reads_current_values or target.shown_by(observation))
        if changes or unshown or history.awaits_boot(observation.boot_id, target.mode):
            earlier = observation
            observation = self._restart(host, state, target, journal, earlier.boot_id)
            self._verify(host, target, observation, before, earlier)
        else:
            target.verify(observation)
        attributes, seen = dict(target.attributes), observation.as_json()
        journal.result("verified", mode=target.mode, attributes=attributes, seen=seen)
        return observation

    def _record_original(
        self,
        host: Host,
        history: NodeHistory,
        journal: Journal,
        readings: tuple[FirmwareState, FirmwareState],
        observation: Observation,
    ) -> None:
        """Journal the state before the first change, with the serial numbers.

        Raises:
            NodeError: UNEXPECTED: the two readings differ.
        """
        checked, state = readings
        serials = serials_of(state, observation)
        if history.original is not None and (history.serials or not serials):
            return
        refuse_replaced(serials_of(checked, None), serials)
        attributes, seen = history.original, history.original_seen
        if attributes is None:
            attributes, seen = self.original(state), observation.as_json()
            if attributes != self.original(checked):
                before, now = (format_settings(self.original(each)) for each in readings)
                problem = f"the firmware changed since the check from {before} to {now}"
                raise NodeError(Outcome.UNEXPECTED, problem)
        facts = {"address": host.address, "attributes": dict(attributes), "seen": dict(seen)}
        journal.result("original", **facts, serials=serials)

    def _stage(self, host: Host, state: FirmwareState, values: Settings, journal: Journal) -> None:
        try:
            self.back_end.stage(host, state, values)
        except NodeError as error:
            task = self.back_end.outstanding(host)
            refused = error.outcome in (Outcome.REFUSED, Outcome.DENIED, Outcome.FOREIGN_PENDING)
            if task or refused or error.refused:
                journal.result("stage", task=task)
            raise  # without a result the BMC may still execute it
        journal.result("stage")

    def _withdraw(
        self, error: NodeError, host: Host, wanted: Settings, before: Settings, journal: Journal
    ) -> NodeError:
        """Set the values of before for the next boot: the BMC did not take a change or its reset.

        It may have taken a part of the change. Return `error` with what the next boot may still
        set.

        Args:
            before: the values in effect.
        """
        if error.outcome in (Outcome.DENIED, Outcome.FOREIGN_PENDING):
            return error  # nothing was sent
        values = {name: before[name] for name in wanted if name in before}
        names = {**self.mode_attributes, **values}
        left = {name: value for name, value in wanted.items() if before.get(name) != value}
        why = self.back_end.outstanding(host)
        try:
            if not why:
                state = self.back_end.read(host, names)
                if wanted.keys() & state.pending.keys() or error.outcome is not Outcome.NOT_APPLIED:
                    journal.intent("stage", attributes=values, before=dict(state.current))
                    self._stage(host, state, values, journal)
                    state = self.back_end.read(host, names)
                left = {name: state.pending[name] for name in wanted if name in state.pending}
                if not left and not to_change(state, values):
                    journal.result("stage", void=True)
        except NodeError as failure:
            why = failure.text
        if not left:
            return error
        text = f"{error.text[:200]}; the next boot may set {format_settings(left)}: {why[:100]}"
        return NodeError(error.outcome, text, refused=error.refused)

    def _answer(self, ask: Callable[[], T]) -> T:
        """Return what `ask` returns; repeat it while the BMC, which may boot too, has no answer.

        Raises:
            NodeError: another failure, or this one after the limit of a boot.
        """
        end = time.monotonic() + self.firmware.boot_timeout_s
        while True:
            try:
                return ask()
            except NodeError as error:
                if error.outcome not in TEMPORARY or time.monotonic() > end:
                    raise
            if self.stop.wait(self.firmware.poll_s):
                raise NodeError(Outcome.STOPPED, "the command was stopped while the BMC was busy")

    def _restart(
        self, host: Host, state: FirmwareState, target: TargetMode, journal: Journal, boot_id: str
    ) -> Observation:
        journal.intent("reset", boot_id=boot_id)
        try:
            self.back_end.reset(host, state, target.attributes)
        except NodeError as error:
            if error.outcome in (Outcome.NO_RETURN, Outcome.NOT_RESET):
                raise  # the host may be off
            # Without a response the BMC may have executed the request: the wait below shows it.
            if error.outcome not in (Outcome.NO_ANSWER, Outcome.UNREACHABLE):
                journal.result("reset", void=True)
                if error.refused:
                    raise self._withdraw(
                        error, host, target.attributes, state.current, journal
                    ) from None
                raise
        else:
            journal.result("reset")
        return self._await_boot(host, journal, boot_id)

    def _await_pending_reset(self, host: Host, journal: Journal, boot_id: str) -> None:
        """Wait for the end of a reset that an interrupted command requested or was about to."""
        with suppress(NodeError):  # the wait shows it
            self.back_end.resume_reset(host)
        try:
            self._await_boot(host, journal, boot_id)
        except NodeError as error:
            if error.outcome is not Outcome.NOT_RESET:
                raise
            journal.result("reset", void=True)

    def _await_boot(self, host: Host, journal: Journal, boot_id: str) -> Observation:
        """Wait until the node shows another boot id, the only proof of a reset."""
        start = time.monotonic()
        down = False
        while True:
            try:
                observation = self.observe(host.node)
            except NodeError as error:
                if not down:
                    journal.result("down", said=error.text)
                down = True
            else:
                if observation.boot_id != boot_id:
                    seconds = round(time.monotonic() - start)
                    journal.result("up", boot_id=observation.boot_id, seconds=seconds)
                    return observation
            spent = time.monotonic() - start
            if not down and spent > self.firmware.reset_timeout_s:
                text = f"still up after {spent:.0f} s, with boot id {boot_id}"
                raise NodeError(Outcome.NOT_RESET, text)
            if spent > self.firmware.boot_timeout_s:
                raise NodeError(Outcome.NO_RETURN, f"not back {spent:.0f} s after its reset")
            if self.stop.wait(self.firmware.poll_s):
                raise NodeError(Outcome.STOPPED, "the command was stopped while the node booted")

    def _verify(
        self,
        host: Host,
        target: TargetMode,
        observation: Observation,
        before: Settings,
        earlier: Observation,
    ) -> None:
        """Check firmware and operating system after the boot.

        Raises:
            NodeError: NOT_APPLIED if nothing changed, else OTHER_MODE or UNPROVEN.
        """
        current = self._answer(lambda: self.back_end.verify(host, target.attributes))
        if current is not None:
            wrong = {
                name: current.get(name)
                for name, value in target.attributes.items()
                if current.get(name) != value
            }
            if wrong:
                unchanged = all(before.get(name) == value for name, value in wrong.items())
                outcome = Outcome.NOT_APPLIED if unchanged else Outcome.OTHER_MODE
                text = f"after the boot the firmware has {format_settings(wrong)}"
                raise NodeError(outcome, text)
        try:
            target.verify(observation)
        except NodeError as error:
            unchanged = (observation.numa_shape, observation.settings) == (
                earlier.numa_shape,
                earlier.settings,
            )
            if error.outcome is Outcome.OTHER_MODE and unchanged:
                raise NodeError(Outcome.NOT_APPLIED, error.text) from None
            raise

"""The mode that a node shall be in, and its proof: the state that its operating system shows.

Nodes that others have replaced or changed are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from proofmark.common.errors import BadInput
from proofmark.machine.bmc.back_end import BackEnd
from proofmark.machine.bmc.bmc_model import FirmwareState, foreign_pending, format_settings
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.runs.journal import RESTORED, NodeHistory
from proofmark.site.firmware import Settings
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
        source: the node, for messages.
        smbios: whose SMBIOS tables contain the mode; None if no table does.

    Raises:
        BadInput: the output is damaged.
    """
    stream = read_stream(text, source, "mode")
    boot = stream.pairs("boot")
    try:
        table = bytes.fromhex("".join(stream.lines("smbios")))
        settings = knl_mode(table, source) if smbios == "knl" and table else {}
        domains = [_domain(values) for values in stream.tables("numa").values()]
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


def _domain(values: Mapping[str, str]) -> tuple[int, int]:
    """Return hardware threads and bytes of a domain; a domain of MCDRAM has no CPUs."""
    return len(cpu_list(values["cpus"])), int(values["memory_kb"]) << 10


def matching_modes(
    observation: Observation, expected_states: Mapping[str, ExpectedState]
) -> list[str]:
    """Return the modes that the observation does not exclude."""
    return [name for name, expected in expected_states.items() if _matches(observation, expected)]


def _matches(observation: Observation, expected: ExpectedState) -> bool:
    return same_numa_shape(observation.numa_shape, expected.numa_shape) and all(
        expected.settings[name] == value
        for name, value in observation.settings.items()
        if name in expected.settings
    )


def look_alikes(
    mode: str, expected_states: Mapping[str, ExpectedState], smbios: str | None
) -> list[str]:
    """Return the modes that no observation distinguishes from `mode`.

    Args:
        expected_states: all modes of the partition.
        smbios: whose SMBIOS tables contain a mode; None if no table does.
    """
    goal = expected_states[mode]
    shown = IN_SMBIOS if smbios else ()
    return [
        name
        for name, other in expected_states.items()
        if name != mode
        and other.settings != goal.settings
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
        expected_states: all modes of the partition.
        smbios: whose SMBIOS tables contain the mode; None if no table does.

    Raises:
        NodeError: OTHER_MODE, or UNPROVEN if the observation matches several modes.
    """
    expected = expected_states[mode]
    if not _matches(observation, expected):
        modes = matching_modes(observation, expected_states)
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
    others = [
        name
        for name, other in expected_states.items()
        if name != mode and other.settings != expected.settings and _matches(observation, other)
    ]
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

    @property
    def by_firmware(self) -> bool:
        """Whether only the values of the firmware prove the whole mode."""
        return self.unseen or bool(self.settings)

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

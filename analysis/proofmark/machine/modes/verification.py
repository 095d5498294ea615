"""The state that a node's operating system shows, and the modes that match it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from proofmark.common.errors import BadInput
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.site.node.cpu import cpu_list
from proofmark.site.node.numa import NumaShape, numa_shape_of_domains, same_numa_shape
from proofmark.site.node.probe_text import read_stream
from proofmark.site.node.smbios import knl_mode, system_serial

LOOK_ALIKE = ("All2All", "Hemisphere", "Quadrant")
"""Cluster modes of a Xeon Phi with the same NUMA domains: only SMBIOS distinguishes them."""

IN_SMBIOS = ("cluster", "memory")
"""The settings of a mode that SMBIOS tables can contain."""


@dataclass(frozen=True)
class Observation:
    """The state of a node at one moment.

    Attributes:
        boot_id: changes with each boot.
        numa_shape: its NUMA domains.
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
        text: the output.
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
        mode: one of `expected_states`.
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
        observation: the state of the node.
        mode: one of `expected_states`.
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

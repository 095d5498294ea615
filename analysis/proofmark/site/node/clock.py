"""The nominal frequency of a processor, from the first source of the node that states it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from proofmark.site.hardware_limits import ProcessorLimits, processor
from proofmark.site.node.parts import smbios_devices
from proofmark.site.node.probe_text import ProbeStream
from proofmark.site.node.unread import Unread

SAME_FREQUENCY = 0.01
"""Two statements of a frequency with a smaller relative difference are the same one."""
MEGA = 1_000_000


@dataclass(frozen=True)
class Clock:
    """A nominal frequency in Hz and what states it; None and an empty text if nothing does.

    `listed` is whether it is that of the table of processors: the node does not state it.
    """

    hertz: int | None
    source: str
    listed: bool = False


def khz(frequency: Mapping[str, str], key: str, unread: Unread) -> int | None:
    """Return a number of kHz in Hz; None if it is not reported, or 0."""
    value = unread.read(f"frequency.{key}", frequency.get(key), int)
    return value * 1000 if value else None


def nominal_clock(stream: ProbeStream, model_name: str, unread: Unread, *, virtual: bool) -> Clock:
    """Return the nominal frequency of the processor.

    The sources in their order: ``base_frequency`` of cpufreq, the name of the processor,
    ``nominal_freq`` of ACPI CPPC, the speed at boot in SMBIOS if it is the nominal one, and the
    table of processors. A hypervisor can invent the last three: they do not count for a virtual
    node.
    """
    frequency = stream.pairs("frequency")
    if hertz := khz(frequency, "base_khz", unread):
        return Clock(hertz, "cpufreq")
    if stated := re.search(r"@ (\d{1,2}(?:\.\d{1,6})?) ?GHz", model_name, re.ASCII):
        return Clock(round(float(stated[1]) * 1e9), "the name of the processor")
    if virtual:
        return Clock(None, "")
    # In MHz; 0 if the firmware leaves it out (Documentation/ABI: sysfs-devices-system-cpu).
    nominal = unread.read("frequency.nominal_mhz", frequency.get("nominal_mhz"), int)
    if nominal and nominal > 0:
        return Clock(nominal * MEGA, "ACPI CPPC")
    row = processor(model_name)
    if hertz := _at_boot(stream, row):
        return Clock(hertz, "SMBIOS")
    if row is not None and row.base_hz is not None:
        return Clock(round(row.base_hz), f"the table of processors: {row.source}", listed=True)
    return Clock(None, "")


def _at_boot(stream: ProbeStream, row: ProcessorLimits | None) -> int | None:
    """Return the speed of all sockets at boot in Hz; None if it is not the nominal frequency.

    SMBIOS does not say which frequency it is. It is the nominal one if it is that of the table. If
    the table has no frequency, it is below the largest one, which the turbo needs.
    """
    speeds = {
        (_megahertz(device.get("Current Speed")), _megahertz(device.get("Max Speed")))
        for device in smbios_devices(stream.lines("sockets"), "Processor Information")
        if device.get("Status", "").startswith("Populated")
    }
    if len(speeds) != 1:
        return None
    current, largest = speeds.pop()
    if not current:
        return None
    if row is not None and row.base_hz is not None:
        nominal = abs(current * MEGA / row.base_hz - 1) < SAME_FREQUENCY
    else:
        nominal = largest is not None and current < largest
    return current * MEGA if nominal else None


def _megahertz(text: str | None) -> int | None:
    match = re.fullmatch(r"(\d{1,6}) MHz", text or "", re.ASCII)
    return int(match[1]) if match else None

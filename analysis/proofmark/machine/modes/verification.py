"""What a node's operating system shows, and which modes that can be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ClusterShell.RangeSet import RangeSet, RangeSetException

from proofmark.machine.outcome import NodeError, Outcome
from proofmark.site.node.numa import NumaShape, numa_shape_of_domains, same_numa_shape
from proofmark.site.node.probe_text import read_stream
from proofmark.site.node.smbios import knl_mode

LOOK_ALIKE = ("All2All", "Hemisphere", "Quadrant")
"""Cluster modes of a Xeon Phi with the same domains: only SMBIOS tells which one it is."""


@dataclass(frozen=True)
class Observation:
    """A node at one moment.

    Attributes:
        settings: what its SMBIOS tables tell of the mode; empty where they tell nothing.
        silent: why they do, if they do.
        clock: its time of day, in seconds since 1970.
    """

    boot_id: str
    layout: NumaShape
    settings: Mapping[str, str]
    silent: str
    clock: int

    def as_json(self) -> dict[str, Any]:
        """Return it for a journal."""
        return {"boot_id": self.boot_id, "numa": str(self.layout), "smbios": dict(self.settings)}


@dataclass(frozen=True)
class ExpectedState:
    """What a node must show in a mode; `settings` in the words of the inventory."""

    settings: Mapping[str, str]
    layout: NumaShape


def read_observation(text: str, source: str, smbios: Literal["knl"] | None) -> Observation:
    """Read what ``mode-probe.sh`` printed.

    Raises:
        BadInput: it is damaged.
    """
    stream = read_stream(text, source, "mode")
    boot = stream.pairs("boot")
    table, silent = bytes.fromhex("".join(stream.lines("smbios"))), stream.absent.get("smbios", "")
    settings = knl_mode(table, source) if smbios == "knl" and table else {}
    try:
        domains = [_domain(values) for values in stream.tables("numa").values()]
        return Observation(
            boot["id"], numa_shape_of_domains(domains), settings, silent, int(boot["clock"])
        )
    except (KeyError, ValueError, RangeSetException) as error:
        raise stream.wrong("", f"a value that cannot be read ({error})", "what it prints") from None


def _domain(values: Mapping[str, str]) -> tuple[int, int]:
    """Return hardware threads and bytes of a domain; of MCDRAM the list of CPUs is empty."""
    cpus = values["cpus"]
    return len(RangeSet(cpus)) if cpus else 0, int(values["memory_kb"]) << 10


def matching_modes(seen: Observation, shapes: Mapping[str, ExpectedState]) -> list[str]:
    """Return the modes that a node can be in, by all that it shows."""
    return [name for name, shape in shapes.items() if _fits(seen, shape)]


def _fits(seen: Observation, shape: ExpectedState) -> bool:
    told = {name: value for name, value in seen.settings.items() if name in shape.settings}
    return same_numa_shape(seen.layout, shape.layout) and all(
        shape.settings[name] == value for name, value in told.items()
    )


def verify_mode(
    seen: Observation, mode: str, shapes: Mapping[str, ExpectedState], smbios: str | None
) -> None:
    """Accept a node that shows `mode`, and none that may be in another.

    Raises:
        NodeError: OTHER_MODE, or UNPROVEN where what it shows fits several modes.
    """
    shape = shapes[mode]
    if not _fits(seen, shape):
        others = ", ".join(matching_modes(seen, shapes)) or "no mode that is declared"
        told = ", ".join(f"{name} {value}" for name, value in seen.settings.items())
        text = f"not {mode} but {others}: {seen.layout}{'; SMBIOS: ' if told else ''}{told}"
        raise NodeError(Outcome.OTHER_MODE, text)
    if smbios and not seen.settings and shape.settings.get("cluster") in LOOK_ALIKE:
        why = seen.silent or "the tables do not tell"
        raise NodeError(
            Outcome.UNPROVEN, f"{', '.join(LOOK_ALIKE)} look alike without SMBIOS: {why}"
        )
    same = [
        name
        for name, other in shapes.items()
        if name != mode and other.settings != shape.settings and _fits(seen, other)
    ]
    if same:
        raise NodeError(Outcome.UNPROVEN, f"{mode} or {', '.join(same)}: {seen.layout}")

"""What a node's operating system shows, and which modes that can be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ClusterShell.RangeSet import RangeSet, RangeSetException

from proofmark.machine.outcome import Failed, Outcome
from proofmark.site.node.probe_text import read_stream
from proofmark.site.node.smbios import knl_mode
from proofmark.site.node.topology import Topology

MEMORY_TOLERANCE = 0.15
"""A kernel shows a little less memory than there is; modes differ by a third and more."""
LOOK_ALIKE = ("All2All", "Hemisphere", "Quadrant")
"""Cluster modes of a Xeon Phi with the same domains: only SMBIOS tells which one it is."""


@dataclass(frozen=True)
class Layout:
    """NUMA domains, whatever their numbers.

    Attributes:
        with_cpus: hardware threads and bytes of each domain that has threads, sorted.
        without: bytes of each domain that has none (MCDRAM), sorted.
    """

    with_cpus: tuple[tuple[int, int], ...]
    without: tuple[int, ...]

    def __str__(self) -> str:
        """Say it in few words: ``2 × 48 GiB with cpus, 2 × 8 GiB without``."""
        main = [size for _, size in self.with_cpus]
        bare = f", {_sizes(self.without)} without" if self.without else ""
        return f"{_sizes(main)} with cpus{bare}"


@dataclass(frozen=True)
class Seen:
    """A node at one moment.

    Attributes:
        settings: what its SMBIOS tables tell of the mode; empty where they tell nothing.
        silent: why they do, if they do.
        clock: its time of day, in seconds since 1970.
    """

    boot_id: str
    layout: Layout
    settings: Mapping[str, str]
    silent: str
    clock: int

    def as_json(self) -> dict[str, Any]:
        """Return it for a journal."""
        return {"boot_id": self.boot_id, "numa": str(self.layout), "smbios": dict(self.settings)}


@dataclass(frozen=True)
class Shape:
    """What a node must show in a mode; `settings` in the words of the inventory."""

    settings: Mapping[str, str]
    layout: Layout


def read_seen(text: str, source: str, smbios: Literal["knl"] | None) -> Seen:
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
        return Seen(boot["id"], _layout(domains), settings, silent, int(boot["clock"]))
    except (KeyError, ValueError, RangeSetException) as error:
        raise stream.wrong("", f"a value that cannot be read ({error})", "what it prints") from None


def _domain(values: Mapping[str, str]) -> tuple[int, int]:
    """Return hardware threads and bytes of a domain; of MCDRAM the list of CPUs is empty."""
    cpus = values["cpus"]
    return len(RangeSet(cpus)) if cpus else 0, int(values["memory_kb"]) << 10


def _layout(domains: list[tuple[int, int]]) -> Layout:
    return Layout(
        tuple(sorted(each for each in domains if each[0])),
        tuple(sorted(size for cpus, size in domains if not cpus)),
    )


def layout_of(topology: Topology) -> Layout:
    """Return the domains that a declared node has."""
    return _layout(
        [
            (sum(len(topology.cores[core].pus) for core in domain.cores), domain.bytes)
            for domain in topology.numa_domains
        ]
    )


def alike(seen: Layout, expected: Layout) -> bool:
    """Tell whether a node shows these domains; memory of 0 bytes is memory nobody told of."""
    threads = [cpus for cpus, _ in seen.with_cpus], [cpus for cpus, _ in expected.with_cpus]
    sizes = ([*(size for _, size in each.with_cpus), *each.without] for each in (seen, expected))
    return (
        threads[0] == threads[1]
        and len(seen.without) == len(expected.without)
        and all(map(_near, *sizes))
    )


def _near(seen: int, expected: int) -> bool:
    return not expected or abs(seen - expected) <= MEMORY_TOLERANCE * expected


def shows(seen: Seen, shapes: Mapping[str, Shape]) -> list[str]:
    """Return the modes that a node can be in, by all that it shows."""
    return [name for name, shape in shapes.items() if _fits(seen, shape)]


def _fits(seen: Seen, shape: Shape) -> bool:
    told = {name: value for name, value in seen.settings.items() if name in shape.settings}
    return alike(seen.layout, shape.layout) and all(
        shape.settings[name] == value for name, value in told.items()
    )


def judge(seen: Seen, mode: str, shapes: Mapping[str, Shape], smbios: str | None) -> None:
    """Accept a node that shows `mode`, and none that may be in another.

    Raises:
        Failed: OTHER_MODE, or UNPROVEN where what it shows fits several modes.
    """
    shape = shapes[mode]
    if not _fits(seen, shape):
        others = ", ".join(shows(seen, shapes)) or "no mode that is declared"
        told = ", ".join(f"{name} {value}" for name, value in seen.settings.items())
        text = f"not {mode} but {others}: {seen.layout}{'; SMBIOS: ' if told else ''}{told}"
        raise Failed(Outcome.OTHER_MODE, text)
    if smbios and not seen.settings and shape.settings.get("cluster") in LOOK_ALIKE:
        why = seen.silent or "the tables do not tell"
        raise Failed(Outcome.UNPROVEN, f"{', '.join(LOOK_ALIKE)} look alike without SMBIOS: {why}")
    same = [
        name
        for name, other in shapes.items()
        if name != mode and other.settings != shape.settings and _fits(seen, other)
    ]
    if same:
        raise Failed(Outcome.UNPROVEN, f"{mode} or {', '.join(same)}: {seen.layout}")


def _sizes(sizes: Any) -> str:
    gib = [round(size / 2**30) for size in sizes]
    return " + ".join(f"{gib.count(size)} × {size} GiB" for size in dict.fromkeys(gib)) or "none"

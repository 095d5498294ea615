"""The node of an emulated BMC: the files that a probe reads, written for a firmware mode.

Each node has a folder with ``proc`` and ``sys``. While the node boots, it contains a file ``down``.
"""

from __future__ import annotations

import shutil
import struct
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GIB_KB = 1 << 20
VISIBLE_FRACTION = 0.98
"""The fraction of the memory that a kernel shows; the kernel reserves the rest."""
CLUSTER = {"Quadrant": 1, "Hemisphere": 2, "SNC-4": 4, "SNC-2": 8, "All2All": 16}
MEMORY = {"Cache": 1, "Flat": 2, "Hybrid": 4}
HYBRID = {"25": 1, "50": 2}
DOMAINS = {"SNC-2": [34, 34], "SNC-4": [18, 18, 16, 16]}
"""Cores of each domain; 34 tiles cannot be divided into four equal parts."""


@dataclass(frozen=True)
class Domain:
    """One NUMA domain: its hardware threads, and its memory in kB."""

    cpus: Sequence[int]
    memory_kb: int


def knl(attributes: Mapping[str, Any]) -> list[Domain]:
    """Return the domains of a Xeon Phi 7250: first DDR4, with all cores; then MCDRAM, without."""
    cores = DOMAINS.get(attributes["ClusterMode"], [68])
    mode = attributes["MemoryMode"]
    mcdram = {"Cache": 0.0, "Flat": 16.0}.get(mode)
    if mcdram is None:
        mcdram = 16 * (1 - int(attributes["MemoryModeHybridPercent"]) / 100)
    domains, first = [], 0
    for count in cores:
        cpus = [core + 68 * thread for thread in range(4) for core in range(first, first + count)]
        domains.append(Domain(cpus, _kb(96 / len(cores))))
        first += count
    return domains + [Domain([], _kb(mcdram / len(cores)))] * (len(cores) if mcdram else 0)


def skl(attributes: Mapping[str, Any]) -> list[Domain]:
    """Return the domains of two Xeon Gold 6148: 1 per socket; 2 with sub-NUMA clustering."""
    cores = 10 if attributes["SubNumaCluster"] == "Enabled" else 20
    return [
        Domain(range(first, first + cores), _kb(192 * cores / 40)) for first in range(0, 40, cores)
    ]


def server(attributes: Mapping[str, Any]) -> list[Domain]:
    """Return the domains of two sockets with 16 cores and 128 GiB each.

    The attributes are the number of domains of a socket, and of threads of a core.
    """
    numa, threads = attributes["numa"], attributes["threads"]
    cores = 16 // numa
    return [
        Domain(
            [
                core + 32 * thread
                for thread in range(threads)
                for core in range(first, first + cores)
            ],
            _kb(128 / numa),
        )
        for first in range(0, 32, cores)
    ]


def notation(attributes: Mapping[str, Any], shape: str) -> str:
    """Return the node in the synthetic notation of hwloc; empty if hwloc cannot describe it."""
    if shape == "server":
        numa, threads = attributes["numa"], attributes["threads"]
        group = f"group:{numa} " if numa > 1 else ""
        inside = f"{group}[numa(memory={128 // numa}GiB)] l2:{16 // numa}(size=1MiB)"
        pus = f"pu:{threads}" + ("(indexes=2*32:32*1)" if threads == 2 else "")
        return f"pack:2 {inside} core:1 {pus}"
    if shape == "skl":
        snc = attributes["SubNumaCluster"] == "Enabled"
        inside = "group:2 [numa(memory=48GiB)] l2:10" if snc else "[numa(memory=96GiB)] l2:20"
        return f"pack:2 {inside}(size=1MiB) core:1 pu:1"
    parts = len(DOMAINS.get(attributes["ClusterMode"], [68]))
    if parts == 4:  # hwloc needs equal parts
        return ""
    ddr, *mcdram = (round(d.memory_kb / VISIBLE_FRACTION / 1024) for d in knl(attributes)[::parts])
    memories = "".join(f"[numa(memory={size}MiB)] " for size in (ddr, *mcdram))
    group = f"group:{parts} " if parts > 1 else ""
    return f"pack:1 {group}{memories}l2:{34 // parts}(size=1MiB) core:2 pu:4(indexes=4*68:68*1)"


def _kb(gib: float) -> int:
    return int(gib * GIB_KB * VISIBLE_FRACTION)


def smbios(attributes: Mapping[str, Any], serial: str, *, knl_tables: bool) -> bytes:
    """Return a DMI table; a Xeon Phi has its modes in structures of type 0xDD (OEM)."""
    table = _structure(1, 0x0100, bytes([1, 2, 3, 4]) + bytes(19), "Intel", "S7200AP", "1", serial)
    if knl_tables:
        group = bytes([1]) + struct.pack("<BHBH", 0xDD, 0x4101, 0xDD, 0x4102)
        table += _structure(14, 0x4100, group, "Group: Knights Landing Information")
        hybrid = HYBRID.get(str(attributes["MemoryModeHybridPercent"]), 0)
        modes = (CLUSTER[attributes["ClusterMode"]], 7, MEMORY[attributes["MemoryMode"]], hybrid)
        general = struct.pack("<HBBBBBB", 1, 1, 31, *modes)
        table += _structure(0xDD, 0x4101, general, "Knights Landing General Information")
        table += _structure(0xDD, 0x4102, struct.pack("<HB", 2, 1) + bytes(9), "MCDRAM")
    return table + _structure(127, 0xFEFF, b"")


def _structure(kind: int, handle: int, body: bytes, *texts: str) -> bytes:
    strings = b"".join(text.encode() + b"\0" for text in texts) or b"\0"
    return struct.pack("<BBH", kind, 4 + len(body), handle) + body + strings + b"\0"


def boot(folder: Path, attributes: Mapping[str, Any], shape: str, serial: str) -> None:
    """Write the files of a node after a boot, with a new boot id."""
    domains = {"knl": knl, "skl": skl, "server": server}[shape](attributes)
    nodes = folder / "sys/devices/system/node"
    shutil.rmtree(nodes, ignore_errors=True)
    for number, domain in enumerate(domains):
        _write(nodes / f"node{number}/cpulist", _ranges(domain.cpus) + "\n")
        sizes = {"MemTotal": domain.memory_kb, "MemFree": domain.memory_kb, "MemUsed": 0}
        lines = (f"Node {number} {name}: {size:>13} kB\n" for name, size in sizes.items())
        _write(nodes / f"node{number}/meminfo", "".join(lines))
    tables = folder / "sys/firmware/dmi/tables"
    tables.mkdir(parents=True, exist_ok=True)
    (tables / "DMI").write_bytes(smbios(attributes, serial, knl_tables=shape == "knl"))
    _write(folder / "topology", notation(attributes, shape) + "\n")
    _write(folder / "proc/sys/kernel/random/boot_id", f"{uuid.uuid4()}\n")
    (folder / "down").unlink(missing_ok=True)


def _ranges(cpus: Sequence[int]) -> str:
    return ",".join(
        f"{first}-{last}" if last > first else f"{first}" for first, last in _runs(cpus)
    )


def _runs(cpus: Sequence[int]) -> Iterator[tuple[int, int]]:
    first = None
    for cpu in sorted(cpus):
        if first is None:
            first = last = cpu
        elif cpu == last + 1:
            last = cpu
        else:
            yield first, last
            first = last = cpu
    if first is not None:
        yield first, last


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)

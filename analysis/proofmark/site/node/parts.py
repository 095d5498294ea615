"""The parts of a node: caches, memory domains, DIMMs, network adapters, mounts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from proofmark.common.strict_model import StrictModel
from proofmark.site.node.cpu import cpu_list

UNITS = {"": 1, "k": 2**10, "kb": 2**10, "m": 2**20, "mb": 2**20, "g": 2**30, "gb": 2**30}
EMPTY = {"", "unknown", "not specified", "none", "no dimm", "n/a"}


class Cache(StrictModel):
    """The caches of one level and kind that serve processors which may be used."""

    level: int
    kind: str
    bytes: int
    instances: int


class NumaDomain(StrictModel):
    """A NUMA domain. A domain without processors is a separate memory (MCDRAM in Flat mode)."""

    index: int
    cpus: tuple[int, ...]
    memory_bytes: int
    distances: tuple[int, ...] = ()


class Dimm(StrictModel):
    """A memory module. `rated` is its nominal and `configured` its current speed, in MT/s."""

    locator: str
    bytes: int
    kind: str | None
    part_number: str | None
    serial: str | None
    manufacturer: str | None
    rated: int | None
    configured: int | None


class Nic(StrictModel):
    """A network interface. `link` and `link_best` are the width and speed of its PCIe link."""

    name: str
    driver: str | None
    firmware: str | None
    state: str | None
    megabits: int | None
    mtu: int | None
    link: str | None
    link_best: str | None


class Port(StrictModel):
    """A port of an InfiniBand or Omni-Path adapter."""

    adapter: str
    port: str
    firmware: str | None
    kind: str | None
    board: str | None
    state: str | None
    rate: str | None
    layer: str | None


AUTOFS = "autofs"
"""The type of the mount point of an automounter."""


class Mount(StrictModel):
    """A mounted file system."""

    source: str
    target: str
    kind: str
    options: str


def size(text: str) -> int:
    """Return the bytes of ``512K``, ``16384 kB``, ``32 GB``, all powers of two.

    Raises:
        ValueError: the text is not a size.
    """
    match = re.fullmatch(r"(\d+)\s*([A-Za-z]*)", text.strip())
    if match is None or match[2].lower() not in UNITS:
        raise ValueError(f"not a size: {text!r}")
    return int(match[1]) * UNITS[match[2].lower()]


def read_caches(lines: Iterable[str], usable: Collection[int]) -> tuple[Cache, ...]:
    """Return the caches that serve a usable processor, from lines ``L2 Unified 1024K 0-1``."""
    count: dict[tuple[int, str, int], int] = {}
    for line in lines:
        words = line.split()
        if len(words) == 4 and not cpu_list(words[3]).isdisjoint(usable):
            key = int(words[0].removeprefix("L")), words[1], size(words[2])
            count[key] = count.get(key, 0) + 1
    return tuple(
        Cache(level=level, kind=kind, bytes=bytes_, instances=number)
        for (level, kind, bytes_), number in sorted(count.items())
    )


def read_numa(nodes: Mapping[str, Mapping[str, str]]) -> tuple[NumaDomain, ...]:
    """Return the NUMA domains, in the order of their numbers."""
    domains = [
        NumaDomain(
            index=int(name.removeprefix("node")),
            cpus=tuple(sorted(cpu_list(values.get("cpulist", "")))),
            memory_bytes=size(values.get("meminfo", "0")),
            distances=tuple(map(int, values.get("distance", "").split())),
        )
        for name, values in nodes.items()
    ]
    return tuple(sorted(domains, key=lambda domain: domain.index))


def read_dimms(lines: Iterable[str]) -> tuple[tuple[Dimm, ...], int]:
    """Return the modules and the number of empty slots, from ``dmidecode -t memory``."""
    devices: list[dict[str, str]] = []
    in_device = False
    for line in lines:
        if not line.startswith(("\t", " ")):
            in_device = line.strip() == "Memory Device"
            if in_device:
                devices.append({})
        elif in_device:
            key, _, value = line.strip().partition(":")
            devices[-1].setdefault(key, value.strip())
    filled = [device for device in devices if device.get("Size", "")[:1].isdigit()]
    return tuple(map(_dimm, filled)), len(devices) - len(filled)


def _dimm(device: Mapping[str, str]) -> Dimm:
    def known(key: str) -> str | None:
        value = device.get(key, "")
        return None if value.lower() in EMPTY else value

    def speed(*keys: str) -> int | None:
        text = next((value for key in keys if (value := known(key))), "")
        return int(text.split()[0]) if text[:1].isdigit() else None

    return Dimm(
        locator=device.get("Locator", "unknown"),
        bytes=size(device["Size"]),
        kind=known("Type"),
        part_number=known("Part Number"),
        serial=known("Serial Number"),
        manufacturer=known("Manufacturer"),
        rated=speed("Speed"),
        configured=speed("Configured Memory Speed", "Configured Clock Speed"),
    )


def read_nics(nics: Mapping[str, Mapping[str, str]]) -> tuple[Nic, ...]:
    """Return the network interfaces. A driver that does not report the speed has -1."""

    def link(values: Mapping[str, str], which: str) -> str | None:
        speed, width = values.get(f"{which}_link_speed"), values.get(f"{which}_link_width")
        return f"x{width} at {speed}" if speed and width else None

    def number(values: Mapping[str, str], key: str) -> int | None:
        return int(values[key]) if values.get(key, "").isdecimal() else None

    return tuple(
        Nic(
            name=name,
            driver=values.get("driver") or None,
            firmware=values.get("firmware"),
            state=values.get("operstate"),
            megabits=number(values, "speed"),
            mtu=number(values, "mtu"),
            link=link(values, "current"),
            link_best=link(values, "max"),
        )
        for name, values in sorted(nics.items())
    )


def read_ports(fabric: Mapping[str, Mapping[str, str]]) -> tuple[Port, ...]:
    """Return the ports of the fabric, each with the firmware of its adapter."""
    ports = []
    for name, values in sorted(fabric.items()):
        adapter, slash, port = name.partition("/")
        if slash:
            of_adapter = fabric.get(adapter, {})
            ports.append(
                Port(
                    adapter=adapter,
                    port=port,
                    firmware=of_adapter.get("fw_ver"),
                    kind=of_adapter.get("hca_type"),
                    board=of_adapter.get("board_id"),
                    state=values.get("state"),
                    rate=values.get("rate"),
                    layer=values.get("link_layer"),
                )
            )
    return tuple(ports)


def read_mounts(lines: Iterable[str]) -> tuple[Mount, ...]:
    """Return the mounts in lines of ``/proc/mounts``, where white space in names is octal."""

    def unescaped(word: str) -> str:
        return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), word)

    return tuple(
        Mount(
            source=unescaped(words[0]), target=unescaped(words[1]), kind=words[2], options=words[3]
        )
        for words in (line.split() for line in lines)
        if len(words) >= 4
    )

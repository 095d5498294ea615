"""The parts of a node: caches, memory domains, DIMMs, network adapters, mounts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, TypeVar

from proofmark.cases.vocabulary import MemoryKind
from proofmark.common.shared_models import StrictModel
from proofmark.common.text import whole_number
from proofmark.site.node.cpu import cpu_list
from proofmark.site.node.probe_text import Unread

T = TypeVar("T")

_PREFIXES = "kmgtpez"
UNITS: dict[str, int] = {"": 1, "b": 1, "byte": 1, "bytes": 1} | {
    f"{prefix}{rest}": 1024**power
    for power, prefix in enumerate(_PREFIXES, start=1)
    for rest in ("", "b", "ib")
}
"""Factors of sizes by unit. dmidecode 3.7 prints GiB, and earlier versions GB for the same."""
EMPTY = {"", "unknown", "not specified", "none", "no dimm", "n/a"}
NO_MODULE = {"", "no module installed", "not installed", "none", "0", "0 bytes", "0 b"}
"""The sizes of a slot without a module."""
SLINGSHOT_DRIVER = "cxi_ss1"
"""The driver of the adapters of Slingshot 11, which are network interfaces without a port."""
UNKNOWN_SPEEDS = (None, -1, 2**16 - 1, 2**32 - 1)
"""The speeds that drivers report for a link without a speed; old kernels print them unsigned."""


class ReportedCache(StrictModel):
    """The caches of one level and kind that serve processors which may be used."""

    level: int
    kind: str
    bytes: int
    instances: int


class ReportedDomain(StrictModel):
    """A NUMA domain. A domain without processors is a separate memory (MCDRAM in Flat mode)."""

    index: int
    cpus: tuple[int, ...]
    memory_bytes: int
    distances: tuple[int, ...] = ()


class Dimm(StrictModel):
    """A memory module. `rated` is its nominal and `configured` its current speed, in MT/s.

    `check_bits` are the bits beside those of the data: 8 of 72 with ECC, 0 without.
    """

    locator: str
    bytes: int | None = None
    kind: str | None = None
    part_number: str | None = None
    serial: str | None = None
    manufacturer: str | None = None
    rated: int | None
    configured: int | None
    check_bits: int | None = None

    @property
    def memory(self) -> MemoryKind:
        """The kind of its memory, by the type and the locator of SMBIOS 3.2 and later.

        ``Logical non-volatile device`` is persistent memory, ``HBM2`` a stack in the package of a
        processor. A module behind CXL has the type of its chips, and its locator names CXL.
        """
        kind = (self.kind or "").casefold()
        if "cxl" in f"{kind} {self.locator.casefold()}":
            return "cxl"
        return "nvm" if "non-volatile" in kind else "hbm" if kind.startswith("hbm") else "ddr"


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
    numa: int | None = None


class Port(StrictModel):
    """A port of an InfiniBand or Omni-Path adapter. `slot` is the PCI address of the adapter.

    `link` and `link_best` are the width and speed of its slot, and those that the card can have.
    """

    adapter: str
    port: str
    firmware: str | None = None
    kind: str | None = None
    board: str | None = None
    state: str | None
    rate: str | None
    layer: str | None
    numa: int | None = None
    slot: str | None = None
    link: str | None = None
    link_best: str | None = None


class Accelerator(StrictModel):
    """A GPU or another processing accelerator, by its PCI address.

    Attributes:
        slot: the PCI address.
        kind: its vendor and device by their PCI numbers (``10de:2330``), or the name of its driver.
        driver: the driver that uses it.
        answers: whether it answers: one that fell off the bus keeps its files in /sys.
        lanes: the width of its PCIe link now.
        gt_per_s: the rate that device and port can both have, in GT/s. An idle device lowers the
            rate that it uses.
        ecc: whether its memory has ECC; None if no tool says so.
        numa: its NUMA domain.
    """

    slot: str
    kind: str
    driver: str | None
    answers: bool
    lanes: int | None
    gt_per_s: float | None
    ecc: bool | None
    numa: int | None = None


AUTOFS = "autofs"
"""The type of the mount point of an automounter."""


class MountedFileSystem(StrictModel):
    """A mounted file system. `bytes` is its whole size; None if it is not known."""

    source: str
    target: str
    kind: str
    options: str
    bytes: int | None = None


@lru_cache(maxsize=4096)
def size(text: str) -> int:
    """Return the bytes of ``512K``, ``16384 kB``, ``32 GB``, ``32 GiB``, all powers of two.

    Raises:
        ValueError: the text is not a size.
    """
    match = re.fullmatch(r"(\d{1,20})\s*([A-Za-z]*)", text.strip(), re.ASCII)
    if match is None or match[2].lower() not in UNITS:
        raise ValueError(f"not a size: {text!r}")
    return int(match[1]) * UNITS[match[2].lower()]


def read_caches(
    lines: Iterable[str], unread: Unread, usable: Collection[int]
) -> tuple[ReportedCache, ...]:
    """Return the caches that serve a usable processor, from lines ``L2 Unified 1024K 0-1``."""

    def cache(line: str) -> tuple[int, str, int] | None:
        level, kind, bytes_, cpus = line.split()
        if cpu_list(cpus).isdisjoint(usable):
            return None
        return int(level.removeprefix("L")), kind, size(bytes_)

    count = Counter(filter(None, (unread.read("caches", line, cache) for line in lines)))
    return tuple(
        ReportedCache(level=level, kind=kind, bytes=bytes_, instances=number)
        for (level, kind, bytes_), number in sorted(count.items())
    )


def read_numa(
    nodes: Mapping[str, Mapping[str, str]], unread: Unread
) -> tuple[ReportedDomain, ...] | None:
    """Return the NUMA domains, in the order of their numbers.

    None: the number, the processors or the memory of a domain cannot be read.
    """
    domains = []
    for name, values in nodes.items():

        def value(key: str, reader: Callable[[str], T], of: str = name) -> T | None:
            return unread.read(f"numa.{of} {key}", nodes[of].get(key), reader)

        number = name.removeprefix("node")
        index = whole_number(number) if len(number) < 8 else None
        if index is None:
            unread.refuse("numa", number)
        cpus = value("cpulist", cpu_list) if "cpulist" in values else frozenset()
        memory = value("meminfo", size) if "meminfo" in values else 0
        distances = value("distance", lambda text: tuple(map(int, text.split())))
        if index is None or cpus is None or memory is None:
            return None
        domains.append(
            ReportedDomain(
                index=index,
                cpus=tuple(sorted(cpus)),
                memory_bytes=memory,
                distances=distances or (),
            )
        )
    return tuple(sorted(domains, key=lambda domain: domain.index))


def read_dimms(lines: Iterable[str], unread: Unread) -> tuple[tuple[Dimm, ...], int]:
    """Return the modules and the number of empty slots, from ``dmidecode -t memory``.

    A module of unknown size is a module.
    """
    devices = smbios_devices(lines, "Memory Device")
    filled = [device for device in devices if device.get("Size", "").lower() not in NO_MODULE]
    return tuple(_dimm(device, unread) for device in filled), len(devices) - len(filled)


def smbios_devices(lines: Iterable[str], title: str) -> list[dict[str, str]]:
    """Return the structures of this title in the output of ``dmidecode``: values by their key."""
    devices: list[dict[str, str]] = []
    in_device = False
    for line in lines:
        if not line.startswith(("\t", " ")):
            in_device = line.strip() == title
            if in_device:
                devices.append({})
        elif in_device:
            key, _, value = line.strip().partition(":")
            devices[-1].setdefault(key, value.strip())
    return devices


def _bits(text: str) -> int:
    """Return the number of ``72 bits``."""
    return int(text.removesuffix("bits"))


def _dimm(device: Mapping[str, str], unread: Unread) -> Dimm:
    locator = device.get("Locator", "unknown")

    def known(key: str) -> str | None:
        value = device.get(key, "")
        return None if value.lower() in EMPTY else value

    def value(reader: Callable[[str], int], *keys: str) -> int | None:
        key = next((key for key in keys if known(key)), keys[0])
        return unread.read(f"dimms.{locator} {key}", known(key), reader)

    total, data = value(_bits, "Total Width"), value(_bits, "Data Width")
    return Dimm(
        locator=locator,
        bytes=value(size, "Size"),
        kind=known("Type"),
        part_number=known("Part Number"),
        serial=known("Serial Number"),
        manufacturer=known("Manufacturer"),
        rated=value(_megatransfers, "Speed"),
        configured=value(_megatransfers, "Configured Memory Speed", "Configured Clock Speed"),
        check_bits=None if total is None or data is None else total - data,
    )


def _megatransfers(text: str) -> int:
    """Return the number of ``2666 MT/s``, ``1333 MHz`` or ``1333 MHz (0.8 ns)``.

    Raises:
        ValueError: it is no positive speed of this unit.
    """
    match = re.match(r"(\d{1,9}) ?(MT/s|MHz)\b", text, re.ASCII)
    if match is None or not int(match[1]):
        raise ValueError(f"not a speed: {text!r}")
    return int(match[1])


def read_nics(nics: Mapping[str, Mapping[str, str]], unread: Unread) -> tuple[Nic, ...]:
    """Return the network interfaces. A driver that does not report the speed has -1."""

    def megabits(name: str) -> int | None:
        value = unread.read(f"nics.{name} speed", nics[name].get("speed"), int)
        return None if value in UNKNOWN_SPEEDS else value

    return tuple(
        Nic(
            name=name,
            driver=values.get("driver") or None,
            firmware=_stated(values.get("firmware")),
            state=values.get("operstate"),
            megabits=megabits(name),
            mtu=unread.read(f"nics.{name} mtu", values.get("mtu"), int),
            **_slot(values),
        )
        for name, values in sorted(nics.items())
    )


OF_PORT = {"state": "state", "rate": "rate", "layer": "link_layer"}
OF_ADAPTER = {"firmware": "fw_ver", "kind": "hca_type", "board": "board_id", "slot": "slot"}
"""The values of `Port`, and the names of the files of a port and of its adapter in sysfs."""


def read_ports(fabric: Mapping[str, Mapping[str, str]]) -> tuple[Port, ...]:
    """Return the ports of the fabric, each with the firmware of its adapter."""
    ports = []
    for name, values in sorted(fabric.items()):
        adapter, slash, port = name.partition("/")
        if slash:
            above = fabric.get(adapter, {})
            own: dict[str, Any] = {key: values.get(file) for key, file in OF_PORT.items()}
            own |= {key: above.get(file) for key, file in OF_ADAPTER.items()}
            ports.append(Port(adapter=adapter, port=port, **own, **_slot(above)))
    return tuple(ports)


def _slot(values: Mapping[str, str]) -> dict[str, Any]:
    """Return the domain of an adapter, and the width and speed of its slot, now and at most.

    The domain is None if Linux does not know it (-1). A link is ``x16 at 8.0 GT/s PCIe``; Linux has
    0 or 255 lanes, or an unknown speed, of a link that it cannot read.
    """
    found: dict[str, Any] = {"numa": _numa_domain(values)}
    for key, which in (("link", "current"), ("link_best", "max")):
        speed, width = values.get(f"{which}_link_speed"), values.get(f"{which}_link_width")
        known = width not in (None, "0", "255") and (_stated(speed) or width == f"{NO_ANSWER}")
        found[key] = f"x{width} at {speed}" if speed and known else None
    return found


def _stated(text: str | None) -> str | None:
    """Return the text; None for a word that stands for no value."""
    return None if text is None or text.strip(" []").lower() in EMPTY else text


def _numa_domain(values: Mapping[str, str]) -> int | None:
    """Return the NUMA domain of an adapter; None if Linux does not know it (-1)."""
    return whole_number(values.get("numa_node", ""))


def is_below(path: str, folder: str) -> bool:
    """Return whether an absolute path is `folder` or below it."""
    return f"{path}/".startswith(f"{folder.rstrip('/')}/")


def mount_of(path: str, mounts: Iterable[MountedFileSystem]) -> MountedFileSystem | None:
    """Return the mount of `path`: the deepest one, and the last of several at the same place."""
    above = [each for each in mounts if is_below(path, each.target)]
    return max(reversed(above), key=lambda each: len(each.target.rstrip("/")), default=None)


def mount_text(kind: str, source: str) -> str:
    """Return the file system of a mount in words; `kind` is empty if there is no mount."""
    return f"{kind} ({source})" if kind else "no mount point of the node (a chroot?)"


VGA = "0x0300"
"""The PCI class of a display: of a GPU, or of the console of a management controller."""
VENDORS_OF_GPUS = ("0x10de", "0x1002", "0x8086")
"""Vendors whose displays are GPUs. 3D controllers and accelerators are counted of any vendor."""
NO_ANSWER = 63
"""The width of the link of a device that fell off the bus: all bits of its register are set."""
ECC = {"enabled": True, "disabled": False}


def read_accelerators(
    devices: Mapping[str, Mapping[str, str]], unread: Unread
) -> tuple[Accelerator, ...]:
    """Return the accelerators, by their PCI address; displays of consoles are none."""

    def accelerator(slot: str, values: Mapping[str, str]) -> Accelerator:
        lanes = unread.read(f"accelerators.{slot} width", values.get("current_link_width"), int)
        rates = [
            unread.read(f"accelerators.{slot} {key}", values.get(key), _gigatransfers)
            for key in ("max_link_speed", "port_link_speed")
        ]
        numbers = {key: values.get(key, "?").removeprefix("0x") for key in ("vendor", "device")}
        return Accelerator(
            slot=slot,
            kind=values.get("model") or f"{numbers['vendor']}:{numbers['device']}",
            driver=values.get("driver"),
            answers=lanes != NO_ANSWER,
            lanes=lanes or None,
            gt_per_s=min(filter(None, rates), default=None),
            ecc=ECC.get(values.get("ecc", "").lower()),
            numa=_numa_domain(values),
        )

    return tuple(
        accelerator(slot, values)
        for slot, values in sorted(devices.items())
        if not values.get("class", "").startswith(VGA) or values.get("vendor") in VENDORS_OF_GPUS
    )


def _gigatransfers(text: str) -> float | None:
    """Return the number of ``32.0 GT/s PCIe``; None for ``Unknown``, which is no rate.

    Raises:
        ValueError: it is another text.
    """
    if text == "Unknown":
        return None
    return float(text.removesuffix(" PCIe").removesuffix("GT/s"))


def read_mounts(
    lines: Iterable[str], sizes: Mapping[str, int] = MappingProxyType({})
) -> tuple[MountedFileSystem, ...]:
    """Return the mounts in lines of ``/proc/mounts``, where white space in names is octal.

    `sizes` are those of file systems in bytes, by the folder of the mount.
    """

    def unescaped(word: str) -> str:
        return re.sub(r"\\([0-3][0-7]{2})", lambda match: chr(int(match[1], 8)), word)

    return tuple(
        MountedFileSystem(
            source=unescaped(words[0]),
            target=unescaped(words[1]),
            kind=words[2],
            options=words[3],
            bytes=sizes.get(words[1]),
        )
        for words in (line.split() for line in lines)
        if len(words) >= 4
    )

"""The limits of processors and links, and the shares of a peak that are typical of a processor.

Tables in data files, with a source for each entry.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from math import log2
from typing import Annotated, Literal

from pydantic import Field

from proofmark.cases.vocabulary import Text
from proofmark.common.shared_models import StrictModel
from proofmark.common.yaml_models import shipped_data

Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(gt=0)]
Tolerance = Annotated[float, Field(gt=0, lt=0.5)]
Day = Annotated[str, Field(pattern=r"^\d{4}(-\d{2}){0,2}$")]
"""The date of a source: a year, a month or a day of ISO 8601."""
LOWEST_TRIAD = 0.69
"""The lowest public Triad of STREAM ÷ bandwidth of DDR and MCDRAM (paper P1), on which floors of
cases are based."""
LEAST_OF_IT, ALL_OF_IT = 0.8, 1.05
"""Firmware and kernel reserve less of the memory in a package, and show not more than all."""
Blas = Literal["aocl", "blis", "mkl", "nvpl", "openblas"]


class TypicalConditions(StrictModel):
    """What was measured for a typical figure. A condition that its source does not state is absent.

    Attributes:
        system: the machine, and how it was measured.
        bare_metal: whether the nodes were real, not virtual.
        threads: ``cores`` if each core had one thread, else the number of threads of a node.
        streaming_stores: whether the stores bypassed the caches.
        blas: the libraries that reach the figure.
        nodes: of the largest run of HPL. More nodes can be slower.
        tcp: whether messages between nodes passed TCP. HPL over TCP reaches half of the figure.
    """

    system: Text
    bare_metal: bool | None = None
    threads: Literal["cores"] | Count | None = None
    streaming_stores: bool | None = None
    blas: tuple[Blas, ...] = ()
    nodes: Count | None = None
    tcp: bool | None = None


class Typical(StrictModel):
    """A share of a peak that a healthy node reaches, as a public source states it.

    A healthy machine under these conditions reaches ``ratio`` - ``tolerance`` or more. HPL does so
    with a matrix that fills most of the memory. The tolerance is half of the range of the sources.
    If there is one value, the kit adds 0.05 for HPL of a node, and 0.1 for HPL of a whole system,
    because HPL of one node is better. For Triad it adds 0.1: two sites with Broadwell, the same
    memory and streaming stores differ by 0.07 (0.775 and 0.846).
    """

    ratio: Annotated[float, Field(gt=0, lt=1.5)]
    tolerance: Tolerance
    conditions: TypicalConditions
    source: Text
    date: Day


class SolderedMemory(StrictModel):
    """Memory that is soldered beside a processor, and has no modules.

    Its rate follows from its size. The name in ``/proc/cpuinfo`` is that of several products: the
    number of cores says which one it is.

    Attributes:
        cores: of the socket.
        bytes: the largest memory of a socket with this rate.
    """

    cores: Count
    bytes: Count
    bytes_per_s: Positive


class ProcessorLimits(StrictModel):
    """The limits of one socket: frequency in Hz, DDR in MT/s, sizes in bytes, MCDRAM in bytes/s.

    Attributes:
        name: the name in ``/proc/cpuinfo``, as `NodeFacts.cpu_model` has it; `product_name` finds
            other spellings of it.
        also: further names: variants for one socket, and products whose core ``/proc/cpuinfo``
            names instead (Arm).
        architecture: archspec's name of the microarchitecture, or of the nearest one that it has.
        cores: of one socket.
        base_hz: the nominal frequency.
        avx_hz: the highest frequency of all cores under the widest vector instructions.
        turbo_hz: the highest frequency of a single core under any instructions.
        turbo_source: the source of `turbo_hz`, if it is not `source`.
        flop_per_cycle: in double precision, of one core.
        l3_bytes: the caches of the last level of the socket.
        channels: of the memory.
        ddr: the fastest supported module, with one module in each channel.
        fast_memory_bytes_per_s: bandwidth of the in-package memory.
        fast_memory_bytes: its size.
        fast_memory_triad: the lowest public Triad of STREAM ÷ `fast_memory_bytes_per_s`, if it is
            below `LOWEST_TRIAD`: the cores cannot use more of it.
        soldered: other memory without modules, the smallest first.
        side_cache_bytes_per_s: what it gives as a cache of the other memory, with data that fit.
        date: of `source`.
        checked: a second source with the same cores and frequencies, or empty.
        triad: Triad of STREAM ÷ peak bandwidth of the memory, one for each set of conditions.
        hpl: HPL ÷ nominal peak (cores × `flop_per_cycle` × `base_hz`), one for each set.
    """

    name: Text
    also: tuple[Text, ...] = ()
    architecture: Text
    cores: Count | None = None
    base_hz: Positive | None = None
    avx_hz: Positive | None = None
    turbo_hz: Positive | None = None
    turbo_source: str = ""
    flop_per_cycle: Count | None = None
    l3_bytes: Count | None = None
    channels: Count | None = None
    ddr: Count | None = None
    fast_memory_bytes_per_s: Positive | None = None
    fast_memory_bytes: Count | None = None
    fast_memory_triad: Annotated[float, Field(gt=0, lt=LOWEST_TRIAD)] = LOWEST_TRIAD
    soldered: tuple[SolderedMemory, ...] = ()
    side_cache_bytes_per_s: Positive | None = None
    source: Text
    date: Day
    checked: str = ""
    triad: tuple[Typical, ...] = ()
    hpl: tuple[Typical, ...] = ()

    def only_in_package(self, memory: int, sockets: int) -> bool:
        """Return whether `memory`, in bytes, is that in the packages of a node and no other."""
        size = (self.fast_memory_bytes or 0) * sockets
        return bool(size) and (self.ddr is None or LEAST_OF_IT * size <= memory <= ALL_OF_IT * size)


class LinkMeasurement(StrictModel):
    """What MPI reaches over one port, as a public source states it; rates of one direction.

    Attributes:
        lanes: of the port.
        latency_s: of a small message. It has no tolerance: hops and processors change it by half.
        bytes_per_s: of messages of 1 MiB or more, many of them under way (osu_bw).
        tolerance: a share of the data rate of the port. Healthy ports reach the share of this
            source less the tolerance, or more. If the source has no range, the kit takes 0.1.
        bare_metal: whether the nodes were real, not virtual.
        tcp: whether the messages passed TCP.
    """

    lanes: Count
    latency_s: Positive | None = None
    bytes_per_s: Positive | None = None
    tolerance: Tolerance = 0.1
    bare_metal: bool
    tcp: bool = False
    system: Text
    source: Text
    date: Day


class LaneLimit(StrictModel):
    """The limits of one lane of a port: one direction in bytes/s, and the latency of a message.

    The name of the speed can be empty; `shown_gbit` is the number of sysfs for a lane.
    """

    speed: str
    shown_gbit: Positive
    lane_bytes_per_s: Positive
    source: Text
    date: Day
    latency_s: Positive
    latency_source: Text
    mpi: tuple[LinkMeasurement, ...] = ()


class EthernetLimit(StrictModel):
    """The limits of an Ethernet port: one direction in bytes/s, and the latency of a message.

    Attributes:
        megabits: the number in ``/sys/class/net/*/speed``.
        names: the networks that have such ports.
    """

    megabits: Count
    names: tuple[Text, ...]
    bytes_per_s: Positive
    source: Text
    date: Day
    latency_s: Positive | None = None
    latency_source: str = ""
    mpi: tuple[LinkMeasurement, ...] = ()


class CardLimit(StrictModel):
    """What all ports of a network card carry together in one direction, in bytes/s.

    Attributes:
        kinds: the texts of ``hca_type`` in sysfs.
        name: of the product.
    """

    kinds: tuple[Text, ...]
    name: Text
    bytes_per_s: Positive
    source: Text
    date: Day


class LinkTable(StrictModel):
    """The file ``links.yml``."""

    lanes: tuple[LaneLimit, ...]
    ethernet: tuple[EthernetLimit, ...]
    cards: tuple[CardLimit, ...]


@dataclass(frozen=True)
class LinkLimit:
    """The limits of a port: one direction in bytes/s, and the latency of a small message in s.

    The latency is None if no source states it, and so is `mpi`, the rate of large messages.
    """

    bytes_per_s: float
    source: str
    latency_s: float | None
    latency_source: str
    mpi: LinkMeasurement | None = None


LANES = (1, 2, 4, 8, 12)
KNOWN_RATES = "the text of sysfs for 1 to 12 lanes, SDR to XDR, as '200 Gb/sec (4X HDR)'"
ETHERNET = "Ethernet"
"""The link layer of an adapter with RoCE or iWARP, in sysfs."""
SLINGSHOT = "Slingshot"
"""The link layer of an adapter of Slingshot 11. Its ports have the rates of Ethernet."""
_RATE = re.compile(r"(\d+(?:\.\d)?) Gb/sec \((\d{1,2})X(?: ([A-Z]+\d*))?\)", re.ASCII)
_NUMBER = re.compile(r"(\d{1,6}(?:\.\d)?) Gb/sec\b", re.ASCII)
_PCIE = re.compile(r"x(\d{1,2}) at (\d{1,3}(?:\.\d)?) GT/s", re.ASCII)
_CODING = ((5.0, 8 / 10), (32.0, 128 / 130), (64.0, 236 / 256))
"""The share of the bits of a lane that are data, up to each speed in GT/s."""
_PACKET = 256 / (256 + 26)
_MARKS = re.compile(r"\((?:r|tm|c)\)|[®™©]", re.ASCII | re.IGNORECASE)
_VERSION = re.compile(r"(?<=\d)v(?=\d\b)", re.ASCII | re.IGNORECASE)
"""The version of a Xeon that is written without a space: ``E5-2680v4``."""
_REMARK = re.compile(r"^\s*\d+ ?x\s|\((?!architected\))[^()]*\)", re.ASCII)
"""The number of sockets, and a text in brackets. "architected" stays: the cores of a partition
of PowerVM differ."""
_NO_NAME = re.compile(
    r"cpus?|processors?|@|\d+(?:\.\d+)?ghz"
    r"|(?:\d+|dual|quad|six|eight|twelve)-cores?",
    re.ASCII,
)
"""Words that are no part of the name of a product, in small letters: the number of cores, the
frequency."""
_MAKERS = {"xeon": "intel", "epyc": "amd", "opteron": "amd"}
"""The first word of a name that lacks its maker, and the maker."""
_CORE = re.compile(r"\S+ part \S+", re.ASCII)
"""The name of a core, which is all that ``/proc/cpuinfo`` of an Arm processor has."""
PARTITIONED = " (architected)"
"""The end of the name of a POWER processor below PowerVM."""


@cache
def processors() -> tuple[ProcessorLimits, ...]:
    """Return the table of processors."""
    return shipped_data("proofmark.site", "processors.yml", tuple[ProcessorLimits, ...])


@cache
def links() -> LinkTable:
    """Return the table of links."""
    return shipped_data("proofmark.site", "links.yml", LinkTable)


class Microarchitecture(StrictModel):
    """The cores of processors by the numbers in ``/proc/cpuinfo``: all products have these units.

    Attributes:
        needs: a flag that the processor shows, if its BIOS did not switch the units off.
        flop_per_cycle: in double precision, of one core.
    """

    name: Text
    vendor: Text
    family: Count
    models: tuple[Count, ...]
    needs: str = ""
    flop_per_cycle: Count
    source: Text


@cache
def microarchitectures() -> dict[tuple[str, int | None, int | None], Microarchitecture]:
    """Return the table of microarchitectures by vendor, family and model."""
    rows = shipped_data("proofmark.site", "microarchitectures.yml", tuple[Microarchitecture, ...])
    of_model: dict[tuple[str, int | None, int | None], Microarchitecture] = {}
    for row in rows:
        of_model |= {(row.vendor, row.family, model): row for model in row.models}
    return of_model


@lru_cache(maxsize=1024)
def product_name(text: str) -> str:
    """Return the one name of a processor, in small letters, for each spelling of it.

    "Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz" of ``/proc/cpuinfo`` and "2 x Intel Xeon Gold 6148"
    are both ``intel xeon gold 6148``. For Arm it is the vendor and the number of the core, or the
    product: `same_processor` knows which belong together.
    """
    plain = _VERSION.sub(" v", _MARKS.sub(" ", text)).replace("×", "x").casefold()
    words = [word for word in _REMARK.sub(" ", plain).split() if not _NO_NAME.fullmatch(word)]
    if words and words[0] in _MAKERS:
        words.insert(0, _MAKERS[words[0]])
    family, rest = words[:2], words[2:]
    # Sandy Bridge was printed as "E5-2670 0", and a Xeon 6 has its number in its family.
    if family == ["intel", "xeon"] and len(rest) > 1:
        rest = rest[:-1] if rest[-1] == "0" else rest[1:] if rest[0] == "6" else rest
    if family[:1] == ["ibm"]:
        family = family[1:]
    return " ".join((*family, *rest))


@cache
def _by_product() -> dict[str, ProcessorLimits]:
    """Return the rows of the table by each of their names."""
    rows: dict[str, ProcessorLimits] = {}
    for row in processors():
        rows |= dict.fromkeys(map(product_name, (row.name, *row.also)), row)
    return rows


def processor(model: str) -> ProcessorLimits | None:
    """Return the limits of a processor by any spelling of its name; None if unknown."""
    return _by_product().get(product_name(model))


def is_product(name: str) -> bool:
    """Return whether a name is that of one product: it is in the table, or has a number.

    "quad-core AMD Opteron (Barcelona)" names a family.
    """
    return processor(name) is not None or any(map(str.isdigit, product_name(name)))


@lru_cache(maxsize=1024)
def same_processor(stated: str, found: str) -> bool | None:
    """Return whether a node has the stated processor; None if that cannot be known.

    Args:
        stated: the name of a product, in any spelling.
        found: the name in ``/proc/cpuinfo``. That of Arm names a core of several products.
    """
    names = [product_name(name).removesuffix(PARTITIONED) for name in (stated, found)]
    if names[0] == names[1]:
        return True
    row, other = processor(stated), processor(found)
    if _CORE.fullmatch(product_name(found)) and row is not None and row is other:
        return True
    return None if row is None else False


@lru_cache(maxsize=256)
def link(rate: str, layer: str | None = None) -> LinkLimit | None:
    """Return the limit of a port by the text of its rate in sysfs; None if no table has it.

    The drivers of Ethernet ports name the speed of InfiniBand with the same number: 40 Gb/s has
    the coding of Ethernet, not that of QDR.

    Args:
        rate: ``100 Gb/sec (4X EDR)``.
        layer: the link layer of the port, as sysfs names it.
    """
    if layer == SLINGSHOT:
        return ethernet(round(1000 * (shown_gbit(rate) or 0)))
    match = _RATE.fullmatch(" ".join(rate.split()))
    if match is None or int(match[2]) not in LANES:
        return None
    shown, count = float(match[1]), int(match[2])
    if layer == ETHERNET:
        return ethernet(round(1000 * shown))
    for row in links().lanes:
        if row.speed == (match[3] or "") and row.shown_gbit * count == shown:
            return LinkLimit(
                count * row.lane_bytes_per_s,
                f"{row.source}, {count} lanes",
                row.latency_s,
                row.latency_source,
                _large_messages(row.mpi, count),
            )
    return None


def _large_messages(rows: Iterable[LinkMeasurement], lanes: int = 0) -> LinkMeasurement | None:
    """Return the slowest of the rates that sources state for so many lanes; None if none does.

    0 is any number of lanes. TCP is left out. Real nodes come before virtual ones.
    """
    known = [row for row in rows if not row.tcp and lanes in (0, row.lanes)]
    real = [row for row in known if row.bare_metal] or known
    rates = [(row.bytes_per_s, row) for row in real if row.bytes_per_s]
    return min(rates, key=lambda each: each[0], default=(None, None))[1]


@lru_cache(maxsize=256)
def ethernet(megabits: int) -> LinkLimit | None:
    """Return the limit of an Ethernet port of this speed; None if no table has it."""
    for row in links().ethernet:
        if row.megabits == megabits:
            mpi = _large_messages(row.mpi)
            return LinkLimit(row.bytes_per_s, row.source, row.latency_s, row.latency_source, mpi)
    return None


@lru_cache(maxsize=64)
def card(kind: str) -> CardLimit | None:
    """Return the limit of a network card by its ``hca_type``; None if no table has it."""
    return next((row for row in links().cards if kind in row.kinds), None)


@lru_cache(maxsize=64)
def pcie_bytes_per_s(link: str) -> float | None:
    """Return what a slot carries in one direction in bytes/s; None if `link` has no known speed.

    The coding takes 8 of 10 bits up to 5 GT/s, 128 of 130 up to 32 GT/s, and 236 of 256 bytes of a
    flit at 64 GT/s. A packet of 256 bytes of data has 26 bytes of header, check and frame.
    Source: PCI Express Base Specification 6.0, sections 2.2, 3.6 and 4.2.

    Args:
        link: ``x16 at 8.0 GT/s PCIe``.
    """
    match = _PCIE.match(link)
    coding = next((part for most, part in _CODING if match and float(match[2]) <= most), None)
    if match is None or coding is None:
        return None
    return int(match[1]) * float(match[2]) * 1e9 / 8 * coding * _PACKET or None


def lanes_of(link: str) -> int:
    """Return the lanes of ``x16 at 8.0 GT/s PCIe``; 0 if `link` is not known."""
    match = _PCIE.match(link)
    return int(match[1]) if match else 0


def port_bound(rate: str, layer: str | None = None) -> float | None:
    """Return the bytes/s that a port cannot exceed in one direction; None if sysfs has no number.

    A rate that no table has gives the number in its text: ``300 Gb/sec (3X NDR)`` is 37.5 GB/s.
    """
    known = link(rate, layer)
    if known is not None:
        return known.bytes_per_s
    shown = shown_gbit(rate)
    return shown and shown * 1e9 / 8


def shown_gbit(rate: str) -> float | None:
    """Return the number of Gb/s in the text of a rate; None if it has none."""
    shown = _NUMBER.match(" ".join(rate.split()))
    return float(shown[1]) or None if shown else None


def link_of_gbit(gbit: float, layer: str | None = None) -> LinkLimit | None:
    """Return the limit of a port whose rate has this number; None if no table has it.

    Of two links with the same number it is the slower one: QDR, not FDR10.
    """
    if layer in (ETHERNET, SLINGSHOT):
        return ethernet(round(1000 * gbit))
    found = []
    for row in links().lanes:
        found += [link(f"{gbit:g} Gb/sec ({count}X {row.speed})") for count in (4, 2, 1)]
    return min(filter(None, found), key=lambda limit: limit.bytes_per_s, default=None)


Figure = Literal["hpl", "triad"]


class TypicalFamily(StrictModel):
    """A share that is typical of the processors of some microarchitectures.

    Attributes:
        of: the figure.
        architectures: archspec's names.
        channels: of the memory of a socket; None is any number.
        ddr: the fastest supported module in MT/s; None is any.
        least_cores: of a socket.
        least_l3_bytes: of a socket. Each compute die of EPYC has a part of it.
        cores: of a socket, for which `typical.ratio` is stated.
        per_doubling: what the ratio changes for twice the cores.
        typical: the share, and the conditions of its sources.
    """

    of: Figure
    architectures: tuple[Text, ...]
    channels: Count | None = None
    ddr: Count | None = None
    least_cores: Count
    least_l3_bytes: Count = 1
    cores: Count | None = None
    per_doubling: float = 0.0
    typical: Typical

    def covers(self, row: ProcessorLimits) -> bool:
        """Return whether a processor belongs to this family."""
        return (
            row.architecture in self.architectures
            and self.channels in (None, row.channels)
            and self.ddr in (None, row.ddr)
            and (row.cores or 0) >= self.least_cores
            and (row.l3_bytes or 0) >= self.least_l3_bytes
        )

    def typical_for(self, row: ProcessorLimits) -> Typical:
        """Return the share of a processor of this family."""
        if self.cores is None or row.cores is None:
            return self.typical
        change = self.per_doubling * log2(row.cores / self.cores)
        return self.typical.model_copy(update={"ratio": self.typical.ratio + change})


@cache
def families() -> tuple[TypicalFamily, ...]:
    """Return the table of families."""
    return shipped_data("proofmark.site", "typical_families.yml", tuple[TypicalFamily, ...])


def typical_shares(row: ProcessorLimits, of: Figure) -> tuple[Typical, ...]:
    """Return the typical shares of a processor: its own, then those of its family."""
    own = row.hpl if of == "hpl" else row.triad
    of_family = (each for each in families() if each.of == of and each.covers(row))
    return (*own, *(each.typical_for(row) for each in of_family))

"""The byte counters of the networks of a node, and the bytes that each network carried meanwhile.

``network.sh`` prints them. The kernel describes them in Documentation/ABI:
stable/sysfs-class-infiniband and testing/sysfs-class-net-statistics. Drivers with counters of
their own are efa (efa_verbs.c), bnxt_re (hw_counters.c) and irdma (hw.c) of Linux 6, and that of
Slingshot 11 (HPE, Cassini Performance Counters User Guide: ``hni_sts_tx_ok_octets``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

from proofmark.common.files import seconds_of
from proofmark.common.text import whole_number
from proofmark.site.fabric import Network
from proofmark.site.node.probe_text import NO_COUNT

Kind = Literal[
    "infiniband",
    "omni-path",
    "slingshot",
    "ethernet",
    "ip-over-infiniband",
    "ip-over-slingshot",
]

WORD_BYTES = 4
"""Unit of ``port_xmit_data`` of InfiniBand: a quarter of the octets."""
FLIT_BYTES = 8
"""Unit of ``port_xmit_data`` of the driver hfi1: flits of 64 bits, which it does not convert."""
OVER_FABRIC: Mapping[str, Kind] = {"32": "ip-over-infiniband", "slingshot": "ip-over-slingshot"}
"""The kind of an interface that sends IP over a fabric, by its type. 32: ``ARPHRD_INFINIBAND``."""


@dataclass(frozen=True)
class Carrier:
    """The counters of a port of an adapter, or of a network interface, in bytes.

    Attributes:
        name: the adapter (``mlx5_0``) or interface (``eth0``).
        total: bytes sent and received together; None if a counter cannot be read.
        lower: the interfaces below it, whose counters have the same bytes again.
    """

    name: str
    kind: Kind
    total: int | None
    lower: tuple[str, ...] = ()


@dataclass
class CounterSample:
    """The counters of a node at one time, by adapter and port or by interface.

    Attributes:
        date: UTC, ISO 8601.
        uptime: seconds since the boot of the node.
    """

    date: str
    uptime: float
    carriers: dict[str, Carrier]


@dataclass(frozen=True)
class Carried:
    """The bytes that one network carried to and from a node during a step, in both directions.

    The traffic of others is subtracted: its rate before the step times the seconds of the step.
    """

    name: str
    kind: Kind
    bytes: float


def read_samples(text: str) -> list[CounterSample]:
    """Return the samples in the output of ``network.sh``.

    Raises:
        ValueError: the output is not complete, or a line is damaged.
    """
    lines = text.splitlines()
    if not lines or lines[-1] != "end":
        raise ValueError("no line 'end'")
    samples = []
    for line in lines[:-1]:
        match line.split():
            case ["sample", date, uptime]:
                samples.append(CounterSample(date, seconds_of(float(uptime)), {}))
            case ["adapter", name, port, layer, sent, received] if samples:
                samples[-1].carriers[f"{name}/{port}"] = _adapter(name, layer, sent, received)
            case ["bytes", name, port, layer, sent, received] if samples:
                total = _total(sent, received, 1)
                samples[-1].carriers[f"{name}/{port}"] = Carrier(name, _layer_kind(layer), total)
            case ["interface", name, kind, sent, received, lower] if samples:
                below = () if lower == "-" else tuple(lower.split(","))
                of_kind, total = OVER_FABRIC.get(kind, "ethernet"), _total(sent, received, 1)
                samples[-1].carriers[name] = Carrier(name, of_kind, total, below)
            case _:
                raise ValueError(f"the line {line[:80]!r}")
    if not samples:
        raise ValueError("no sample")
    return samples


def _adapter(name: str, layer: str, sent: str, received: str) -> Carrier:
    if name.startswith("hfi1_"):
        return Carrier(name, "omni-path", _total(sent, received, FLIT_BYTES))
    return Carrier(name, _layer_kind(layer), _total(sent, received, WORD_BYTES))


def _layer_kind(layer: str) -> Kind:
    """Return the network of a port by its ``link_layer``; that of EFA, on Ethernet, is unknown."""
    if layer == "Slingshot":
        return "slingshot"
    return "ethernet" if layer in ("Ethernet", "Unknown") else "infiniband"


def _total(sent: str, received: str, unit: int) -> int | None:
    total = 0
    for text in (sent, received):
        count = whole_number(text)
        if count is None or NO_COUNT.fullmatch(text):
            return None
        total += unit * count
    return total


def carried(before: Sequence[CounterSample], after: CounterSample) -> list[Carried]:
    """Return what each network carried from the last sample of `before` to `after`.

    Several ports of an adapter are one entry. An interface above others is left out: these count
    its bytes. A counter that cannot be read or that went backwards counts as 0.

    Args:
        before: one or two samples; with two, they give the rate of the traffic of others.
    """
    idle, start = before[0], before[-1]
    seconds = max(0.0, after.uptime - start.uptime)
    idle_s = start.uptime - idle.uptime
    sums: dict[tuple[str, Kind], float] = {}
    for key, carrier in after.carriers.items():
        if carrier.lower:
            continue
        background = _rise(idle, start, key) * seconds / idle_s if idle_s > 0 else 0.0
        name = carrier.name, carrier.kind
        sums[name] = sums.get(name, 0.0) + max(0.0, _rise(start, after, key) - background)
    return [Carried(name, kind, total) for (name, kind), total in sums.items()]


def _rise(first: CounterSample, last: CounterSample, key: str) -> int:
    """Return the bytes from one sample to another; those of a new interface from 0."""
    start, end = first.carriers.get(key), last.carriers.get(key)
    if end is None or end.total is None or (start is not None and start.total is None):
        return 0
    return max(0, end.total - (start.total or 0 if start else 0))


@dataclass(frozen=True)
class Division:
    """What the intended network of a node carried, and each other one; bytes of both directions."""

    intended: float
    others: tuple[Carried, ...]


def divided(networks: Iterable[Carried], network: Network, sample: CounterSample) -> Division:
    """Return `networks`, divided into the intended `network` and the others.

    IP over a fabric is another network: its bytes pass the adapter, but as TCP. They are subtracted
    from the counters of the adapter.

    Args:
        sample: a sample of the node, with the interfaces that are above others.
    """
    chosen: set[str] = set()
    for carrier in sample.carriers.values():
        if any(fnmatchcase(carrier.name, each) for each in network.interfaces):
            chosen |= {carrier.name, *carrier.lower}
    intended, others = 0.0, []
    for each in networks:
        named = each.name in chosen if network.interfaces else each.kind == network.kind
        if named:
            intended += each.bytes
        else:
            others.append(each)
    if network.kind != "ethernet":
        over_ip = sum(each.bytes for each in others if each.kind in OVER_FABRIC.values())
        intended = max(0.0, intended - over_ip)
    return Division(intended, tuple(others))

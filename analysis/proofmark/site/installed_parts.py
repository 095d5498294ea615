"""The parts of a node: what a probe found, what was stated, and what a node has less of.

A statement comes from the inventory, from an accepted run, or from most nodes of the partition.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any, Literal, TypeVar

from proofmark.common.message import Message
from proofmark.site.hardware import StatedNode
from proofmark.site.hardware_limits import (
    is_product,
    port_bound,
    processor,
    product_name,
    same_processor,
    shown_gbit,
)
from proofmark.site.node.facts import NodeFacts
from proofmark.site.node.parts import Dimm
from proofmark.site.rails import ports_of

By = Literal["declared", "accepted", "usual"]
"""Who states the parts: the inventory, an accepted run, or most nodes of the partition."""

MEMORY_TOLERANCE = 0.02
"""The kernel reserves a part of the memory that differs by less than this from boot to boot."""
RESERVED_MEMORY = 0.05
"""Firmware and kernel reserve less than this part of the modules: 2.7 % of 12 × 16 GiB."""
VIRTUAL_MEMORY_TOLERANCE = 0.5
"""A hypervisor changes the memory of a running machine. A lack of less than this is accepted."""
RATE_TOLERANCE = 0.03
"""A rate is printed rounded: 2666 and 2667 MT/s are one speed. Each slower one is 6 % lower."""
LEAST_NIC_GBIT = 10.0
"""A slower Ethernet interface is for management: nodes of one partition differ in them."""
LEAST_NODES = 3
"""The smallest number of nodes of which most state what is usual."""
MOST_OTHERS = 0.2
"""The largest share of nodes with another part that is a fault of them. More nodes can be another
order."""
ACTIVE = "ACTIVE"
"""The state of a working port of the fabric (sysfs: ``4: ACTIVE``)."""
UNKNOWN_RATE = 0.0
OTHER = ("processor", "cards")
"""Parts of another kind: they are not more or less than stated, but not the same."""
_GIB = 2**30
Value = TypeVar("Value")


@dataclass(frozen=True)
class Parts:
    """The parts of a node; None is not known, or not stated.

    Attributes:
        processor: its name; only that of a product.
        cores: the cores that are online.
        sockets, numa, dimms: numbers; `numa` counts NUMA domains.
        dimm_bytes: the size of each module, the largest first; 0 is unknown.
        dimm_mt_per_s: the speed at which the slowest module runs.
        reserved: the part of `memory_bytes` that a node may lack.
        ports: the rates of the active ports of the fabric in Gb/s, the fastest first.
        nics: those of the Ethernet interfaces that are up.
        rails: those of the ports of either kind that MPI uses; only stated.
        link_bytes_per_s: the data rate of all ports together.
        adapters: the names of `rails`; only stated.
        accelerators: the number of GPUs and others that answer.
        lanes: the width of the PCIe link of each of them, the widest first.
        gt_per_s: the rate that the link of each can have, the fastest first.
        accelerator_ecc: how many of them have ECC.
        cards: the models of the adapters of `ports`, in order; empty texts are not known.
    """

    processor: str | None = None
    cores: int | None = None
    sockets: int | None = None
    numa: int | None = None
    dimms: int | None = None
    dimm_bytes: tuple[int, ...] | None = None
    dimm_mt_per_s: int | None = None
    memory_bytes: int | None = None
    reserved: float = MEMORY_TOLERANCE
    ports: tuple[float, ...] | None = None
    nics: tuple[float, ...] | None = None
    rails: tuple[float, ...] | None = None
    link_bytes_per_s: float | None = None
    adapters: tuple[str, ...] | None = None
    accelerators: int | None = None
    lanes: tuple[float, ...] | None = None
    gt_per_s: tuple[float, ...] | None = None
    accelerator_ecc: int | None = None
    cards: tuple[str, ...] | None = None

    @property
    def gbit_per_s(self) -> float:
        """The stated rate of the fastest port; 0 if none is stated."""
        return max((*(self.rails or ()), *(self.ports or ())), default=UNKNOWN_RATE)


def parts_of(facts: NodeFacts) -> Parts:
    """Return the parts that the probe of a node found."""
    active = [port for port in ports_of(facts) if ACTIVE in (port.state or "").upper()]
    up = [nic for nic in facts.nics if nic.state in ("up", "unknown")]
    bounds = [port_bound(port.rate or "", port.layer) for port in active]
    gigabits = [nic.megabits and nic.megabits / 1000 for nic in up]
    whole = len(facts.cpus) == facts.cpus_online
    dimms = facts.dram if "dimms" not in facts.absent and not facts.virtual else ()
    speeds = [speed for dimm in dimms if (speed := dimm.configured or dimm.rated)]
    # A hypervisor invents the name of a processor, or shows that of the machine.
    hidden = facts.virtual and processor(facts.cpu_model) is None
    return Parts(
        processor=None if hidden else facts.cpu_model,
        cores=facts.cores_online,
        sockets=facts.sockets if whole else None,
        numa=len(facts.numa) or None,
        dimms=len(dimms) or None,
        dimm_bytes=_sizes(dimms) or None,
        dimm_mt_per_s=min(speeds) if speeds and len(speeds) == len(dimms) else None,
        memory_bytes=None if "meminfo.MemTotal" in facts.unread else facts.memory_total_bytes,
        reserved=VIRTUAL_MEMORY_TOLERANCE if facts.virtual else MEMORY_TOLERANCE,
        ports=_sorted(shown_gbit(port.rate or "") or UNKNOWN_RATE for port in active),
        nics=_sorted(rate or UNKNOWN_RATE for rate in gigabits),
        link_bytes_per_s=_sum(bounds or [rate and rate * 125e6 for rate in gigabits]),
        # No file shows the model of an adapter of Slingshot.
        cards=tuple(sorted(port.kind or "" for port in active if port in facts.ports)) or None,
        **_accelerators(facts),
    )


def _accelerators(facts: NodeFacts) -> dict[str, Any]:
    """Return the parts of the accelerators; an older probe did not look for them."""
    if facts.accelerators is None:
        return {}
    there = [each for each in facts.accelerators if each.answers]
    ecc = [each.ecc for each in there]
    return {
        "accelerators": len(there),
        "lanes": _sorted(each.lanes or UNKNOWN_RATE for each in there),
        "gt_per_s": _sorted(each.gt_per_s or UNKNOWN_RATE for each in there),
        "accelerator_ecc": None if None in ecc else sum(map(bool, ecc)),
    }


def _sizes(dimms: Iterable[Dimm]) -> tuple[int, ...]:
    return tuple(sorted((dimm.bytes or 0 for dimm in dimms), reverse=True))


def _sorted(rates: Iterable[float]) -> tuple[float, ...]:
    return tuple(sorted(rates, reverse=True))


def _sum(rates: Sequence[float | None]) -> float | None:
    known = [rate for rate in rates if rate is not None]
    return sum(known) if len(known) == len(rates) else None


def declared_parts(node: StatedNode) -> Parts:
    """Return the parts that the inventory states."""
    memory, rails, accelerators = node.memory, node.rails, node.accelerators
    number_of = accelerators.count if accelerators else 0
    size, number = memory.module_bytes, rails.number
    return Parts(
        processor=node.cpu_model if is_product(node.cpu_model) else None,
        cores=node.cores,
        sockets=node.sockets,
        dimms=memory.least_modules,
        dimm_bytes=(size,) * memory.modules if size and memory.modules else None,
        dimm_mt_per_s=memory.mt_per_s,
        memory_bytes=memory.all_bytes,
        reserved=RESERVED_MEMORY,
        rails=(rails.gbit_per_s or UNKNOWN_RATE,) * number if number else None,
        # The rate of each of so many ports is compared above.
        link_bytes_per_s=None if number else rails.bytes_per_s,
        adapters=tuple(rails.adapters) or None,
        accelerators=number_of or None,
        lanes=(accelerators.lanes,) * number_of if accelerators and accelerators.lanes else None,
        gt_per_s=(accelerators.gt_per_s,) * number_of
        if accelerators and accelerators.gt_per_s
        else None,
        accelerator_ecc=number_of if accelerators and accelerators.ecc else None,
    )


def usual_parts(nodes: Sequence[Parts]) -> Parts:
    """Return what most of `nodes` have at least; nothing for fewer than `LEAST_NODES`.

    The models of the adapters are those of almost all nodes. The processor is left out: it says
    which nodes are of one order.
    """
    names = (
        *("cores", "sockets", "dimms", "dimm_mt_per_s", "memory_bytes", "reserved"),
        *("accelerators", "accelerator_ecc"),
    )
    found: dict[str, Any] = {name: most(getattr(node, name) for node in nodes) for name in names}
    if len(nodes) < LEAST_NODES:
        return Parts()
    nics = _most_rates(node.nics for node in nodes) or ()
    return Parts(
        **found,
        cards=commonest([node.cards for node in nodes if node.cards is not None]),
        ports=_most_rates(node.ports for node in nodes),
        nics=tuple(rate for rate in nics if rate >= LEAST_NIC_GBIT) or None,
        lanes=_known_rates(node.lanes for node in nodes),
        gt_per_s=_known_rates(node.gt_per_s for node in nodes),
    )


def usual_processor(nodes: Iterable[Parts]) -> str | None:
    """Return the processor of almost all nodes whose processor is known; None if there is none."""
    names = [name for each in nodes if (name := each.processor)]
    products = [*map(product_name, names)]
    found = commonest(products)
    return names[products.index(found)] if found else None


def commonest(values: Sequence[Value]) -> Value | None:
    """Return the value of all but `MOST_OTHERS` of `LEAST_NODES` or more; None if there is none."""
    if len(values) < LEAST_NODES:
        return None
    value, number = Counter(values).most_common(1)[0]
    return value if number >= (1 - MOST_OTHERS) * len(values) else None


def most(values: Iterable[float | None]) -> float | None:
    """Return the largest value that more than half of the known values reach."""
    known = sorted((value for value in values if value is not None), reverse=True)
    return known[len(known) // 2] if len(known) >= LEAST_NODES else None


def _most_rates(nodes: Iterable[tuple[float, ...] | None]) -> tuple[float, ...] | None:
    known = [rates for rates in nodes if rates is not None]
    longest = max(map(len, known), default=0)
    columns = ([*rates, *[-1.0] * (longest - len(rates))] for rates in known)
    usual = (most(column) for column in zip(*columns, strict=True))
    return tuple(rate for rate in usual if rate is not None and rate >= 0) or None


def _known_rates(nodes: Iterable[tuple[float, ...] | None]) -> tuple[float, ...] | None:
    """Return the known values that most nodes have; 0 stands for an unknown value."""
    return tuple(filter(None, _most_rates(nodes) or ())) or None


@lru_cache(maxsize=256)
def missing_parts(stated: Parts, found: Parts) -> dict[str, Message]:
    """Return what a node has less of than stated, or another one of, by the name of the part.

    A part that is not known is not missing; see `unknown_parts`.
    """
    return {name: message for name, message in _missing(stated, found) if message}


def _missing(stated: Parts, found: Parts) -> Iterator[tuple[str, Message | None]]:
    yield "processor", _other_processor(stated.processor, found.processor)
    yield "cards", _other_cards(stated.cards, found.cards)
    for name in ("cores", "sockets", "numa", "dimms", "accelerators"):
        yield name, _fewer(name, getattr(stated, name), getattr(found, name))
    yield "dimm_bytes", _smaller_modules(stated.dimm_bytes, found.dimm_bytes)
    yield "dimm_mt_per_s", _slower_modules(stated.dimm_mt_per_s, found.dimm_mt_per_s)
    yield "memory_bytes", _less_memory(stated, found)
    # A port or an interface of unknown rate may have the usual one.
    yield "ports", _fewer_links("lost-ports", stated.ports, _known(found.ports))
    yield "nics", _fewer_links("lost-nics", stated.nics, _known(found.nics))
    # A port with RoCE or of Slingshot is an interface, too.
    yield "rails", _fewer_links("lost-rails", stated.rails, found.ports or found.nics)
    # An accelerator that is missing has no ECC either.
    with_ecc = [each for each in (stated.accelerator_ecc, found.accelerators) if each is not None]
    least = min(with_ecc) if stated.accelerator_ecc is not None else None
    yield "accelerator_ecc", _fewer("accelerator_ecc", least, found.accelerator_ecc)
    for name in ("lanes", "gt_per_s"):
        yield name, _less_of_each(name, getattr(stated, name), getattr(found, name))
    yield "link_bytes_per_s", _less_rate(stated.link_bytes_per_s, found.link_bytes_per_s)


def _other_processor(stated: str | None, found: str | None) -> Message | None:
    if stated is None or found is None or same_processor(stated, found) is not False:
        return None
    return Message("other-processor", found=found, accepted=stated)


def _other_cards(stated: tuple[str, ...] | None, found: tuple[str, ...] | None) -> Message | None:
    """Return that an adapter is of another model. Missing ports are not counted here."""
    if stated is None or found is None or len(found) != len(stated) or "" in (*found, *stated):
        return None
    new, old = Counter(found) - Counter(stated), Counter(stated) - Counter(found)
    if not new:
        return None
    return Message("other-cards", found=", ".join(new), accepted=", ".join(old))


def _fewer(name: str, stated: int | None, found: int | None) -> Message | None:
    if stated is None or found is None or found >= stated:
        return None
    return Message(f"lost-{name}", found=found, accepted=stated)


def _smaller_modules(
    stated: tuple[int, ...] | None, found: tuple[int, ...] | None
) -> Message | None:
    """Return that modules are smaller. Missing modules are not counted here."""
    pairs = list(zip(stated or (), found or (), strict=False))
    small = [size for least, size in pairs if 0 < size < least]
    if not small or stated is None:
        return None
    sizes = {"found": f"{small[-1] / _GIB:g} GiB", "accepted": f"{stated[0] / _GIB:g} GiB"}
    return Message("lost-dimm_bytes", number=len(small), **sizes)


def _slower_modules(stated: int | None, found: int | None) -> Message | None:
    if stated is None or found is None or found >= (1 - RATE_TOLERANCE) * stated:
        return None
    return Message("lost-dimm_mt_per_s", found=found, accepted=stated)


def _less_memory(stated: Parts, found: Parts) -> Message | None:
    least, size = stated.memory_bytes, found.memory_bytes
    tolerance = max(stated.reserved, found.reserved)
    if least is None or size is None or size >= (1 - tolerance) * least:
        return None
    sizes = {"found": f"{size / _GIB:.1f} GiB", "accepted": f"{least / _GIB:.1f} GiB"}
    return Message("lost-memory_bytes", **sizes)


def _known(rates: tuple[float, ...] | None) -> tuple[float, ...]:
    return _sorted(rate or math.inf for rate in rates or ())


def _fewer_links(
    code: str, stated: tuple[float, ...] | None, found: tuple[float, ...] | None
) -> Message | None:
    """Return that ports are missing or slow."""
    pairs = list(zip(stated or (), found or (), strict=False))
    if all(rate >= (1 - RATE_TOLERANCE) * least for least, rate in pairs):
        if stated is None or len(pairs) == len(stated):
            return None
        return Message(code, found=len(pairs), accepted=len(stated))
    rates = {"found": _rates(found or ()), "accepted": _rates(stated or ())}
    return Message("lost-rate", **rates)


def _rates(rates: Sequence[float]) -> str:
    """Return ``4 × 100 + 1 × 25``; a dash for no port."""
    counts = {rate: rates.count(rate) for rate in rates if math.isfinite(rate)}
    return " + ".join(f"{number} × {rate:g}" for rate, number in counts.items()) or "–"


def _less_of_each(
    name: str, stated: tuple[float, ...] | None, found: tuple[float, ...] | None
) -> Message | None:
    """Return that links of accelerators are slower. Missing accelerators are not counted here."""
    pairs = zip(stated or (), _known(found), strict=False)
    if all(value >= (1 - RATE_TOLERANCE) * least for least, value in pairs):
        return None
    return Message(f"lost-{name}", found=_rates(found or ()), accepted=_rates(stated or ()))


def _less_rate(stated: float | None, found: float | None) -> Message | None:
    if stated is None or found is None or found >= (1 - RATE_TOLERANCE) * stated:
        return None
    rates = {"found": f"{found / 1e9:.3g}", "accepted": f"{stated / 1e9:.3g}"}
    return Message("lost-link_bytes_per_s", **rates)


@lru_cache(maxsize=256)
def unknown_parts(stated: Parts, found: Parts) -> tuple[str, ...]:
    """Return the names of the stated parts that the probe of a node did not find out."""
    names = [
        field.name for field in fields(Parts) if field.name not in ("reserved", "rails", "adapters")
    ]
    return tuple(
        name
        for name in names
        if getattr(stated, name) is not None
        and _is_unknown(name, getattr(stated, name), getattr(found, name))
    )


def _is_unknown(name: str, stated: Any, found: Any) -> bool:
    """Return whether a stated part was not found out; modules and ports can be known in part."""
    if name == "processor":
        return found is None or same_processor(stated, found) is None
    if not isinstance(found, tuple) or not isinstance(stated, tuple):
        return found is None
    return sum(map(bool, found)) < len(stated) <= len(found)


def without(parts: Parts, names: Iterable[str]) -> Parts:
    """Return `parts` without those of `names`."""
    nothing: dict[str, Any] = dict.fromkeys(names)
    return replace(parts, **nothing)

"""The parts of a node: what a probe found, what was stated, and what a node has less of.

A statement comes from the inventory, from an accepted run, or from most nodes of the partition. The
fields of `Parts` are the table of the parts: each has its row.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from itertools import zip_longest
from typing import Any, Literal, TypeVar

from proofmark.common.message import NOTHING, Message
from proofmark.common.shared_models import StrictModel
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
from proofmark.site.node.parts import Accelerator, Dimm, Nic, Port
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
Rates = tuple[float, ...]


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


def _most_rates(nodes: Iterable[Rates | None]) -> Rates | None:
    known = [rates for rates in nodes if rates is not None]
    usual = map(most, zip_longest(*known, fillvalue=-1.0))
    return tuple(rate for rate in usual if rate is not None and rate >= 0) or None


def _known_rates(nodes: Iterable[Rates | None]) -> Rates | None:
    """Return the known values that most nodes have; 0 stands for an unknown value."""
    return tuple(filter(None, _most_rates(nodes) or ())) or None


def _active(facts: NodeFacts) -> list[Port]:
    return [port for port in ports_of(facts) if ACTIVE in (port.state or "").upper()]


def _up(facts: NodeFacts) -> list[Nic]:
    return [nic for nic in facts.nics if nic.state in ("up", "unknown")]


def _modules(facts: NodeFacts) -> tuple[Dimm, ...]:
    return facts.dram if "dimms" not in facts.absent and not facts.virtual else ()


def _sorted(rates: Iterable[float]) -> Rates:
    return tuple(sorted(rates, reverse=True))


def _link_rate(facts: NodeFacts) -> float | None:
    bounds = [port_bound(port.rate or "", port.layer) for port in _active(facts)]
    rates = bounds or [nic.megabits and nic.megabits * 125e3 for nic in _up(facts)]
    return None if None in rates else sum(filter(None, rates))


def _of_accelerators(
    of: Callable[[list[Accelerator]], Value],
) -> Callable[[NodeFacts], Value | None]:
    """Return a function of the accelerators that answer; an older probe did not look for them."""

    def found(facts: NodeFacts) -> Value | None:
        if facts.accelerators is None:
            return None
        return of([each for each in facts.accelerators if each.answers])

    return found


def _with_ecc(accelerators: Sequence[Accelerator]) -> int | None:
    ecc = [each.ecc for each in accelerators]
    return None if None in ecc else sum(map(bool, ecc))


def _rates_of(key: str) -> Callable[[NodeFacts], Rates | None]:
    """Return a function of the accelerators that answer: this value of each of them."""
    return _of_accelerators(
        lambda found: _sorted(getattr(each, key) or UNKNOWN_RATE for each in found)
    )


def _of_each(key: str) -> Callable[[StatedNode], Rates | None]:
    """Return a function of the stated accelerators: this value, for each of them."""

    def declared(node: StatedNode) -> Rates | None:
        value = getattr(node.accelerators, key, None)
        return (value,) * node.accelerators.count if node.accelerators and value else None

    return declared


def _same_or_other_processor(_: str, stated: Parts, found: Parts) -> Message | None:
    if stated.processor is None or found.processor is None:
        return None
    same = same_processor(stated.processor, found.processor)
    if same is not False:
        return NOTHING if same else None
    return Message("other-processor", found=found.processor, accepted=stated.processor)


def _other_cards(_: str, stated: Parts, found: Parts) -> Message | None:
    """Return that an adapter is of another model. Missing ports are not counted here."""
    ordered, shown = Counter(stated.cards), Counter(found.cards)
    new, old = shown - ordered, ordered - shown
    unknown, unstated = new.pop("", 0), old.pop("", 0)
    if ordered.total() == shown.total() and new.total() > unstated:
        return Message("other-cards", found=", ".join(new), accepted=", ".join(old))
    # A model that is not shown may be the stated one.
    could_be = found.cards is None or (unknown and ordered.total() <= shown.total())
    return None if old and could_be else NOTHING


def _fewer(name: str, stated: Parts, found: Parts) -> Message | None:
    row, least, value = ROWS[name], getattr(stated, name), getattr(found, name)
    if value is None:
        return None
    if value >= (1 - max(row.tolerance(stated), row.tolerance(found))) * least:
        return NOTHING
    return Message(f"lost-{name}", found=row.shown(value), accepted=row.shown(least))


def _fewer_with_ecc(name: str, stated: Parts, found: Parts) -> Message | None:
    """Return that accelerators have no ECC. One that is missing has none either."""
    known = [each for each in (stated.accelerator_ecc, found.accelerators) if each is not None]
    return _fewer(name, replace(stated, accelerator_ecc=min(known)), found)


def _smaller_modules(name: str, stated: Parts, found: Parts) -> Message | None:
    """Return that modules are smaller. Missing modules are not counted here."""
    least, sizes = stated.dimm_bytes or (), found.dimm_bytes
    if sizes is None:
        return None
    pairs = list(zip(least, sizes, strict=False))
    if small := [size for wanted, size in pairs if 0 < size < wanted]:
        shown = {"found": f"{small[-1] / _GIB:g} GiB", "accepted": f"{least[0] / _GIB:g} GiB"}
        return Message(f"lost-{name}", number=len(small), **shown)
    unknown = any(wanted and not size for wanted, size in pairs)
    return None if unknown and len(least) <= len(sizes) else NOTHING


def _reach(stated: Rates, found: Rates) -> bool:
    pairs = zip(stated, found, strict=False)
    return all(rate >= (1 - RATE_TOLERANCE) * least for least, rate in pairs)


def _shown_rates(rates: Rates) -> str:
    """Return ``4 × 100 + 1 × 25``; a dash for no known rate."""
    counts = Counter(filter(None, rates))
    return " + ".join(f"{number} × {rate:g}" for rate, number in counts.items()) or "–"


def _slower_links(code: str, stated: Rates, found: Rates | None) -> Message | None:
    """Return that links are slower. A link of unknown rate may have the stated one."""
    if found is None:
        return None
    if not _reach(stated, _sorted(rate or math.inf for rate in found)):
        return Message(code, found=_shown_rates(found), accepted=_shown_rates(stated))
    return NOTHING if _reach(stated, found) or len(found) < len(stated) else None


def _less_of_each(name: str, stated: Parts, found: Parts) -> Message | None:
    """Return that links of accelerators are slower. Missing accelerators are not counted here."""
    return _slower_links(f"lost-{name}", getattr(stated, name), getattr(found, name))


def _fewer_links(name: str, stated: Parts, found: Parts) -> Message | None:
    """Return that ports are missing or slow."""
    least = getattr(stated, name)
    # A port with RoCE or of Slingshot is an interface, too.
    rates = found.ports or found.nics if name == "rails" else getattr(found, name)
    slower = _slower_links("lost-rate", least, rates)
    if slower or rates is None or len(rates) >= len(least):
        return slower
    return Message(f"lost-{name}", found=len(rates), accepted=len(least))


@dataclass(frozen=True)
class PartRow:
    """How one part is found, stated, compared and shown.

    Its texts are ``part-<name>`` and ``lost-<name>``.

    Attributes:
        found: reads it from a probe.
        declared: reads it from an inventory.
        accepted: whether a baseline has it, as it was found in the accepted run.
        usual: makes it from the parts of at least `LEAST_NODES` like nodes. Without it, a part is
            not compared with other nodes.
        compared: returns what a node has less of, `NOTHING`, or None if it was not found out. It is
            called with the name of the part, and if the part is stated.
        tolerance: the part of a stated number that a node may lack.
        shown: a number as people read it.
        related: parts that are declared with it.
    """

    found: Callable[[NodeFacts], Any] | None = None
    declared: Callable[[StatedNode], Any] | None = None
    accepted: bool = False
    usual: Callable[[list[Any]], Any] | None = None
    compared: Callable[[str, Parts, Parts], Message | None] | None = _fewer
    tolerance: Callable[[Parts], float] = lambda _: 0.0
    shown: Callable[[float], str | float] = lambda number: number
    related: tuple[str, ...] = ()


def _part(default: float | None = None, **row: Any) -> Any:
    return field(default=default, metadata={"row": PartRow(**row)})


@dataclass(frozen=True)
class Parts:
    """The parts of a node; None is not known, or not stated.

    Attributes:
        processor: its name; only that of a product.
        cards: the models of the adapters of `ports`, in order; empty texts are not known. Usual are
            those of almost all nodes.
        cores: the cores that are online.
        sockets, numa, dimms: numbers; `numa` counts NUMA domains.
        accelerators: the number of GPUs and others that answer.
        dimm_bytes: the size of each module, the largest first; 0 is unknown.
        dimm_mt_per_s: the speed at which the slowest module runs.
        reserved: the part of `memory_bytes` that a node may lack.
        ports: the rates of the active ports of the fabric in Gb/s, the fastest first; 0 is unknown.
        nics: those of the Ethernet interfaces that are up.
        rails: those of the ports of either kind that MPI uses; only stated.
        adapters: the names of `rails`; only stated.
        accelerator_ecc: how many of `accelerators` have ECC.
        lanes: the width of the PCIe link of each of them, the widest first.
        gt_per_s: the rate that the link of each can have, the fastest first.
        link_bytes_per_s: the data rate of all ports together.
    """

    __pydantic_config__ = StrictModel.model_config

    processor: str | None = _part(
        # A hypervisor invents a name, or shows that of the machine.
        found=lambda facts: (
            facts.cpu_model if not facts.virtual or processor(facts.cpu_model) else None
        ),
        declared=lambda node: node.cpu_model if is_product(node.cpu_model) else None,
        accepted=True,
        compared=_same_or_other_processor,
    )
    cards: tuple[str, ...] | None = _part(
        # Omni-Path and EFA show no model, and an adapter of Slingshot has no file.
        found=lambda facts: (
            tuple(sorted(port.kind or "" for port in _active(facts) if port in facts.ports)) or None
        ),
        usual=lambda nodes: commonest([cards for cards in nodes if cards is not None]),
        compared=_other_cards,
    )
    cores: int | None = _part(
        found=lambda facts: facts.cores_online,
        declared=lambda node: node.cores,
        accepted=True,
        usual=most,
    )
    sockets: int | None = _part(
        found=lambda facts: facts.sockets if len(facts.cpus) == facts.cpus_online else None,
        declared=lambda node: node.sockets,
        accepted=True,
        usual=most,
    )
    numa: int | None = _part(found=lambda facts: len(facts.numa) or None, accepted=True)
    dimms: int | None = _part(
        found=lambda facts: len(_modules(facts)) or None,
        declared=lambda node: node.memory.least_modules,
        accepted=True,
        usual=most,
        related=("dimm_bytes", "memory_bytes"),
    )
    accelerators: int | None = _part(
        found=_of_accelerators(len),
        declared=lambda node: node.accelerators and node.accelerators.count,
        accepted=True,
        usual=most,
    )
    dimm_bytes: tuple[int, ...] | None = _part(
        found=lambda facts: _sorted(dimm.bytes or 0 for dimm in _modules(facts)) or None,
        declared=lambda node: (
            node.memory.module_bytes and (node.memory.module_bytes,) * (node.memory.modules or 0)
        ),
        compared=_smaller_modules,
    )
    dimm_mt_per_s: int | None = _part(
        found=lambda facts: (
            min((dimm.configured or dimm.rated or 0 for dimm in _modules(facts)), default=0) or None
        ),
        declared=lambda node: node.memory.mt_per_s,
        accepted=True,
        usual=most,
        tolerance=lambda _: RATE_TOLERANCE,
    )
    memory_bytes: int | None = _part(
        found=lambda facts: (
            None if "meminfo.MemTotal" in facts.unread else facts.memory_total_bytes
        ),
        declared=lambda node: node.memory.all_bytes,
        accepted=True,
        usual=most,
        tolerance=lambda parts: parts.reserved,
        shown=lambda size: f"{size / _GIB:.1f} GiB",
    )
    reserved: float = _part(
        MEMORY_TOLERANCE,
        found=lambda facts: VIRTUAL_MEMORY_TOLERANCE if facts.virtual else MEMORY_TOLERANCE,
        declared=lambda _: RESERVED_MEMORY,
        usual=most,
        compared=None,
    )
    ports: tuple[float, ...] | None = _part(
        found=lambda facts: _sorted(
            shown_gbit(port.rate or "") or UNKNOWN_RATE for port in _active(facts)
        ),
        accepted=True,
        usual=_most_rates,
        compared=_fewer_links,
    )
    nics: tuple[float, ...] | None = _part(
        found=lambda facts: _sorted((nic.megabits or 0) / 1000 for nic in _up(facts)),
        usual=lambda nodes: (
            tuple(rate for rate in _most_rates(nodes) or () if rate >= LEAST_NIC_GBIT) or None
        ),
        compared=_fewer_links,
    )
    rails: tuple[float, ...] | None = _part(
        declared=lambda node: (
            (node.rails.gbit_per_s or UNKNOWN_RATE,) * (node.rails.number or 0) or None
        ),
        compared=_fewer_links,
        related=("ports", "nics"),
    )
    adapters: tuple[str, ...] | None = _part(
        declared=lambda node: tuple(node.rails.adapters) or None, compared=None
    )
    accelerator_ecc: int | None = _part(
        found=_of_accelerators(_with_ecc),
        declared=lambda node: (
            node.accelerators.count if node.accelerators and node.accelerators.ecc else None
        ),
        usual=most,
        compared=_fewer_with_ecc,
    )
    lanes: tuple[float, ...] | None = _part(
        found=_rates_of("lanes"),
        declared=_of_each("lanes"),
        usual=_known_rates,
        compared=_less_of_each,
    )
    gt_per_s: tuple[float, ...] | None = _part(
        found=_rates_of("gt_per_s"),
        declared=_of_each("gt_per_s"),
        usual=_known_rates,
        compared=_less_of_each,
    )
    link_bytes_per_s: float | None = _part(
        found=_link_rate,
        # If the number of ports is stated, the rate of each is compared.
        declared=lambda node: None if node.rails.number else node.rails.bytes_per_s,
        tolerance=lambda _: RATE_TOLERANCE,
        shown=lambda rate: f"{rate / 1e9:.3g}",
        related=("ports", "nics"),
    )

    @property
    def gbit_per_s(self) -> float:
        """The stated rate of the fastest port; 0 if none is stated."""
        return max((*(self.rails or ()), *(self.ports or ())), default=UNKNOWN_RATE)


ROWS: Mapping[str, PartRow] = {each.name: each.metadata["row"] for each in fields(Parts)}
"""The row of each part by its name."""


def parts_of(facts: NodeFacts) -> Parts:
    """Return the parts that the probe of a node found."""
    return Parts(**{name: row.found(facts) for name, row in ROWS.items() if row.found})


def declared_parts(node: StatedNode) -> Parts:
    """Return the parts that the inventory states."""
    return Parts(**{name: row.declared(node) for name, row in ROWS.items() if row.declared})


def parts_to_accept(facts: NodeFacts) -> Parts:
    """Return the parts of a node that a baseline keeps."""
    found = parts_of(facts)
    return Parts(**{name: getattr(found, name) for name, row in ROWS.items() if row.accepted})


def usual_parts(nodes: Sequence[Parts]) -> Parts:
    """Return what most of `nodes` have at least; nothing for fewer than `LEAST_NODES`.

    The processor is left out: it says which nodes are of one order.
    """
    if len(nodes) < LEAST_NODES:
        return Parts()
    return Parts(
        **{
            name: row.usual([getattr(node, name) for node in nodes])
            for name, row in ROWS.items()
            if row.usual
        }
    )


def usual_processor(nodes: Iterable[Parts]) -> str | None:
    """Return the processor of almost all nodes whose processor is known; None if there is none."""
    names = [name for each in nodes if (name := each.processor)]
    products = [*map(product_name, names)]
    found = commonest(products)
    return names[products.index(found)] if found else None


@lru_cache(maxsize=256)
def _compared(stated: Parts, found: Parts) -> Mapping[str, Message | None]:
    """Return the comparison of each stated part by its name; see `PartRow`."""
    return {
        name: row.compared(name, stated, found)
        for name, row in ROWS.items()
        if row.compared and getattr(stated, name) is not None
    }


def missing_parts(stated: Parts, found: Parts) -> dict[str, Message]:
    """Return what a node has less of than stated, or another one of, by the name of the part.

    A part that is not known is not missing; see `unknown_parts`.
    """
    return {name: message for name, message in _compared(stated, found).items() if message}


def unknown_parts(stated: Parts, found: Parts) -> tuple[str, ...]:
    """Return the names of the stated parts that the probe of a node did not find out."""
    return tuple(name for name, message in _compared(stated, found).items() if message is None)

"""What was stated about the parts of each node: the faults of nodes with less, and the limits.

Three statements are used, in this order: the inventory, an accepted run, most nodes of the
partition. A limit never follows from the parts that a node shows if one of them states more: a node
that lost half of its memory modules would pass it. Nodes are compared with those for which the same
processor was ordered, whatever processor they show.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from typing import Any, TypeVar

from proofmark.cases.reference import Rule
from proofmark.common.grouping import gathered
from proofmark.common.message import NOTHING, Message, Term
from proofmark.common.nodesets import folded
from proofmark.judge.references.derived import Nominal, active_ports
from proofmark.site.accepted_baseline import ProgramTrait
from proofmark.site.hardware import StatedNode
from proofmark.site.hardware_limits import processor, product_name, same_processor, shown_gbit
from proofmark.site.installed_parts import (
    OTHER,
    ROWS,
    By,
    Parts,
    missing_parts,
    most,
    parts_of,
    unknown_parts,
    usual_parts,
    usual_processor,
)
from proofmark.site.node.facts import HostFacts, NodeFacts
from proofmark.software.software import Package, Software

Traits = Mapping[str, str]
NodeFaults = Mapping[str, Sequence[Message]]
"""The faults of each node that no figure has."""
Name = TypeVar("Name")
"""The name of a trait: a word of the configuration of a node, or a property of a program."""

FIRMWARE = {"bios_version": "BIOS", "bios_date": "BIOS date", "board_name": "board"}
"""The SMBIOS keys that like nodes share, with their names; serial numbers are left out."""
_GIB = 2**30
DIGITS = 12
"""Characters of a checksum that are shown."""
ABSENT = ""
"""The value of a trait that a node does not have."""


def hardware_kind(facts: NodeFacts) -> str:
    """Return the processor model, sockets and cores of a node.

    Firmware and settings are left out, because the comparison of nodes shall find their
    differences.
    """
    return f"{facts.cpu_model}, {facts.sockets} × {facts.cores // max(1, facts.sockets)} cores"


def configuration(facts: NodeFacts) -> dict[str, str]:
    """Return the configuration of a node: everything in which like nodes ought to be equal."""
    values: dict[str, object] = {
        "processor": facts.cpu_model,
        "sockets": facts.sockets,
        "cores online": facts.cores_online,
        "threads per core": facts.threads_per_core,
        "microcode": facts.microcode,
        "stepping": facts.stepping,
        "kernel": facts.kernel,
        "kernel command line": facts.cmdline,
        "operating system": facts.os,
        "governor": facts.governor,
        "turbo": facts.turbo,
        "SMT": facts.smt,
        "transparent huge pages": facts.thp,
        "NUMA domains": len(facts.numa) or None,
        # Rounded: the part that the kernel reserves differs from node to node.
        "memory": ""
        if "meminfo.MemTotal" in facts.unread
        else f"{facts.memory_total_bytes / _GIB:.0f} GiB",
        "accelerators": len(facts.accelerators or ()) or None,
        "DIMMs": None if "dimms" in facts.absent else len(facts.dimms),
        "DIMM part": _joined(dimm.part_number for dimm in facts.dimms),
        "DIMM speed": _joined(dimm.configured for dimm in facts.dimms),
        "adapter firmware": _joined(port.firmware for port in facts.ports),
        "fabric rate": _joined(port.rate for port in facts.ports),
        "NIC firmware": _joined(nic.firmware for nic in facts.nics if nic.link),
        "PCIe link": _joined(nic.link for nic in facts.nics),
    }
    values |= {name: facts.firmware.get(key) for key, name in FIRMWARE.items()}
    values |= {f"setting {name}": value for name, value in facts.settings.items()}
    values |= {f"vulnerability {name}": value for name, value in facts.vulnerabilities.items()}
    return {name: str(value) for name, value in values.items() if value not in (None, "")}


def _joined(values: Iterable[object]) -> str:
    """Return the different values of the parts of a node, in order."""
    return ", ".join(sorted({str(value) for value in values if value is not None}))


def traits_of(
    settings: Mapping[str, Traits], location: Mapping[str, Mapping[str, str]]
) -> dict[str, dict[str, str]]:
    """Return the location and the configuration of each node: the possible causes of a fault.

    Args:
        settings: the result of `configuration` by host.
        location: switches and rack by host.
    """
    hosts = dict.fromkeys([*settings, *location])
    return {host: {**location.get(host, {}), **settings.get(host, {})} for host in hosts}


def usual(nodes: Mapping[str, Traits]) -> dict[str, Counter[str]]:
    """Return the number of nodes with each value of each trait."""
    values = gathered(chain.from_iterable(traits.items() for traits in nodes.values()))
    return {name: Counter(each) for name, each in values.items()}


def machine_traits(facts: NodeFacts) -> dict[str, str]:
    """Return the configuration of a node, with its drivers and the memory module of each slot.

    `configuration` is compared between nodes and lacks what differs on purpose: serial numbers.
    """
    traits = configuration(facts)
    drivers = sorted({nic.driver for nic in facts.nics if nic.driver})
    values = {"NIC driver": ", ".join(drivers), "frequency driver": facts.frequency_driver or ""}
    for dimm in facts.dimms:
        values[f"DIMM {dimm.locator}"] = " ".join(filter(None, (dimm.part_number, dimm.serial)))
    return traits | {name: value for name, value in values.items() if value}


def program_traits(package: Package) -> dict[ProgramTrait, str]:
    """Return what the identity of a package contains: versions, and each program and library."""
    traits = {
        ProgramTrait("trait-version"): package.version,
        ProgramTrait("trait-provider"): package.origin,
        ProgramTrait("trait-build"): package.hash,
    }
    for name, value in package.run_environment.items():
        traits[ProgramTrait("trait-variable", name)] = value or '""'
    for name, program in package.programs.items():
        digest = (program.sha256 or "")[:DIGITS]
        traits[ProgramTrait("trait-program", name)] = program.package or digest
        if blas := program.blas:
            traits[ProgramTrait("trait-blas")] = f"{blas.family} {blas.version or ''}".strip()
            traits[ProgramTrait("trait-kernel")] = blas.chosen or ""
        if mpi := program.mpi:
            traits[ProgramTrait("trait-mpi")] = f"{mpi.family or ''} {mpi.version or ''}".strip()
        for library in program.libraries:
            parts = library.package, (library.sha256 or "")[:DIGITS]
            traits[ProgramTrait("trait-library", library.name)] = " ".join(filter(None, parts))
    return {name: value for name, value in traits.items() if value}


def software_traits(software: Software) -> dict[ProgramTrait, str]:
    """Return the traits of all packages of a run, each with the name of its package."""
    traits: dict[ProgramTrait, str] = {}
    for name, package in software.packages.items():
        for trait, value in program_traits(package).items():
            traits[replace(trait, package=name)] = value
    return traits


def of_node(name: str) -> Message:
    """Return the trait `name` of a node."""
    return Message("trait", name=Term(name))


def differences(old: Mapping[Name, str], new: Mapping[Name, str]) -> list[tuple[Name, str, str]]:
    """Return the traits that differ, each with its old and its new value."""
    if old is new:
        return []
    return [
        (trait, old.get(trait, ABSENT), new.get(trait, ABSENT))
        for trait in dict.fromkeys((*old, *new))
        if old.get(trait, ABSENT) != new.get(trait, ABSENT)
    ]


PART_OF: Mapping[Rule, str] = {
    "memory_bandwidth": "dimms",
    "link_bandwidth": "gbit_per_s",
    "link_latency": "gbit_per_s",
    "rpeak_nominal": "cores",
    "rpeak_avx": "cores",
    "typical_triad": "dimms",
    "typical_bandwidth": "gbit_per_s",
    "typical_hpl": "cores",
}
"""The part from which a limit is computed."""


@dataclass(frozen=True)
class Statements:
    """The parts of one node: what its probe found, and what was stated, by who states it."""

    found: Parts
    by: Mapping[By, Parts]


@dataclass(frozen=True)
class NominalHardware:
    """The parts of nodes from which limits follow.

    Attributes:
        basis: which limits follow from the parts that nodes show, because nothing states them.
    """

    of_node: Mapping[str, Nominal] = field(default_factory=dict)
    basis: Message = NOTHING


def _with_related(parts: Collection[str]) -> set[str]:
    return {*parts, *chain.from_iterable(ROWS[part].related for part in parts)}


def statements(
    nodes: HostFacts, declared: Parts, accepted: Mapping[str, Parts]
) -> dict[str, Statements]:
    """Return what is stated about each of `nodes`.

    A part that is declared is not compared with other nodes: the site knows that some have less.
    Nor is a processor that was accepted: the site knows that some are others. Without either, the
    processor of almost all nodes was ordered.
    """
    found = {host: parts_of(facts) for host, facts in nodes.items()}
    known = {each.name for each in fields(declared) if getattr(declared, each.name) is not None}
    nothing: dict[str, Any] = dict.fromkeys(_with_related(known) - {"reserved"})
    of_order = {host: declared.processor or accepted.get(host, Parts()).processor for host in nodes}
    usual_name = usual_processor(found[host] for host, name in of_order.items() if name is None)
    keys = {
        host: product_name(of_order[host] or usual_name or facts.cpu_model)
        for host, facts in nodes.items()
    }
    alike = gathered((keys[host], found[host]) for host in nodes)
    usual = {name: replace(usual_parts(group), **nothing) for name, group in alike.items()}
    named = {name: replace(parts, processor=usual_name) for name, parts in usual.items()}
    return {
        host: Statements(
            found[host],
            {
                "declared": declared,
                "accepted": accepted.get(host, Parts()),
                "usual": usual[keys[host]] if of_order[host] else named[keys[host]],
            },
        )
        for host in nodes
    }


def ordered_processor(stated: Statements) -> str | None:
    """Return the processor that was ordered for a node; None if nothing states it."""
    return next((name for each in stated.by.values() if (name := each.processor)), None)


def ordered_hardware(nodes: HostFacts, stated: Mapping[str, Statements]) -> dict[str, str]:
    """Return the hardware that was ordered for each node, as a text: nodes with the same are alike.

    It is what most nodes with the ordered processor have. A node of which nobody states the
    processor is like those with the same: see `unknown_orders`.
    """
    names = {
        host: product_name(ordered_processor(stated[host]) or facts.cpu_model)
        for host, facts in nodes.items()
    }
    kinds: dict[str, Counter[str]] = {}
    for host, facts in nodes.items():
        as_ordered = product_name(facts.cpu_model) == names[host]
        kinds.setdefault(names[host], Counter())[hardware_kind(facts)] += (
            len(nodes) if as_ordered else 1
        )
    return {host: kinds[name].most_common(1)[0][0] for host, name in names.items()}


def unknown_orders(nodes: HostFacts, stated: Mapping[str, Statements]) -> Iterable[Message]:
    """Yield that nodes have several processors, and nothing states which of them was ordered."""
    models = gathered(
        (facts.cpu_model, host)
        for host, facts in nodes.items()
        if ordered_processor(stated[host]) is None and stated[host].found.processor
    )
    if len(set(map(product_name, models))) > 1:
        found = ", ".join(f"{len(hosts)} × {name}" for name, hosts in models.items())
        about = {"found": found, "key": "partition.node.cpu_model"}
        yield Message("order-unknown", nodes=folded(chain(*models.values())), **about)


def empty_channels(nodes: HostFacts, stated: Mapping[str, Statements]) -> Iterable[Message]:
    """Yield the nodes with channels of the memory that have no module, if nothing states that."""
    found: dict[tuple[int, int], list[str]] = {}
    for host, facts in nodes.items():
        row, own = processor(facts.cpu_model), stated[host].found
        known = any(stated[host].by[name].dimms for name in ("declared", "accepted"))
        if row is None or row.channels is None or own.dimms is None or known:
            continue
        filled, channels = own.dimms, row.channels * facts.sockets
        if filled < channels:
            found.setdefault((filled, channels), []).append(host)
    for (filled, channels), hosts in found.items():
        count = {"filled": filled, "channels": channels}
        key = "partition.node.memory.modules"
        yield Message("channels-empty", nodes=folded(hosts), key=key, **count)


def part_faults(nodes: HostFacts, stated: Mapping[str, Statements]) -> NodeFaults:
    """Return what each node has less of than stated, one message for each who states it."""
    faults = {host: tuple(_faults(facts, stated[host])) for host, facts in nodes.items()}
    return {host: messages for host, messages in faults.items() if messages}


def _faults(facts: NodeFacts, stated: Statements) -> Iterable[Message]:
    named: set[str] = set()
    for by, wanted in stated.by.items():
        found = stated.found
        if by == "accepted":  # it has the processors that the run was allowed to use
            found = replace(found, cores=facts.cores, sockets=facts.sockets)
        less = {
            name: message
            for name, message in missing_parts(wanted, found).items()
            if name not in named
        }
        named |= _with_related(less)
        for code, names in (("other", less.keys() & OTHER), ("hardware", less.keys() - OTHER)):
            if texts := tuple(message for name, message in less.items() if name in names):
                yield Message(f"{code}-{by}", text=texts)


def unread_parts(nodes: HostFacts, stated: Mapping[str, Statements]) -> tuple[Message, ...]:
    """Return the stated parts that the probes of nodes did not find out, with the nodes."""
    unread: dict[str, list[str]] = {}
    for host, facts in nodes.items():
        own, declared = stated[host].found, stated[host].by["declared"].processor
        if declared and same_processor(declared, facts.cpu_model):  # also by a hypervisor
            own = replace(own, processor=declared)
        names = chain.from_iterable(unknown_parts(by, own) for by in stated[host].by.values())
        for name in dict.fromkeys(names):
            unread.setdefault(name, []).append(host)
    return tuple(
        Message("part-unread", part=Message(f"part-{name}"), nodes=folded(hosts))
        for name, hosts in unread.items()
    )


def nominal_parts(
    nodes: HostFacts,
    stated: Mapping[str, Statements],
    ports: Mapping[str, tuple[str, ...]] | None = None,
) -> dict[str, Nominal]:
    """Return the parts of each node from which its limits are computed.

    Args:
        ports: those of each node that carry messages, as far as it is stated.
    """
    found = {
        host: replace(_nominal(facts, stated[host]), ports=(ports or {}).get(host, ()))
        for host, facts in nodes.items()
    }
    rates = {
        host: max(shown_gbit(each.rate or "") or 0 for each in active_ports(nodes[host], one))
        for host, one in found.items()
        if one.ports and active_ports(nodes[host], one)
    }
    usual = most(rates.values())
    for host, one in found.items():
        if one.ports and one.sources.get("gbit_per_s") != "declared":
            # What most nodes have on any port is not that of the ports that carry messages.
            rate = usual if usual and usual >= rates.get(host, 0) else None
            found[host] = replace(
                one, gbit_per_s=rate, sources={**one.sources, "gbit_per_s": "usual"}
            )
    return found


def _nominal(facts: NodeFacts, stated: Statements) -> Nominal:
    # A run that may use a part of the processors has a limit of this part.
    whole = facts.cores == facts.cores_online
    names = ("dimms", "dimm_mt_per_s", "gbit_per_s", *(("cores", "sockets") if whole else ()))
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for name in names:
        found = {by: getattr(each, name) or 0 for by, each in stated.by.items()}
        if name == "gbit_per_s":
            found |= {by: 0 for by, each in stated.by.items() if len(set(each.ports or ())) > 1}
        best = "declared" if found["declared"] else max(found, key=lambda by: found[by])
        own = getattr(stated.found, name) or 0
        # A node with more than accepted or usual was upgraded. Its limit is that of its own parts.
        if found[best] and (best == "declared" or found[best] >= own):
            sources[name], values[name] = best, found[best]
        elif found[best]:
            sources[name] = best
    ordered = ordered_processor(stated)
    if ordered and same_processor(ordered, facts.cpu_model) is False:
        values["processor"] = ordered
    counts = [len(each.rails or each.ports or ()) for each in stated.by.values()]
    return Nominal(**values, rails=counts[0] or max(counts) or None, sources=sources)


def shown_basis(
    rules: Iterable[tuple[Rule, Iterable[str]]], nominal: Mapping[str, Nominal], node: StatedNode
) -> Message:
    """Return which limits follow from the parts that nodes show, or `NOTHING`.

    Args:
        rules: the rules of the limits that judged figures, each with the nodes of the figures.
    """
    shown: dict[str, set[str]] = {}
    values = {
        "memory_bandwidth": node.memory.channel_speed,
        "link_bandwidth": node.rails.rate,
        "link_latency": node.rails.latency_s,
    }
    for rule, hosts in rules:
        part = PART_OF[rule]
        by = {host: nominal[host].sources.get(part, "usual") for host in hosts if host in nominal}
        missing = {host for host, who in by.items() if who == "usual"}
        if missing and values.get(rule) is None:
            shown.setdefault(part, set()).update(missing)
    if not shown:
        return NOTHING
    parts = tuple(Message(f"part-{name}") for name in shown)
    return Message("parts-shown", parts=parts, nodes=folded(set().union(*shown.values())))

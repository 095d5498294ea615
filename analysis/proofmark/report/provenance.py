"""What the machine and its programs were while the run measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from proofmark.report.node_tables import counters, details, devices, filled, module
from proofmark.report.page import TITLED, Block, Fold, Section, facts
from proofmark.report.run_data import RunData, facts_of
from proofmark.report.software import blocks as software_blocks
from proofmark.report.text import count, folded, size
from proofmark.runs.nodes import Node
from proofmark.site.node.facts import NodeFacts
from proofmark.site.node.parts import Mount, Nic, NumaDomain, Port

MOST_KINDS = 20
"""Kinds of nodes that are described; the others stand in nodes/."""

IGNORED = ("ext4", "tmpfs", "overlay", "squashfs", "hugetlbfs", "ramfs", "iso9660", "vfat")
"""File systems of which only the root is worth a line."""

Facts = tuple[tuple[str, str], ...]


def section(material: RunData) -> Section:
    """Return the nodes, like ones together, and the programs."""
    kinds: dict[Facts, list[Node]] = {}
    for node in material.nodes:
        kinds.setdefault(described(facts_of(node)), []).append(node)
    ordered = sorted(kinds.items(), key=lambda item: -len(item[1]))
    blocks = [_kind(rows, members) for rows, members in ordered[:MOST_KINDS]]
    if len(ordered) > MOST_KINDS:
        more = f"{count(len(ordered) - MOST_KINDS, 'more kind')} of node: see nodes/."
        blocks.append(Block(paragraphs=(more,)))
    if not ordered:
        blocks.append(Block(paragraphs=("No node left its provenance.",)))
    return Section("provenance", "Provenance", (*blocks, *software_blocks(material)))


def _kind(rows: Facts, members: Sequence[Node]) -> Block:
    first = facts_of(members[0])
    hosts = folded(node.host for node in members)
    alike = f" ({count(len(members), 'node')} alike)" if len(members) > 1 else ""
    absent = [(thing, why) for thing, why in sorted(first.absent.items())]
    folds = [
        Fold("NUMA distances, caches and vulnerabilities", Block(tables=filled(details(first)))),
        Fold("Memory modules, network and mounts", Block(tables=filled(devices(first)))),
        Fold(
            f"Error counters before and after, on {first.hostname}",
            Block(tables=filled(counters(members[0]))),
        ),
    ]
    if absent:
        caption = "What this node does not tell, and why"
        folds.append(Fold(caption, Block(tables=(facts(caption, absent, kind=f"dense {TITLED}"),))))
    return Block(
        titles=(f"{hosts}{alike}",),
        tables=(facts(f"What {hosts} is", rows, kind=TITLED),),
        folds=tuple(folds),
    )


def described(node: NodeFacts) -> Facts:
    """Return what like nodes have in common, as names and values; absent things with the reason."""

    def said(value: object, *absent: str) -> str:
        if value not in (None, "", ()):
            return str(value)
        why = next((node.absent[thing] for thing in absent if thing in node.absent), "")
        return f"not told ({why})" if why else "not told"

    firmware = node.firmware
    board = " ".join(
        firmware[key] for key in ("board_vendor", "board_name", "board_version") if key in firmware
    )
    bios = " ".join(
        firmware[key] for key in ("bios_vendor", "bios_version", "bios_date") if key in firmware
    )
    system = " ".join(firmware[key] for key in ("sys_vendor", "product_name") if key in firmware)
    ids = f"family {node.family}, model {node.model}, stepping {said(node.stepping)}"
    rows = (
        ("Processor", f"{node.cpu_model} ({node.architecture}, {node.vector_isa})"),
        ("Processor ids", f"{node.vendor}, {ids}, microcode {said(node.microcode)}"),
        (
            "Cores",
            f"{count(node.cores, 'core')} in {count(node.sockets, 'socket')}, "
            f"{count(node.threads_per_core, 'thread')} per core",
        ),
        ("Not alike", _differing(node)),
        ("SMT", said(node.smt, "smt.control", "smt")),
        ("NUMA", _numa(node.numa)),
        ("Memory", f"{size(node.memory_total_bytes)}, swap {size(node.swap_bytes)}"),
        ("Memory modules", said(_dimms(node), "dimms")),
        ("Governor", said(node.governor, "frequency.governor", "frequency")),
        ("Frequency", _frequency(node)),
        ("Transparent huge pages", f"{said(node.thp)}, defrag {said(node.thp_defrag)}"),
        ("Kernel", f"{node.kernel} ({node.machine}), {node.kernel_version}"),
        ("Kernel command line", said(node.cmdline, "cmdline")),
        ("Operating system", said(node.os, "os")),
        ("Virtual", f"{node.virtual or 'no'}, container {node.container or 'no'}"),
        ("BIOS", said(bios, "dmi", "dmi.bios_version")),
        ("Board", said(board, "dmi", "dmi.board_name")),
        ("System", said(system, "dmi", "dmi.product_name")),
        ("Network", said(_nics(node.nics, node.ports), "nics")),
        ("File systems", said(_mounts(node.mounts), "mounts")),
        ("Settings", ", ".join(f"{key} {value}" for key, value in sorted(node.settings.items()))),
    )
    return tuple((name, value) for name, value in rows if value)


def _differing(node: NodeFacts) -> str:
    return "; ".join(f"{key}: {', '.join(found)}" for key, found in sorted(node.differing.items()))


def _numa(domains: Iterable[NumaDomain]) -> str:
    alike = Counter((len(domain.cpus), domain.memory_bytes >> 30) for domain in domains)
    return ", ".join(
        f"{number} × {count(cpus, 'CPU')} with {gigabytes} GiB"
        for (cpus, gigabytes), number in alike.items()
    )


def _dimms(node: NodeFacts) -> str:
    alike = Counter(module(dimm) for dimm in node.dimms)
    told = [f"{number} × {module}" for module, number in alike.items()]
    if told and node.dimm_slots_empty:
        told.append(f"{node.dimm_slots_empty} slots empty")
    return "; ".join(told)


def _frequency(node: NodeFacts) -> str:
    def gigahertz(hertz: int | None) -> str:
        return "not told" if hertz is None else f"{hertz / 1e9:g} GHz"

    turbo = {True: "on", False: "off", None: "not told"}[node.turbo]
    driver = f", driver {node.frequency_driver}" if node.frequency_driver else ""
    nominal, most = gigahertz(node.base_hz), gigahertz(node.max_hz)
    return f"nominal {nominal}, at most {most}, turbo {turbo}{driver}"


def _nics(nics: Iterable[Nic], ports: Iterable[Port]) -> str:
    plain = [
        " ".join(
            filter(
                None,
                (
                    nic.name,
                    nic.driver,
                    f"firmware {nic.firmware}" if nic.firmware else "",
                    f"{nic.megabits} Mb/s" if nic.megabits else "",
                    nic.state,
                ),
            )
        )
        for nic in nics
    ]
    fabric = [
        " ".join(filter(None, (port.adapter, port.kind, port.firmware, port.rate, port.state)))
        for port in ports
    ]
    return "; ".join(plain + fabric)


def _mounts(mounts: Iterable[Mount]) -> str:
    return ", ".join(
        f"{mount.target} {mount.kind}"
        for mount in mounts
        if mount.target == "/" or mount.kind not in IGNORED
    )

"""The provenance section: hardware and settings of the nodes, and the programs of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from proofmark.common.nodesets import folded
from proofmark.report.node_tables import counters, details, devices, filled, module
from proofmark.report.page import TITLED, Block, Fold, Section, facts
from proofmark.report.run_data import RunData, facts_of
from proofmark.report.software import blocks as software_blocks
from proofmark.report.text import count, size_4_digits
from proofmark.runs.nodes import Node
from proofmark.site.node.facts import NodeFacts
from proofmark.site.node.parts import Mount, Nic, NumaDomain, Port

MOST_KINDS = 20
"""The largest number of kinds of nodes that are described; nodes/ has all of them."""

IGNORED = ("ext4", "tmpfs", "overlay", "squashfs", "hugetlbfs", "ramfs", "iso9660", "vfat")
"""Types of file systems that are listed only if they are mounted at ``/``."""

Facts = tuple[tuple[str, str], ...]


def section(run_data: RunData) -> Section:
    """Return the section: the nodes, grouped by equal facts, then the programs."""
    kinds: dict[Facts, list[Node]] = {}
    for node in run_data.nodes:
        kinds.setdefault(described(facts_of(node)), []).append(node)
    ordered = sorted(kinds.items(), key=lambda item: -len(item[1]))
    blocks = [_kind(rows, members) for rows, members in ordered[:MOST_KINDS]]
    if len(ordered) > MOST_KINDS:
        more = f"{count(len(ordered) - MOST_KINDS, 'more kind')} of node: see nodes/."
        blocks.append(Block(paragraphs=(more,)))
    if not ordered:
        blocks.append(Block(paragraphs=("No provenance was collected from a node.",)))
    return Section("provenance", "Provenance", (*blocks, *software_blocks(run_data)))


def _kind(rows: Facts, members: Sequence[Node]) -> Block:
    first = facts_of(members[0])
    hosts = folded(node.host for node in members)
    alike = f" ({count(len(members), 'node')} alike)" if len(members) > 1 else ""
    absent = sorted(first.absent.items())
    folds = [
        Fold("NUMA distances, caches and vulnerabilities", Block(tables=filled(details(first)))),
        Fold("Memory modules, network and mounts", Block(tables=filled(devices(first)))),
        Fold(
            f"Error counters before and after, on {first.hostname}",
            Block(tables=filled(counters(members[0]))),
        ),
    ]
    if absent:
        caption = "Facts that this node did not report, and why"
        folds.append(Fold(caption, Block(tables=(facts(caption, absent, kind=f"dense {TITLED}"),))))
    return Block(
        titles=(f"{hosts}{alike}",),
        tables=(facts(f"Hardware and settings of {hosts}", rows, kind=TITLED),),
        folds=tuple(folds),
    )


def described(node: NodeFacts) -> Facts:
    """Return the facts that define a kind of node, as names and values.

    A missing fact is shown as ``not reported``, with the reason if it is known.
    """

    def reported(value: object, *absent: str) -> str:
        if value not in (None, "", ()):
            return str(value)
        why = next((node.absent[key] for key in absent if key in node.absent), "")
        return f"not reported ({why})" if why else "not reported"

    firmware = node.firmware
    board = " ".join(
        firmware[key] for key in ("board_vendor", "board_name", "board_version") if key in firmware
    )
    bios = " ".join(
        firmware[key] for key in ("bios_vendor", "bios_version", "bios_date") if key in firmware
    )
    system = " ".join(firmware[key] for key in ("sys_vendor", "product_name") if key in firmware)
    ids = f"family {node.family}, model {node.model}, stepping {reported(node.stepping)}"
    rows = (
        ("Processor", f"{node.cpu_model} ({node.architecture}, {node.vector_isa})"),
        ("Processor ids", f"{node.vendor}, {ids}, microcode {reported(node.microcode)}"),
        (
            "Cores",
            f"{count(node.cores, 'core')} in {count(node.sockets, 'socket')}, "
            f"{count(node.threads_per_core, 'thread')} per core",
        ),
        ("Differs between CPUs", _differing(node)),
        ("SMT", reported(node.smt, "smt.control", "smt")),
        ("NUMA", _numa(node.numa)),
        (
            "Memory",
            f"{size_4_digits(node.memory_total_bytes)}, swap {size_4_digits(node.swap_bytes)}",
        ),
        ("Memory modules", reported(_dimms(node), "dimms")),
        ("Governor", reported(node.governor, "frequency.governor", "frequency")),
        ("Frequency", _frequency(node)),
        ("Transparent huge pages", f"{reported(node.thp)}, defrag {reported(node.thp_defrag)}"),
        ("Kernel", f"{node.kernel} ({node.machine}), {node.kernel_version}"),
        ("Kernel command line", reported(node.cmdline, "cmdline")),
        ("Operating system", reported(node.os, "os")),
        ("Virtual", f"{node.virtual or 'no'}, container {node.container or 'no'}"),
        ("BIOS", reported(bios, "dmi", "dmi.bios_version")),
        ("Board", reported(board, "dmi", "dmi.board_name")),
        ("System", reported(system, "dmi", "dmi.product_name")),
        ("Network", reported(_nics(node.nics, node.ports), "nics")),
        ("File systems", reported(_mounts(node.mounts), "mounts")),
        ("Settings", ", ".join(f"{key} {value}" for key, value in sorted(node.settings.items()))),
    )
    return tuple((name, value) for name, value in rows if value)


def _differing(node: NodeFacts) -> str:
    return "; ".join(
        f"{key}: {', '.join(values)}" for key, values in sorted(node.differing.items())
    )


def _numa(domains: Iterable[NumaDomain]) -> str:
    alike = Counter((len(domain.cpus), domain.memory_bytes >> 30) for domain in domains)
    return ", ".join(
        f"{number} × {count(cpus, 'CPU')} with {gigabytes} GiB"
        for (cpus, gigabytes), number in alike.items()
    )


def _dimms(node: NodeFacts) -> str:
    alike = Counter(module(dimm) for dimm in node.dimms)
    modules = [f"{number} × {module}" for module, number in alike.items()]
    if modules and node.dimm_slots_empty:
        modules.append(f"{node.dimm_slots_empty} slots empty")
    return "; ".join(modules)


def _frequency(node: NodeFacts) -> str:
    def gigahertz(hertz: int | None) -> str:
        return "not reported" if hertz is None else f"{hertz / 1e9:g} GHz"

    turbo = {True: "on", False: "off", None: "not reported"}[node.turbo]
    driver = f", driver {node.frequency_driver}" if node.frequency_driver else ""
    nominal, maximum = gigahertz(node.base_hz), gigahertz(node.max_hz)
    return f"nominal {nominal}, maximum {maximum}, turbo {turbo}{driver}"


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

"""The provenance section: hardware and settings of the nodes, and the programs of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from proofmark.common.nodesets import folded
from proofmark.common.sentences import localized
from proofmark.common.translation import _
from proofmark.report.page import TITLED, Block, Fold, Section, facts
from proofmark.report.run_data import RunData, facts_of
from proofmark.report.sections.installed_programs import blocks as software_blocks
from proofmark.report.sections.node_tables import counters, details, devices, filled, module
from proofmark.report.words import count, size_4_digits
from proofmark.runs.nodes import Node
from proofmark.site.node.facts import NodeFacts
from proofmark.site.node.parts import MountedFileSystem, Nic, Port, ReportedDomain

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
        more = _("{kinds} of node: see nodes/.").format(
            kinds=count(len(ordered) - MOST_KINDS, "more kind")
        )
        blocks.append(Block(paragraphs=(more,)))
    if not ordered:
        blocks.append(Block(paragraphs=(_("No provenance was collected from a node."),)))
    return Section("provenance", _("Provenance"), (*blocks, *software_blocks(run_data)))


def _kind(rows: Facts, members: Sequence[Node]) -> Block:
    first = facts_of(members[0])
    hosts = folded(node.host for node in members)
    alike = (
        _(" ({nodes} alike)").format(nodes=count(len(members), "node")) if len(members) > 1 else ""
    )
    absent = [(name, localized(why)) for name, why in sorted(first.absent.items())]
    folds = [
        Fold(_("NUMA distances, caches and vulnerabilities"), Block(tables=filled(details(first)))),
        Fold(_("Memory modules, network and mounts"), Block(tables=filled(devices(first)))),
        Fold(
            _("Error counters before and after, on {host}").format(host=first.hostname),
            Block(tables=filled(counters(members[0]))),
        ),
    ]
    if absent:
        caption = _("Facts that this node did not report, and why")
        folds.append(Fold(caption, Block(tables=(facts(caption, absent, kind=f"dense {TITLED}"),))))
    return Block(
        titles=(f"{hosts}{alike}",),
        tables=(
            facts(_("Hardware and settings of {hosts}").format(hosts=hosts), rows, kind=TITLED),
        ),
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
        return (
            _("not reported ({reason})").format(reason=localized(why)) if why else _("not reported")
        )

    firmware = node.firmware
    board = " ".join(
        firmware[key] for key in ("board_vendor", "board_name", "board_version") if key in firmware
    )
    bios = " ".join(
        firmware[key] for key in ("bios_vendor", "bios_version", "bios_date") if key in firmware
    )
    system = " ".join(firmware[key] for key in ("sys_vendor", "product_name") if key in firmware)
    ids = _("family {family}, model {model}, stepping {stepping}").format(
        family=node.family, model=node.model, stepping=reported(node.stepping)
    )
    unread = "; ".join(f"{name}: {text!r}" for name, text in sorted(node.unread.items()))
    rows = (
        (_("Processor"), f"{node.cpu_model} ({node.architecture}, {node.vector_isa})"),
        (
            _("Processor ids"),
            _("{vendor}, {ids}, microcode {microcode}").format(
                vendor=node.vendor, ids=ids, microcode=reported(node.microcode)
            ),
        ),
        (
            _("Cores"),
            _("{cores} in {sockets}, {threads} per core").format(
                cores=count(node.cores, "core"),
                sockets=count(node.sockets, "socket"),
                threads=count(node.threads_per_core, "thread"),
            ),
        ),
        (_("Differs between CPUs"), _differing(node)),
        ("SMT", reported(node.smt, "smt.control", "smt")),
        ("NUMA", _numa(node.numa)),
        (
            _("Memory"),
            _("{memory}, swap {swap}").format(
                memory=size_4_digits(node.memory_total_bytes), swap=size_4_digits(node.swap_bytes)
            ),
        ),
        (_("Memory modules"), reported(_dimms(node), "dimms")),
        (_("Governor"), reported(node.governor, "frequency.governor", "frequency")),
        (_("Frequency"), _frequency(node)),
        (
            _("Transparent huge pages"),
            _("{value}, defrag {defrag}").format(
                value=reported(node.thp), defrag=reported(node.thp_defrag)
            ),
        ),
        (_("Kernel"), f"{node.kernel} ({node.machine}), {node.kernel_version}"),
        (_("Kernel command line"), reported(node.cmdline, "cmdline")),
        (_("Operating system"), reported(node.os, "os")),
        (
            _("Virtual"),
            _("{machine}, container {container}").format(
                machine=node.virtual or _("no"), container=node.container or _("no")
            ),
        ),
        ("BIOS", reported(bios, "dmi", "dmi.bios_version")),
        (_("Board"), reported(board, "dmi", "dmi.board_name")),
        (_("System"), reported(system, "dmi", "dmi.product_name")),
        (_("Network"), reported(_nics(node.nics, node.ports), "nics")),
        (_("File systems"), reported(_mounts(node.mounts), "mounts")),
        (
            _("Settings"),
            ", ".join(f"{key} {value}" for key, value in sorted(node.settings.items())),
        ),
        (_("Not known: the value cannot be read"), unread),
    )
    return tuple((name, value) for name, value in rows if value)


def _differing(node: NodeFacts) -> str:
    return "; ".join(
        f"{key}: {', '.join(values)}" for key, values in sorted(node.differing.items())
    )


def _numa(domains: Iterable[ReportedDomain]) -> str:
    alike = Counter((len(domain.cpus), domain.memory_bytes >> 30) for domain in domains)
    return ", ".join(
        _("{number} × {cpus} with {memory} GiB").format(
            number=number, cpus=count(cpus, "CPU"), memory=gigabytes
        )
        for (cpus, gigabytes), number in alike.items()
    )


def _dimms(node: NodeFacts) -> str:
    alike = Counter(module(dimm) for dimm in node.dimms)
    modules = [f"{number} × {module}" for module, number in alike.items()]
    if modules and node.dimm_slots_empty:
        modules.append(_("{count} slots empty").format(count=node.dimm_slots_empty))
    return "; ".join(modules)


def _frequency(node: NodeFacts) -> str:
    def gigahertz(hertz: int | None) -> str:
        return _("not reported") if hertz is None else f"{hertz / 1e9:g} GHz"

    turbo = {True: _("on"), False: _("off"), None: _("not reported")}[node.turbo]
    driver = (
        _(", driver {driver}").format(driver=node.frequency_driver) if node.frequency_driver else ""
    )
    nominal, maximum = gigahertz(node.base_hz), gigahertz(node.max_hz)
    return _("nominal {nominal}, maximum {maximum}, turbo {turbo}{driver}").format(
        nominal=nominal, maximum=maximum, turbo=turbo, driver=driver
    )


def _nics(nics: Iterable[Nic], ports: Iterable[Port]) -> str:
    plain = [
        " ".join(
            filter(
                None,
                (
                    nic.name,
                    nic.driver,
                    _("firmware {version}").format(version=nic.firmware) if nic.firmware else "",
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


def _mounts(mounts: Iterable[MountedFileSystem]) -> str:
    return ", ".join(
        f"{mount.target} {mount.kind}"
        for mount in mounts
        if mount.target == "/" or mount.kind not in IGNORED
    )

"""The provenance section: hardware and settings of the nodes, and the programs of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from proofmark.common.grouping import gathered
from proofmark.common.message import NOTHING, localized
from proofmark.common.nodesets import folded
from proofmark.common.translation import _
from proofmark.judge.references.derived import peak
from proofmark.report.page import (
    TITLED,
    Block,
    Cell,
    Cells,
    Fold,
    Section,
    Table,
    facts,
    listed,
    table,
    titled,
)
from proofmark.report.run_data import RunData, facts_of
from proofmark.report.words import count, number, size_4_digits
from proofmark.runs.nodes import Node
from proofmark.site.hardware import StatedNode
from proofmark.site.node.facts import NodeFacts
from proofmark.site.node.parts import Dimm, Nic, Port, ReportedDomain
from proofmark.software.program import Program
from proofmark.software.software import Package


def filled(tables: Iterable[Table]) -> tuple[Table, ...]:
    """Return the tables that have rows."""
    return tuple(item for item in tables if item.rows)


def module(dimm: Dimm) -> str:
    """Return a memory module in one line, with its speed if that differs from the rated one."""
    capacity = _("unknown size") if dimm.bytes is None else size_4_digits(dimm.bytes)
    names = (capacity, dimm.kind, dimm.manufacturer, dimm.part_number)
    speed = f"{dimm.rated} MT/s" if dimm.rated else ""
    runs = (
        _("runs at {speed} MT/s").format(speed=dimm.configured)
        if dimm.configured != dimm.rated
        else ""
    )
    return " ".join(filter(None, (*names, speed, runs)))


def software_blocks(run_data: RunData) -> Iterator[Block]:
    """Yield the programs of a run, with their libraries and their environment."""
    if run_data.software is None:
        yield Block(titles=(_("Programs"),), paragraphs=(_("No program has been recorded yet."),))
        return
    packages = run_data.software.packages
    rows = []
    for name, package in packages.items():
        rows += [
            (
                Cell(program.name, "strong"),
                _version(name, package),
                Cell(program.path, "code"),
                Cell(program.sha256 or _("not reported"), "code"),
                _mpi(program),
                _blas(program),
            )
            for program in package.programs.values()
        ]
    columns = (_("Program"), _("Package"), _("File"), "SHA-256", "MPI", "BLAS")
    yield Block(
        titles=(_("Programs"),),
        tables=filled(
            (
                titled(_("Programs that ran"), columns, rows),
                facts(
                    _("Variables of the caller that reached a tool"),
                    run_data.software.passed_on.items(),
                    kind="dense",
                ),
            )
        ),
        folds=tuple(_folds(run_data)),
    )


def _version(name: str, package: Package) -> str:
    spec = f", {package.spec}" if package.spec else ""
    build = _(", hash {hash}").format(hash=package.hash) if package.hash else ""
    return f"{name} {package.version}, {package.origin}{spec}{build}"


def _mpi(program: Program) -> str:
    mpi = program.mpi
    return f"{mpi.family or _('unknown')} {mpi.version or ''}".strip() if mpi else _("none")


def _blas(program: Program) -> str:
    blas = program.blas
    if blas is None:
        return _("none")
    chosen = blas.chosen or blas.built_for
    kernel = (
        _("default kernel {kernel}").format(kernel=chosen)
        if chosen
        else _("kernel unknown: {reason}").format(reason=localized(blas.why_unknown or NOTHING))
    )
    return f"{blas.family} {blas.version or _('of unknown version')}, {kernel}"


def _folds(run_data: RunData) -> Iterator[Fold]:
    packages = run_data.software.packages if run_data.software else {}
    for name, package in packages.items():
        for program in package.programs.values():
            rows: list[Cells] = [
                (
                    Cell(library.name, "code"),
                    library.package or "–",
                    Cell(library.path, "code"),
                    Cell(library.sha256 or _("not reported"), "code"),
                )
                for library in program.libraries
            ]
            rows += [
                (Cell(missing, "code"), "–", _("not found"), "–") for missing in program.missing
            ]
            columns = (_("Library"), _("Package"), _("File"), "SHA-256")
            yield Fold(
                _("Libraries of {program}").format(program=program.name),
                Block(
                    tables=(
                        table(
                            _("Libraries that {program} is linked with").format(
                                program=program.name
                            ),
                            columns,
                            rows,
                            kind="dense",
                        ),
                    )
                ),
            )
        yield Fold(
            _("Environment of {package}").format(package=name),
            Block(tables=(_environment(package),)),
        )


def _environment(package: Package) -> Table:
    rows = [
        (_("always"), Cell(f"{key}={value}", "code")) for key, value in package.environment.items()
    ]
    for key, value in package.run_environment.items():
        rows.append((_("run-time variable of the site"), Cell(f"{key}={value}", "code")))
    for variant, choices in package.variants.items():
        for choice, environment in choices.items():
            values = " ".join(f"{key}={value}" for key, value in environment.items())
            rows.append((f"{variant} {choice}", Cell(values or _("nothing"), "code")))
    rows.append((_("digest"), Cell(package.environment_hash, "code")))
    return table(_("Environment variables of the programs"), (_("When"), _("Setting")), rows)


MOST_KINDS = 20
"""The largest number of kinds of nodes that are described; nodes/ has all of them."""

IGNORED = ("ext4", "tmpfs", "overlay", "squashfs", "hugetlbfs", "ramfs", "iso9660", "vfat")
"""Types of file systems that are listed only if they are mounted at ``/``."""

Facts = tuple[tuple[str, str], ...]


def section(run_data: RunData) -> Section:
    """Return the section: the nodes, grouped by equal facts, then the programs."""
    kinds = gathered(
        (described(facts_of(node), run_data.site.partition.node), node) for node in run_data.nodes
    )
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
    folds = []
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


def described(node: NodeFacts, stated: StatedNode) -> Facts:
    """Return the facts that define a kind of node, as names and values.

    A missing fact is shown as ``not reported``, with the reason if it is known.
    """

    def reported(value: object, *absent: str) -> str:
        if value not in (None, ""):
            return str(value)
        why = next((node.absent[key] for key in absent if key in node.absent), "")
        return (
            _("not reported ({reason})").format(reason=localized(why)) if why else _("not reported")
        )

    def firmware(*keys: str) -> str:
        return " ".join(node.firmware[key] for key in keys if key in node.firmware)

    bios = firmware("bios_vendor", "bios_version", "bios_date")
    board = firmware("board_vendor", "board_name", "board_version")
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
        (
            _("Differs between CPUs"),
            "; ".join(
                f"{key}: {', '.join(values)}" for key, values in sorted(node.differing.items())
            ),
        ),
        ("SMT", reported(node.smt, "smt.control", "smt")),
        ("NUMA", _numa(node.numa)),
        (
            _("Memory"),
            _("{memory}, swap {swap}").format(
                memory=size_4_digits(node.memory_total_bytes),
                swap="–" if node.swap_bytes is None else size_4_digits(node.swap_bytes),
            ),
        ),
        (_("Memory modules"), reported(_dimms(node), "dimms")),
        (_("Governor"), reported(node.governor, "frequency.governor", "frequency")),
        (_("Frequency"), _frequency(node)),
        (_("Rpeak nominal"), f"{number(rate)} GFlop/s" if (rate := peak(node, stated)) else ""),
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
        (_("System"), reported(firmware("sys_vendor", "product_name"), "dmi", "dmi.product_name")),
        (_("Network"), reported(_nics(node.nics, node.ports), "nics")),
        (
            _("File systems"),
            reported(
                ", ".join(
                    f"{mount.target} {mount.kind}"
                    for mount in node.mounts
                    if mount.target == "/" or mount.kind not in IGNORED
                ),
                "mounts",
            ),
        ),
        (
            _("Settings"),
            ", ".join(f"{key} {value}" for key, value in sorted(node.settings.items())),
        ),
        (_("Not known: the value cannot be read"), unread),
    )
    return tuple((name, value) for name, value in rows if value)


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
        modules.append(count(node.dimm_slots_empty, "slot empty", "slots empty"))
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


def driver_sections(run_data: RunData) -> tuple[Section, ...]:
    """Return the section; nothing for a run without a program that writes by MPI-IO."""
    if not run_data.drivers:
        return ()
    lines = [
        f"{case}: {', '.join(names)}"
        if names
        else _("{case}: unknown, neither its output nor its MPI states it").format(case=case)
        for case, names in sorted(run_data.drivers.items())
    ]
    caption = _("The driver decides whether stripes and collective buffers fit the file system")
    return (Section("file-drivers", _("Drivers of MPI-IO"), (listed(caption, lines),)),)

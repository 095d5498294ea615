"""The facts of a partition that follow from a survey, each with its source. Pure.

They include the question of ``proofmark init`` for the parts that were bought, the environment of
the programs, the scratch directory, and facts that no key of ``partition`` has.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from archspec.cpu import TARGETS

from proofmark.common.errors import BadInput
from proofmark.common.printed_command import PrintedCommand, of_person
from proofmark.common.text import one_line, size
from proofmark.machine.scheduler import QueueLimits
from proofmark.packages.survey.answers import (
    RATES,
    Entry,
    Fact,
    Found,
    NodeKind,
    NodeReport,
    Question,
    Survey,
    modules,
    rates,
    recognized,
    versions,
    with_domains,
)
from proofmark.packages.survey.fabric_findings import fabric_found
from proofmark.site.groups import is_template, literal_yaml
from proofmark.site.hardware import NODE
from proofmark.site.hardware_limits import link, processor, shown_gbit
from proofmark.site.installed_parts import LEAST_NIC_GBIT, Parts, parts_of
from proofmark.site.machines import CORE_FLOPS
from proofmark.site.node.facts import NodeFacts
from proofmark.site.node.parts import MountedFileSystem
from proofmark.site.node.topology import Topology
from proofmark.site.rails import rails_of
from proofmark.software.spack.lock_check import definitions_of, read_spack_yaml, read_target
from proofmark.software.spack.lock_file import abstract_specs
from proofmark.software.spack.site_choice import wanted_blas


@dataclass(frozen=True)
class Environment:
    """One folder of ``environments/``.

    Attributes:
        target: archspec's name of the microarchitecture that its programs are built for.
        stream_array_size: elements of an array of STREAM, compiled in.
        threaded_blas: whether the BLAS runs threads.
        system: whether packages of the distribution can provide its programs.
        locks: the operating systems that have a lock of Spack (``debian12``).
    """

    target: str
    stream_array_size: int
    threaded_blas: bool
    system: bool
    locks: tuple[str, ...] = ()

    def fits(self, architecture: str) -> bool:
        """Return whether programs of the environment run on `architecture` and are made for it.

        A specific target fits only itself: another processor has another optimum.
        """
        node, target = TARGETS.get(architecture), TARGETS.get(self.target)
        if node is None or target is None:
            return False
        generic = target.vendor == "generic" and target in node.ancestors
        return self.target == architecture or generic

    def has_lock(self, system: str) -> bool:
        """Return whether a lock is for an operating system, by its name in os-release(5).

        The name is that for people (``PRETTY_NAME``): ``Debian GNU/Linux 12 (bookworm)``.
        """
        words = re.findall(r"[a-z]+|\d+", system.lower())
        return any(set(re.findall(r"[a-z]+|\d+", lock)) <= set(words) for lock in self.locks)

    def rank(self, architecture: str) -> tuple[bool, int]:
        """Return the order of fitting environments: the exact one last, then the most features."""
        return self.target == architecture, len(TARGETS[self.target].ancestors)


def environments_in(folder: Path) -> dict[str, Environment]:
    """Return the environments in `folder`, ``environments/`` of a checkout, by name.

    A folder whose ``spack.yaml`` names no size of the arrays is left out.

    Raises:
        BadInput: a ``spack.yaml`` has not exactly one target.
    """
    found: dict[str, Environment] = {}
    for path in sorted(folder.glob("*/spack.yaml")):
        environment = read_spack_yaml(path)
        asked = [*abstract_specs(definitions_of([environment]).values())]
        sizes = [size for each in asked if (size := each.value("stream_array_size"))]
        if sizes:
            found[path.parent.name] = Environment(
                target=read_target(path.parent),
                stream_array_size=int(sizes[0]),
                threaded_blas=wanted_blas(environment).value("threads") in ("openmp", "pthreads"),
                system=(path.parent / "system.yml").is_file(),
                locks=tuple(sorted(lock.parent.name for lock in path.parent.glob("*/spack.lock"))),
            )
    return found


def dimm_texts(facts: NodeFacts) -> list[str]:
    """Return the memory modules as ``12 x 16.0 GiB DDR4, 2666 MT/s, configured 2666 MT/s``."""
    counts: dict[str, int] = {}
    for dimm in facts.dimms:
        speed = f"{dimm.rated or '?'} MT/s, configured {dimm.configured or '?'} MT/s"
        capacity = "unknown size" if dimm.bytes is None else size(dimm.bytes)
        text = one_line(f"{capacity} {dimm.kind or 'memory'}, {speed}")
        counts[text] = counts.get(text, 0) + 1
    return [f"{count} x {text}" for text, count in sorted(counts.items())]


def further_facts(report: NodeReport) -> dict[str, Fact]:
    """Return the facts of a node that no key of ``partition`` has, by name.

    A fact that Ansible would evaluate is left out.
    """
    node, facts = report.node, report.facts
    found: dict[str, Fact] = {}
    if facts is not None:
        found |= _further_facts(facts, node)
    for section in ("compilers", "mpi"):
        if lines := report.tools.get(section):
            found[section] = Fact(versions(lines), f"--version of each program on {node}")
    if lines := report.tools.get("modules"):
        system, names = modules(tuple(lines))
        found["module_system"] = Fact(system, f"the login shell of {node}")
        found["modules"] = Fact(names, f"module -t avail on {node}")
    if report.bmc.address:
        found["bmc_address"] = Fact(report.bmc.address, f"{report.bmc.address_source}, of {node}")
    if report.bmc.vendor:
        found["bmc_vendor"] = Fact(report.bmc.vendor, report.bmc.vendor_source)
    return {name: fact for name, fact in found.items() if not is_template(f"{fact.value}")}


def _further_facts(facts: NodeFacts, node: str) -> dict[str, Fact]:
    firmware = facts.firmware
    bios = (firmware.get(key, "") for key in ("bios_vendor", "bios_version", "bios_date"))
    board = (firmware.get(key, "") for key in ("sys_vendor", "product_name", "model"))
    nics = [
        one_line(f"{nic.name}, {nic.driver or 'no driver'}, {nic.megabits or 'unknown'} Mb/s")
        for nic in facts.nics
    ]
    ports = [
        one_line(f"{port.adapter}/{port.port}, {port.state or '?'}, {port.rate or '?'}")
        for port in facts.ports
    ]
    turbo = {True: "on", False: "off", None: ""}[facts.turbo]
    texts: Mapping[str, tuple[str, str]] = {
        "system": (" ".join(filter(None, board)), "/sys/class/dmi/id"),
        "bios": (" ".join(filter(None, bios)), "/sys/class/dmi/id"),
        "microcode": (facts.microcode or "", "/proc/cpuinfo"),
        "operating_system": (facts.os, "/etc/os-release"),
        "kernel": (facts.kernel, "/proc/sys/kernel/osrelease"),
        "governor": (facts.governor or "", "/sys/devices/system/cpu"),
        "turbo": (turbo, "/sys/devices/system/cpu"),
        "max_clock_hz": (str(facts.max_hz or ""), "cpufreq"),
        "smt": (facts.smt or "", "/sys/devices/system/cpu/smt/control"),
    }
    lists: Mapping[str, tuple[Sequence[str], str]] = {
        "dimms": (dimm_texts(facts), "dmidecode -t memory"),
        "nics": (nics, "/sys/class/net"),
        "fabric_ports": (ports, "/sys/class/infiniband"),
    }
    found: dict[str, Fact] = {
        name: Fact(one_line(value), f"{source} of {node}")
        for name, (value, source) in texts.items()
        if value
    }
    for name, (values, source) in lists.items():
        if values:
            found[name] = Fact(list(values), f"{source} of {node}")
    return found


PARALLEL = (
    *("lustre", "gpfs", "beegfs", "wekafs", "panfs", "ceph", "pvfs2"),
    *("fuse.daos", "fuse.juicefs", "fuse.glusterfs"),
    *("nfs4", "nfs"),
)
"""Types of parallel file systems in ``/proc/mounts``, the usual ones first."""
SHARED = ("nfs4", "nfs")
MANY_SERVERS = "remoteports="
"""The option of NFS with several servers: VAST NFS, "Mount parameters". Without it, NFS is not
parallel."""
FOLDER = "proofmark"
"""The folder of the benchmarks on a scratch file system."""
LOCAL_SCRATCH = "/var/tmp/proofmark-{uid}"


def scratch_found(survey: Survey, facts: NodeFacts | None, report: NodeReport | None) -> Found:
    """Return the scratch directory of a partition: on a parallel file system, if one is mounted.

    Args:
        survey: what was found of the site.
        report: what one of the nodes reported; None if none was read.
    """
    if facts is None or report is None:
        return {"scratch.path": Question("Which directory do the benchmarks write to?")}
    if parallel := _parallel(facts):
        chosen, *others = parallel
        source = f"/proc/mounts of {report.node}"
        found: Found = {
            "scratch.path": Fact(f"{chosen.target.rstrip('/')}/{FOLDER}", source),
            "scratch.type": Fact(chosen.kind, source),
            "scratch.source": Fact(chosen.source, source),
            "scratch.off_root": Fact(True, "a file system of its own"),
        }
        if others:
            found["scratch.others"] = Question(
                f"scratch.others: is {_mount(chosen)} the one to accept? Mounted too: "
                f"{', '.join(map(_mount, others))}."
            )
        return found
    if survey.local:
        reason = f"no parallel file system is mounted on {report.node}"
        return {"scratch.path": Fact(LOCAL_SCRATCH, reason)}
    shared = ", ".join(_mount(each) for each in facts.mounts if each.kind in SHARED) or "none"
    return {
        "scratch.path": Question(
            "Which directory, that all nodes share, do the benchmarks write to? No parallel file "
            f"system is mounted on {report.node}. NFS there: {shared}."
        )
    }


def rates_found(report: NodeReport | None, facts: NodeFacts | None) -> Found:
    """Return the rates that the node measured, by which plans estimate times."""
    if report is None or facts is None:
        return {}
    found: Found = {}
    measured = rates(report.tools.get(RATES, ()))
    if flops := measured.get("flops"):
        source = f"multiply-add on all processors of {report.node}, measured by init"
        found[f"facts.{CORE_FLOPS}"] = Fact(int(float(f"{flops / facts.cores:.3g}")), source)
    if write := measured.get("write"):
        source = f"256 MiB written into {scratch_folder(facts)} of {report.node} by init"
        found["scratch.client_bytes_per_s"] = Fact(int(float(f"{write:.3g}")), source)
    return found


def scratch_folder(facts: NodeFacts | None) -> str:
    """Return the mount point of the scratch file system, or a folder of the node."""
    mounts = _parallel(facts) if facts else []
    return mounts[0].target if mounts else "/var/tmp"


def _parallel(facts: NodeFacts) -> list[MountedFileSystem]:
    """Return the parallel file systems of a node, the one for scratch first."""
    mounts = (each for each in facts.mounts if each.target.startswith("/"))
    return sorted(filter(_is_parallel, mounts), key=_preference)


def _is_parallel(mount: MountedFileSystem) -> bool:
    if mount.kind in SHARED:
        return any(each.startswith(MANY_SERVERS) for each in mount.options.split(","))
    return mount.kind in PARALLEL


def _preference(mount: MountedFileSystem) -> tuple[bool, bool, int, str]:
    """Sort scratch file systems first, and the homes of users last."""
    words = mount.target.lower()
    scratch = any(word in words for word in ("scratch", "work", "tmp"))
    home = any(word in words for word in ("home", "apps", "opt", "sw"))
    return not scratch, home, PARALLEL.index(mount.kind), mount.target


def _mount(mount: MountedFileSystem) -> str:
    return one_line(f"{mount.target} ({mount.kind}, {mount.source})")


UNKNOWN = "unknown"
"""The model of a processor whose ``/proc/cpuinfo`` has no name."""

USUAL_NB = 192

MEMORY_SHARE = 0.95
"""The memory is declared if programs may use less than this share of that of the topology."""


def parts_question(facts: NodeFacts, node: str) -> Found:
    """Return the question for the parts that were bought, with those of `node` as the answer."""
    found, row = parts_of(facts), processor(facts.cpu_model)
    text = f"node.sockets: does the offer state these parts? {node} has them. A node with less has "
    text += "a fault. If so, add these keys to those of node."
    memory: dict[str, Any] = {"bytes": found.memory_bytes}
    if found.dimms:
        size_of_each = min(found.dimm_bytes or (0,))
        memory = {"modules": found.dimms, "module_bytes": size_of_each}
        memory["mt_per_s"] = found.dimm_mt_per_s
        text += f" dmidecode: {'; '.join(dimm_texts(facts))}."
        if row is None or row.channels is None:
            memory["channels"] = found.dimms
            text += " One module for each channel is assumed."
    else:
        reason = one_line(facts.absent.get("dimms", "dmidecode reports none"))
        text += f" Which memory modules does a node have? {reason}."
    parts = {
        "sockets": found.sockets,
        "cores": found.cores,
        "memory": {key: value for key, value in memory.items() if value},
        "rails": _rails(facts),
        "accelerators": _accelerators(found),
    }
    known = {key: value for key, value in parts.items() if value}
    answer = {NODE: {**known, "sources": dict.fromkeys(known, "the offer")}}
    return {NODE: Question(text, tuple(literal_yaml(answer).splitlines()))}


def _accelerators(found: Parts) -> dict[str, Any]:
    """Return the accelerators of a node as the inventory states them; empty if it has none."""
    if not found.accelerators:
        return {}
    of_all = found.accelerator_ecc == found.accelerators
    each = {"lanes": min(found.lanes or (0,)), "gt_per_s": min(found.gt_per_s or (0,))}
    known = {key: value for key, value in each.items() if value}
    return {"count": found.accelerators, **known, **({"ecc": True} if of_all else {})}


def _rails(facts: NodeFacts) -> dict[str, Any]:
    """Return the ports of a node as the inventory states them; empty if it has none."""
    found = parts_of(facts)
    ports = [rate for rate in found.ports or found.nics or () if rate >= LEAST_NIC_GBIT]
    if not ports:
        return {}
    texts = [port.rate for port in facts.ports if shown_gbit(port.rate or "") == min(ports)]
    text = next((one_line(text) for text in texts if text and link(text)), None)
    rate = text or min(ports) * 1e9 / 8
    rails = {name: rail.numa for name, rail in rails_of(facts).items() if rail.is_fabric}
    if len(rails) == len(ports) > 1 and None not in rails.values():
        return {"rate": rate, "adapters": rails}
    return {"count": len(ports), "rate": rate}


def topology_file(node: str) -> str:
    """Return the name of the file with the topology of `node`."""
    return f"{node}.xml"


def partition_found(
    survey: Survey, kind: NodeKind, environments: Mapping[str, Environment]
) -> Found:
    """Return the facts of the partition `kind`, in the order of the file.

    Args:
        survey: what was found of the site.
        environments: the environments of the kit, by name.
    """
    report = survey.report_of(kind)
    facts = report.facts if report else None
    found: Found = {}
    found |= _node(report, kind, facts)
    found |= _programs(survey, facts, environments)
    found |= rates_found(report, facts)
    found |= _scheduler(survey, kind)
    found |= scratch_found(survey, facts, report)
    found |= fabric_found(survey, kind, facts, report)
    found |= _vendor_questions(report, facts)
    return {key: _checked(key, entry) for key, entry in found.items()}


def _checked(key: str, entry: Entry) -> Entry:
    """Return `entry`, or a question if Ansible would evaluate its value."""
    if not isinstance(entry, Fact) or not is_template(f"{entry.value}"):
        return entry
    return Question(f"{key}? {entry.source} has characters of a template.")


def _node(report: NodeReport | None, kind: NodeKind, facts: NodeFacts | None) -> Found:
    if facts is None or report is None:
        reason = report.problems.get("probe", "no output") if report else "no node of it was read"
        listed = f" The scheduler lists: {', '.join(kind.kind_texts)}." if kind.kind_texts else ""
        add = f"{one_line(reason)}. Run init with --from-node {kind.names[0]} too."
        return {
            "node.cpu_model": Question(f"Which processor do the nodes have? {add}{listed}"),
            "node.architecture": Question("Which name does archspec have for the processor?"),
            "node.topology": Question(
                "Which topology do the nodes have? Run `lstopo --of xml node.xml` on a node."
            ),
        }
    node = report.node
    model = one_line(facts.cpu_model)
    found: Found = {
        "node.cpu_model": Fact(model, f"/proc/cpuinfo of {node}")
        if model not in ("", UNKNOWN)
        else Question(f"Which processor do the nodes have? /proc/cpuinfo of {node} has no name.")
    }
    found["node.architecture"] = Fact(facts.architecture, f"archspec, from /proc/cpuinfo of {node}")
    topology, reason = topology_of(facts)
    if topology:
        found["node.topology"] = Fact(topology_file(node), f"lstopo --of xml on {node}")
    else:
        found["node.topology"] = Question(
            f"Which topology do the nodes have? On {node}: {reason}. Install hwloc there, or write "
            f"a synthetic topology of {facts.sockets} sockets and {facts.cores} cores."
        )
    found["node.clock_hz"] = (
        Fact(float(facts.base_hz), f"{facts.base_source}, for {node}")
        if facts.base_hz
        else Question(f"node.clock_hz: which nominal clock? {node} does not report it.")
    )
    row = processor(facts.cpu_model)
    found["node.flop_per_cycle"] = (
        Fact(row.flop_per_cycle, f"the table of processors: {row.source}")
        if row and row.flop_per_cycle
        else Question(
            "node.flop_per_cycle: how many double-precision operations for each core and "
            f"clock? The processor is not in the table; its vectors are {facts.vector_isa}."
        )
    )
    if topology:
        found |= _memory(facts, topology, node)
    if topology and not topology.llc_bytes and facts.last_level_bytes:
        source = f"/sys/devices/system/cpu of {node}"
        found["node.llc_bytes"] = Fact(facts.last_level_bytes, source)
    return found


def _memory(facts: NodeFacts, topology: Topology, node: str) -> Found:
    """Return the memory for programs, if the topology has another one.

    A control group may limit it. Another difference of two readings of one node is a question: the
    hypervisor of a virtual machine adds and takes memory.
    """
    key, seen, usable = "node.memory.bytes", topology.memory_bytes, facts.memory_bytes
    if seen and not _near(facts.memory_total_bytes, seen):
        virtual = f" It is a virtual machine ({facts.virtual}), whose memory can change."
        text = (
            f"{key}: which memory do programs have? /proc/meminfo of {node} has "
            f"{size(facts.memory_total_bytes)}, lstopo {size(seen)}. The smaller one is "
            f"{min(usable, seen)} bytes."
        )
        return {key: Question(text + (virtual if facts.virtual else ""))}
    if _near(usable, seen):
        return {}
    return {key: Fact(usable, f"/proc/meminfo and the control groups of {node}")}


def _near(usable: int, installed: int) -> bool:
    return MEMORY_SHARE * installed <= usable <= installed / MEMORY_SHARE


def written_topology(facts: NodeFacts) -> str:
    """Return the XML of a node, with the domains of Linux; it must be of hwloc."""
    text = facts.topology_xml or ""
    cpus = {domain.index: domain.cpus for domain in facts.numa}
    own = Topology.from_xml(text)
    return text if own == own.of_kernel(cpus) else with_domains(text, cpus)


def topology_of(facts: NodeFacts) -> tuple[Topology | None, str]:
    """Return the topology of a node, or None and the reason."""
    if not facts.topology_xml:
        return None, one_line(facts.absent.get("topology", "lstopo printed nothing"))
    try:
        return Topology.from_xml(written_topology(facts), f"lstopo on {facts.hostname}"), ""
    except BadInput as error:
        return None, one_line(str(error))


def _programs(
    survey: Survey, facts: NodeFacts | None, environments: Mapping[str, Environment]
) -> Found:
    names = ", ".join(sorted(environments))
    chosen = _environment(facts, environments)
    if facts is None or not chosen:
        why = f"none is for {facts.architecture}" if facts else "the processor is not known"
        return {
            "environment": Question(f"Which folder of environments/ ({names})? {why}."),
            "provision_from": Question("system, spack, easybuild or preinstalled?"),
        }
    environment = environments[chosen]
    exact = environment.target == facts.architecture
    source = f"environments/{chosen} is for {environment.target}; the node is {facts.architecture}"
    found: Found = {"environment": Fact(chosen, source)}
    if survey.local and facts.os.startswith("Debian") and environment.system:
        found["provision_from"] = Fact("system", f"the node runs {one_line(facts.os)}")
    else:
        reason = "the default of the kit; preinstalled and easybuild are the others"
        found["provision_from"] = Fact("spack", reason)
        if not environment.has_lock(facts.os):
            locks = ", ".join(environment.locks) or "none"
            command = PrintedCommand(
                "proofmark", "lock", of_person(chosen, "ARCH"), "-i", "SITE", "--find"
            )
            found["provision_from.lock"] = Question(
                f"provision_from.lock: which lock for Spack? environments/{chosen} has {locks}. "
                f"The node runs {one_line(facts.os)}. There, `{command}` makes one."
            )
    if not exact:
        found["environment.exact"] = Question(
            f"environment.exact: is the generic target {environment.target} enough? No environment "
            f"is for {facts.architecture}. Its programs run, but may be slower."
        )
    array = environment.stream_array_size
    found["facts.stream_array_size"] = Fact(array, f"environments/{chosen}/spack.yaml")
    found["facts.threaded_blas"] = Fact(
        int(environment.threaded_blas), f"environments/{chosen}/spack.yaml"
    )
    found["facts.hpl_nb"] = Fact(USUAL_NB, "a usual block size; hpl-tune measures a better")
    caches = facts.last_level_bytes or 0
    if array * 8 < 4 * caches:
        found["facts.array"] = Question(
            f"facts.array: an array has {size(array * 8)}, less than four times the "
            f"last caches ({size(caches)}). Which environment has a larger one?"
        )
    return found


def _environment(facts: NodeFacts | None, environments: Mapping[str, Environment]) -> str:
    """Return the environment for the architecture of a node, else that of a generic ancestor."""
    if facts is None:
        return ""
    fitting = [name for name, each in environments.items() if each.fits(facts.architecture)]
    return max(fitting, key=lambda name: environments[name].rank(facts.architecture), default="")


def _scheduler(survey: Survey, kind: NodeKind) -> Found:
    if survey.scheduler == "none":
        reason = one_line(survey.listing_problem) or "no scheduler was named or found"
        return {"scheduler": Fact("none", reason)}
    source = "--scheduler" if survey.listing_problem else survey.listing_source
    found: Found = {"scheduler": Fact(survey.scheduler, source)}
    if survey.groups_are_queues and kind.groups:
        chosen, *others = kind.groups
        source = f"{survey.listing_source}: it has all nodes of the partition"
        found["queue.name"] = Fact(chosen, source)
        found |= _limits(survey.limits.get(chosen, QueueLimits()), kind)
        if others:
            text = f"queue.others: is {chosen} right? {', '.join(others)} have all the nodes too."
            found["queue.others"] = Question(one_line(text))
    else:
        found["queue.name"] = Question(
            "queue.name: to which queue are jobs submitted? Without it, to the default queue."
        )
    if kind.cpus:
        found["queue.cpus_per_node"] = Fact(kind.cpus, survey.listing_source)
    found["queue.account"] = Question("queue.account: which account, if jobs need one?")
    return found


def _limits(limits: QueueLimits, kind: NodeKind) -> Found:
    """Return the limits of the queue that a job of the partition can exceed."""
    found: Found = {}
    source = limits.source
    if limits.max_walltime_s:
        found["queue.max_walltime_s"] = Fact(limits.max_walltime_s, source)
    if limits.max_nodes and limits.max_nodes < len(kind.nodes):
        found["nodes_per_job"] = Fact(limits.max_nodes, source)
    return found


def _vendor_questions(report: NodeReport | None, facts: NodeFacts | None) -> Found:
    """Return what only the offer and the contract state, with the findings of a node."""
    found: Found = {}
    if report is not None:
        found |= _bmc(report)
    if facts is not None and report is not None:
        found |= parts_question(facts, report.node)
    found["contract"] = Question(
        "contract: which figures does the contract state? They are items of contract.yml, beside "
        "hosts.yml (docs/verdict.md), for example:",
        (
            "title: Acceptance of the compute partition",
            "parties: {buyer: the buyer, supplier: the supplier}",
            "items:",
            '  - {number: "1", text: Triad of each node, case: stream, metric: triad, value: 320, '
            "unit: GB/s, at_least: 1}",
        ),
    )
    return found


def _bmc(report: NodeReport) -> Found:
    bmc = report.bmc
    if not bmc.address:
        reason = one_line(report.problems.get("bmc", "the node does not report it"))
        return {"firmware": Question(f"firmware: which addresses do the BMCs have? {reason}.")}
    vendor = f", {one_line(bmc.vendor)} ({bmc.vendor_source})" if bmc.vendor else ""
    text = (
        f"firmware: does the kit change firmware modes? The BMC of {report.node} has the address "
        f"{bmc.address} ({bmc.address_source}){vendor}. If so, declare modes and these lines:"
    )
    pattern = bmc.pattern or "the addresses of all nodes, with {node} or {number}"
    known = recognized(bmc.vendor)
    answer = ("firmware:", "  back_end: redfish", *([f"  vendor: {known}"] if known else []))
    answer = (*answer, f'  bmc: "{pattern}"')
    if bmc.nodes > 1:
        text = f"{text} Each BMC has {bmc.nodes} nodes; their systems may have other names."
        answer = (*answer, f'  system: "Node{{number % {bmc.nodes}}}"')
    return {"firmware": Question(text, answer)}


def topology_facts(topology: Topology) -> dict[str, Any]:
    """Return the shape of a topology, to compare two: counts, and bytes of the memory."""
    caches = [f"{each.count} x L{each.level} {size(each.bytes)}" for each in topology.caches]
    return {
        "sockets": topology.sockets,
        "cores": len(topology.cores),
        "threads_per_core": topology.threads_per_core,
        "numa_domains": len(topology.numa_domains),
        "caches": ", ".join(caches),
        "memory_bytes": topology.memory_bytes,
    }

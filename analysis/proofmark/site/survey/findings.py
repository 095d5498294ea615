"""The facts of a partition that follow from a survey, each with its source. Pure.

They include the question of ``proofmark init`` for the parts that were bought.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proofmark.common.errors import BadInput
from proofmark.common.printed_command import PrintedCommand, of_person
from proofmark.common.text import one_line, size
from proofmark.site.bmc_vendors.vendor_model import recognized
from proofmark.site.hardware import NODE
from proofmark.site.hardware_limits import link, processor, shown_gbit
from proofmark.site.installed_parts import LEAST_NIC_GBIT, Parts, parts_of
from proofmark.site.literals import is_template, literal_yaml
from proofmark.site.node.facts import NodeFacts
from proofmark.site.node.topology import Topology
from proofmark.site.rails import rails_of
from proofmark.site.survey.entries import Assumed, Entry, Fact, Found, Question
from proofmark.site.survey.environment import Environment
from proofmark.site.survey.fabric_findings import fabric_found
from proofmark.site.survey.further_facts import dimm_texts
from proofmark.site.survey.listed import GroupLimits, NodeKind
from proofmark.site.survey.node_answers import NodeReport, Survey
from proofmark.site.survey.scratch_findings import rates_found, scratch_found

UNKNOWN = "unknown"
"""The model of a processor whose ``/proc/cpuinfo`` has no name."""

USUAL_NB = 192

MEMORY_SHARE = 0.95
"""The memory is declared if programs may use less than this share of that of the topology."""


def parts_question(facts: NodeFacts, node: str) -> Found:
    """Return the question for the parts that were bought, with those of `node` as the answer."""
    found, row = parts_of(facts), processor(facts.cpu_model)
    text = f"node: does the offer state these parts? {node} has them. A node with less has a fault."
    text += " If so, add these keys to those of node."
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


def topology_of(facts: NodeFacts) -> tuple[Topology | None, str]:
    """Return the topology of a node, or None and the reason."""
    if not facts.topology_xml:
        return None, one_line(facts.absent.get("topology", "lstopo printed nothing"))
    try:
        return Topology.from_xml(facts.topology_xml, f"lstopo on {facts.hostname}"), ""
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
        found["provision_from"] = Assumed("spack", reason)
        if not environment.has_lock(facts.os):
            locks = ", ".join(environment.locks) or "none"
            command = PrintedCommand(
                "proofmark", "lock", of_person(chosen, "ARCH"), "-i", "SITE", "--find"
            )
            found["provision_from.lock"] = Question(
                f"provision_from: which lock for Spack? environments/{chosen} has {locks}. The "
                f"node runs {one_line(facts.os)}. There, `{command}` makes one."
            )
    if not exact:
        found["environment.exact"] = Question(
            f"environment: is the generic target {environment.target} enough? No environment is "
            f"for {facts.architecture}. Its programs run, but may be slower."
        )
    array = environment.stream_array_size
    found["facts.stream_array_size"] = Fact(array, f"environments/{chosen}/spack.yaml")
    found["facts.threaded_blas"] = Fact(
        int(environment.threaded_blas), f"environments/{chosen}/spack.yaml"
    )
    found["facts.hpl_nb"] = Assumed(
        USUAL_NB, "a usual block size; the suite tune measures a better"
    )
    caches = facts.last_level_bytes or 0
    if array * 8 < 4 * caches:
        found["facts.array"] = Question(
            f"facts.stream_array_size: an array has {size(array * 8)}, less than four times the "
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
        found |= _limits(survey.limits.get(chosen, GroupLimits()), kind)
        if others:
            text = f"queue.name: is {chosen} right? {', '.join(others)} have all the nodes too."
            found["queue.others"] = Question(one_line(text))
    else:
        found["queue.name"] = Question(
            "queue.name: to which queue are jobs submitted? Without it, to the default queue."
        )
    if kind.cpus:
        found["queue.cpus_per_node"] = Fact(kind.cpus, survey.listing_source)
    found["queue.account"] = Question("queue.account: which account, if jobs need one?")
    return found


def _limits(limits: GroupLimits, kind: NodeKind) -> Found:
    """Return the limits of the queue that a job of the partition can exceed."""
    found: Found = {}
    source = "scontrol show partition"
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
        return {"firmware": Question(f"firmware.bmc: which addresses do the BMCs have? {reason}.")}
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

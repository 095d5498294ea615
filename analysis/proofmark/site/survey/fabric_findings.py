"""The switches and the link of the nodes of a partition, from a survey. Pure."""

from __future__ import annotations

from proofmark.common.errors import BadInput
from proofmark.common.host_names import HostTable
from proofmark.common.nodesets import folded, unfold
from proofmark.common.text import one_line
from proofmark.site.fabric_import import fabric_levels
from proofmark.site.hardware_limits import link
from proofmark.site.node.facts import NodeFacts
from proofmark.site.node.parts import SLINGSHOT_DRIVER, Port
from proofmark.site.slurm_topology import ALL
from proofmark.site.survey.entries import Fact, Found, Question
from proofmark.site.survey.listed import NodeKind
from proofmark.site.survey.node_answers import NodeReport, Survey


def _active_ports(facts: NodeFacts) -> list[Port]:
    """Return the ports of the fabric that are active, InfiniBand and Omni-Path before Ethernet."""
    active = [port for port in facts.ports if "ACTIVE" in (port.state or "")]
    return sorted(active, key=lambda port: port.layer == "Ethernet")


def fabric_found(
    survey: Survey, kind: NodeKind, facts: NodeFacts | None, report: NodeReport | None
) -> Found:
    """Return the switch levels of the nodes of `kind`, and their link.

    Args:
        survey: what was found of the site.
        report: what one of the nodes reported; None if none was read.
    """
    found: Found = {}
    if survey.fabric:
        found |= _levels(survey, kind)
    elif len(kind.nodes) > 1:
        reason = one_line(survey.fabric_source)
        found["fabric.levels"] = Question(f"fabric.levels: which nodes share a switch? {reason}.")
    if facts is None or report is None:
        return found
    return found | _link(facts, report.node)


def _levels(survey: Survey, kind: NodeKind) -> Found:
    """Return the switch levels that contain hosts of `kind`; the outermost one is ``top``."""
    try:
        levels = fabric_levels(survey.fabric, survey.fabric_source)
    except BadInput as error:
        text = f"fabric.levels: which nodes share a switch? {one_line(str(error))}"
        return {"fabric.levels": Question(text)}
    table = HostTable.of(kind.names)
    own: dict[str, dict[str, str]] = {}
    for level, switches in levels.items():
        members = {name: _hosts(unfold([nodes]), table, kind) for name, nodes in switches.items()}
        own[level] = {name: folded(sorted(each)) for name, each in members.items() if each}
    *near, top = own
    below = [{"name": name, "switches": own[name]} for name in near if own[name]]
    if not all(own.values()):
        text = f"fabric.levels: {survey.fabric_source} does not name the hosts of this partition."
        return {"fabric.levels": Question(text)}
    source = survey.fabric_source
    found: Found = {"fabric.levels": Fact(below, source)} if below else {}
    named = table.found(unfold(own[top].values()))
    if missing := [host for host in kind.names if host not in named]:
        found["fabric.missing"] = Question(
            f"fabric.levels: which switches have {folded(missing)}? {source} does not name them."
        )
    return {**found, "fabric.top": Fact(top, source), "fabric.source": Fact(source, source)}


def _hosts(names: list[str], table: HostTable, kind: NodeKind) -> set[str]:
    """Return the hosts of `kind` among the nodes of a switch."""
    return set(kind.names) if names == [ALL] else table.found(names)


def _link(facts: NodeFacts, node: str) -> Found:
    ports = _active_ports(facts)
    slingshot = [nic for nic in facts.nics if nic.driver == SLINGSHOT_DRIVER and nic.state == "up"]
    # A node with Slingshot can have ports of RoCE for its storage.
    if ports and ports[0].rate and not slingshot:
        port, rate = ports[0], one_line(ports[0].rate)
        place = f"/sys/class/infiniband/{port.adapter}/ports/{port.port}/rate of {node}"
        known = Fact(rate, place)
        asked = Question(f"fabric.rate: how many bytes/s has a link of '{rate}'?")
        found: Found = {"fabric.rate": asked if link(rate) is None else known}
        if port.layer != "Ethernet":
            omni = port.adapter.startswith("hfi1_")
            found["fabric.network.kind"] = Fact("omni-path" if omni else "infiniband", place)
            adapters = sorted({each.adapter for each in ports if each.layer == port.layer})
            found["fabric.network.interfaces"] = Fact(adapters, place)
        return found
    up = slingshot or [nic for nic in facts.nics if nic.state == "up"]
    speeds = {nic.name: nic.megabits for nic in up if nic.megabits}
    if not speeds:
        text = f"fabric.rate: how many bytes/s has a link? No interface of {node} reports it."
        return {"fabric.rate": Question(text)}
    fastest = max(speeds, key=lambda name: (speeds[name] or 0, name))
    source = f"/sys/class/net/{fastest}/speed of {node}: {speeds[fastest]} Mb/s"
    found = {"fabric.rate": Fact((speeds[fastest] or 0) * 1e6 / 8, source)}
    if slingshot:
        found["fabric.network.kind"] = Fact("slingshot", f"the driver of {fastest} of {node}")
    return found

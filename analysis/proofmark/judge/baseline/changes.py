"""The differences of a later run from the newest accepted one: candidate causes and lost parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from proofmark.common.message import Message
from proofmark.common.nodesets import folded
from proofmark.judge.shared_traits import Traits, differences, of_node
from proofmark.site.accepted_baseline import Baseline, Capacity, NodeState
from proofmark.site.node.facts import NodeFacts

MEMORY_TOLERANCE = 0.02
"""The kernel reserves a part of the memory that differs by less than this from boot to boot."""
VIRTUAL_MEMORY_TOLERANCE = 0.5
"""A hypervisor adds and takes memory while a virtual machine runs: less than half is lost."""
ACTIVE = "ACTIVE"
"""The state of a working port of the fabric (sysfs: ``4: ACTIVE``)."""
_GIB = 2**30


@dataclass(frozen=True)
class Change:
    """A difference since the newest accepted run: a candidate cause of slower figures.

    Attributes:
        what: the trait of nodes or programs.
        before, after: its values; empty if there is none.
        nodes: the node set on which it changed; empty for the software of the run.
    """

    what: Message
    before: str
    after: str
    nodes: str = ""

    def __str__(self) -> str:
        where = f" on {self.nodes}" if self.nodes else ""
        return f"{self.what}: {self.before or '–'} → {self.after or '–'}{where}"

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


def capacity_of(facts: NodeFacts) -> Capacity:
    """Return the hardware that a node offers."""
    return Capacity(
        cores=facts.cores,
        sockets=facts.sockets,
        numa=len(facts.numa),
        memory_bytes=facts.memory_total_bytes,
        dimms=len(facts.dimms),
        ports=sum(ACTIVE in (port.state or "").upper() for port in facts.ports),
    )


def lost_parts(baseline: Baseline, now: Mapping[str, NodeFacts]) -> dict[str, tuple[Message, ...]]:
    """Return what each node has less of than in the baseline; nodes that lost nothing are left out.

    A baseline that lacks a node does not judge it.
    """
    states = baseline.states()
    known = {host: states[host].capacity for host in now if host in states}
    lost = {host: tuple(_lost_on(known[host], now[host])) for host in known}
    return {host: parts for host, parts in lost.items() if parts}


def _lost_on(before: Capacity, facts: NodeFacts) -> list[Message]:
    """Return what a node has less of; what the probe did not find is not lost."""
    unknown = {
        "dimms": "dimms" in facts.absent,
        "numa": not facts.numa,
        "memory_bytes": "meminfo.MemTotal" in facts.unread,
    }
    as_before = {name: getattr(before, name) for name, holds in unknown.items() if holds}
    tolerance = VIRTUAL_MEMORY_TOLERANCE if facts.virtual else MEMORY_TOLERANCE
    return _lost(before, capacity_of(facts).model_copy(update=as_before), tolerance)


def _lost(before: Capacity, after: Capacity, tolerance: float = MEMORY_TOLERANCE) -> list[Message]:
    lost = []
    for name in Capacity.model_fields:
        old, new = getattr(before, name), getattr(after, name)
        if name == "memory_bytes":
            if new < (1 - tolerance) * old:
                sizes = {"found": f"{new / _GIB:.1f} GiB", "accepted": f"{old / _GIB:.1f} GiB"}
                lost.append(Message(f"lost-{name}", **sizes))
        elif new < old:
            lost.append(Message(f"lost-{name}", found=new, accepted=old))
    return lost


def node_states(
    traits: Mapping[str, Traits], capacities: Mapping[str, Capacity]
) -> tuple[NodeState, ...]:
    """Return the state of all nodes; nodes with the same state share one entry."""
    alike: dict[tuple[object, ...], list[str]] = {}
    for host, capacity in capacities.items():
        key = (tuple(capacity.model_dump().values()), tuple(sorted(traits[host].items())))
        alike.setdefault(key, []).append(host)
    return tuple(
        NodeState(nodes=folded(hosts), capacity=capacities[hosts[0]], traits=dict(traits[hosts[0]]))
        for hosts in alike.values()
    )


def changes(
    baseline: Baseline, traits: Mapping[str, Traits], libraries: Mapping[Message, str]
) -> tuple[Change, ...]:
    """Return what differs since the newest accepted run: nodes, and packages that both runs use.

    Args:
        baseline: the accepted runs.
        traits: of each node of the run.
        libraries: the result of `judge.shared_traits.software_traits` for the run.
    """
    states = baseline.states()
    nodes: dict[tuple[Message, str, str], list[str]] = {}
    for host, now in traits.items():
        if host not in states:
            continue
        for what, before, after in differences(states[host].traits, now):
            nodes.setdefault((of_node(what), before, after), []).append(host)
    used = {trait.fields["package"] for trait in libraries}
    known = baseline.runs[-1].libraries
    accepted = {trait: value for trait, value in known if trait.fields.get("package") in used}
    software = differences(accepted, libraries)
    return (
        *(Change(*each) for each in software),
        *(Change(*key, folded(hosts)) for key, hosts in nodes.items()),
    )

"""The differences of a later run from the newest accepted one, and the parts of then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from itertools import chain
from typing import Any

from proofmark.common.message import Message
from proofmark.common.nodesets import folded
from proofmark.judge.shared_traits import Traits, differences, of_node
from proofmark.site.accepted_baseline import AcceptedNodes, Baseline, Capacity
from proofmark.site.installed_parts import (
    UNKNOWN_RATE,
    Parts,
    parts_of,
    usual_parts,
    usual_processor,
)
from proofmark.site.node.facts import NodeFacts


@dataclass(frozen=True)
class NodeChange:
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
    parts = parts_of(facts)
    return Capacity(
        cores=facts.cores,
        sockets=facts.sockets,
        numa=len(facts.numa),
        memory_bytes=facts.memory_total_bytes,
        dimms=len(facts.dimms),
        ports=len(parts.ports or ()),
        dimm_mt_per_s=parts.dimm_mt_per_s or 0,
        port_gbit_per_s=parts.ports or (),
        accelerators=parts.accelerators or 0,
        virtual=facts.virtual or "",
    )


def accepted_parts(baseline: Baseline, hosts: Mapping[str, NodeFacts]) -> dict[str, Parts]:
    """Return the parts that each node had in the newest accepted run.

    For a node that was not in it: what most nodes with its processor had, or most nodes if none had
    it.
    """
    states = baseline.states()
    alike: dict[str, list[Parts]] = {}
    for state in states.values():
        parts = _parts(state)
        alike.setdefault(parts.processor or "", []).append(parts)
    usual = {model: replace(usual_parts(each), nics=None) for model, each in alike.items()}
    every = [*chain.from_iterable(alike.values())]
    of_all = replace(usual_parts(every), nics=None, processor=usual_processor(every))
    return {
        host: _parts(states[host]) if host in states else usual.get(facts.cpu_model, of_all)
        for host, facts in hosts.items()
    }


def _parts(state: AcceptedNodes) -> Parts:
    capacity = state.capacity
    known = capacity.port_gbit_per_s or (UNKNOWN_RATE,) * capacity.ports
    return Parts(
        processor=state.traits.get("processor"),
        cores=capacity.cores,
        sockets=capacity.sockets,
        numa=capacity.numa or None,
        dimms=capacity.dimms or None,
        dimm_mt_per_s=capacity.dimm_mt_per_s or None,
        memory_bytes=capacity.memory_bytes,
        ports=known,
        accelerators=capacity.accelerators or None,
    )


def node_states(
    traits: Mapping[str, Traits], capacities: Mapping[str, Capacity]
) -> tuple[AcceptedNodes, ...]:
    """Return the state of all nodes; nodes with the same state share one entry."""
    alike: dict[tuple[object, ...], list[str]] = {}
    for host, capacity in capacities.items():
        key = (tuple(capacity.model_dump().values()), tuple(sorted(traits[host].items())))
        alike.setdefault(key, []).append(host)
    return tuple(
        AcceptedNodes(
            nodes=folded(hosts), capacity=capacities[hosts[0]], traits=dict(traits[hosts[0]])
        )
        for hosts in alike.values()
    )


def changes(
    baseline: Baseline, traits: Mapping[str, Traits], libraries: Mapping[Message, str]
) -> tuple[NodeChange, ...]:
    """Return what differs since the newest accepted run: nodes, and packages that both runs use.

    Args:
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
        *(NodeChange(*each) for each in software),
        *(NodeChange(*key, folded(hosts)) for key, hosts in nodes.items()),
    )

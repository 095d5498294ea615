"""Computes the hardware threads of every rank from the name of a placement."""

from __future__ import annotations

from collections import Counter

from proofmark.common.errors import bad_input, nearest
from proofmark.plan.placement.placement_request import PlacementRequest, counted
from proofmark.plan.placement.rules import RULES, NodeRange, Placement, Rule
from proofmark.site.node.topology import Topology


def place(
    topology: Topology,
    placement: str,
    ranks: int,
    *,
    nodes: int = 1,
    threads: int = 1,
    pus_per_core: int = 1,
    oversubscribe: bool = False,
    asked_in: str = "plan",
) -> Placement:
    """Return the placement of ranks on nodes of one topology.

    Two threads never share a hardware thread, and two ranks never share a core, unless there are
    more ranks than cores and `pus_per_core` > 1 or `oversubscribe` allows it.

    Args:
        topology: the topology of each node.
        placement: a name of `RULES`.
        ranks: number of ranks on all nodes together.
        nodes: number of nodes.
        threads: number of threads of each rank.
        pus_per_core: number of hardware threads of a core that may be used. The second one is used
            only if there are more threads than cores.
        oversubscribe: whether threads may share hardware threads if there are too few of them.
        asked_in: the file or option with the request, for messages.

    Raises:
        BadInput: there is no such placement, or a count is less than 1 or more than possible.
        PlacementError: the nodes cannot hold the ranks.
    """
    rule = _rule(placement, asked_in)
    counts = {"ranks": ranks, "nodes": nodes, "threads": threads, "pus_per_core": pus_per_core}
    for key, count in counts.items():
        if count < 1:
            raise bad_input(asked_in, key, str(count), "a number from 1")
    if pus_per_core > topology.threads_per_core:
        available = f"at most {topology.threads_per_core}, the hardware threads of a core"
        raise bad_input(asked_in, "pus_per_core", str(pus_per_core), available)
    request = PlacementRequest(
        topology, placement, ranks, nodes, threads, pus_per_core, oversubscribe, asked_in=asked_in
    )
    node_ranges = (
        NodeRange(count, _cpus(request, rule, per_node))
        for count, per_node in rule.over(request)
        if count
    )
    return Placement(placement, threads, tuple(node_ranges))


def _rule(name: str, asked_in: str) -> Rule:
    if name not in RULES:
        hint = nearest(name, RULES) or nearest(name.upper(), RULES)
        raise bad_input(asked_in, "placement", f"{name!r}{hint}", ", ".join(RULES))
    return RULES[name]


def _cpus(request: PlacementRequest, rule: Rule, ranks: int) -> tuple[tuple[int, ...], ...]:
    """Return the hardware threads of each rank of a node: those of a core in order of use."""
    if not ranks:
        return ()
    taken: Counter[int] = Counter()
    cpus_of_ranks = []
    for cores in rule.within(request, ranks):
        pus = []
        for core in cores:
            if taken[core.index] >= request.pus_per_core and not request.oversubscribe:
                found = f"more threads on core {core.index} than it has room for"
                raise request.error(found, counted(request.pus_per_core, "thread"))
            pus.append(core.pus[taken[core.index] % request.pus_per_core])
            taken[core.index] += 1
        cpus_of_ranks.append(tuple(pus))
    return tuple(cpus_of_ranks)

"""From a placement's name to the hardware threads of every rank."""

from __future__ import annotations

from collections import Counter

from proofmark.common.errors import bad_input, nearest
from proofmark.plan.placement.model import NodeRange, Placement
from proofmark.plan.placement.request import PlacementRequest, counted
from proofmark.plan.placement.rules import RULES, Rule
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
    """Lay ranks of so many threads on like nodes.

    No two threads get one hardware thread, nor two ranks one core, unless the ranks outnumber the
    cores and `pus_per_core` > 1 or `oversubscribe` allows it.

    Args:
        topology: of each node.
        placement: a name of `RULES`.
        ranks: on all the nodes together.
        nodes: like nodes to lay them on.
        threads: of each rank.
        pus_per_core: hardware threads of a core that may be used. The second one is used only
            when there are more threads than cores.
        oversubscribe: whether hardware threads may be shared when there are too few of them.
        asked_in: the file or option that asks, for messages.

    Raises:
        BadInput: no such placement, or the nodes cannot hold it.
    """
    rule = _rule(placement, asked_in)
    counts = {"ranks": ranks, "nodes": nodes, "threads": threads, "pus_per_core": pus_per_core}
    for key, count in counts.items():
        if count < 1:
            raise bad_input(asked_in, key, str(count), "a number from 1")
    if pus_per_core > topology.threads_per_core:
        available = f"at most {topology.threads_per_core}, what every core of the node has"
        raise bad_input(asked_in, "pus_per_core", str(pus_per_core), available)
    ask = PlacementRequest(
        topology, placement, ranks, nodes, threads, pus_per_core, oversubscribe, asked_in=asked_in
    )
    node_ranges = (
        NodeRange(count, _cpus(ask, rule, each)) for count, each in rule.over(ask) if count
    )
    return Placement(placement, threads, tuple(node_ranges))


def _rule(name: str, asked_in: str) -> Rule:
    if name not in RULES:
        hint = nearest(name, RULES) or nearest(name.upper(), RULES)
        raise bad_input(asked_in, "placement", f"{name!r}{hint}", ", ".join(RULES))
    return RULES[name]


def _cpus(ask: PlacementRequest, rule: Rule, ranks: int) -> tuple[tuple[int, ...], ...]:
    """Hand out the hardware threads of each core in the order in which it is asked for."""
    if not ranks:
        return ()
    taken: Counter[int] = Counter()
    cpus_of_ranks = []
    for cores in rule.within(ask, ranks):
        pus = []
        for core in cores:
            if taken[core.index] >= ask.pus_per_core and not ask.oversubscribe:
                asked = f"more threads on core {core.index} than it has room for"
                raise ask.refuse(asked, counted(ask.pus_per_core, "thread"))
            pus.append(core.pus[taken[core.index] % ask.pus_per_core])
            taken[core.index] += 1
        cpus_of_ranks.append(tuple(pus))
    return tuple(cpus_of_ranks)

"""Computes the hardware threads of every rank from the name of a placement."""

from __future__ import annotations

from collections import Counter

from proofmark.common.errors import bad_input, nearest
from proofmark.plan.placement.placement_request import PlacementRequest, counted
from proofmark.plan.placement.rules import RULES, Placement, Rule
from proofmark.plan.rank_cpus import NodeRange


def place(request: PlacementRequest) -> Placement:
    """Return the placement of ranks on nodes of one topology.

    Two threads never share a hardware thread, and two ranks never share a core, unless there are
    more ranks than cores and `pus_per_core` > 1 or `oversubscribe` of the request allows it.

    Raises:
        BadInput: there is no such placement, or a count is less than 1 or more than possible.
        PlacementError: the nodes cannot hold the ranks.
    """
    rule = _rule(request.name, request.asked_in)
    for key in ("ranks", "nodes", "threads", "pus_per_core"):
        count = getattr(request, key)
        if count < 1:
            raise bad_input(request.asked_in, key, str(count), "a number from 1")
    if request.pus_per_core > request.topology.threads_per_core:
        available = f"at most {request.topology.threads_per_core}, the hardware threads of a core"
        raise bad_input(request.asked_in, "pus_per_core", str(request.pus_per_core), available)
    node_ranges = (
        NodeRange(count, _cpus(request, rule, per_node))
        for count, per_node in rule.over(request)
        if count
    )
    return Placement(request.name, request.threads, tuple(node_ranges))


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

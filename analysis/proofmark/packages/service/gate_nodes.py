"""Which nodes a gate takes: the nodes of ``-l``, or those of the nightly check."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from proofmark.cli.command_inputs import kit_benchmarks
from proofmark.common.errors import bad_input
from proofmark.common.nodesets import folded
from proofmark.common.progress_lines import say
from proofmark.machine.scheduler import NodeUse
from proofmark.packages.service.gate_actions import NodeGate
from proofmark.plan.expansion import make_plan
from proofmark.runs.checks import GateCheck, last_checks
from proofmark.site.inventory import Site
from proofmark.site.machines import machines_of

MOST_NODES = 64
"""The largest number of nodes of a gate without a confirmation."""
MOST_KEPT = 4
"""With this number of kept nodes the nightly check takes no further nodes: a fault of the site must
not drain a node after the other."""


def refuse_too_many(site: Site, most: int = MOST_NODES) -> None:
    """Refuse a gate of a whole partition, or of more than `most` nodes.

    Raises:
        BadInput: it names what confirms such a gate.
    """
    count, whole = len(site.hosts), len(site.partition_hosts or site.hosts)
    if count == whole or count > most:
        size = f"{count} nodes" + (
            f", the whole partition {site.partition_name}" * (count == whole)
        )
        accepted = f"at most {most} nodes, not all; gate_whole_partition=true takes more"
        raise bad_input("-l", "", size, accepted)


def choose_next(
    site: Site, gate: NodeGate, checks: Sequence[GateCheck], suite: str, node_hours: float
) -> list[str]:
    """Return the nodes of the nightly check of `site`; see `next_nodes`.

    Idle nodes in service are chosen if no run and no gate holds them. No node is chosen if gates
    keep `MOST_KEPT` nodes of the partition out of service.
    """
    last = last_checks(checks)
    hosts = list(site.hosts)
    statuses, _ = gate.check(hosts, {}, take_over=True)
    known = gate.scheduler.node_status(hosts)
    kept = [
        node
        for node in hosts
        if node in last and last[node].drain and known[node].reason == last[node].drain
    ]
    if len(kept) >= MOST_KEPT:
        say(f"proofmark: {folded(kept)}: kept by gates; no further node is taken until they return")
        return []
    states = gate.scheduler.nodes(hosts)
    idle = [
        node
        for node, status in statuses.items()
        if not status.out and node in states and states[node].use is NodeUse.IDLE
    ]
    benchmarks = kit_benchmarks()

    def cost(nodes: Sequence[str]) -> float:
        some = site.model_copy(update={"hosts": tuple(nodes)})
        return make_plan(benchmarks, suite, some, machines, digest=False).totals.node_hours

    machines, _ = machines_of(site)
    times = {node: check.at for node, check in last.items()}
    chosen = next_nodes(hosts, idle, times, cost, node_hours)
    return [node for node in hosts if node in chosen]


def next_nodes(
    nodes: Sequence[str],
    idle: Collection[str],
    checked: Mapping[str, str],
    cost: Callable[[Sequence[str]], float],
    node_hours: float,
) -> list[str]:
    """Return the nodes to check now: those whose last check is the longest time ago.

    A node that was never checked comes first. Equal nodes are in the order of `nodes`. The plan of
    the returned nodes costs at most `node_hours`. A budget that does not suffice for one node
    returns no node.

    Args:
        idle: the nodes without jobs.
        checked: the time of the last check of a node, in ISO 8601 with one time zone.
        cost: returns the node-hours of the plan of some nodes; it grows with their number.
    """
    waiting = sorted((node for node in nodes if node in idle), key=lambda n: checked.get(n, ""))
    fits, fails = 0, 1
    while fails <= len(waiting) and cost(waiting[:fails]) <= node_hours:
        fits, fails = fails, 2 * fails
    fails = min(fails, len(waiting) + 1)
    while fails - fits > 1:
        middle = (fits + fails) // 2
        if cost(waiting[:middle]) <= node_hours:
            fits = middle
        else:
            fails = middle
    return waiting[:fits]

"""Which nodes a gate takes: the nodes of ``-l``, or those of the nightly check."""

from __future__ import annotations

from collections.abc import Sequence

from proofmark.cli.checkout import kit_benchmarks
from proofmark.common.errors import bad_input
from proofmark.common.messages import say
from proofmark.common.nodesets import folded
from proofmark.machine.gate import NodeGate
from proofmark.plan.expansion import make_plan
from proofmark.plan.next_nodes import next_nodes
from proofmark.runs.checks import Check, last_checks
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
    site: Site, gate: NodeGate, checks: Sequence[Check], suite: str, node_hours: float
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
    idle = [n for n, status in statuses.items() if not status.out and states.get(n) == "idle"]
    benchmarks = kit_benchmarks()

    def cost(nodes: Sequence[str]) -> float:
        some = site.model_copy(update={"hosts": tuple(nodes)})
        return make_plan(benchmarks, suite, some, machines, digest=False).totals.node_hours

    machines, _ = machines_of(site)
    times = {node: check.at for node, check in last.items()}
    chosen = next_nodes(hosts, idle, times, cost, node_hours)
    return [node for node in hosts if node in chosen]

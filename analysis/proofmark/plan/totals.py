"""The cost of a plan, and the facts that it assumes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from proofmark.plan.placement.placement_request import counted
from proofmark.plan.plan import Group, Plan, Totals
from proofmark.plan.rank_cpus import ranges_of
from proofmark.plan.search import Search
from proofmark.plan.searches import uncounted
from proofmark.plan.step import Step
from proofmark.site.fabric import UNKNOWN_LINK
from proofmark.site.inventory import Site
from proofmark.site.machine import Machine


def totals(groups: Sequence[Group], searches: Sequence[Search]) -> Totals:
    """Return the cost of `groups`. Of a search, the steps of one pass over its axes count.

    The files of a step that another step reads are in scratch until that step ended. So all files
    that are kept count at the same time.
    """
    by_id: dict[str, Step] = {}
    for group in groups:
        by_id |= {step.id: step for step in group.steps()}
    left = uncounted(searches, by_id)
    jobs = []
    for group in groups:
        for job in group.jobs:
            jobs.append((job, [step for step in job.steps if step.id not in left]))
    steps = []
    for _, members in jobs:
        steps += members
    node_seconds = sum(
        len(job.nodes) * sum(step.wall_s for step in members) for job, members in jobs
    )
    sizes = {step.id: step.bytes * step.measurements for step in steps}
    kept = sum(sizes[step.id] for step in steps if step.kept)
    return Totals(
        jobs=sum(bool(members) for _, members in jobs),
        steps=len(steps),
        node_hours=round(node_seconds / 3600, 4),
        bytes=sum(sizes.values()),
        scratch_peak_bytes=kept
        + max((sizes[step.id] for step in steps if not step.kept), default=0),
        wall_s=round(sum(step.wall_s for step in steps), 1),
    )


def assumed(site: Site, groups: Sequence[Group]) -> dict[str, str]:
    """Return the facts that the plan assumes, by key, each with the reason."""
    partition = site.partition
    facts = dict(partition.node.assumed)
    together = any(any(step.of_several_nodes for step in group.steps()) for group in groups)
    if together and partition.fabric.rate is None:
        facts["fabric.rate"] = (
            f"not declared; run times are estimated with {UNKNOWN_LINK / 1e6:g} MB/s for each node"
        )
    return facts


def idle_cores(plan: Plan, machines: Callable[[str], Machine]) -> Iterable[str]:
    """Return a line for each case that leaves cores of a node idle, with the reason.

    A case that never uses more than half of the cores, such as one of two ranks, leaves the others
    idle on purpose. Ranks that are fitted to NUMA domains are meant to use all cores.
    """
    lines = {}
    most: dict[tuple[str, str], int] = {}
    for group in plan.groups:
        topology = machines(group.mode).topology
        sizes = " + ".join(str(len(each.cores)) for each in topology.numa_domains if each.cores)
        for step in group.steps():
            on_node: list[tuple[int, ...]] = []
            for node, of_nodes in ranges_of(step.cpus):
                on_node += of_nodes.cpus if node == 0 else ()
            busy_cores = set()
            for cpus in on_node:
                busy_cores |= {topology.core_of[cpu].index for cpu in cpus}
            busy = len(busy_cores)
            start = f"{step.case}, mode {group.mode}: the ranks use"
            of = f"{busy} of {len(topology.cores)} cores of a node"
            if step.placement != "fitted":
                key = group.mode, step.case
                if busy > most.get(key, len(topology.cores) // 2):
                    most[key] = busy
                    ranks = f"{counted(len(on_node), 'rank')} × {counted(step.threads, 'thread')}"
                    lines[*key, 0] = f"{start} at most {of}: the case plans {ranks}"
                if busy == len(topology.cores):
                    lines.pop((*key, 0), None)
            elif busy < len(topology.cores):
                lines[group.mode, step.case, busy] = (
                    f"{start} {of}; each rank is inside one NUMA domain, and the domains have "
                    f"{sizes} cores"
                )
    return lines.values()

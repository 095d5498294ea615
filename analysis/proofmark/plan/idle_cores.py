"""The cores of a node that a plan leaves idle."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from proofmark.plan.plan import Plan
from proofmark.site.machine import Machine


def idle_cores(plan: Plan, machines: Callable[[str], Machine]) -> Iterable[str]:
    """Return a line for each case whose ranks are fitted to NUMA domains and leave cores idle."""
    lines = {}
    for group in plan.groups:
        topology = machines(group.mode).topology
        sizes = " + ".join(str(len(each.cores)) for each in topology.numa_domains if each.cores)
        fitted = (step for job in group.jobs for step in job.steps if step.placement == "fitted")
        for step in fitted:
            used = {cpu for rank in step.cpus if rank.node == 0 for cpu in rank.cpus}
            busy = len({topology.core_of[cpu].index for cpu in used})
            if busy < len(topology.cores):
                lines[group.mode, step.case, busy] = (
                    f"{step.case}, mode {group.mode}: the ranks use {busy} of "
                    f"{len(topology.cores)} cores of a node; each rank is inside one NUMA domain, "
                    f"and the domains have {sizes} cores"
                )
    return lines.values()

"""Cores without a rank on nodes whose NUMA domains differ in size."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from proofmark.plan.plan import Plan
from proofmark.site.machine import Machine


def idle_cores(plan: Plan, machines: Callable[[str], Machine]) -> Iterator[str]:
    """Yield a line for each case whose ranks are fitted to NUMA domains and leave cores idle."""
    seen: set[tuple[str, str, int]] = set()
    for group in plan.groups:
        topology = machines(group.mode).topology
        sizes = " + ".join(str(len(each.cores)) for each in topology.numa_domains if each.cores)
        for step in (step for job in group.jobs for step in job.steps):
            if step.placement != "fitted":
                continue
            used = {cpu for rank in step.cpus if rank.node == 0 for cpu in rank.cpus}
            busy = len({topology.core_of[cpu].index for cpu in used})
            about = (group.mode, step.case, busy)
            if busy < len(topology.cores) and about not in seen:
                seen.add(about)
                yield (
                    f"{step.case}: {busy} of {len(topology.cores)} cores of a node have a thread: "
                    f"each rank stays inside one NUMA domain ({sizes} cores, mode {group.mode})"
                )

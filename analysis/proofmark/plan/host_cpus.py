"""Maps the planned CPUs of virtual nodes to those of the machine below them."""

from __future__ import annotations

from proofmark.plan.plan import Step
from proofmark.plan.rank_cpus import RankCpus
from proofmark.site.execution import HostCpuMap


def host_rank_cpus(step: Step, host_cpus: HostCpuMap | None) -> list[RankCpus]:
    """Return the CPUs of each rank on the machine: on real nodes the planned ones."""
    if host_cpus is None:
        return list(step.cpus)
    return [
        RankCpus(node, tuple(host_cpus.cpu(virtual, node) for virtual in cpus))
        for node, cpus in step.cpus
    ]


def host_numa_domains(step: Step, host_cpus: HostCpuMap | None) -> list[int]:
    """Return the NUMA domains of the machine that memory must come from; empty: any."""
    if host_cpus is None:
        return step.membind
    return sorted({host_cpus.domain(virtual) for virtual in step.membind})

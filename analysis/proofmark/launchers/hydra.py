"""MPICH's process manager Hydra as Intel MPI ships it: a CPU mask per rank (I_MPI_PIN_DOMAIN)."""

from __future__ import annotations

import shlex

from proofmark.launchers import Launch


def lines(launch: Launch) -> list[str]:
    """Pin each rank to the mask of its CPUs (Intel MPI Developer Reference, "Process Pinning")."""
    on_first = [cpus for node, cpus in launch.cpus if node == 0]
    masks = ",".join(f"0x{sum(1 << cpu for cpu in set(cpus)):x}" for cpus in on_first)
    settings = {"I_MPI_PIN": "1", "I_MPI_PIN_DOMAIN": f"[{masks}]"}
    if len({cpu for cpus in on_first for cpu in cpus}) < sum(map(len, on_first)):
        settings |= {"I_MPI_WAIT_MODE": "1", "I_MPI_THREAD_YIELD": "3"}
    mpiexec = shlex.quote(f"{launch.prefix}/bin/mpiexec.hydra")
    return [
        *launch.exports(settings),
        f"exec {mpiexec} -n {len(launch.cpus)} {launch.ranked()}",
    ]

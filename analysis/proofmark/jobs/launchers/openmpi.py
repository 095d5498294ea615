"""Open MPI's mpirun, of version 4 and 5."""

from __future__ import annotations

import shlex
from dataclasses import replace

from proofmark.jobs.launcher import Launch, Launcher

NO_ALLOCATION = "^slurm,tm,pbs,gridengine,lsf,loadleveler,alps,flux"
"""Leaves out what reads the allocation of a scheduler, by its name in version 4 or 5."""


class OpenMpi(Launcher):
    """Open MPI's mpirun."""

    def lines(self, launch: Launch) -> list[str]:
        """Return the lines that write a hostfile and start the ranks on its hosts.

        The wrapper binds each rank. A rankfile would bind to other CPUs in version 5 than in
        version 4: there its numbers are logical cores of hwloc, here the numbers of the system.
        """
        mpirun = shlex.quote(f"{launch.prefix}/bin/mpirun")
        one_node = len(launch.by_host) == 1
        if one_node:  # by slots: the mapper seq of version 4 does not know localhost
            hosts = [f"{host} slots={len(ranks)}" for host, ranks in launch.by_host]
        else:
            hosts = launch.rank_hosts
        options = ["--hostfile", "hostfile", "--map-by", "slot" if one_node else "seq"]
        options += ["--bind-to", "none"]
        settings = replace(launch, mpi="openmpi").yielding()
        # Version 5 ignores OMPI_MCA_ras and OMPI_MCA_plm: its launcher is PRRTE (PRTE_MCA_…).
        if one_node or launch.settings.bootstrap == "ssh":
            # Slurm gives a per-node step one task of each node, and Open MPI would start no more.
            settings |= {"OMPI_MCA_ras": NO_ALLOCATION, "PRTE_MCA_ras": NO_ALLOCATION}
        if manager := launch.settings.bootstrap:
            settings |= {"OMPI_MCA_plm": {"ssh": "rsh"}.get(manager, manager)}
            settings |= {"PRTE_MCA_plm": manager}
        if not one_node:
            # mpirun exports only the variables named with -x to other nodes.
            options += launch.exported(settings)
        return [
            *launch.exports(settings),
            # mpirun refuses to run as root unless both variables are set.
            'if [ "$(id -u)" = 0 ]; then',
            "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
            "fi",
            launch.hostfile(hosts),
            f"exec {mpirun} -np {len(launch.cpus)} {shlex.join(options)} "
            f"{launch.ranked(bind=True)}",
        ]

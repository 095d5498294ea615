"""PRRTE's prterun, for each MPI that starts over PMIx: Open MPI 5, MPICH and others.

After prterun(1) of PRRTE 3; tried with PRRTE 3.0.8 of Debian 13. If the MPI has a prterun, it is
used, else that of PATH.
"""

from __future__ import annotations

import shlex

from proofmark.jobs.launcher import Launch, Launcher

NO_ALLOCATION = "^slurm,pbs,gridengine,lsf,flux"
"""Leaves out what reads the allocation of a scheduler."""


class Prterun(Launcher):
    """PRRTE's prterun."""

    def lines(self, launch: Launch) -> list[str]:
        """Return the lines that write a hostfile and start one rank for each of its lines.

        The wrapper binds each rank: the numbers of a rankfile are logical cores of hwloc.
        """
        one_node = len(launch.by_host) == 1
        hosts = launch.rank_hosts
        settings = launch.unpinned() | launch.yielding()
        own = {}
        if one_node or launch.settings.bootstrap == "ssh":
            own["PRTE_MCA_ras"] = NO_ALLOCATION
        if manager := launch.settings.bootstrap:
            own["PRTE_MCA_plm"] = manager
        options = ["--np", str(len(launch.cpus)), "--hostfile", "hostfile", "--map-by", "seq"]
        options += ["--bind-to", "none"]
        root = "PRTE"
        if launch.mpi == "openmpi":  # its variables OMPI_… need its personality
            options += ["--personality", "ompi"]
            root = "OMPI"
        if not one_node:
            # With -x for a variable of its own, PRRTE 3.0.8 finds two values for it, and ends.
            options += launch.exported(settings)
        return [
            *launch.exports(own | settings),
            # prterun refuses to run as root unless both variables of its personality are set.
            'if [ "$(id -u)" = 0 ]; then',
            f"export {root}_ALLOW_RUN_AS_ROOT=1 {root}_ALLOW_RUN_AS_ROOT_CONFIRM=1",
            "fi",
            f"PATH={shlex.quote(f'{launch.prefix}/bin')}:$PATH",
            launch.hostfile(hosts),
            f"exec prterun {shlex.join(options)} {launch.ranked(bind=True)}",
        ]

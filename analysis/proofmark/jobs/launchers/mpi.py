"""The launchers of MPIs: Hydra, Open MPI's mpirun, PRRTE's prterun; and one process without any.

Hydra is the process manager of MPICH, MVAPICH2 and Intel MPI. prterun is after prterun(1) of PRRTE
3, for each MPI that starts over PMIx (Open MPI 5, MPICH and others); tried with PRRTE 3.0.8 of
Debian 13. If the MPI has a prterun, it is used, else that of PATH.
"""

from __future__ import annotations

import shlex
from dataclasses import replace

from proofmark.jobs.launcher import Launch, Launcher, mask

SSH_WRAPPER = r"""#!/bin/sh
# ssh for hydra: the remote shell splits the command at blanks unless each word is quoted.
take=
for word; do
	shift
	case $take$word in
	-*) set -- "$@" "$word" ;;
	*)
		[ -z "$take" ] || word=$(printf '%s\n' "$word" | sed "s/'/'\\\\''/g; 1s/^/'/; \$s/\$/'/")
		set -- "$@" "$word"
		take=command:
		;;
	esac
done
exec ssh "$@"
"""


class Hydra(Launcher):
    """MPICH, MVAPICH2 and Intel MPI."""

    name = "hydra"

    def lines(self, launch: Launch) -> list[str]:
        """Return the lines with the hosts in the order of the ranks, and the binding.

        Intel MPI takes one list of masks for all nodes (Developer Reference, "Process Pinning"). If
        the nodes differ, and for the other two MPIs, the wrapper binds.
        """
        masks = launch.local if launch.mpi == "intel" else []
        settings = launch.unpinned()
        if masks:
            pinned = ",".join(map(mask, masks))
            settings = {"I_MPI_PIN": "1", "I_MPI_PIN_DOMAIN": f"[{pinned}]"}
        settings |= launch.yielding()
        # Intel MPI passes all variables to other nodes only on request.
        ranks = ["-genvall", "-n", str(len(launch.cpus))]
        # Without this, hydra uses the first node of a larger job instead of this node.
        options = ["-bootstrap", "fork", "-hosts", "localhost", *ranks]
        before: list[str] = []
        wrapper = ""
        if len(launch.by_host) > 1:
            before = [launch.hostfile([f"{host}:{len(ranks)}" for host, ranks in launch.by_host])]
            options = ["-machinefile", "hostfile", *ranks]
            if launch.mpi == "intel":
                # Without this, the distribution of the scheduler overrides that of the file.
                settings["I_MPI_JOB_RESPECT_PROCESS_PLACEMENT"] = "0"
            if launch.settings.bootstrap:
                options = ["-bootstrap", launch.settings.bootstrap, *options]
            if shlex.quote(launch.prefix) != launch.prefix and launch.settings.bootstrap == "ssh":
                before += [f"cat >reach <<'END'\n{SSH_WRAPPER}END", "chmod 755 reach"]
                wrapper = '-bootstrap-exec "$PWD/reach" '
        mpiexec = shlex.quote(f"{launch.prefix}/bin/mpiexec.hydra")
        return [
            *launch.exports(settings),
            *before,
            f"exec {mpiexec} {shlex.join(options)} {wrapper}{launch.ranked(bind=not masks)}",
        ]


NO_ALLOCATION = "^slurm,tm,pbs,gridengine,lsf,loadleveler,alps,flux"
"""Leaves out what reads the allocation of a scheduler, by its name in version 4 or 5."""


class OpenMpi(Launcher):
    """Open MPI's mpirun."""

    name = "openmpi"

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
            # Debian's mpirun is an alternative, which can be that of MPICH.
            f"suffix=; [ ! -x {mpirun}.openmpi ] || suffix=.openmpi",
            f"exec {mpirun}$suffix -np {len(launch.cpus)} {shlex.join(options)} "
            f"{launch.ranked(bind=True)}",
        ]


NO_ALLOCATION_OF_PRRTE = "^slurm,pbs,gridengine,lsf,flux"
"""Leaves out what reads the allocation of a scheduler."""


class Prterun(Launcher):
    """PRRTE's prterun."""

    name = "prterun"

    def lines(self, launch: Launch) -> list[str]:
        """Return the lines that write a hostfile and start one rank for each of its lines.

        The wrapper binds each rank: the numbers of a rankfile are logical cores of hwloc.
        """
        one_node = len(launch.by_host) == 1
        hosts = launch.rank_hosts
        settings = launch.unpinned() | launch.yielding()
        own = {}
        if one_node or launch.settings.bootstrap == "ssh":
            own["PRTE_MCA_ras"] = NO_ALLOCATION_OF_PRRTE
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


class Plain(Launcher):
    """One process without a launcher."""

    name = "plain"

    def lines(self, launch: Launch) -> list[str]:
        """Return the lines that bind one thread to each CPU, in order (OpenMP 5.2, section 21.1.6).

        The process is bound to all of them. That also binds a single thread, which GCC's OpenMP
        does not report, and runtimes other than OpenMP. The runtime prints where each thread is
        bound (OMP_DISPLAY_AFFINITY, OpenMP 5.0).
        """
        if not launch.cpus:
            return [*launch.exports(), f"exec {launch.ranked(bind=False)}"]
        cpus = launch.cpus[0].cpus
        openmp = {
            "OMP_NUM_THREADS": str(len(cpus)),
            "OMP_PLACES": ",".join(f"{{{cpu}}}" for cpu in cpus),
            "OMP_PROC_BIND": "close",
            "OMP_DISPLAY_AFFINITY": "true",
            "OMP_AFFINITY_FORMAT": '{"thread": %n, "host": "%H", "cpus": "%A"}',
        }
        return [*launch.exports(openmp), f"exec {launch.ranked(bind=True)}"]

"""Open MPI's mpirun: a rankfile of physical CPU numbers (mpirun(1), "Rankfiles")."""

from __future__ import annotations

import shlex
from dataclasses import replace

from proofmark.jobs.launcher import Launch, Launcher


class OpenMpi(Launcher):
    """Open MPI's mpirun."""

    def lines(self, launch: Launch) -> list[str]:
        """Return the lines that write a rankfile and start one rank per entry.

        A rankfile cannot give one CPU to two ranks. If ranks share CPUs, or the site has ``binding:
        wrapper``, a hostfile has the host of each rank and the wrapper binds.
        """
        by_wrapper = launch.shared or launch.settings.binding == "wrapper"
        mpirun = shlex.quote(f"{launch.prefix}/bin/mpirun")
        if by_wrapper:
            names = [host for host, ranks in launch.by_host for _ in ranks]
            before = [launch.hostfile(names)]
            options = ["--hostfile", "hostfile", "--map-by", "seq", "--bind-to", "none"]
            settings: dict[str, str] = {}
        else:
            ranks = [
                f"rank {number}={launch.hosts[rank.node]} slot={','.join(map(str, rank.cpus))}\n"
                for number, rank in enumerate(launch.cpus)
            ]
            before = [f"cat >rankfile <<'END'\n{''.join(ranks)}END"]
            options = ["--rankfile", "rankfile"]
            settings = {"OMPI_MCA_rmaps_rank_file_physical": "1"}
            if len(launch.by_host) > 1:
                # The hosts of a rankfile must be in the hostfile as well.
                slots = [f"{host} slots={len(ranks)}" for host, ranks in launch.by_host]
                before.append(launch.hostfile(slots))
                options = ["--hostfile", "hostfile", *options]
        settings |= replace(launch, mpi="openmpi").yielding()
        if len(launch.by_host) == 1 or launch.settings.bootstrap == "ssh":
            # Slurm gives a per-node step one task of each node, and Open MPI would start no more.
            settings["OMPI_MCA_ras"] = "^slurm"
        if launch.settings.bootstrap:
            manager = launch.settings.bootstrap
            settings["OMPI_MCA_plm"] = {"ssh": "rsh"}.get(manager, manager)
        if len(launch.by_host) > 1:
            # mpirun exports only the variables named with -x to other nodes.
            wrapper = ["BINDING", *(["FIRST_RANK", "RANK_STRIDE"] if launch.concurrent else [])]
            exported = [*wrapper, *{**settings, **launch.environment}]
            options += [word for name in exported for word in ("-x", name)]
        return [
            *launch.exports(settings),
            # mpirun refuses to run as root unless both variables are set.
            'if [ "$(id -u)" = 0 ]; then',
            "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
            "fi",
            *before,
            f"exec {mpirun} -np {len(launch.cpus)} {shlex.join(options)} "
            f"{launch.ranked(bind=by_wrapper)}",
        ]

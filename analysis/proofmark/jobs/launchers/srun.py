"""Slurm's srun, 20.11 or later: hosts in the order of the ranks, a CPU or a mask per rank."""

from __future__ import annotations

import shlex

from proofmark.common.nodesets import fold
from proofmark.jobs.launcher import Launch, Launcher, mask


class Srun(Launcher):
    """Slurm's srun."""

    starts_children = False

    def lines(self, launch: Launch) -> list[str]:
        """Return the lines with the node and the CPUs of each rank (--distribution, --cpu-bind).

        ``map_cpu`` and ``mask_cpu`` are one list for all nodes; if the nodes differ, the wrapper
        binds. A site whose Slurm has no task/affinity needs ``binding: wrapper``: srun ignores the
        masks there. See srun(1).

        If the CPUs of Slurm are the cores of a node (``CPUs=`` of slurm.conf), it refuses a rank
        for each hardware thread unless they are overcommitted. Nothing else is: Slurm may confine
        the ranks to fewer cores then.
        """
        settings = launch.unpinned() | launch.yielding()
        # Copies of a program, and the job step that starts per-node steps, use the same CPUs.
        options = ["--kill-on-bad-exit=1", "--export=ALL", "--overlap"]
        if launch.settings.mpi:
            options.append(f"--mpi={launch.settings.mpi}")
        options.append(f"--ntasks={len(launch.cpus)}")
        most = max((len(ranks) for _, ranks in launch.by_host), default=1)
        before = [
            "COUNTED=${SLURM_JOB_CPUS_PER_NODE%%[!0-9]*}",  # of the first nodes: 8(x2),4
            f'[ "${{COUNTED:-{most}}}" -ge {most} ] || export SLURM_OVERCOMMIT=1',
        ]
        if launch.regular:
            (hosts,) = fold(launch.hosts)
            per_node = len(launch.by_host[0][1])
            options += [f"--nodes={len(launch.by_host)}", f"--nodelist={hosts}"]
            options.append("--distribution=block")
            options += [f"--ntasks-per-node={per_node}"]
        else:
            before += [launch.hostfile(launch.rank_hosts), 'export SLURM_HOSTFILE="$PWD/hostfile"']
            # The file has the nodes. Slurm 24.11 refuses a number of nodes beside it.
            before.append("unset SLURM_NNODES SLURM_JOB_NUM_NODES")
            options.append("--distribution=arbitrary")
        if launch.shared:
            options.append("--overcommit")
        local = launch.local
        if local and all(len(cpus) == 1 for cpus in local):
            options.append("--cpu-bind=map_cpu:" + ",".join(str(cpu) for (cpu,) in local))
        elif local:
            options.append("--cpu-bind=mask_cpu:" + ",".join(map(mask, local)))
        else:
            options.append("--cpu-bind=none")
        return [
            *launch.exports(settings),
            *before,
            f"exec srun {shlex.join(options)} {launch.ranked(bind=not local)}",
        ]

"""Flux's flux run: hosts in the order of the ranks, a list of CPUs per rank.

After flux-run(1) and flux-shell-options(7) of flux-core. Some of the options were tried on
flux-core 0.88.0, with programs without MPI.
"""

from __future__ import annotations

import shlex

from proofmark.common.nodesets import hostlist
from proofmark.jobs.launcher import Launch, Launcher


class Flux(Launcher):
    """Flux's flux run."""

    starts_children = False

    def lines(self, launch: Launch) -> list[str]:
        """Return the lines with the node and the CPUs of each rank (--taskmap, cpu-affinity).

        ``cpu-affinity=map`` is one list for all nodes; if the nodes differ, the wrapper binds.
        ``--tasks-per-node`` requests whole nodes, so that ranks may share cores; it needs the same
        number of ranks on each node. Copies that run at the same time cannot have whole nodes: they
        request a core for each rank. Flux counts cores, not hardware threads: with more ranks than
        cores, copies run one after the other (INVALID), and ranks that are uneven do not start.
        """
        counts = {len(ranks) for _, ranks in launch.by_host}
        hosts = [host for host, _ in launch.by_host]
        named = hostlist(hosts) if launch.regular else ",".join(hosts)
        options = [f"--nodes={len(hosts)}", f"--requires=host:{named}"]
        if launch.concurrent:
            options.append(f"--ntasks={len(launch.cpus)}")
        elif len(counts) == 1:
            options.append(f"--tasks-per-node={counts.pop()}")
        else:
            options += [f"--ntasks={len(launch.cpus)}", "--exclusive"]
        before: list[str] = []
        if len(hosts) > 1 and not launch.regular:
            names = [host for host, ranks in launch.by_host for _ in ranks]
            before = [launch.hostfile(names)]
            options.append("--taskmap=hostfile:hostfile")
        local = launch.local
        lists = ";".join(",".join(map(str, cpus)) for cpus in local)
        options.append(f"--setopt=cpu-affinity={f'map:{lists}' if local else 'off'}")
        if launch.settings.mpi:
            options.append(f"--setopt=pmi={launch.settings.mpi}")
        options.append("--setopt=exit-on-error")
        return [
            *launch.exports(launch.unpinned() | launch.yielding()),
            *before,
            f"exec flux run {shlex.join(options)} {launch.ranked(bind=not local)}",
        ]

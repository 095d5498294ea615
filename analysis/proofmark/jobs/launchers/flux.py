"""Flux's flux run: hosts in the order of the ranks, a list of CPUs per rank.

After flux-run(1), flux-shell-options(7) and the source of flux-core (shell/rcalc.c); tried with
flux-core 0.88.0 and MPICH.
"""

from __future__ import annotations

import shlex
from collections import Counter

from proofmark.common.nodesets import hostlist
from proofmark.jobs.launcher import Launch, Launcher


class FluxLauncher(Launcher):
    """Flux's flux run."""

    starts_children = False
    takes_a_core = True

    def lines(self, launch: Launch) -> list[str]:
        """Return the lines with the node and the CPUs of each rank (--taskmap, cpu-affinity).

        ``cpu-affinity=map`` is one list for all nodes; if the nodes differ, the wrapper binds. The
        command requests one core of each node, and binds its ranks to any: Flux counts cores, not
        hardware threads, and a program, its copies and its load share the nodes of the job.

        No option requests unequal numbers of ranks without a core for each. ``--dry-run`` prints
        the request, in which their total replaces the one rank of each core (flux-core 0.77).
        """
        counts = Counter[str]()
        for host, ranks in launch.by_host:
            counts[host] += len(ranks)
        named = hostlist(counts) if launch.regular else ",".join(counts)
        options = [f"--nodes={len(counts)}", f"--requires=host:{named}"]
        alike = len(set(counts.values())) == 1
        if alike:
            options.append(f"--cores={len(counts)}")
            options.append(f"--tasks-per-node={max(counts.values())}")
        else:
            options.append(f"--ntasks={len(counts)}")
        before: list[str] = []
        if len(counts) > 1 and not launch.regular:
            before = [launch.hostfile(launch.rank_hosts)]
            options.append("--taskmap=hostfile:hostfile")
        local = launch.local
        lists = ";".join(",".join(map(str, cpus)) for cpus in local)
        options.append(f"--setopt=cpu-affinity={f'map:{lists}' if local else 'off'}")
        if launch.settings.mpi:
            options.append(f"--setopt=pmi={launch.settings.mpi}")
        options.append("--setopt=exit-on-error")
        command = f"{shlex.join(options)} {launch.ranked(bind=not local)}"
        start = [f"exec flux run {command}"]
        if not alike:
            total = f's/"count": {{"per_slot": 1}}/"count": {{"total": {len(launch.cpus)}}}/'
            # The request has all variables of this shell: it is in no file. A quotation mark in it
            # has a backslash, so that the words are found only where Flux wrote them.
            start = [
                f"JOBID=$(flux run --dry-run {command} | sed '{total}' | flux job submit) || exit",
                'exec flux job attach "$JOBID"',
            ]
        return [*launch.exports(launch.unpinned() | launch.yielding()), *before, *start]

"""The mpiexec of HPE Cray PALS, which starts ranks in jobs of PBS.

After ``mpiexec --help`` of PALS: the options in ``cray/modules/mpiexec/cli.py`` of HPE's cray-cli.
Rendered, never run.
"""

from __future__ import annotations

import shlex

from proofmark.jobs.launcher import Launch, Launcher


class Pals(Launcher):
    """HPE Cray's Parallel Application Launch Service."""

    starts_children = False

    def lines(self, launch: Launch) -> list[str]:
        """Return the lines that write the list of hosts and start the ranks on them in blocks.

        Each line of the list gets ``--ppn`` ranks. If the nodes have unequal numbers of ranks, it
        has a line for each rank. ``--cpu-bind list`` is one list for all nodes; if the nodes
        differ, the wrapper binds.
        """
        counts = {len(ranks) for _, ranks in launch.by_host}
        alike = len(counts) == 1
        hosts = [host for host, _ in launch.by_host] if alike else launch.rank_hosts
        local = launch.local if alike else []
        lists = ":".join(",".join(map(str, cpus)) for cpus in local)
        options = ["-n", str(len(launch.cpus)), "--ppn", str(counts.pop() if alike else 1)]
        options += ["--hostfile", "hostfile", "--envall"]
        options += ["--cpu-bind", f"list:{lists}" if local else "none"]
        if launch.settings.mpi:
            options += ["--pmi", launch.settings.mpi]
        return [
            *launch.exports(launch.unpinned() | launch.yielding()),
            launch.hostfile(hosts),
            f"exec mpiexec {shlex.join(options)} {launch.ranked(bind=not local)}",
        ]

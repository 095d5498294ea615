"""IBM's Parallel Operating Environment: MP_* variables and a list of hosts. Rendered, never run.

After "Parallel Environment for AIX: Operation and Use", chapter "POE environment variables".
"""

from __future__ import annotations

import shlex

from proofmark.jobs.launcher import Launch, Launcher


class Poe(Launcher):
    """IBM's Parallel Operating Environment."""

    starts_children = False

    def lines(self, launch: Launch) -> list[str]:
        """Return the lines with the host and the number of CPUs of each rank.

        POE takes the number of CPUs of a task (MP_TASK_AFFINITY), but no list of them: the wrapper
        binds each rank to its CPUs.
        """
        names = launch.rank_hosts
        threads = max((len(rank.cpus) for rank in launch.cpus), default=1)
        settings = {
            "MP_PROCS": str(len(launch.cpus)),
            "MP_NODES": str(len(launch.by_host)),
            "MP_HOSTFILE": "hostfile",
            # The scheduler has allocated the nodes; the file assigns the ranks to them.
            "MP_RESD": "no",
            "MP_EUILIB": launch.settings.mpi or "us",
            "MP_SHARED_MEMORY": "yes",
            "MP_TASK_AFFINITY": f"CPU:{threads}",
            "MP_LABELIO": "no",
            "MP_STDOUTMODE": "unordered",
        }
        poe = shlex.quote(f"{launch.prefix}/bin/poe")
        return [
            *launch.exports(settings),
            launch.hostfile(names),
            f"exec {poe} {launch.ranked(bind=True)}",
        ]

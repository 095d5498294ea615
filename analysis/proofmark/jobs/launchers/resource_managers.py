"""The launchers of resource managers: srun, flux run, PALS of HPE Cray, and POE of IBM.

`FluxLauncher` is after flux-run(1), flux-shell-options(7) and the source of flux-core
(shell/rcalc.c); tried with flux-core 0.88.0 and MPICH. Rendered, never run: `Pals`, after
``mpiexec --help`` of PALS (the options in ``cray/modules/mpiexec/cli.py`` of HPE's cray-cli);
`Poe`, after "Parallel Environment for AIX: Operation and Use", chapter "POE environment
variables".
"""

from __future__ import annotations

import shlex
from collections import Counter

from proofmark.common.nodesets import fold, hostlist
from proofmark.jobs.launcher import Launch, Launcher, mask


class Srun(Launcher):
    """Slurm's srun."""

    name = "srun"
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


class FluxLauncher(Launcher):
    """Flux's flux run."""

    name = "flux"
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


class Pals(Launcher):
    """HPE Cray's Parallel Application Launch Service."""

    name = "pals"
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


class Poe(Launcher):
    """IBM's Parallel Operating Environment."""

    name = "poe"
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

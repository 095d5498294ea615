"""Hydra, the process manager of MPICH, MVAPICH2 and Intel MPI: a file of hosts, a mask per rank."""

from __future__ import annotations

import shlex

from proofmark.jobs.launcher import Launch, Launcher, mask

REACH = r"""#!/bin/sh
# ssh for hydra: the shell there splits the command at blanks, unless each word is quoted.
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

    def lines(self, launch: Launch) -> list[str]:
        """Name the hosts in the order of the ranks, and pin the ranks.

        Intel MPI pins by a list of masks that holds for every node (Developer Reference, "Process
        Pinning"). Where nodes differ, and with the other two, the wrapper binds.
        """
        masks = launch.local if launch.mpi == "intel" else []
        settings = launch.unpinned()
        if masks:
            pinned = ",".join(map(mask, masks))
            settings = {"I_MPI_PIN": "1", "I_MPI_PIN_DOMAIN": f"[{pinned}]"}
        settings |= launch.patient()
        ranks = ["-n", str(len(launch.cpus))]
        # In a job of many nodes hydra would take the job's first, not the one that this is run on.
        options = ["-bootstrap", "fork", "-hosts", "localhost", *ranks]
        before: list[str] = []
        reach = ""
        if len(launch.by_host) > 1:
            before = [launch.hostfile([f"{host}:{len(ranks)}" for host, ranks in launch.by_host])]
            options = ["-machinefile", "hostfile", *ranks]
            if launch.mpi == "intel":
                # Else the scheduler's own distribution comes before the file's.
                settings["I_MPI_JOB_RESPECT_PROCESS_PLACEMENT"] = "0"
            if launch.settings.bootstrap:
                options = ["-bootstrap", launch.settings.bootstrap, *options]
            if shlex.quote(launch.prefix) != launch.prefix and launch.settings.bootstrap == "ssh":
                before += [f"cat >reach <<'END'\n{REACH}END", "chmod 755 reach"]
                reach = '-bootstrap-exec "$PWD/reach" '
        mpiexec = shlex.quote(f"{launch.prefix}/bin/mpiexec.hydra")
        return [
            *launch.exports(settings),
            *before,
            f"exec {mpiexec} {shlex.join(options)} {reach}{launch.ranked(bind=not masks)}",
        ]

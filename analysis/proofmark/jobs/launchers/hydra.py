"""Hydra, the process manager of MPICH, MVAPICH2 and Intel MPI: a file of hosts, a mask per rank."""

from __future__ import annotations

import shlex

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

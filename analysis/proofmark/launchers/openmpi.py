"""Open MPI's mpirun: a rankfile of physical CPU numbers (mpirun(1), "Rankfiles")."""

from __future__ import annotations

import shlex

from proofmark.launchers import Launch


def lines(launch: Launch) -> list[str]:
    """Write the rankfile beside the output, then start one rank per entry."""
    ranks = [
        f"rank {rank}={launch.hosts[node]} slot={','.join(map(str, cpus))}"
        for rank, (node, cpus) in enumerate(launch.cpus)
    ]
    mpirun = shlex.quote(f"{launch.prefix}/bin/mpirun")
    # A rank that spins while another waits for the same core turns microseconds into time slices.
    settings = {"OMPI_MCA_rmaps_rank_file_physical": "1"}
    shared = len({(node, cpu) for node, cpus in launch.cpus for cpu in cpus}) < sum(
        len(cpus) for _, cpus in launch.cpus
    )
    if shared:
        settings["OMPI_MCA_mpi_yield_when_idle"] = "1"
    return [
        *launch.exports(settings),
        # mpirun refuses root unless told twice; an acceptance run of bare nodes often is root.
        'if [ "$(id -u)" = 0 ]; then',
        "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
        "fi",
        f"cat >rankfile <<'END'\n{chr(10).join(ranks)}\nEND",
        f"exec {mpirun} -np {len(launch.cpus)} --rankfile rankfile {launch.ranked()}",
    ]

"""Start a virtual cluster, run a command beside it, and end it."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.emulators.vcluster import Cluster, Slurm
from tests.emulators.vcluster.slurm import KNL


def of_this_machine() -> dict[str, object]:
    """Return the cores and the memory of this machine as the hardware of a node of Slurm."""
    cores = len(os.sched_getaffinity(0))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    shape = {"Boards": 1, "SocketsPerBoard": 1, "CoresPerSocket": cores, "ThreadsPerCore": 1}
    return {"CPUs": cores, **shape, "RealMemory": memory}


def main() -> int:
    """Return the exit code of the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.emulators.vcluster", description=__doc__)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--prefix", default="knl", help="prefix of the names of the nodes")
    parser.add_argument("--folder", type=Path, help="folder of its files and logs")
    parser.add_argument(
        "--share",
        type=Path,
        action="append",
        default=[],
        help="a path below /tmp that the nodes see",
    )
    parser.add_argument("--scheduler", choices=["slurm", "none"], default="slurm")
    parser.add_argument(
        "--own-hardware",
        action="store_true",
        help="the scheduler states the cores and the memory of this machine, not of a Xeon Phi",
    )
    parser.add_argument("command", nargs=argparse.REMAINDER, help="default: a shell")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(TemporaryDirectory()))
        start = time.monotonic()
        started = Cluster(folder, options.nodes, prefix=options.prefix, shared=options.share)
        cluster = stack.enter_context(started)
        if options.scheduler == "slurm":
            hardware = of_this_machine() if options.own_hardware else KNL
            stack.enter_context(Slurm(cluster, partition=options.prefix, hardware=hardware))
        seconds = time.monotonic() - start
        print(f"{options.nodes} nodes after {seconds:.1f} s in {cluster.folder}", file=sys.stderr)
        command = options.command or ["sh"]
        try:
            return subprocess.run(command, check=False, env=cluster.environment()).returncode
        except KeyboardInterrupt:
            return 130


if __name__ == "__main__":
    sys.exit(main())

"""How a partition runs jobs: its queue, its launcher, and the CPUs behind virtual nodes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from proofmark.cases.models import Slug
from proofmark.common.strict_model import RenamedKeys, StrictModel
from proofmark.site.hardware import Count


class Queue(RenamedKeys):
    """How jobs are put into the partition's scheduler; what is not told is left to its defaults.

    Attributes:
        name: of the partition, queue or class.
        exclusive: no foreign job beside ours on a node.
        max_jobs: how many of our jobs may be submitted at one time. More than one share
            network and file system while they measure.
        max_walltime_s: the longest time limit that a job may ask for, seconds.
        queue_timeout_s: how long a job may wait for its turn, seconds; then it is given up.
        stall_timeout_s: how long a job may be held, wait for nodes that are not available or for a
            scheduler that does not answer, seconds; then it is given up and named.
        parallel_environment: of Grid Engine, for jobs of several nodes.
        slots_per_node: of that environment.
        options: further lines of the header, without the scheduler's prefix.
    """

    RENAMED = {
        "jobs_at_once": "max_jobs",
        "longest_s": "max_walltime_s",
        "wait_s": "queue_timeout_s",
        "patience_s": "stall_timeout_s",
    }

    name: str = ""
    account: str = ""
    reservation: str = ""
    exclusive: bool = True
    max_jobs: Count = 1
    max_walltime_s: Count | None = None
    queue_timeout_s: float = Field(default=7 * 86400, gt=0)
    stall_timeout_s: float = Field(default=1800, gt=0)
    parallel_environment: str = ""
    slots_per_node: Count = 1
    options: list[str] = []


class LaunchSettings(RenamedKeys):
    """How ranks are started here, where the package's own MPI does not know by itself.

    Attributes:
        launcher: for all packages; empty: the one of the package's MPI.
        mpi: what ``srun --mpi=`` takes (``pmi2``, ``pmix``), and POE's MP_EUILIB.
        pmi_library: the library through which Intel MPI speaks with Slurm (libpmi2.so).
        bootstrap: how other nodes are reached (``ssh``, ``slurm``); empty: mpiexec decides.
        binding: who binds the ranks: the launcher where it can, or always the wrapper in run.sh.
    """

    RENAMED = {
        "binds": "binding",
    }

    launcher: Slug | Literal[""] = ""
    mpi: str = Field(default="", pattern=r"^[a-z0-9_]*$")
    pmi_library: str = Field(default="", pattern=r"^(/.*)?$")
    bootstrap: Slug | Literal[""] = ""
    binding: Literal["launcher", "wrapper"] = "launcher"


DEFAULT_LAUNCH = LaunchSettings()


class HostCpuMap(StrictModel):
    """What of the real machine stands for the parts of a virtual node that has more of them.

    CPU n of the step's first node is CPU ``cpus[n % len(cpus)]`` of the machine, that of its second
    node one further, and so on: nodes with one rank each share the machine, and not its first CPU.
    NUMA nodes are the same on all. Ranks are bound to the machine's, and judged by them.
    """

    cpus: list[Annotated[int, Field(ge=0)]] = Field(min_length=1)
    numa: list[Annotated[int, Field(ge=0)]] = Field(default=[0], min_length=1)

    def cpu(self, virtual: int, node: int = 0) -> int:
        """Return the CPU of the machine that stands for CPU `virtual` of the node."""
        return self.cpus[(virtual + node) % len(self.cpus)]

    def domain(self, virtual: int) -> int:
        """Return the NUMA node of the machine that stands for NUMA node `virtual`."""
        return self.numa[virtual % len(self.numa)]

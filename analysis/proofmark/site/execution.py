"""How a partition runs jobs: its queue, its launcher, and the CPUs behind virtual nodes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from proofmark.cases.models import Slug
from proofmark.common.strict_model import StrictModel
from proofmark.site.hardware import Count


class Queue(StrictModel):
    """How jobs are put into the partition's scheduler; what is not told is left to its defaults.

    Attributes:
        name: of the partition, queue or class.
        exclusive: no foreign job beside ours on a node.
        jobs_at_once: how many of our jobs may be submitted at one time. More than one share
            network and file system while they measure.
        longest_s: the longest time limit that a job may ask for, seconds.
        wait_s: how long a job may wait for its turn, seconds; then it is given up.
        patience_s: how long a job may be held, wait for nodes that are not available or for a
            scheduler that does not answer, seconds; then it is given up and named.
        parallel_environment: of Grid Engine, for jobs of several nodes.
        slots_per_node: of that environment.
        options: further lines of the header, without the scheduler's prefix.
    """

    name: str = ""
    account: str = ""
    reservation: str = ""
    exclusive: bool = True
    jobs_at_once: Count = 1
    longest_s: Count | None = None
    wait_s: float = Field(default=7 * 86400, gt=0)
    patience_s: float = Field(default=1800, gt=0)
    parallel_environment: str = ""
    slots_per_node: Count = 1
    options: list[str] = []


class LaunchSettings(StrictModel):
    """How ranks are started here, where the package's own MPI does not know by itself.

    Attributes:
        launcher: for all packages; empty: the one of the package's MPI.
        mpi: what ``srun --mpi=`` takes (``pmi2``, ``pmix``), and POE's MP_EUILIB.
        pmi_library: the library through which Intel MPI speaks with Slurm (libpmi2.so).
        bootstrap: how other nodes are reached (``ssh``, ``slurm``); empty: mpiexec decides.
        binds: who binds the ranks: the launcher where it can, or always the wrapper in run.sh.
    """

    launcher: Slug | Literal[""] = ""
    mpi: str = Field(default="", pattern=r"^[a-z0-9_]*$")
    pmi_library: str = Field(default="", pattern=r"^(/.*)?$")
    bootstrap: Slug | Literal[""] = ""
    binds: Literal["launcher", "wrapper"] = "launcher"


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

"""What an inventory declares of a partition: hardware, modes, switch levels, file systems."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from proofmark.cases.models import Name, Slug, Text
from proofmark.common.nodesets import unfold
from proofmark.common.strict_model import StrictModel

CURRENT = "current"
"""The mode of a partition that has no other: whatever the machine stands in."""
Count = Annotated[int, Field(gt=0)]


class Hardware(StrictModel):
    """The nodes of a partition that cannot be asked now.

    Attributes:
        architecture: archspec's name.
        clock_hz: nominal; with `flop_per_cycle` (double precision, of one core) the nominal peak.
        topology: hwloc's synthetic notation, or a file of hwloc's XML beside the partition's
            variables (it ends in ``.xml``). A mode may have its own.
        memory_bytes: usable by programs, where the topology does not tell or another number holds.
        llc_bytes: caches of the last level, likewise.
        sources: where each fact comes from, by key.
        assumed: facts that nobody has told, by key: the plan shows them.
    """

    cpu_model: Text
    architecture: Slug | Annotated[str, Field(pattern=r"^[a-z0-9_]+$")]
    topology: Text
    clock_hz: float | None = Field(default=None, gt=0)
    flop_per_cycle: Count | None = None
    memory_bytes: Count | None = None
    llc_bytes: Count | None = None
    sources: dict[str, Text] = {}
    assumed: dict[str, Text] = {}


class Mode(StrictModel):
    """A state of the machine set by firmware.

    `settings` names it in the firmware's words (``cluster: Quadrant``, ``memory: Flat``);
    `topology` is what the node looks like in it, where that is not the hardware's own.
    """

    settings: dict[str, str] = {}
    topology: Text | None = None
    memory_bytes: Count | None = None


class Level(StrictModel):
    """Nodes that are close together.

    Every `each` hosts, in the inventory's order, are one; or `switches` tells the nodes (a node
    set) of each by its name, as ``proofmark fabric`` writes it from what the site has.
    """

    name: Slug
    each: Count | None = None
    switches: dict[str, Text] = {}

    @model_validator(mode="after")
    def _told_once(self) -> Level:
        if (self.each is None) == (not self.switches):
            raise ValueError("exactly one of each and switches")
        return self

    @cached_property
    def _by_host(self) -> dict[str, str]:
        return {host: name for name, hosts in self.switches.items() for host in unfold([hosts])}

    def group(self, index: int, host: str) -> str | None:
        """Return what the host, with this number from 0, shares with the others near it."""
        if self.each:
            return f"{self.name}-{index // self.each + 1:03d}"
        return self._by_host.get(host)


class Fabric(StrictModel):
    """The switch levels between two nodes, the nearest first, and the racks.

    Two nodes that share none of `levels` are `top` apart.
    """

    levels: list[Level] = []
    top: Slug = "fabric"
    rack: Count | None = None
    source: Text = "not told"

    @model_validator(mode="after")
    def _nested(self) -> Fabric:
        sizes = [level.each for level in self.levels if level.each]
        if any(outer % inner for inner, outer in pairwise(sizes)):
            raise ValueError("levels: each one holds whole ones of the level before it")
        return self

    @property
    def names(self) -> list[str]:
        """How far two nodes can be apart, the nearest first."""
        return [*(level.name for level in self.levels), self.top]

    def location(self, index: int, host: str = "") -> dict[str, str]:
        """Return the switch of each level, and the rack, of the host with this number from 0."""
        groups = {level.name: level.group(index, host) for level in self.levels}
        if self.rack:
            groups["rack"] = f"rack-{index // self.rack + 1:03d}"
        return {name: group for name, group in groups.items() if group}

    def apart(self, one: tuple[int, str], other: tuple[int, str]) -> str:
        """Return the nearest level that two hosts, each by number and name, share."""
        for level in self.levels:
            group = level.group(*one)
            if group and group == level.group(*other):
                return level.name
        return self.top


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


class FileSystem(StrictModel):
    """A further scratch file system; `block_bytes` was fixed when it was made (GPFS)."""

    name: Slug
    path: str = Field(pattern=r"^/")
    block_bytes: Count | None = None


class Starting(StrictModel):
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


NOTHING_TOLD = Starting()


class StandIns(StrictModel):
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


def _named(given: Any) -> Any:
    return {name: {} for name in given} if isinstance(given, list) else given


Modes = Annotated[
    dict[Slug, Mode],
    Field(min_length=1),
    BeforeValidator(_named, json_schema_input_type=dict[Slug, Mode] | list[Slug]),
]
Facts = dict[Name, str | int | float]
Discovered = Literal["discovered"]

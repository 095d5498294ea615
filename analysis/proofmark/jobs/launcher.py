"""The base class of launchers: they write the commands that start ranks on their CPUs."""

from __future__ import annotations

import shlex
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import ClassVar

from proofmark.common.grouping import flat
from proofmark.common.nodesets import fold
from proofmark.common.plugins import Plugins
from proofmark.plan.rank_cpus import RankCpus
from proofmark.site.execution import DEFAULT_LAUNCH, LaunchSettings


@dataclass(frozen=True)
class Launch:
    """One command to start.

    Attributes:
        program: absolute path of the program.
        environment: the variables of the package, the variant and the case, in that order.
        cpus: the CPUs of each rank, on a node of `hosts`; empty if the program binds its own
            processes.
        prefix: the folder of the MPI of the package.
        membind: the NUMA domains that memory must come from; empty: any.
        mpi: the family of the MPI (``intel``, ``mpich``, ``mvapich``, ``openmpi``); may be empty.
        concurrent: whether other copies of the program run on the same nodes at the same time.
        one_machine: whether the hosts are virtual nodes of one machine and share its CPUs.
    """

    program: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    hosts: Sequence[str]
    cpus: Sequence[RankCpus]
    prefix: str
    membind: Sequence[int] = ()
    mpi: str = ""
    settings: LaunchSettings = DEFAULT_LAUNCH
    concurrent: bool = False
    one_machine: bool = False

    @cached_property
    def by_host(self) -> list[tuple[str, list[tuple[int, ...]]]]:
        """The hosts in the order of the ranks, each with the CPUs of its ranks."""
        parts = groupby(self.cpus, lambda rank: rank.node)
        return [(self.hosts[node], [rank.cpus for rank in ranks]) for node, ranks in parts]

    @property
    def rank_hosts(self) -> list[str]:
        """The host of each rank."""
        return [self.hosts[rank.node] for rank in self.cpus]

    @property
    def shared(self) -> bool:
        """Whether a CPU of a node has more than one rank or thread."""
        cpus = []
        for rank in self.cpus:
            cpus += [(rank.node, cpu) for cpu in rank.cpus]
        return len(set(cpus)) < len(cpus)

    @property
    def regular(self) -> bool:
        """Whether all hosts have the same number of ranks and are in the order of a node set.

        Schedulers sort the hosts of a node set. The hosts of a pair are not known here: each pair
        inserts its names, in either order.
        """
        counts = {len(ranks) for _, ranks in self.by_host}
        ordered = len(self.hosts) != 2 and len(fold(self.hosts)) == 1
        return len(counts) == 1 and ordered and len(self.by_host) == len(self.hosts)

    @cached_property
    def local(self) -> list[tuple[int, ...]]:
        """The CPUs of the first, second, … rank of a node, if they are the same on all nodes.

        Most launchers take one such list for all nodes. It is empty if the nodes differ, and if the
        site has ``binding: wrapper``.
        """
        if self.settings.binding == "wrapper" or not self.cpus:
            return []
        lists = [ranks for _, ranks in self.by_host]
        longest = max(lists, key=len)
        return longest if all(ranks == longest[: len(ranks)] for ranks in lists) else []

    def exports(self, extra: Mapping[str, str] | None = None) -> list[str]:
        """Return the ``export`` lines of `extra` and the environment; it overrides `extra`."""
        variables = {**(extra or {}), **self.environment}
        return [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]

    def exported(self, settings: Mapping[str, str]) -> list[str]:
        """Return the options ``-x`` by which Open MPI and PRRTE hand variables to other nodes.

        The variables are those of the wrapper, `settings` and the environment.
        """
        wrapper = ["BINDING", *(["FIRST_RANK", "RANK_STRIDE"] if self.concurrent else [])]
        names = [*wrapper, *{**settings, **self.environment}]
        return flat(("-x", name) for name in names)

    def yielding(self) -> dict[str, str]:
        """Return the variables that make waiting ranks yield their CPU, if ranks share CPUs.

        Without them a waiting rank spins for its whole time slice, and IMB exceeds its time limits.
        """
        used = flat(rank.cpus for rank in self.cpus)
        if not (self.shared or (self.one_machine and len(set(used)) < len(used))):
            return {}
        return {
            "intel": {"I_MPI_WAIT_MODE": "1", "I_MPI_THREAD_YIELD": "3"},
            "mvapich": {"MV2_USE_BLOCKING": "1"},
            "openmpi": {"OMPI_MCA_mpi_yield_when_idle": "1"},
        }.get(self.mpi, {})

    def unpinned(self) -> dict[str, str]:
        """Return the variables that keep the MPI from changing the binding of its ranks."""
        return {
            "intel": {"I_MPI_PIN": "0"},
            "mvapich": {"MV2_ENABLE_AFFINITY": "0"},
            "openmpi": {"OMPI_MCA_hwloc_base_binding_policy": "none"},
        }.get(self.mpi, {})

    def ranked(self, *, bind: bool) -> str:
        """Return the command of one rank: the program after the wrapper that reports its binding.

        With `bind` the wrapper first binds the rank to its CPUs.
        """
        numactl = f"numactl --membind={','.join(map(str, self.membind))} " if self.membind else ""
        option = "--bind" if bind else "--rank"
        return f'{numactl}sh "$HERE/run.sh" {option} {shlex.join([self.program, *self.arguments])}'

    def hostfile(self, lines: Sequence[str]) -> str:
        """Return the sh lines that write `lines` into ``hostfile``, beside the output.

        A line that begins with the name of a host never equals the last line.
        """
        return "cat >hostfile <<'+END+'\n" + "".join(f"{line}\n" for line in lines) + "+END+"


def mask(cpus: Iterable[int]) -> str:
    """Return `cpus` as a hexadecimal mask with 0x: Intel MPI and Slurm require the prefix."""
    return f"0x{sum(1 << cpu for cpu in set(cpus)):x}"


class Launcher(ABC):
    """Starts the ranks of a program and binds each rank to its CPUs.

    Attributes:
        name: of a launcher of the kit; that of a site has the name of its entry point.
        starts_children: whether the ranks on the node of the launcher are its child processes;
            False if a daemon starts them.
        takes_a_core: whether a command that runs keeps a core of each of its nodes from commands
            that are started at the same time: they wait if there are more of them than cores.
    """

    name: ClassVar[str]
    starts_children: ClassVar[bool] = True
    takes_a_core: ClassVar[bool] = False

    @abstractmethod
    def lines(self, launch: Launch) -> list[str]:
        """Return the lines of POSIX sh that start `launch`; the last one ends this shell."""


LAUNCHERS = Plugins(Launcher, "proofmark.jobs.launchers", "launcher", named=True)
"""All launchers; those of a site are entry points of this group."""


def launchers_of_ranks() -> str:
    """Return the names of the launchers that start several ranks, as one text."""
    return ", ".join(name for name in LAUNCHERS.names() if name != "plain")


def launcher(name: str) -> Launcher:
    """Return the launcher `name`.

    Raises:
        BadInput: there is no such launcher.
    """
    return LAUNCHERS.get(name)()

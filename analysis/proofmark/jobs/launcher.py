"""A launcher: how the CPUs of each rank are written for the program that starts the ranks."""

from __future__ import annotations

import shlex
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import ClassVar

from proofmark.common.plugins import Plugins
from proofmark.plan.rank_cpus import RankCpus
from proofmark.site.execution import DEFAULT_LAUNCH, LaunchSettings


@dataclass(frozen=True)
class Launch:
    """One command to start.

    Attributes:
        program: absolute path of the program.
        arguments: its arguments.
        environment: variables of the package, the variant and the case, in that order.
        hosts: the nodes, one name each.
        cpus: the CPUs of each rank, on a node of `hosts`; empty if the program binds its own
            processes.
        prefix: where the package's MPI lives.
        membind: the NUMA nodes that memory may come from; any, if empty.
        mpi: the family of its MPI (``intel``, ``mpich``, ``mvapich``, ``openmpi``); may be empty.
        settings: how the site launches ranks.
        concurrent: whether other copies of it run on the same nodes at the same time.
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
    def shared(self) -> bool:
        """Whether a CPU of a node has more than one rank or thread."""
        cpus = [(rank.node, cpu) for rank in self.cpus for cpu in rank.cpus]
        return len(set(cpus)) < len(cpus)

    @cached_property
    def local(self) -> list[tuple[int, ...]]:
        """The CPUs of a node's first, second, … rank, where all nodes agree on them; else none.

        Most launchers take one such list for all the nodes. It is empty, too, where the site
        wants the wrapper to bind.
        """
        if self.settings.binding == "wrapper" or not self.cpus:
            return []
        lists = [ranks for _, ranks in self.by_host]
        longest = max(lists, key=len)
        return longest if all(ranks == longest[: len(ranks)] for ranks in lists) else []

    def exports(self, extra: Mapping[str, str] | None = None) -> list[str]:
        """Return the ``export`` lines of `extra`, then of the environment, which may override."""
        variables = {**(extra or {}), **self.environment}
        return [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]

    def patient(self) -> dict[str, str]:
        """Return what keeps ranks from spinning while another waits for their CPU.

        Spinning turns microseconds into time slices, and IMB into its own time-outs.
        """
        used = [cpu for rank in self.cpus for cpu in rank.cpus]
        if not (self.shared or (self.one_machine and len(set(used)) < len(used))):
            return {}
        return {
            "intel": {"I_MPI_WAIT_MODE": "1", "I_MPI_THREAD_YIELD": "3"},
            "mvapich": {"MV2_USE_BLOCKING": "1"},
            "openmpi": {"OMPI_MCA_mpi_yield_when_idle": "1"},
        }.get(self.mpi, {})

    def unpinned(self) -> dict[str, str]:
        """Return what keeps the MPI from moving ranks that somebody else has bound."""
        return {
            "intel": {"I_MPI_PIN": "0"},
            "mvapich": {"MV2_ENABLE_AFFINITY": "0"},
            "openmpi": {"OMPI_MCA_hwloc_base_binding_policy": "none"},
        }.get(self.mpi, {})

    def ranked(self, *, bind: bool) -> str:
        """Return the program behind the wrapper that notes where each rank is.

        With `bind` the wrapper first binds the rank to its own seat.
        """
        bound = f"numactl --membind={','.join(map(str, self.membind))} " if self.membind else ""
        how = "--bind" if bind else "--rank"
        return f'{bound}sh "$HERE/run.sh" {how} {shlex.join([self.program, *self.arguments])}'

    def hostfile(self, lines: Sequence[str]) -> str:
        """Return the sh lines that write `lines` into ``hostfile``, beside the output."""
        return "cat >hostfile <<'END'\n" + "".join(f"{line}\n" for line in lines) + "END"


def mask(cpus: Iterable[int]) -> str:
    """Return `cpus` as a hexadecimal mask. Intel MPI and Slurm read it as one only with 0x."""
    return f"0x{sum(1 << cpu for cpu in set(cpus)):x}"


class Launcher(ABC):
    """A launcher: it starts the ranks of a program, each on its CPUs.

    Attributes:
        starts_children: whether the ranks on the launcher's node are its child processes; False if
            a daemon starts them.
    """

    starts_children: ClassVar[bool] = True

    @abstractmethod
    def lines(self, launch: Launch) -> list[str]:
        """Return the lines of POSIX sh that start `launch`; the last one ends with ``exec``."""


LAUNCHERS = Plugins(Launcher, "proofmark.jobs.launchers", "launcher")
"""All launchers; a site's own are entry points of this group."""


def launcher(name: str) -> Launcher:
    """Return the launcher `name`.

    Raises:
        BadInput: there is no such launcher.
    """
    return LAUNCHERS.get(name)()

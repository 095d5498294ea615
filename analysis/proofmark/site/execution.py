"""How a partition runs jobs: its queue, its launcher, and its run-time variables.

``data/run_variables.yml`` has the run-time variables of MPI that are refused, each with its source.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from fnmatch import fnmatchcase
from functools import cache
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from proofmark.cases.vocabulary import Slug, Text, Variable
from proofmark.common.errors import KeyMistake, closest
from proofmark.common.input_limits import MAX_CPUS, MAX_STEPS, MAX_WAIT_S
from proofmark.common.message import NOTHING, Message, joined
from proofmark.common.shared_models import StrictModel
from proofmark.common.yaml_models import shipped_data
from proofmark.site.hardware import Count

MPIS_OF_LAUNCHER = {"openmpi": ("openmpi",), "hydra": ("intel", "mpich", "mvapich")}
"""The families of MPI that a launcher starts. The other launchers start any."""


class Refused(StrictModel):
    """Patterns of names that must not be set, and the reason."""

    names: tuple[str, ...]
    why: Text


class ReadingLibrary(StrictModel):
    """A library that reads variables: the prefix, and patterns of the rest of the known names.

    ``mpis`` are the families of MPI that use it; empty: it does not depend on the MPI.
    """

    library: Text
    prefix: Text
    mpis: tuple[str, ...]
    names: tuple[str, ...]
    source: Text

    def knows(self, name: str) -> bool:
        """Return whether the variable `name`, which has the prefix, is known."""
        rest = name.removeprefix(self.prefix)
        return any(fnmatchcase(rest, each) or fnmatchcase(f"{rest}_", each) for each in self.names)


class _Table(StrictModel):
    refused: tuple[Refused, ...]
    libraries: tuple[ReadingLibrary, ...]


@cache
def _table() -> _Table:
    return shipped_data("proofmark.site", "run_variables.yml", _Table)


def _value(given: object) -> object:
    """Return a number as its text. A YAML truth value is refused: its text is not known."""
    if isinstance(given, bool):
        raise ValueError("quotes around the value, which YAML reads as a truth value")
    return str(given) if isinstance(given, int | float) else given


def _accepted(environment: dict[str, str]) -> dict[str, str]:
    for name in environment:
        if why := _refusal(name):
            raise KeyMistake(f"another name: {why}", name)
    return environment


def _refusal(name: str) -> str:
    rules = _table().refused
    refusing = (rule.why for rule in rules if any(fnmatchcase(name, each) for each in rule.names))
    return next(refusing, "")


RunEnvironment = Annotated[
    dict[
        Variable,
        Annotated[
            str,
            BeforeValidator(_value, json_schema_input_type=str | int | float),
            Field(pattern=r"^[^\x00-\x1f\x7f]*$"),
        ],
    ],
    AfterValidator(_accepted),
]
"""Variables by name. The values are data: they have no control characters, and are quoted."""


@cache
def of_mpi(name: str) -> bool:
    """Return whether an MPI, or a library that only MPIs use, reads the variable `name`."""
    return any(each.mpis and name.startswith(each.prefix) for each in _table().libraries)


def doubtful(names: Iterable[str], mpis: Collection[str]) -> Iterator[Message]:
    """Yield a warning for each variable that is not known, or that none of `mpis` reads.

    `mpis` are the possible families of MPI; empty: any.
    """
    for name in (name for name in names if not _refusal(name)):  # a case may set those
        readers = [each for each in _table().libraries if name.startswith(each.prefix)]
        library = max(readers, key=lambda each: len(each.prefix), default=None)
        if library is None:
            yield Message("variable-of-none", name=name)
        elif library.mpis and mpis and not set(mpis) & set(library.mpis):
            yield Message(
                "variable-of-other", name=name, library=library.library, mpi=", ".join(sorted(mpis))
            )
        elif not library.knows(name):
            close = closest(name, {library.prefix + each.rstrip("_*") for each in library.names})
            near = Message("variable-near", name=close) if close else NOTHING
            unknown = Message("variable-unknown", name=name, library=library.library)
            yield joined((unknown, near))


class Queue(StrictModel):
    """How jobs are submitted. A value that is not set is left to the scheduler's default.

    Attributes:
        name: the scheduler's partition, queue or class.
        exclusive: whether a job has its nodes for itself.
        max_jobs: the number of jobs of the kit that may be submitted at the same time. Several jobs
            share the network and the file system while they measure.
        max_walltime_s: the longest time limit of a job, in seconds.
        queue_timeout_s: the time that a job may be pending, in seconds; then it is cancelled.
        stall_timeout_s: the time that a job may be held, or may wait for nodes that are not
            available or for a scheduler that does not answer, in seconds; then it is cancelled and
            reported.
        parallel_environment: of Grid Engine, for jobs of several nodes.
        cpus_per_node: what the scheduler counts as the CPUs of a node: its cores or its hardware
            threads; of Grid Engine, the slots that the parallel environment gives on a node. If it
            is not set, a job requests the CPUs that its steps use, and of Grid Engine one slot.
        all_nodes: of PBS: the number of nodes of the queue, if the queue has these nodes only. A
            job on this number of nodes requests the number instead of the names, and may exceed
            ``partition.nodes_per_job``.
        memory_per_node: the memory of a node that a job requests, in bytes. Steps are sized by it.
            If it is not set, a Slurm job requests all memory of its nodes, and other jobs request
            none.
        options: further lines of the job script's header, without the scheduler's prefix.
            LoadLeveler takes ``network.MPI`` for parallel jobs only, and binds the tasks to what a
            step plans if ``rset`` is ``rset_mcm_affinity``.
    """

    name: str = ""
    account: str = ""
    reservation: str = ""
    exclusive: bool = True
    max_jobs: Annotated[int, Field(gt=0, le=MAX_STEPS)] = 1
    max_walltime_s: Annotated[int, Field(gt=0, le=MAX_WAIT_S)] | None = None
    queue_timeout_s: float = Field(default=7 * 86400, gt=0, le=MAX_WAIT_S)
    stall_timeout_s: float = Field(default=1800, gt=0, le=MAX_WAIT_S)
    parallel_environment: str = ""
    cpus_per_node: Annotated[int, Field(gt=0, le=MAX_CPUS)] | None = None
    all_nodes: Count | None = Field(default=None, exclude_if=lambda nodes: nodes is None)
    memory_per_node: Count | None = None
    options: list[str] = []


class LaunchSettings(StrictModel):
    """How ranks are launched, if the default of the package's MPI does not work at the site.

    Attributes:
        launcher: the launcher for all packages. If empty, that of the package's MPI is used.
        mpi: the value of ``srun --mpi=`` (``pmi2``, ``pmix``), of the ``--pmi`` of PALS, or POE's
            MP_EUILIB. Of predicted figures: the MPI library whose collectives
            the model has.
        bootstrap: how mpiexec starts processes on other nodes (``ssh``, ``slurm``). If empty,
            mpiexec decides.
        binding: ``launcher``: the launcher binds the ranks if it can. ``wrapper``: the wrapper in
            run.sh always binds them.
        environment: run-time variables of all programs, for example ``UCX_TLS``. A variable of a
            case overrides them.
        environment_of: run-time variables by launcher. They override ``environment`` for programs
            that this launcher starts.
    """

    launcher: Slug | Literal[""] = ""
    mpi: str = Field(default="", pattern=r"^[a-z0-9_]*$")
    bootstrap: Slug | Literal[""] = ""
    binding: Literal["launcher", "wrapper"] = "launcher"
    environment: RunEnvironment = Field(default={}, exclude_if=lambda given: not given)
    environment_of: dict[Slug, RunEnvironment] = Field(
        default={}, exclude_if=lambda given: not given
    )

    def variables(self, package_launcher: str) -> dict[str, str]:
        """Return the run-time variables of a package whose MPI has this launcher."""
        used = self.launcher or package_launcher
        return self.environment | self.environment_of.get(used, {})

    @property
    def every(self) -> dict[str, str]:
        """The run-time variables of all programs; those of one launcher come last."""
        found = dict(self.environment)
        for of_launcher in self.environment_of.values():
            found |= of_launcher
        return found

    def doubts(self) -> Iterator[Message]:
        """Yield a warning for each variable that no MPI of its launcher reads."""
        yield from doubtful(self.environment, MPIS_OF_LAUNCHER.get(self.launcher, ()))
        for name, variables in self.environment_of.items():
            yield from doubtful(variables, MPIS_OF_LAUNCHER.get(name, ()))


DEFAULT_LAUNCH = LaunchSettings()


HostCpus = Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1)]
"""The CPUs of the machine behind virtual nodes, which have more of them.

CPU n of node k of a step is the CPU number (n + k) modulo their number, so that nodes with one rank
each do not all use the first one. Ranks are bound to these, and their binding is checked against
them. The memory is that of NUMA domain 0.
"""

"""A partition: nodes that are alike, with their facts in the inventory."""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from typing import Annotated, Any, Literal, Self

from archspec.cpu import TARGETS
from pydantic import AfterValidator, Field, model_validator

from proofmark.cases.vocabulary import Slug, Text, Variable
from proofmark.common.errors import KeyMistake, nearest
from proofmark.common.shared_models import StrictModel
from proofmark.common.yaml_models import shipped_data
from proofmark.site.execution import HostCpus, LaunchSettings, Queue
from proofmark.site.fabric import Fabric
from proofmark.site.file_systems import FileSystem, Scratch, with_uid
from proofmark.site.firmware import Firmware, check_same_settings, check_vendor, wanted
from proofmark.site.hardware import (
    CURRENT,
    Facts,
    Mode,
    Modes,
    StatedNode,
    bytes_per_s,
)

OFF = "off"


class JudgeExpected(StrictModel):
    """The key ``expected`` of a partition: ``off``, or settings.

    Attributes:
        wanted: whether a figure below its expected value by more than the tolerance is FAIL.
        tolerance: a part of each expected value; None is the tolerance of its source.
    """

    wanted: bool = True
    tolerance: Annotated[float, Field(gt=0, lt=1)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _off(cls, given: Any) -> Any:
        # YAML 1.1 reads off as false.
        return {"wanted": False} if given == OFF or given is False else given

    @model_validator(mode="after")
    def _one(self) -> Self:
        if not self.wanted and self.tolerance is not None:
            raise KeyMistake("true, because other settings are there", "wanted")
        return self


JUDGE_EXPECTED = JudgeExpected()


PREDICTED = "predicted"
"""The origin of figures that a model computed."""
EnvironmentName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")]
"""A folder of ``environments/``; archspec's names have underscores (``neoverse_v2``)."""


def _known_target(name: str) -> str:
    if name and name not in TARGETS:
        raise ValueError(f"a target of archspec{nearest(name, TARGETS)}")
    return name


class Preinstalled(StrictModel):
    """A package that is already installed at the site.

    Attributes:
        prefix: the folder of the package.
        target: archspec's name of the processor that the package was built for. If it is set, no
            job starts a program of the package on a node that lacks an instruction set of it.
        programs: paths below the prefix by program. A program that is not named is
            ``bin/<program>``.
        modules: environment modules that are loaded first.
        environment: variables that are set after that.
    """

    prefix: str = Field(pattern=r"^/")
    version: str
    target: Annotated[str, AfterValidator(_known_target)] = ""
    programs: dict[str, str] = {}
    modules: list[str] = []
    environment: dict[Variable, str] = {}


class Toolchain(StrEnum):
    """The compiler, MPI and BLAS of EasyBuild's programs.

    `FOSS` is the toolchain of the easystack: EasyBuild builds it. `SYSTEM` is what the controller
    has: its ``gcc`` and ``mpicc``, and the libraries in ``LIBBLAS``, by default OpenBLAS.
    """

    FOSS = "foss"
    SYSTEM = "system"


class Partition(StrictModel):
    """The facts of one partition: the variable ``partition`` of its group.

    Attributes:
        node: what each node is made of. A node with less has a fault.
        environment: the Spack environment of the partition (a folder of ``environments/``).
        provision_from: ``system``, or the name of a provider.
        preinstalled: where the programs are, for the source of that name.
        run_user: the user that runs the jobs. None is the user that starts the play.
        work: the folder below which `run_user` makes a folder for the outputs of each run, if root
            starts the play. All nodes see it. None is ``proofmark`` in the home, else in scratch.
        origin: ``emulated`` marks the records of virtual nodes, ``predicted`` the records of a
            model, which no inventory can declare.
        modes: the firmware modes of the nodes, by name.
        current_mode: the mode of the nodes now. The default is the first of ``modes``.
        facts: further names for the expressions of the cases, for example versions of libraries.
        file_systems: scratch file systems besides ``scratch``.
        nodes_per_job: the largest number of nodes that one job may have.
        family_level: the probability that at least one node of a healthy partition is reported as
            an outlier.
        firmware: how modes are set. Without it no mode but the current one is entered.
        host_cpus: CPUs of the machine behind virtual nodes, whose records are emulated. CPU n of
            node k is the one number (n + k) modulo their number.
        expected: ``off``, or ``tolerance``: the part by which a figure may be below the value that
            its hardware reaches elsewhere.
    """

    node: StatedNode = StatedNode()
    environment: EnvironmentName
    scheduler: Slug
    provision_from: Slug
    preinstalled: dict[Slug, Preinstalled] = {}
    scratch: Scratch
    run_user: str | None = None
    work: str | None = Field(default=None, pattern=r"^/.")
    origin: Literal["measured", "emulated", "predicted"] = "measured"
    modes: Modes = {CURRENT: Mode()}
    current_mode: Slug = ""
    facts: Facts = {}
    fabric: Fabric = Fabric()
    file_systems: list[FileSystem] = []
    nodes_per_job: int | None = Field(default=None, ge=1)
    family_level: float = Field(default=0.01, ge=1e-6, le=0.5)
    firmware: Firmware | None = None
    queue: Queue = Queue()
    launch: LaunchSettings = LaunchSettings()
    host_cpus: HostCpus | None = None
    expected: JudgeExpected = JUDGE_EXPECTED

    @model_validator(mode="after")
    def _paths_of_user(self) -> Self:
        every: list[Scratch | FileSystem] = [self.scratch, *self.file_systems]
        scratch, *others = (
            each.model_copy(update={"path": with_uid(each.path, self.run_user)}) for each in every
        )
        vars(self).update(scratch=scratch, file_systems=others)
        return self

    @model_validator(mode="after")
    def _one_rate(self) -> Self:
        """The rate of the link of a node need not be stated again for the fabric."""
        stated, of_fabric = self.node.rails.rate, self.fabric.rate
        if stated is not None and of_fabric is None:
            vars(self)["fabric"] = self.fabric.model_copy(update={"rate": stated})
        elif stated is not None and bytes_per_s(stated) != bytes_per_s(of_fabric):
            raise KeyMistake("the rate of node.rails.rate; state one of them", "fabric", "rate")
        return self

    @model_validator(mode="after")
    def _known_mode(self) -> Self:
        vars(self)["current_mode"] = self.current_mode or next(iter(self.modes))
        if self.current_mode not in self.modes:
            hint = nearest(self.current_mode, self.modes)
            raise KeyMistake(f"one of modes: {', '.join(self.modes)}{hint}", "current_mode")
        return self

    @model_validator(mode="after")
    def _modes_have_attributes(self) -> Self:
        if self.firmware is None:
            return self
        for name, mode in self.modes.items():
            try:
                wanted(self.firmware, mode.settings)
            except KeyError as error:
                accepted = f"the attributes of mode {name}, which needs {error}"
                raise KeyMistake(accepted, "firmware", "attributes") from None
            check_vendor(self.firmware, name, mode.settings)
        modes = {name: mode.settings for name, mode in self.modes.items()}
        check_same_settings(self.firmware, modes)
        return self

    @model_validator(mode="after")
    def _host_cpus_are_emulated(self) -> Self:
        if self.host_cpus and self.origin != "emulated":
            raise KeyMistake("only where origin is emulated", "host_cpus")
        return self

    @property
    def scratches(self) -> dict[str, FileSystem]:
        """The `file_systems` by name. If there are none, ``scratch`` is the only one."""
        default = [FileSystem(name="scratch", path=self.scratch.path)]
        return {each.name: each for each in self.file_systems or default}


Key = Literal["scheduler", "launch.launcher", "firmware.back_end", "scratch.type"]


class Tried(StrictModel):
    """A back end of the kit that ran with the real thing.

    Attributes:
        key: the key of the partition that names the back end.
        name: its value.
        ran: the real scheduler, MPI or file system, with its version if it is known.
        test: what ran it, a file below ``tests/`` or ``docs/tested.md``.
    """

    key: Key
    name: Text
    ran: Text
    test: Text


@cache
def tried() -> tuple[Tried, ...]:
    """Return the table."""
    return shipped_data("proofmark.site", "tried.yml", tuple[Tried, ...])


def untried(partition: Partition) -> dict[str, str]:
    """Return the back ends of `partition` that never ran with the real thing: name by key.

    A launcher that the MPI of the programs selects has been tried. A file system that others mount
    needs no back end.
    """
    used: dict[Key, str] = {"scheduler": partition.scheduler}
    if partition.launch.launcher:
        used["launch.launcher"] = partition.launch.launcher
    if partition.firmware:
        used["firmware.back_end"] = partition.firmware.back_end
    if partition.scratch.mount and partition.scratch.type:
        used["scratch.type"] = partition.scratch.type
    ran = {(each.key, each.name) for each in tried()}
    return {key: name for key, name in used.items() if (key, name) not in ran}

"""A partition: like nodes, and all that its facts in the inventory state."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from archspec.cpu import TARGETS
from pydantic import (
    AfterValidator,
    Discriminator,
    Field,
    Tag,
    model_validator,
)

from proofmark.cases.models import Reference, Slug
from proofmark.common.errors import nearest
from proofmark.common.strict_model import RenamedKeys, StrictModel
from proofmark.site.execution import HostCpuMap, LaunchSettings, Queue
from proofmark.site.fabric import Fabric
from proofmark.site.firmware import Firmware, wanted
from proofmark.site.hardware import CURRENT, Facts, Hardware, Mode, Modes
from proofmark.site.storage import FileSystem, Scratch


def _known_target(name: str) -> str:
    if name and name not in TARGETS:
        raise ValueError(f"{name!r} is no processor that archspec knows{nearest(name, TARGETS)}")
    return name


class Preinstalled(StrictModel):
    """One package that the site has already.

    Programs are relative to ``prefix``, ``bin/<program>`` where not told. The site's ``modules``
    are loaded first, then ``environment`` is set. ``target`` is archspec's name of the processor
    that it was built for: told, no job starts it on a node that lacks what it needs.
    """

    prefix: str = Field(pattern=r"^/")
    version: str
    target: Annotated[str, AfterValidator(_known_target)] = ""
    programs: dict[str, str] = {}
    modules: list[str] = []
    environment: dict[str, str] = {}


class Limit(Reference):
    """A contract limit of the site: a reference that also names its case."""

    case: Slug
    kind: Literal["contract"] = "contract"


class Partition(RenamedKeys):
    """What the kit must know of one partition: the variable ``partition`` of its group.

    ``hardware: discovered`` asks the machine; ``run_user`` None is whoever starts the play.
    ``current_mode`` is the one the machine stands in, the first of ``modes`` if not told;
    ``facts`` are further names for the expressions of the cases, such as what the environment was
    built with. ``preinstalled`` says where programs are, for the origin of that name.
    ``nodes_per_job`` is the most that the site gives to one job. ``family_level`` is
    the probability that any node of a healthy partition is called an outlier. ``firmware`` None is
    firmware that nobody has described: no other mode than the current one is ever entered.
    ``host_cpus`` are for virtual nodes only, whose records are emulated.
    """

    RENAMED = {
        "starting": "launch",
        "stand_ins": "host_cpus",
    }

    hardware: Annotated[
        Annotated[Literal["discovered"], Tag("discovered")] | Annotated[Hardware, Tag("declared")],
        Discriminator(lambda given: "discovered" if isinstance(given, str) else "declared"),
    ]
    environment: Slug
    scheduler: Slug
    provision_from: Literal["system", "spack", "easybuild", "preinstalled"]
    preinstalled: dict[Slug, Preinstalled] = {}
    scratch: Scratch
    run_user: str | None = None
    origin: Literal["measured", "emulated"] = "measured"
    modes: Modes = {CURRENT: Mode()}
    current_mode: Slug = ""
    facts: Facts = {}
    fabric: Fabric = Fabric()
    file_systems: list[FileSystem] = []
    nodes_per_job: int | None = Field(default=None, ge=1)
    family_level: float = Field(default=0.01, gt=0, lt=1)
    firmware: Firmware | None = None
    queue: Queue = Queue()
    launch: LaunchSettings = LaunchSettings()
    host_cpus: HostCpuMap | None = None
    limits: list[Limit] = []

    @model_validator(mode="before")
    @classmethod
    def _first_mode(cls, given: Any) -> Any:
        if isinstance(given, dict) and "current_mode" not in given:
            return {**given, "current_mode": next(iter(given.get("modes") or [CURRENT]))}
        return given

    @model_validator(mode="after")
    def _known_mode(self) -> Self:
        if self.current_mode not in self.modes:
            hint = nearest(self.current_mode, self.modes)
            raise ValueError(f"current_mode {self.current_mode!r}{hint}: one of modes")
        return self

    @model_validator(mode="after")
    def _firmware_knows_the_modes(self) -> Self:
        for name, mode in self.modes.items():
            try:
                wanted(self.firmware, mode.settings) if self.firmware else None
            except KeyError as error:
                raise ValueError(f"firmware.attributes: mode {name} needs {error}") from None
        return self

    @model_validator(mode="after")
    def _real_cpus(self) -> Self:
        if self.host_cpus and self.origin != "emulated":
            raise ValueError("host_cpus: only where origin is emulated")
        return self

    @property
    def scratches(self) -> dict[str, FileSystem]:
        """The file systems by name; without further ones, that of ``scratch``."""
        own = [FileSystem(name="scratch", path=self.scratch.path)]
        return {each.name: each for each in self.file_systems or own}

"""The hardware and the firmware modes that an inventory declares for a partition."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from proofmark.cases.vocabulary import MemoryKind, Name, Slug, Text
from proofmark.common.input_limits import MAX_COUNT
from proofmark.common.strict_model import StrictModel

CURRENT = "current"
"""The only mode of a partition that declares none: the mode that its nodes are in."""
UNRECORDED = "not_recorded"
"""The mode of imported outputs. No mode of an inventory can have this name (`Slug`)."""
Count = Annotated[int, Field(gt=0, le=MAX_COUNT)]


class Hardware(StrictModel):
    """The nodes of a partition on which no probe can run.

    Attributes:
        architecture: archspec's name of the microarchitecture.
        clock_hz: nominal frequency; with `flop_per_cycle` it gives the nominal peak.
        flop_per_cycle: of one core, in double precision.
        topology: hwloc's synthetic notation, or the name of a file of hwloc's XML (``*.xml``) in
            the folder of the partition's variables. A mode may have another topology.
        memory_bytes: memory for programs, if the topology has no memory or another size.
        fast_memory: the kind of the memory without cores, if the topology does not name it.
        llc_bytes: all caches of the last level, if the topology has no caches or another size.
        operating_system: of the nodes. Steps run on Linux; for others, plans can be made.
        sources: the source of each fact, by key.
        assumed: facts without a source, by key. The plan shows them.
    """

    cpu_model: Text
    architecture: Slug | Annotated[str, Field(pattern=r"^[a-z0-9_]+$")]
    topology: Text
    clock_hz: float | None = Field(default=None, gt=0)
    flop_per_cycle: Count | None = None
    memory_bytes: Count | None = None
    fast_memory: MemoryKind | None = None
    llc_bytes: Count | None = None
    operating_system: Literal["linux", "aix"] = "linux"
    sources: dict[str, Text] = {}
    assumed: dict[str, Text] = {}


def _setting(given: Any) -> Any:
    """Return `given` as text: YAML reads ``on`` as true, and 4 as a number."""
    if isinstance(given, bool):
        return "on" if given else "off"
    return str(given) if isinstance(given, int) else given


SettingValue = Annotated[str, BeforeValidator(_setting)]


class Mode(StrictModel):
    """A state of a node that the firmware sets.

    Attributes:
        settings: the state in the firmware's terms (``cluster: Quadrant``, ``memory: Flat``), or in
            abstract ones (``smt: off``, ``numa_per_socket: 4``; `proofmark.site.bmc_vendors`).
        topology: of a node in this mode, if it is not that of `Hardware`.
        memory_bytes: of a node in this mode, if it is not that of `Hardware`.
    """

    settings: dict[str, SettingValue] = {}
    topology: Text | None = None
    memory_bytes: Count | None = None


def _named(given: Any) -> Any:
    return {name: {} for name in given} if isinstance(given, list) else given


Modes = Annotated[
    dict[Slug, Mode],
    Field(min_length=1),
    BeforeValidator(_named, json_schema_input_type=dict[Slug, Mode] | list[Slug]),
]
Facts = dict[Name, str | int | float]
Discovered = Literal["discovered"]

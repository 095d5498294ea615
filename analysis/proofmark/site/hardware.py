"""What an inventory declares of a partition: hardware, modes, switch levels, file systems."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from proofmark.cases.models import Name, Slug, Text
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


def _named(given: Any) -> Any:
    return {name: {} for name in given} if isinstance(given, list) else given


Modes = Annotated[
    dict[Slug, Mode],
    Field(min_length=1),
    BeforeValidator(_named, json_schema_input_type=dict[Slug, Mode] | list[Slug]),
]
Facts = dict[Name, str | int | float]
Discovered = Literal["discovered"]

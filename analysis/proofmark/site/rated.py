"""The rated hardware of a node, from which the limits of its figures are derived."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from proofmark.common.strict_model import StrictModel
from proofmark.site.hardware import Count

RATED = "partition.rated"
"""The key of `Rated` in the inventory, for messages."""
Positive = Annotated[float, Field(gt=0)]


class RatedDimms(StrictModel):
    """The memory modules of one node: filled channels of all sockets, and MT/s of a module."""

    channels: Count
    mt_per_s: Count


class Sourced(StrictModel):
    """Values that a document states.

    Attributes:
        source: the document that the values come from.
    """

    source: str = ""

    @model_validator(mode="after")
    def _sourced(self) -> Self:
        values = self.model_dump(exclude={"source"}, exclude_none=True)
        if values and not self.source.strip():
            raise ValueError(f"source: the document that states {', '.join(values)}")
        return self


class Rated(Sourced):
    """The figures of one node in the data sheet of the vendor. They replace those of the probe.

    Attributes:
        dimms: the memory modules.
        fast_memory_bytes_per_s: bandwidth of the in-package memory of the node.
        link_bytes_per_s: data rate of one direction of the link that MPI uses.
        link_latency_s: latency of a small message between two adapters.
        clock_hz: nominal frequency of a core.
        avx_hz: frequency that all cores sustain under the widest vector instructions.
        flop_per_cycle: of one core, in double precision.
    """

    dimms: RatedDimms | None = None
    fast_memory_bytes_per_s: Positive | None = None
    link_bytes_per_s: Positive | None = None
    link_latency_s: Positive | None = None
    clock_hz: Positive | None = None
    avx_hz: Positive | None = None
    flop_per_cycle: Count | None = None

    @model_validator(mode="before")
    @classmethod
    def _former_name(cls, given: Any) -> Any:
        """Accept the name that inventories and runs of earlier versions have."""
        former = "mcdram_bytes_per_s"
        if not isinstance(given, dict) or former not in given:
            return given
        rest = {key: value for key, value in given.items() if key != former}
        return {"fast_memory_bytes_per_s": given[former], **rest}

"""The parts of one node that were bought: the key ``parts`` of a partition."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from proofmark.common.input_limits import MAX_CPUS
from proofmark.common.strict_model import StrictModel
from proofmark.site.hardware import Count
from proofmark.site.rated import Positive, Sourced

RailName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_]+:[0-9]+$")]
PARTS = "partition.parts"
"""The key of `DeclaredParts` in the inventory, for messages."""


class DeclaredDimms(StrictModel):
    """The memory modules of one node.

    Attributes:
        count: the number of modules.
        bytes: the size of each.
        mt_per_s: the speed at which they must run, in MT/s.
    """

    count: Count
    bytes: Count | None = None
    mt_per_s: Count | None = None


class DeclaredRails(StrictModel):
    """The ports of one node to the network of MPI.

    Attributes:
        count: the number of ports that must be active.
        gbit_per_s: the rate of each as Linux prints it: 100 for ``100 Gb/sec (4X EDR)``.
        adapters: the NUMA domain of each rail by its name (``mlx5_0:1``, ``hfi1_0:1``, ``cxi0:1``).
            The suites measure each of them alone. Without it, the rails of the probed node count.
    """

    count: Count
    gbit_per_s: Positive
    adapters: dict[RailName, Annotated[int, Field(ge=0, le=MAX_CPUS)]] = Field(
        default={}, exclude_if=lambda given: not given
    )

    @model_validator(mode="after")
    def _all_named(self) -> Self:
        if self.adapters and len(self.adapters) != self.count:
            raise ValueError(f"adapters: {self.count} names, as count states")
        return self


class DeclaredParts(Sourced):
    """The parts of one node as the offer states them. A node with less of a part has a fault.

    A part that is declared is not compared with the other nodes of the partition.

    Attributes:
        sockets: the number of processors.
        cores: of all processors together.
        memory_bytes: the memory. A node may show 5 % less, which firmware and kernel reserve.
    """

    sockets: Count | None = None
    cores: Count | None = None
    memory_bytes: Count | None = None
    dimms: DeclaredDimms | None = None
    rails: DeclaredRails | None = None

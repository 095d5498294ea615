"""The parts of one node that were bought: the key ``parts`` of a partition."""

from __future__ import annotations

from proofmark.common.strict_model import StrictModel
from proofmark.site.hardware import Count
from proofmark.site.rated import Positive, Sourced

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
    """

    count: Count
    gbit_per_s: Positive


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

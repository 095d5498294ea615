"""The shares of a peak that are typical of a processor: its own, and those of its family."""

from __future__ import annotations

from functools import lru_cache
from math import log2
from typing import Literal

from proofmark.common.strict_model import StrictModel
from proofmark.common.yaml_models import shipped_data
from proofmark.site.hardware_limits import Count, ProcessorLimits, Sentence, Typical

Figure = Literal["hpl", "triad"]


class TypicalFamily(StrictModel):
    """A share that is typical of the processors of some microarchitectures.

    Attributes:
        of: the figure.
        architectures: archspec's names.
        channels: of the memory of a socket; None is any number.
        ddr: the fastest supported module in MT/s; None is any.
        least_cores: of a socket.
        least_l3_bytes: of a socket. Each compute die of EPYC has a part of it.
        cores: of a socket, for which `typical.ratio` is stated.
        per_doubling: what the ratio changes for twice the cores.
        typical: the share, and the conditions of its sources.
    """

    of: Figure
    architectures: tuple[Sentence, ...]
    channels: Count | None = None
    ddr: Count | None = None
    least_cores: Count
    least_l3_bytes: Count = 1
    cores: Count | None = None
    per_doubling: float = 0.0
    typical: Typical

    def covers(self, row: ProcessorLimits) -> bool:
        """Return whether a processor belongs to this family."""
        return (
            row.architecture in self.architectures
            and self.channels in (None, row.channels)
            and self.ddr in (None, row.ddr)
            and (row.cores or 0) >= self.least_cores
            and (row.l3_bytes or 0) >= self.least_l3_bytes
        )

    def typical_for(self, row: ProcessorLimits) -> Typical:
        """Return the share of a processor of this family."""
        if self.cores is None or row.cores is None:
            return self.typical
        change = self.per_doubling * log2(row.cores / self.cores)
        return self.typical.model_copy(update={"ratio": self.typical.ratio + change})


@lru_cache(maxsize=1)
def families() -> tuple[TypicalFamily, ...]:
    """Return the table of families."""
    return shipped_data("proofmark.site", "typical_families.yml", tuple[TypicalFamily, ...])


def typical_shares(row: ProcessorLimits, of: Figure) -> tuple[Typical, ...]:
    """Return the typical shares of a processor: its own, then those of its family."""
    own = row.hpl if of == "hpl" else row.triad
    of_family = (each for each in families() if each.of == of and each.covers(row))
    return (*own, *(each.typical_for(row) for each in of_family))

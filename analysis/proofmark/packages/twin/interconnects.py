"""The table of the paths of messages inside a node: figures with a source or an assumption."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Literal, Self

from archspec.cpu import TARGETS
from pydantic import Field, model_validator

from proofmark.cases.vocabulary import Text
from proofmark.common.strict_model import StrictModel
from proofmark.common.yaml_models import shipped_data

Selector = Literal["impi", "mpich", "classic", "mvapich2", "ompi"]
"""How the algorithms of collectives are chosen: as the MPI library of this name does, which SimGrid
imitates (SMPI, ``smpi/coll-selector``). ``classic`` has published algorithms
(`proofmark.packages.twin.platform.ALGORITHMS`)."""


class SourcedValue(StrictModel):
    """A value in SI units with its source, or with what was assumed if there is none."""

    value: Annotated[float, Field(gt=0)]
    source: Text | None = None
    assumed: Text | None = None

    @model_validator(mode="after")
    def _either(self) -> Self:
        if (self.source is None) == (self.assumed is None):
            raise ValueError("exactly one of source and assumed")
        return self


class Bus(StrictModel):
    """The latency in seconds and the rate in bytes/s of one direction of a link inside a node."""

    latency_s: SourcedValue
    bytes_per_s: SourcedValue


class Interconnect(StrictModel):
    """How messages travel inside the nodes of one processor family.

    Attributes:
        architecture: archspec's name of the processor.
        line_s: transfer of a cache line between two cores of a socket.
        lines_in_flight: cache lines of 64 bytes that one core can wait for at the same time.
        socket: between two sockets of a book, or of a node without books.
        book: between two processor books.
        adapter: between a node and the adapter of its network.
        software_s: the MPI library on each side of a message.
        collectives: the possible selectors; several if the real algorithms are not known.
        eager_bytes: smaller messages are sent without a rendezvous.
        used_for: a processor without figures of its own, which has these; else empty.
    """

    architecture: Text
    line_s: SourcedValue
    lines_in_flight: SourcedValue
    socket: Bus
    book: Bus | None = None
    adapter: Bus
    software_s: SourcedValue
    collectives: Annotated[tuple[Selector, ...], Field(min_length=1)]
    eager_bytes: SourcedValue
    used_for: str = ""


@lru_cache(maxsize=1)
def interconnects() -> tuple[Interconnect, ...]:
    """Return the table."""
    return shipped_data("proofmark.packages.twin", "interconnects.yml", tuple[Interconnect, ...])


def interconnect(architecture: str) -> Interconnect | None:
    """Return the row of a processor, or that of its nearest ancestor in archspec; None if none."""
    rows = {row.architecture: row for row in interconnects()}
    if architecture in rows:
        return rows[architecture]
    ancestors = TARGETS[architecture].ancestors if architecture in TARGETS else []
    near = next((rows[each.name] for each in ancestors if each.name in rows), None)
    return near and near.model_copy(update={"used_for": architecture})

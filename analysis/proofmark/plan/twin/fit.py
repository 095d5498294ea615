"""Figures of the model of a twin that were fitted to a real run."""

from __future__ import annotations

from proofmark.common.message import Message
from proofmark.common.strict_model import StrictModel
from proofmark.plan.twin.figures import Point


class Fit(StrictModel):
    """Figures of a model that were fitted; None: not fitted, the model has that of the tables.

    Attributes:
        run: the id of the run whose messages they were fitted to.
        software_s, line_s, lines_in_flight: as in `Interconnect`.
        socket_latency_s: of the link between two sockets.
        socket_bytes_per_s: of that link, if messages are faster than the table has it.
        adapters_s: between two adapters with one switch between them.
        link_bytes_per_s: of the link of a node.
        points: what the figures were fitted to. The error of the model leaves them out.
        notes: what could not be fitted, each with the reason.
    """

    run: str
    software_s: float | None = None
    line_s: float | None = None
    lines_in_flight: float | None = None
    socket_latency_s: float | None = None
    socket_bytes_per_s: float | None = None
    adapters_s: float | None = None
    link_bytes_per_s: float | None = None
    points: tuple[Point, ...] = ()
    notes: tuple[Message, ...] = ()

    @property
    def source(self) -> str:
        """The source of the fitted figures."""
        return f"fitted to the PingPong of run {self.run}"

"""What an inventory states about the uplinks of switches: keys of ``partition.fabric``.

The model of a fabric loads this module while it is made, so it imports no room above `site`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from proofmark.common.errors import KeyMistake
from proofmark.common.shared_models import StrictModel
from proofmark.site.hardware import Count, Rate


def _not_stated(value: object) -> bool:
    return value is None


class LevelKeys(StrictModel):
    """The keys of a level of switches that this package adds.

    Attributes:
        uplinks: the links from one switch of this level to the level above. A level above the first
            counts all links that leave its group of hosts, because a declared switch may be a
            chassis.
        uplink_rate: of one direction of one of these links, like the `rate` of the fabric. If it is
            not declared, it is the rate of the link of a node.
    """

    uplinks: Count | None = Field(default=None, exclude_if=_not_stated)
    uplink_rate: Rate | None = Field(default=None, exclude_if=_not_stated)

    @model_validator(mode="after")
    def _rate_of_uplinks(self) -> Self:
        if self.uplink_rate and not self.uplinks:
            raise KeyMistake("only accepted with uplinks", "uplink_rate")
        return self


class FabricKeys(StrictModel):
    """The keys of a fabric that this package adds.

    Attributes:
        routing: how a switch chooses the uplink of a message. With ``destination-modulo``, it is
            the uplink whose number, from 0, is the remainder of the division of the destination
            host's number, from 0 in the inventory's order, by `uplinks`. This is D-mod-k routing of
            E. Zahavi, "Fat-tree routing and node ordering providing contention free traffic for MPI
            global collectives", Journal of Parallel and Distributed Computing 72 (2012), section 3.
            Uplinks with the same number lead to the same switch above. If it is not declared, the
            uplink of a message is unknown.
    """

    routing: Literal["destination-modulo"] | None = Field(default=None, exclude_if=_not_stated)

    @model_validator(mode="after")
    def _routed(self) -> Self:
        levels: Sequence[Any] = getattr(self, "levels", ())
        if self.routing and not any(level.uplinks for level in levels):
            raise KeyMistake("only accepted if a level has uplinks", "routing")
        return self

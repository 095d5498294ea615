"""The rule of one round of pairs that a step of a plan has.

A plan has the sizes of the switches and the number of the round, not the names of the pairs: a
round of 8,305 nodes has 4,152 of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainSerializer

from proofmark.cases.vocabulary import ALONE, Measured, Slug
from proofmark.common.input_limits import MAX_NODES
from proofmark.common.strict_model import StrictModel

if TYPE_CHECKING:
    from proofmark.plan.pairings import Numbers

_RUN = re.compile(r"(?:(\d{1,7})\*)?(\d{1,7})")


def _sizes(given: Any) -> Any:
    if not isinstance(given, str):
        return given
    runs = [_RUN.fullmatch(word) for word in given.split()]
    if not all(runs) or sum(int(run[1] or 1) for run in runs if run) > MAX_NODES:
        raise ValueError(f"{given[:80]!r} is no list of sizes such as '259*32 17'")
    found = []
    for run in runs:
        if run:
            found += [int(run[2]) for _ in range(int(run[1] or 1))]
    return found


def _short(sizes: Sequence[int]) -> str:
    runs = [(size, len(list(same))) for size, same in groupby(sizes)]
    return " ".join(f"{times}*{size}" if times > 1 else f"{size}" for size, times in runs)


Size = Annotated[int, Field(ge=1)]
Sizes = Annotated[
    tuple[Size, ...], BeforeValidator(_sizes), PlainSerializer(_short, when_used="json")
]
"""The numbers of hosts of successive switches. The JSON is a text such as ``259*32 17``."""


class PairRound(StrictModel):
    """The rule of one round of pairs (`proofmark.plan.pairings`).

    The hosts of each switch follow each other in the nodes of the step.

    Attributes:
        measured: ``together``: all pairs of a round of `rounds`; ``alone``: a wave of `waves`.
        number: of the round or wave, from 1.
        most: the largest number of rounds or waves.
        distance: the level of every pair, or ``top``; empty if the pairs differ in it.
        top: the distance of two hosts that share no switch.
        switches: the hosts of the successive switches by level, the nearest level first.
    """

    measured: Measured
    number: Annotated[int, Field(ge=1)]
    most: Annotated[int, Field(ge=1)]
    distance: Slug | Literal[""] = ""
    top: Slug
    switches: dict[Slug, Sizes] = {}

    def pairs(self, hosts: int) -> Numbers:
        """Return the pairs of numbers of hosts, of shape (pairs, 2); the first one sends.

        Raises:
            ValueError: the switches are not those of so many hosts, or there is no such round.
        """
        for name, sizes in self.switches.items():
            if (found := sum(sizes)) != hosts:
                raise ValueError(f"round.switches.{name}: {found} nodes, but the step has {hosts}")
        from proofmark.plan.pairings import schedule  # numpy costs time; few steps have rounds

        made = schedule(tuple(self.switches.values()), hosts, self.most, self.measured)
        if self.number > len(made):
            raise ValueError(f"round.number: {self.number}, but there are {len(made)} rounds")
        return made[self.number - 1].pairs

    @property
    def levels(self) -> list[str]:
        """The names of the possible distances of a pair, the nearest first."""
        return [*self.switches, self.top]

    @property
    def slug(self) -> str:
        """The part of the id of a step that names the round."""
        return f"{'wave' if self.measured == ALONE else 'round'}-{self.number}"

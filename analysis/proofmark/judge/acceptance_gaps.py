"""What an acceptance still lacks: the suite that measures it, how long that takes, the command."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from proofmark.common.grouping import gathered
from proofmark.common.nodesets import folded
from proofmark.common.printed_command import PrintedCommand, of_person
from proofmark.judge.acceptance import AcceptedItem
from proofmark.plan.plan import Plan
from proofmark.plan.selection import PlannedItem

Times = Mapping[tuple[str, str], float]
"""The expected seconds of each suite that can run, by partition and suite."""


@dataclass(frozen=True)
class Gap:
    """Items without an outcome that one suite measures.

    Attributes:
        repeats: the number of repeats, if that of the suite is not enough; else 0.
        seconds: the expected time of the suite on the whole partition; 0 without a suite.
    """

    partition: str
    suite: str
    items: tuple[str, ...]
    repeats: int
    seconds: float
    command: str

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``acceptance.json``."""
        return {**vars(self), "items": list(self.items)}


def times_of(plans: Iterable[Plan]) -> Times:
    """Return the expected seconds of suites, in the order of `plans`."""
    return {(plan.partition, plan.suite): plan.totals.wall_s for plan in plans}


def gaps(
    items: Sequence[AcceptedItem], planned: Sequence[PlannedItem], times: Times, inventory: str
) -> Iterator[Gap]:
    """Yield what measures each of `items`: the first suite that does, in the order of `times`.

    The order finds faults early: nodes, links, the whole machine. If the suite plans too few
    repeats, it needs more of them.
    """
    by_item = {(each.partition, each.item.number): each.repeats for each in planned}

    def gap(each: AcceptedItem) -> Gap:
        partition = each.partition
        known = by_item.get((partition, each.item.number), {})
        able = (suite for of, suite in times if of == partition and suite in known)
        if not (suite := next(able, "")):
            return Gap(partition, suite, (), 0, 0.0, "")
        repeats = each.repeats_needed if known[suite] < each.repeats_needed else 0
        command = PrintedCommand(
            "ansible-playbook",
            "acceptance.yml",
            of_person(inventory, "SITE", "-i"),
            of_person(folded(each.unmeasured) or partition, "NODES", "-l"),
            of_person(f"suite={suite}", "SUITE", "-e"),
            *([of_person(f"repeats={repeats}", "REPEATS", "-e")] if repeats else []),
        )
        return Gap(partition, suite, (), repeats, times[partition, suite], command)

    places = {key: place for place, key in enumerate(times)}
    found = gathered((gap(each), each.item.number) for each in items)
    for each in sorted(found, key=lambda of: places.get((of.partition, of.suite), len(places))):
        yield replace(each, items=tuple(found[each]))

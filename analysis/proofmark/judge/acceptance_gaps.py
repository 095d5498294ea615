"""What an acceptance still lacks: the suite that measures it, how long that takes, the command."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
    found: dict[tuple[str, str, str, int], list[str]] = {}
    for each in items:
        partition = each.partition
        known = by_item.get((partition, each.item.number), {})
        able = (suite for of, suite in times if of == partition and suite in known)
        suite = next(able, "")
        few = bool(suite) and known[suite] < each.repeats_needed
        nodes = folded(each.unmeasured) if each.unmeasured else partition
        key = (partition, nodes, suite, each.repeats_needed if few else 0)
        found.setdefault(key, []).append(each.item.number)
    places = {key: place for place, key in enumerate(times)}

    def place(key: tuple[str, str, str, int]) -> int:
        return places.get((key[0], key[2]), len(places))

    for partition, nodes, suite, repeats in sorted(found, key=place):
        numbers = tuple(found[partition, nodes, suite, repeats])
        seconds = times[partition, suite] if suite else 0.0
        command = (
            PrintedCommand(
                "ansible-playbook",
                "acceptance.yml",
                of_person(inventory, "SITE", "-i"),
                of_person(nodes, "NODES", "-l"),
                of_person(f"suite={suite}", "SUITE", "-e"),
                *([of_person(f"repeats={repeats}", "REPEATS", "-e")] if repeats else []),
            )
            if suite
            else ""
        )
        yield Gap(
            partition=partition,
            suite=suite,
            items=numbers,
            repeats=repeats,
            seconds=seconds,
            command=command,
        )

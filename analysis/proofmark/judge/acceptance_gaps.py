"""What an acceptance still lacks: the suite that measures it, how long that takes, the command."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from proofmark.common.nodesets import folded
from proofmark.common.printed_command import PrintedCommand, of_person
from proofmark.judge.acceptance import AcceptedItem
from proofmark.plan.plan import Plan
from proofmark.plan.planned_items import PlannedItem

Times = Mapping[tuple[str, str], float]
"""The expected seconds of each suite that can run, by partition and suite."""


@dataclass(frozen=True)
class Gap:
    """Items without an outcome that one suite measures.

    Attributes:
        partition: the partition.
        suite: the suite; empty if no suite can measure them.
        items: their numbers.
        seconds: the expected time of the suite on the whole partition; 0 without a suite.
        command: the command; empty without a suite.
    """

    partition: str
    suite: str
    items: tuple[str, ...]
    seconds: float
    command: str

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``acceptance.json``."""
        return {**vars(self), "items": list(self.items)}


def times_of(plans: Iterable[Plan], refused: Collection[tuple[str, str]]) -> Times:
    """Return the expected seconds of the suites that can run.

    Args:
        plans: the plans of all suites.
        refused: the partitions with suites that lack programs there.
    """
    return {
        key: plan.totals.wall_s
        for plan in plans
        if (key := (plan.partition, plan.suite)) not in refused
    }


def gaps(
    items: Sequence[AcceptedItem], planned: Sequence[PlannedItem], times: Times, inventory: str
) -> Iterator[Gap]:
    """Yield what measures each of `items`: the suite of the shortest time with enough repeats.

    If no suite plans enough repeats, it is the shortest one, with more repeats.

    Args:
        items: the items without an outcome.
        planned: the suites that measure each item of the contract.
        times: of the suites that can run.
        inventory: as the person named it.
    """
    by_item = {(each.partition, each.item.number): each for each in planned}
    found: dict[tuple[str, str, str, int], list[str]] = {}
    for each in items:
        number, partition = each.item.number, each.partition
        plan = by_item.get((partition, number))
        known = {
            suite: repeats
            for suite, repeats in (plan.repeats if plan else {}).items()
            if (partition, suite) in times
        }
        needed = each.repeats_needed
        enough = [suite for suite, repeats in known.items() if repeats >= needed]
        suite = min(enough or known, key=lambda name: times[partition, name], default="")
        nodes = folded(each.unmeasured) if each.unmeasured else partition
        key = (partition, nodes, suite, 0 if enough or not suite else needed)
        found.setdefault(key, []).append(number)
    for (partition, nodes, suite, repeats), numbers in found.items():
        seconds = times[partition, suite] if suite else 0.0
        command = _command(inventory, nodes, suite, repeats) if suite else ""
        yield Gap(partition, suite, tuple(numbers), seconds, command)


def _command(inventory: str, nodes: str, suite: str, repeats: int) -> str:
    """Return the command that measures; `repeats` is 0 for those of the suite."""
    return PrintedCommand(
        *("ansible-playbook", "acceptance.yml"),
        of_person(inventory, "SITE", "-i"),
        of_person(nodes, "NODES", "-l"),
        of_person(f"suite={suite}", "SUITE", "-e"),
        *([of_person(f"repeats={repeats}", "REPEATS", "-e")] if repeats else []),
    )

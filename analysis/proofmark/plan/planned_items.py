"""Which suites measure each item of a contract, and whether their repeats are enough."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from proofmark.cases.suite import Benchmarks
from proofmark.plan.plan import Plan
from proofmark.plan.selection import selection
from proofmark.site.contract_document import Contract, ContractItem, Item


@dataclass(frozen=True)
class PlannedItem:
    """An item of a contract on one partition.

    Attributes:
        repeats: the number of planned repeats of its figures, by suite.
    """

    partition: str
    item: Item
    repeats: Mapping[str, int]

    @property
    def too_few(self) -> bool:
        """Whether no suite plans the repeats that the item needs."""
        return max(self.repeats.values(), default=0) < self.item.runs_needed


def planned_items(
    contract: Contract, plans: Sequence[Plan], benchmarks: Benchmarks
) -> Iterator[PlannedItem]:
    """Yield each item of `contract` for each partition of `plans` that it is for."""
    for partition in dict.fromkeys(plan.partition for plan in plans):
        of_partition = [plan for plan in plans if plan.partition == partition]
        for item in contract.items:
            if item.system in (None, partition):
                found = ((plan.suite, _repeats(item, plan, benchmarks)) for plan in of_partition)
                yield PlannedItem(partition, item, {suite: n for suite, n in found if n})


def _repeats(item: Item, plan: Plan, benchmarks: Benchmarks) -> int:
    if not isinstance(item, ContractItem):
        return 1  # each run has the reports of its nodes
    chosen = set(selection(item, item.case, plan, benchmarks).comparable)
    return max((step.repeat for step in plan.steps() if step.id in chosen), default=0)

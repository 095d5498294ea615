"""The CPUs of one rank: the one type for planned bindings and for reported ones."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Annotated, Any, NamedTuple

from pydantic import PlainSerializer, ValidatorFunctionWrapHandler, WrapValidator

from proofmark.common.input_limits import MAX_NODES


class RankCpus(NamedTuple):
    """The CPUs of one rank, as planned or as the rank reported them.

    Attributes:
        node: index of its node in the nodes of the step, of the measurement or of the report.
        cpus: CPU numbers of the operating system. Planned: one per thread, in thread order.
            Reported: ascending.
    """

    node: int
    cpus: tuple[int, ...]

    def as_reported(self) -> RankCpus:
        """Return them as a rank reports them: each CPU once, ascending."""
        return RankCpus(self.node, tuple(sorted(set(self.cpus))))


def _fold(ranks: Sequence[RankCpus]) -> list[list[Any]]:
    """Write consecutive nodes with the same CPUs as ``[first, last, [CPUs of each rank]]``."""
    by_node = [
        (node, [rank.cpus for rank in ranks_of_node])
        for node, ranks_of_node in groupby(ranks, lambda rank: rank.node)
    ]
    entries: list[list[Any]] = []
    # Consecutive nodes have a constant difference between number and place in the list.
    for _, group in groupby(enumerate(by_node), lambda at: (at[1][0] - at[0], at[1][1])):
        alike = [node for _, node in group]
        (first, cpus_of_ranks), (last, _) = alike[0], alike[-1]
        if first < last:
            entries.append([first, last, cpus_of_ranks])
        else:
            entries += [[first, cpus] for cpus in cpus_of_ranks]
    return entries


def _read(entries: Any, validate: ValidatorFunctionWrapHandler) -> list[RankCpus]:
    """Return a list from JSON, unfolded and checked; a list of `RankCpus` is returned as it is."""
    if isinstance(entries, list) and all(type(entry) is RankCpus for entry in entries):
        return entries  # a full-scale step has hundreds of thousands
    ranks: list[RankCpus] = validate(_unfold(entries))
    return ranks


def _unfold(entries: Any) -> Any:
    if not isinstance(entries, list):
        return entries
    ranks: list[Any] = []
    for entry in entries:
        if isinstance(entry, list) and len(entry) == 3:
            first, last, cpus_of_ranks = entry
            typed = isinstance(first, int) and isinstance(last, int)
            typed = typed and isinstance(cpus_of_ranks, list)
            if not typed or not 0 <= last - first < MAX_NODES:
                raise ValueError(f"{str(entry)[:80]}: accepted: [first, last, [CPUs of each rank]]")
            for node in range(first, last + 1):
                ranks += [(node, cpus) for cpus in cpus_of_ranks]
        else:
            ranks.append(entry)
    return ranks


RankCpusList = Annotated[
    list[RankCpus], WrapValidator(_read), PlainSerializer(_fold, when_used="json")
]
"""One entry per rank. JSON has one entry for consecutive nodes with the same CPUs."""

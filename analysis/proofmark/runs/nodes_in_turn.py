"""Outputs of several nodes in one file, one after the other: each run has nodes of its own.

A loop over nodes prints a node before each run. IOR prints its node in each run. Ansible prints the
host before each result. The nodes together are no measurement of all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from proofmark.cases.banners import Lines, Part

Names = tuple[str, ...]


@dataclass(frozen=True)
class Statement:
    """A line of a text that names nodes.

    Attributes:
        line: its number, from 0.
        nodes: the nodes.
    """

    line: int
    nodes: Names


def in_turn(
    begins: Sequence[int], printed: Sequence[Names], statements: Sequence[Statement]
) -> list[Statement] | None:
    """Return where the runs of other nodes begin; empty if all runs have the same nodes.

    None: runs have other nodes, and those of a run are not known.

    What the program prints counts, else the lines before a run that name nodes. Nodes that are some
    of those of another run are no other nodes: a job often prints its first node. If several runs
    have other ones of the same nodes, those of the run with all of them are not known.

    Args:
        begins: the first line of each run.
        printed: the nodes that the program prints in each run; may be empty.
        statements: the lines that name nodes, in their order.
    """
    if any(printed):
        found = [
            Statement(begin, nodes) for begin, nodes in zip(begins, printed, strict=True) if nodes
        ]
    else:
        found = []
        for begin, before in zip(begins, [-1, *begins], strict=False):
            if lines := [each for each in statements if before < each.line < begin]:
                found.append(Statement(lines[0].line, _stated(lines)))
    sets = {frozenset(each.nodes) for each in found}
    largest = max(sets, key=len, default=frozenset())
    if not all(nodes <= largest for nodes in sets):
        return found if found[0].line <= begins[0] else None
    others = sets - {largest}
    return [] if all(nodes <= max(others, key=len) for nodes in others) else None


def _stated(lines: Sequence[Statement]) -> Names:
    """Return the nodes of a run by the lines before it.

    The last line counts: a job prints its list, and then the node of the run. If each line names
    one node, the processes of one run print their hosts.
    """
    nodes = tuple(dict.fromkeys(each.nodes for each in lines))
    if all(len(names) == 1 for names in nodes):
        return tuple(name for (name,) in nodes)
    return lines[-1].nodes


def parts_of_nodes(
    parts: Sequence[Part], turns: Sequence[Statement], begins: Sequence[int]
) -> list[Part]:
    """Return the parts of each node, in which a run begins.

    Args:
        parts: the outputs of a text.
        turns: where the runs of other nodes begin; see `in_turn`.
        begins: the first line of each run.
    """
    ends = [each.line for each in turns[1:]]
    found: list[Part] = []
    for part in parts:
        of_nodes: dict[Names, Lines] = {}
        for turn, begin, end in zip(turns, [0, *ends], [*ends, None], strict=True):
            within = _within(part.lines or ((0, None),), begin, end)
            if any(_has_one(lines, begins) for lines in within):
                of_nodes[turn.nodes] = (*of_nodes.get(turn.nodes, ()), *within)
        found += [Part(part.case, lines, nodes) for nodes, lines in of_nodes.items()]
    return found


def _has_one(lines: tuple[int, int | None], begins: Sequence[int]) -> bool:
    """Return whether a run begins in these lines: else they are of the node before the run."""
    first, end = lines
    return any(first <= begin and (end is None or begin < end) for begin in begins)


def _within(lines: Lines, begin: int, end: int | None) -> Lines:
    """Return the lines of ranges from `begin` to the one before `end`."""
    found = []
    for first, last in lines:
        start = max(first, begin)
        stops = [each for each in (last, end) if each is not None]
        stop = min(stops) if stops else None
        if stop is None or start < stop:
            found.append((start, stop))
    return tuple(found)

"""Outputs of several nodes in one file, one after the other: each run has nodes of its own.

A loop over nodes prints a node before each run. IOR prints its node in each run. Ansible prints the
host before each result. The nodes together are no measurement of all of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from proofmark.cases.banners import Lines, Part
from proofmark.common.message import Message
from proofmark.common.nodesets import folded

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
) -> list[Statement]:
    """Return where the runs of other nodes begin; empty if all runs have the same nodes.

    What the program prints counts, else the last line before a run that names nodes. A line that
    names some of the nodes of another one is no other node: a job often prints its first node.

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
        lines = [each.line for each in statements]
        found = []
        for begin, before in zip(begins, [-1, *begins], strict=False):
            last = bisect_left(lines, begin) - 1
            if last >= 0 and lines[last] > before:
                found.append(statements[last])
    sets = {frozenset(each.nodes) for each in found}
    largest = max(sets, key=len, default=frozenset())
    return [] if all(nodes <= largest for nodes in sets) else found


def parts_of_nodes(
    parts: Sequence[Part], turns: Sequence[Statement], first_run: int
) -> list[Part] | Message:
    """Return the parts of each node; a message if the nodes of the first run are not known.

    Args:
        parts: the outputs of a text.
        turns: where the runs of other nodes begin; see `in_turn`.
        first_run: the line with which the first run begins.
    """
    nodes = folded(name for each in turns for name in each.nodes)
    if turns[0].line > first_run:
        return Message("adopt-nodes-mixed", nodes=nodes)
    ends = [each.line for each in turns[1:]]
    found: list[Part] = []
    for part in parts:
        of_nodes: dict[Names, Lines] = {}
        for turn, begin, end in zip(turns, [0, *ends], [*ends, None], strict=True):
            within = _within(part.lines or ((0, None),), begin, end)
            if within:
                of_nodes[turn.nodes] = (*of_nodes.get(turn.nodes, ()), *within)
        found += [Part(part.case, lines, nodes) for nodes, lines in of_nodes.items()]
    return found


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

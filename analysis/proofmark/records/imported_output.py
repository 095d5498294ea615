"""Checks of imported outputs, and the repeats in one file.

Nothing but the file proves such an output. What is missing makes no figure INVALID: the binding,
the exit code, the times, the facts of the node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256

from proofmark.cases.reader.engine import Reading
from proofmark.common.message import NOTHING, Message
from proofmark.common.nodesets import folded
from proofmark.records.hosts import HostNames
from proofmark.runs.adopted import AdoptedFile


def imported_error(
    file: AdoptedFile | None,
    content: bytes,
    nodes: Sequence[str],
    readings: Sequence[Reading],
    names: HostNames,
) -> Message:
    """Return why an imported output is INVALID as a whole, or `NOTHING`.

    Args:
        file: the adopted file; None if ``adopted.json`` does not list it.
        content: the content of its copy.
        nodes: the nodes that it was adopted for.
        readings: its readings.
        names: the further names of the nodes.
    """
    if file is None:
        return Message("not-adopted")
    if file.problem:
        return Message("adopted-unread", problem=file.problem)
    if sha256(content).hexdigest() != file.sha256:
        return Message("adopted-changed")
    printed = [reading.node for reading in readings if reading.node]
    if not printed or not names.wrong_host(nodes, printed):
        return NOTHING
    return Message("adopted-for-node", node=repr(printed[0][:80]), nodes=folded(nodes))


def repeats_in_output(readings: Sequence[Reading]) -> list[list[Reading]]:
    """Return the first reading of each figure, then the second ones, as one list for each repeat.

    Others write several runs of a program into one file. Each list has no figure twice.
    """
    seen: dict[tuple[object, ...], int] = {}
    repeats: list[list[Reading]] = []
    for reading in readings:
        parameters: Mapping[str, object] = reading.parameters
        key = (reading.benchmark, reading.metric, reading.unit, *sorted(parameters.items()))
        number = seen[key] = seen.get(key, 0) + 1
        if number > len(repeats):
            repeats.append([])
        repeats[number - 1].append(reading._replace(node=None))
    return repeats

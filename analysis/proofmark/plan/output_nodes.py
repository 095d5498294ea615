"""The nodes of outputs whose paths and texts both name some: the text counts.

A path often has words that only look like nodes, and a file can be moved. The text is what the
program or its job printed. A job that measures pairs prints all its nodes into the output of each
pair: then the paths separate them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from proofmark.common.host_names import HostTable
from proofmark.common.message import Message
from proofmark.common.nodesets import folded

Names = tuple[str, ...]


@dataclass(frozen=True)
class NodesOfOutputs:
    """The nodes of outputs, by path.

    Attributes:
        nodes: of each output for which something decides.
        contradicted: the node sets of path and text, where the text decided.
        unsure: what path and text name, where nothing decides.
    """

    nodes: Mapping[str, Names]
    contradicted: Mapping[str, tuple[str, str]]
    unsure: Mapping[str, Message]


def nodes_of_outputs(
    named: Mapping[str, Names], printed: Mapping[str, Names], measured: Collection[str]
) -> NodesOfOutputs:
    """Return the nodes of each output.

    A text that names some of the nodes of the path does not contradict it: a job often prints only
    its first node. If the jobs of outputs with other nodes in their paths print one and the same
    other node, it may be the host that started them, and nothing decides.

    Args:
        named: the nodes that each path names; may be empty.
        printed: the nodes that each text names; may be empty.
        measured: the paths of the texts in which the program itself names them.
    """
    paths_of: dict[frozenset[str], set[frozenset[str]]] = {}
    for path, text in printed.items():
        if text and named[path]:
            paths_of.setdefault(frozenset(text), set()).add(frozenset(named[path]))
    nodes: dict[str, Names] = {}
    contradicted: dict[str, tuple[str, str]] = {}
    unsure: dict[str, Message] = {}
    for path, of_path in named.items():
        text = printed[path]
        if not text or not of_path or _has(of_path, text):
            nodes[path] = of_path or text
            continue
        shared = len(paths_of[frozenset(text)]) > 1
        part = _has(text, of_path)
        if shared and part:
            nodes[path] = of_path
        elif shared and path not in measured:
            both = {"path": folded(of_path), "text": folded(text)}
            unsure[path] = Message("adopt-two-answers", **both)
        else:
            nodes[path] = text
            contradicted[path] = folded(of_path), folded(text)
    return NodesOfOutputs(nodes, contradicted, unsure)


def _has(nodes: Names, names: Names) -> bool:
    """Return whether all of `names` are names of `nodes`."""
    table = HostTable.of(nodes)
    return all(table.find(name) is not None for name in names)

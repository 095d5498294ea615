"""Puts what is the same on like nodes, or in like steps, into one line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from proofmark.common.message import Message
from proofmark.common.nodesets import folded, hosts_of
from proofmark.common.translation import _
from proofmark.plan.step import StepInstance

MOST_NAMED = 3
"""The largest number of steps that a line names."""
MOST_NODES = 8
"""The largest number of nodes that a line names one by one."""


def of_like_nodes(found: Iterable[tuple[str, Message]]) -> dict[Message, tuple[str, ...]]:
    """Return the hosts by message, in which the name of its node is ``the node``.

    Args:
        found: the node or nodes, as records name them, with what is stated about them.
    """
    groups: dict[Message, dict[str, None]] = {}
    for node, message in found:
        names = hosts_of(node)
        key = message.without_nodes({node, *names})
        groups.setdefault(key, {}).update(dict.fromkeys(names))
    return {message: tuple(hosts) for message, hosts in groups.items()}


def named_nodes(hosts: Sequence[str]) -> str:
    """Return hosts in one text: ``n03, n04``; more than `MOST_NODES` as a node set."""
    return ", ".join(sorted(hosts)) if len(hosts) <= MOST_NODES else folded(hosts)


def named_steps(steps: Iterable[str]) -> str:
    """Return the folders of steps in one text: ``0001-hpl/n[1-60], 0002-fio and 58 more``.

    Args:
        steps: folders below ``steps/``. A step that each node has for itself ends with the node.
    """
    groups: dict[str, list[str]] = {}
    for step in steps:
        instance = StepInstance.parse(step)
        groups.setdefault(instance.step, []).extend([instance.name] if instance.name else [])
    texts = [f"{name}/{folded(nodes)}" if nodes else name for name, nodes in groups.items()]
    text = ", ".join(texts[:MOST_NAMED])
    if (more := len(texts) - MOST_NAMED) > 0:
        text += _(" and {count} more").format(count=more)
    return text

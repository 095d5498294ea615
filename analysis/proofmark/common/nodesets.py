"""Names of nodes: node sets in files (``knl[0001-8305]``), a list of names in memory."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Annotated, Any

from ClusterShell.NodeSet import NodeSet, NodeSetException
from pydantic import BeforeValidator, PlainSerializer


def fold(names: Iterable[str]) -> list[str]:
    """Return node sets that expand to `names` in this order: one set if the order allows it."""
    return list(_fold(tuple(names)))


def unfold(sets: Iterable[str]) -> list[str]:
    """Return the names in the node sets `sets`.

    Raises:
        ValueError: an entry is not a node set.
    """
    return [name for each in sets for name in _unfold(each)]


def folded(names: Iterable[str]) -> str:
    """Return `names` as one node set, for messages. It does not keep their order."""
    return str(NodeSet.fromlist(list(names)))


@lru_cache(maxsize=256)
def _fold(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(names) < 2:
        return names
    one = folded(names)
    return (one,) if _unfold(one) == names else names


@lru_cache(maxsize=256)
def _unfold(text: str) -> tuple[str, ...]:
    if "[" not in text and "," not in text:
        return (text,)
    try:
        return tuple(NodeSet(text))
    except NodeSetException as error:
        raise ValueError(f"not a node set: {error}") from None


def _listed(given: Any) -> Any:
    return unfold(given) if isinstance(given, (list, tuple)) else given


Nodes = Annotated[list[str], BeforeValidator(_listed), PlainSerializer(fold, when_used="json")]
"""A list of names. Its JSON is a list of node sets."""


@lru_cache(maxsize=65536)
def hosts_of(node: str) -> tuple[str, ...]:
    """Return the hosts in the node of a record, which is a host or a node set."""
    if "[" not in node and "," not in node:
        return (node,)
    return tuple(NodeSet(node))


def short_name(host: str) -> str:
    """Return the name of `host` without its domain."""
    return host.partition(".")[0]

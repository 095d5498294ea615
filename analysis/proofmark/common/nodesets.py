"""Names of nodes: node sets in files (``knl[0001-8305]``), a list of names in memory.

A name is data: ClusterShell's groups (``@group``) and wildcards (``*``) are never resolved.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Annotated, Any

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException
from pydantic import BeforeValidator, PlainSerializer

_OPERATOR = re.compile(r"[!&^]")
"""A name with one of these is an expression for ClusterShell."""


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
    """Return `names` as one node set, for messages. It does not keep their order.

    A name that a node set cannot hold is appended unchanged.
    """
    given = list(names)
    plain = [name for name in given if not _OPERATOR.search(name)]
    try:
        sets = str(NodeSet.fromlist(plain, resolver=RESOLVER_NOGROUP))
    except NodeSetException:
        return ", ".join(given)
    return ", ".join(filter(None, [sets, *(name for name in given if _OPERATOR.search(name))]))


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
        return tuple(NodeSet(text, resolver=RESOLVER_NOGROUP))
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
    return tuple(NodeSet(node, resolver=RESOLVER_NOGROUP))


def short_name(host: str) -> str:
    """Return the name of `host` without its domain."""
    return host.partition(".")[0]

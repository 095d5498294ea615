"""Names of nodes: node sets in files (``knl[0001-8305]``), a list of names in memory.

A name is data: it has only the characters of `NAME`. ClusterShell's groups (``@group``) and
wildcards (``*``) are never resolved. The size of a node set is computed before it is expanded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain
from typing import Annotated, Any, TypeVar

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException
from pydantic import AfterValidator, BeforeValidator, PlainSerializer

from proofmark.common.grouping import gathered
from proofmark.common.input_limits import MAX_NODES

Value = TypeVar("Value")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
"""The name of a host: one word for a shell, a path and a node set (RFC 1123, and underscores)."""
ACCEPTED = "letters, digits, '.', '_' and '-', the first a letter or digit, at most 253 characters"
"""The characters of `NAME`, for messages."""
_RANGE = re.compile(r"(\d{1,12})(?:-(\d{1,12})(?:/(\d{1,12}))?)?")
_RANGES = re.compile(r"\[([^\[\]]*)\]")
_PART = re.compile(r"(?:[^\[\],]|\[[^\[\]]*\])+")
"""A part of a node set between two commas; a comma in brackets separates ranges."""


def is_name(text: str) -> bool:
    """Return whether `text` can be the name of a host."""
    return NAME.fullmatch(text) is not None


def check_name(text: str) -> str:
    """Return `text`, which is the name of a host.

    Raises:
        ValueError: it is not.
    """
    if not is_name(text):
        raise ValueError(f"{text[:80]!r} is no host name; accepted: {ACCEPTED}")
    return text


HostName = Annotated[str, AfterValidator(check_name)]
"""The name of a host in a model."""


def fold(names: Iterable[str]) -> list[str]:
    """Return node sets that expand to `names` in this order: one set if the order allows it.

    Raises:
        ValueError: one of `names` is no host name.
    """
    return list(_fold(tuple(names)))


def unfold(sets: Iterable[str]) -> list[str]:
    """Return the names in the node sets `sets`.

    Raises:
        ValueError: an entry is not a node set, has a name that is no host name, or stands for more
            than `MAX_NODES` names.
    """
    return list(chain.from_iterable(map(_unfold, sets)))


def folded(names: Iterable[str]) -> str:
    """Return `names` as one node set, for messages. It does not keep their order.

    A text that is no host name is appended unchanged.
    """
    given = list(names)
    sets = str(NodeSet.fromlist(filter(is_name, given), resolver=RESOLVER_NOGROUP))
    others = (name for name in given if not is_name(name))
    return ", ".join(filter(None, [sets, *others]))


def nodes_by(values: Mapping[str, Value]) -> dict[Value, list[str]]:
    """Return the nodes with the same value, by this value."""
    return gathered((value, node) for node, value in values.items())


def hostlist(names: Iterable[str]) -> str:
    """Return `names`, all host names, as one node set with one range in each name.

    That is the syntax of programs that accept one pair of brackets only (Flux RFC 29).
    """
    nodes = NodeSet.fromlist(names, resolver=RESOLVER_NOGROUP)
    nodes.fold_axis = (-1,)
    return str(nodes)


@lru_cache(maxsize=256)
def _fold(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        check_name(name)
    if len(names) < 2:
        return names
    one = folded(names)
    return (one,) if _unfold(one) == names else names


@lru_cache(maxsize=1 << 14)  # the nodes and pairs of a large run, which many judges ask for
def _unfold(text: str) -> tuple[str, ...]:
    if "[" not in text and "," not in text:
        return (check_name(text),)
    if _size(text) > MAX_NODES:
        raise ValueError(f"{text[:80]!r} is a node set of more than {MAX_NODES} names")
    try:
        names = tuple(NodeSet(text, resolver=RESOLVER_NOGROUP))
    except NodeSetException as error:
        raise ValueError(f"not a node set: {error}") from None
    for name in names:
        check_name(name)
    return names


def _size(text: str) -> int:
    """Return the number of names in a node set, which is not expanded.

    Raises:
        ValueError: it is not a node set of names.
    """
    names = 0
    parts = _PART.findall(text)
    if ",".join(parts) != text:
        raise ValueError(f"{text[:80]!r} is not a node set")
    for part in parts:
        product = 1
        for ranges in _RANGES.findall(part):
            product *= sum(map(_length, ranges.split(",")))
        if not is_name(_RANGES.sub("0", part)):
            raise ValueError(f"{part[:80]!r} is no set of host names; accepted: {ACCEPTED}")
        names += product
    return names


def _length(text: str) -> int:
    match = _RANGE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:80]!r} is no range of numbers of at most 12 digits")
    first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
    if last < first or step < 1:
        raise ValueError(f"{text!r} is no ascending range")
    return (last - first) // step + 1


def _listed(given: Any) -> Any:
    if not isinstance(given, (list, tuple)):
        return given
    if not all(issubclass(kind, str) for kind in {*map(type, given)}):
        raise ValueError("a node set is a text")
    names = unfold(given)
    if len(names) > MAX_NODES:
        raise ValueError(f"{len(names)} names, more than {MAX_NODES}")
    return names


Nodes = Annotated[list[str], BeforeValidator(_listed), PlainSerializer(fold, when_used="json")]
"""A list of names. Its JSON is a list of node sets."""


def hosts_of_nodes(nodes: Iterable[str]) -> Iterator[str]:
    """Yield the hosts in the nodes of records. A host of several nodes is yielded for each."""
    return chain.from_iterable(map(hosts_of, nodes))


@lru_cache(maxsize=65536)
def hosts_of(node: str) -> tuple[str, ...]:
    """Return the hosts in the node of a record, which is a host or a node set."""
    if "[" not in node and "," not in node:
        return (node,)
    return _unfold(node)

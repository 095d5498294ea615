"""Checks the pattern of ``-l`` against the names in an inventory."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from proofmark.common.errors import InputError, nearest

PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
"""A part of a pattern without wildcards, ranges and files (``@hosts.txt``)."""
MOST_GROUPS = 20
"""The number of groups that a message lists."""


def unknown_names(
    parts: Sequence[str], groups: Collection[str], hosts: Collection[str]
) -> Iterator[InputError]:
    """Yield a mistake for each name in a pattern that is neither a group nor a host.

    Ansible ignores such a name with a warning, also if it excludes hosts (``knl:!dwon``).

    Args:
        parts: the parts of the pattern of ``-l``, as Ansible splits it at colons and commas.
        groups: the names of all groups of the inventory.
        hosts: the names of all hosts of the inventory.
    """
    for part in parts:
        name = part.lstrip("!&")
        if PLAIN_NAME.fullmatch(name) and name not in groups and name not in hosts:
            hint = nearest(name, [*groups, *hosts])
            listed = sorted(set(groups) - {"ungrouped"})
            more = ", …" if len(listed) > MOST_GROUPS else ""
            accepted = f"hosts or groups of the inventory: {', '.join(listed[:MOST_GROUPS])}{more}"
            yield InputError("-l", "", f"{name!r}: no host{hint}", accepted)

"""What the expressions of cases may use of the scratch file system."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from proofmark.cases.case import Case
from proofmark.site.file_systems import layout_axes
from proofmark.site.partition import Partition

SERVER_CACHES = "server_cache_bytes"
"""Name in expressions: the memory of all storage servers together; 0 is not known."""


def storage_symbols(partition: Partition) -> dict[str, Any]:
    """Return the facts of the scratch by their name in expressions.

    ``layout_axes`` are the axes of a layout that its file system can set, ``storage_targets`` the
    indexes of its targets; both are empty if they are not known.
    """
    scratch = partition.scratch
    return {
        "layout_axes": list(layout_axes(scratch.type)),
        "storage_targets": scratch.targets,
        SERVER_CACHES: scratch.server_cache_bytes or 0,
    }


def assumed_caches(partition: Partition, cases: Iterable[Case]) -> dict[str, str]:
    """Return the assumption on the caches of the servers, if one of `cases` depends on it."""
    known = partition.scratch.server_cache_bytes is not None
    if known or not any(SERVER_CACHES in case.used_names() for case in cases):
        return {}
    return {
        f"scratch.{SERVER_CACHES}": (
            "not declared; files of twice the memory of the clients, or what they write within the "
            "time of a measurement, are assumed to exceed the caches of the servers"
        )
    }

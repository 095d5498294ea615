"""LSF (9 and later): ``bhosts``, ``lshosts`` and ``bmgroup``."""

from __future__ import annotations

import re

from proofmark.machine.listing import Ask, NodeListing, unreadable
from proofmark.machine.outcome import NodeError
from proofmark.site.survey.listed import ListedNode

_SIZE = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?)([KMGTPE])")
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50, "E": 2**60}
_KIND = ("ncpus", "type", "model")
"""The columns of lshosts that like hosts share."""


class Lsf(NodeListing):
    """LSF (9 and later)."""

    program = "bhosts"
    source = "bhosts -w"
    groups_are_queues = False

    def nodes(self, ask: Ask) -> list[ListedNode]:
        """Return the hosts that run jobs, with their host groups. A missing group is no error."""
        batch = _rows(ask("bhosts", "-X", "-w"), "HOST_NAME")
        if not batch:
            raise unreadable(self.source, "no line HOST_NAME")
        static = {row["HOST_NAME"]: row for row in _rows(ask("lshosts", "-w"), "HOST_NAME")}
        try:
            groups = _groups(ask("bmgroup", "-r", "-w"))
        except NodeError:
            groups = {}  # bmgroup fails if no group is defined
        return [
            _host(row, static.get(row["HOST_NAME"], {}), groups)
            for row in batch
            if row.get("MAX") != "0"  # a host without job slots
        ]


def _rows(printed: str, first: str) -> list[dict[str, str]]:
    """Return the rows below the header that begins with `first`, by the names of its columns."""
    lines = printed.splitlines()
    start = next((at for at, line in enumerate(lines) if line.split()[:1] == [first]), len(lines))
    heads = lines[start].split() if start < len(lines) else []
    return [
        dict(zip(heads, line.split(), strict=False)) for line in lines[start + 1 :] if line.split()
    ]


def _groups(printed: str) -> dict[str, tuple[str, ...]]:
    """Return the names of the host groups of each host."""
    groups: dict[str, tuple[str, ...]] = {}
    for line in printed.splitlines():
        name, *hosts = line.split() or [""]
        if name not in ("", "GROUP_NAME"):
            for host in hosts:
                groups[host] = (*groups.get(host, ()), name)
    return groups


def _host(
    batch: dict[str, str], row: dict[str, str], groups: dict[str, tuple[str, ...]]
) -> ListedNode:
    """Return a host from its rows of bhosts and lshosts. `MAX` is its number of job slots."""
    name, slots = batch["HOST_NAME"], batch.get("MAX", "-")
    memory = _SIZE.fullmatch(row.get("maxmem", ""))
    return ListedNode(
        name=name,
        kind=tuple(f"{key}={row[key]}" for key in _KIND if row.get(key, "-") != "-"),
        memory_bytes=round(float(memory[1]) * _UNITS[memory[2]]) if memory else 0,
        groups=(*groups.get(name, ()), *groups.get("all", ())),  # bmgroup writes "all"
        cpus=int(slots) if slots.isdecimal() else 0,
    )

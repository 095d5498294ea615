"""PBS Pro and OpenPBS (12 and later): ``pbsnodes -a -F json``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from proofmark.machine.listing import Ask, NodeListing, unreadable
from proofmark.machine.pbs_output import entries, size_of
from proofmark.site.survey.listed import ListedNode


class Pbs(NodeListing):
    """PBS Pro and OpenPBS (12 and later)."""

    program = "pbsnodes"
    source = "pbsnodes -a"
    groups_are_queues = True

    def nodes(self, ask: Ask) -> list[ListedNode]:
        """Return all hosts. A host may have several virtual nodes, whose resources are added."""
        printed = ask("pbsnodes", "-a", "-F", "json")
        try:
            vnodes = [_vnode(name, fields) for name, fields in entries(printed, "nodes").items()]
        except ValueError:
            vnodes = []
        if not vnodes:
            raise unreadable(self.source, f"no JSON of nodes: {printed[:100]!r}")
        hosts: dict[str, list[_Vnode]] = {}
        for vnode in vnodes:
            hosts.setdefault(vnode[0], []).append(vnode)
        return [_host(host, parts) for host, parts in hosts.items()]


_Vnode = tuple[str, int, int, frozenset[str], str]
"""Host, CPUs, bytes of memory, queues, and the accelerators of a virtual node."""


def _vnode(name: str, fields: Mapping[str, Any]) -> _Vnode:
    """Return a virtual node; a resource that cannot be read is 0."""
    resources = fields.get("resources_available")
    resources = resources if isinstance(resources, dict) else {}
    queues = [str(fields.get("queue", "")), *str(resources.get("Qlist", "")).split(",")]
    cpus = str(resources.get("ncpus", ""))
    return (
        str(resources.get("host") or name),
        int(cpus) if re.fullmatch("[0-9]{1,6}", cpus) else 0,
        _bytes(str(resources.get("mem", ""))),
        frozenset(queue.strip() for queue in queues if queue.strip()),
        str(resources.get("ngpus", "")),
    )


def _bytes(text: str) -> int:
    try:
        return size_of(text)
    except ValueError:
        return 0


def _host(host: str, vnodes: list[_Vnode]) -> ListedNode:
    cpus = sum(each[1] for each in vnodes)
    gpus = sorted({each[4] for each in vnodes if each[4]})
    return ListedNode(
        name=host,
        kind=(f"CPUs={cpus}", *(f"GPUs={each}" for each in gpus)),
        memory_bytes=sum(each[2] for each in vnodes),
        groups=tuple(sorted(frozenset.union(*(each[3] for each in vnodes)))),
        cpus=cpus,
    )

"""Groups of hosts that measurements connect. Without a fact, only the hosts of one group are alike.

Imported outputs have no hardware of their nodes. A sweep of pairs measures the hosts of one machine
against each other. Hosts of another sweep may be another machine: a slower one is no fault.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from proofmark.common.message import Message
from proofmark.common.nodesets import folded, hosts_of

LEAST_HOSTS = 3
"""The least number of hosts that pairs connect: separate pairs of one machine are no groups."""


def measured_groups(nodes: Iterable[str]) -> list[tuple[str, ...]]:
    """Return the groups of hosts that were measured against each other; nothing if it is one.

    Args:
        nodes: the nodes of records: a host, or the set of hosts of one measurement.
    """
    above: dict[str, str] = {}
    paired: dict[str, set[str]] = {}
    for node in dict.fromkeys(nodes):
        hosts = hosts_of(node)
        for host in hosts:
            above.setdefault(host, host)
            above[_top(above, host)] = _top(above, hosts[0])
        if len(hosts) == 2:
            for host in hosts:
                paired.setdefault(host, set()).update(hosts)
    groups: dict[str, list[str]] = {}
    for host in above:
        groups.setdefault(_top(above, host), []).append(host)
    swept = [
        tuple(sorted(hosts))
        for hosts in groups.values()
        if any(len(paired.get(host, ())) >= LEAST_HOSTS for host in hosts)
    ]
    return sorted(swept) if len(swept) > 1 else []


def kinds_of_groups(groups: Sequence[Sequence[str]]) -> dict[str, str]:
    """Return the kind of each host of `groups`, as a text."""
    kinds: dict[str, str] = {}
    for hosts in groups:
        kinds |= dict.fromkeys(hosts, f"measured together: {folded(hosts)}")
    return kinds


def unlike_groups(groups: Sequence[Sequence[str]]) -> Iterable[Message]:
    """Yield the question whether the hosts of `groups` are alike."""
    if groups:
        hosts = "; ".join(folded(each) for each in groups)
        yield Message("groups-unknown", count=len(groups), groups=hosts)


def _top(above: Mapping[str, str], host: str) -> str:
    while above[host] != host:
        host = above[host]
    return host

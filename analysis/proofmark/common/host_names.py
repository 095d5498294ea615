"""Comparison of host names: the only place that decides whether two names are one host.

DNS names differ neither by case nor by a dot at the end (RFC 4343, RFC 1034). An address has no
domain. A name without a domain is the host of that name in any domain; among the names that the
hosts of one machine report, only in the domain that they share (`shared_domain`). Two names with
different domains are different hosts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from ipaddress import ip_address
from itertools import chain

from proofmark.common.errors import InputError


@lru_cache(maxsize=65536)
def canonical(name: str) -> str:
    """Return the spelling of `name` in which equal names are equal texts."""
    return str(ip_address(name)) if is_address(name) else name.removesuffix(".").lower()


_OF_NAMES = re.compile("[^0-9A-Fa-f:.]")


def is_address(name: str) -> bool:
    """Return whether `name` is an IPv4 or IPv6 address."""
    if _OF_NAMES.search(name.partition("%")[0]):  # most words: an exception takes longer
        return False
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


@lru_cache(maxsize=65536)
def short_name(host: str) -> str:
    """Return the name of `host` without its domain; an address has none."""
    return host if is_address(host) else host.partition(".")[0]


def domain_of(name: str) -> str:
    """Return the domain of a name; empty if it has none."""
    full = canonical(name)
    return full.removeprefix(short_name(full)).removeprefix(".")


def shared_domain(reported: Iterable[str]) -> str | None:
    """Return the domain that more than half of the reported names have; "" if none has so many.

    None: no name is known. One host proves its own domain.
    """
    domains = Counter(domain_of(name) for name in reported if not is_address(name))
    if not domains:
        return None
    ((domain, number),) = domains.most_common(1)
    return domain if 2 * number > domains.total() else ""


def same_host(one: str, other: str) -> bool:
    """Return whether two names are those of one host, as far as the names say."""
    first, second = canonical(one), canonical(other)
    return first == second or second == short_name(first) or first == short_name(second)


def clashes(names: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Return the sets of hosts that have one name without the domain.

    Many programs, and most schedulers, print names without a domain: their outputs would be those
    of any of these hosts.

    Args:
        names: the further names of each host, by host.
    """
    hosts_of: dict[str, set[str]] = {}
    for host, further in names.items():
        for name in (host, *further):
            hosts_of.setdefault(short_name(canonical(name)), set()).add(host)
    alike = (tuple(sorted(hosts)) for hosts in hosts_of.values() if len(hosts) > 1)
    return [list(hosts) for hosts in dict.fromkeys(alike)]


def alike_error(
    file: str, key: str, hosts: Iterable[str], places: Iterable[str] = ()
) -> InputError:
    """Return the error of `hosts` that have one name without the domain, found at `places`."""
    where = ", in ".join(["", *places])
    found = f"{', '.join(hosts)}: one host name{where}"
    accepted = "hosts whose names differ without the domain, and by more than case"
    return InputError(file, key, found, accepted, "hosts-alike")


class HostTable:
    """Hosts by all names that they may report.

    Args:
        names: the further names of each host, by host. The name of the host is one of its names.
    """

    def __init__(self, names: Mapping[str, Iterable[str]]) -> None:
        self._exact: dict[str, str] = {}
        self._short: dict[str, dict[str, None]] = {}
        for host in names:
            self._exact.setdefault(canonical(host), host)
        for host, further in names.items():
            for name in (host, *further):
                full = canonical(name)
                self._exact.setdefault(full, host)
                self._short.setdefault(short_name(full), {})[host] = None

    @classmethod
    def of(cls, hosts: Iterable[str]) -> HostTable:
        """Return the table of `hosts`, which have no further names."""
        return cls({host: () for host in hosts})

    @classmethod
    def reported(cls, hosts: Iterable[str]) -> HostTable:
        """Return the table of the names that hosts report.

        A host of another domain than the shared one has its full name only.
        """
        names = list(hosts)
        table, domain = cls.of(names), shared_domain(names)
        for name in names:
            if domain_of(name) not in ("", domain):
                table._short[short_name(canonical(name))].pop(name, None)
        return table

    def find(self, name: str) -> str | None:
        """Return the host that `name` names; None if there is none, or if there are several."""
        full = canonical(name)
        if host := self._exact.get(full):
            return host
        short = short_name(full)
        if full != short:  # only a host without a domain can have it
            return self._exact.get(short)
        hosts = list(self._short.get(short, ()))
        return hosts[0] if len(hosts) == 1 else None

    def found(self, names: Iterable[str]) -> set[str]:
        """Return the hosts that `names` name."""
        return {host for name in names if (host := self.find(name))}


class ReportedNames:
    """Nodes of a plan by the names that they may report. The name of the plan counts everywhere.

    Args:
        names: the further names of each node, by node, as of `HostTable`.
    """

    def __init__(self, names: Mapping[str, Iterable[str]]) -> None:
        self._table = HostTable(names)
        self._nodes = Counter(
            chain.from_iterable({*map(canonical, (node, *more))} for node, more in names.items())
        )

    def node(self, reported: str) -> str:
        """Return the node that reports this name; `reported` itself if none or several may."""
        several = self._nodes[canonical(reported)] > 1
        return (None if several else self._table.find(reported)) or reported

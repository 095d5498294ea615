"""The site of outputs that others produced: a declared one, or only the hosts that were found."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from proofmark.site.inventory import Site
from proofmark.site.partition import Partition
from proofmark.site.storage import Scratch

IMPORTED = "imported"
"""The origin of figures of outputs that others produced; the name of a site without inventory."""


def site_of_hosts(hosts: Iterable[str]) -> Site:
    """Return a site with one partition of `hosts`, whose facts are not known."""
    known = tuple(dict.fromkeys(hosts))
    return Site(
        name=IMPORTED,
        inventory=Path(IMPORTED),
        limit=IMPORTED,
        partition_name=IMPORTED,
        partition=Partition(
            environment=IMPORTED,
            scheduler="none",
            provision_from=IMPORTED,
            scratch=Scratch(path="/"),
        ),
        hosts=known,
        connection="ssh",
        partition_hosts=list(known),
    )


def hosts_by_name(site: Site, names: Collection[str]) -> dict[str, str]:
    """Return the host of `site` for each of `names` that is a name of one.

    A name that several hosts may have is none of them.
    """
    found = {name: site.host_of(name) for name in names}
    return {name: host for name, host in found.items() if host}

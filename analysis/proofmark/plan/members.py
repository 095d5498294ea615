"""The cases of a suite on a partition: those for the origin of its programs."""

from __future__ import annotations

from proofmark.cases.alternatives import members_from
from proofmark.cases.case import Case
from proofmark.cases.suite import Benchmarks
from proofmark.site.inventory import Site

PREINSTALLED = "preinstalled"
"""The value of ``partition.provision_from`` for programs that the inventory names."""


def members_at(benchmarks: Benchmarks, suite: str, site: Site) -> dict[str, Case]:
    """Return the cases of `suite` for the origin of the programs of the partition, by id.

    Raises:
        BadInput: there is no such suite.
    """
    partition = site.partition
    named = partition.preinstalled if partition.provision_from == PREINSTALLED else ()
    return members_from(benchmarks, suite, partition.provision_from, named)

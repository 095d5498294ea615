"""The suites of each shipped site: which ones its origin of programs has, and why not the others.

``python -m tests.sites`` prints the matrix suites × partitions as a Markdown table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

from tests.fixtures.controllers import sound_controller
from tests.fixtures.shipped import shipped_benchmarks
from tests.folders import ROOT

from proofmark.common.errors import BadInput, NothingToRun
from proofmark.plan.expansion import make_plan, members_at
from proofmark.plan.lacking import Available, in_words, lacking
from proofmark.plan.plan import Plan
from proofmark.site.hardware import CURRENT
from proofmark.site.inventory import Site, read_sites
from proofmark.site.machines import Machines, machines_of
from proofmark.software.provider import packages_at

INVENTORIES = sorted(path.parent for path in (ROOT / "inventory").glob("*/hosts.yml"))
NAMES = sorted(
    f"{path.parents[2].name}/{path.parent.name}"
    for path in (ROOT / "inventory").glob("*/group_vars/*/partition.yml")
)
"""The partitions of the shipped inventories, as the keys of `sites`."""
LARGE = frozenset(
    {"example-current/turin", "example-current/xeon6", "example-epyc/epyc", "nurion/knl"}
)
"""Those with thousands of nodes, or with hundreds of cores: their plans take most of the time."""
SMALL = [name for name in NAMES if name not in LARGE]
"""The partitions for which the tier test makes plans; the tier soak has all."""
ORIGIN = "provision_from"
MOST_HOSTS = 4
"""The hosts of a partition with which plans are made: their programs are those of more hosts."""


@dataclass(frozen=True)
class Entry:
    """A suite on a partition.

    Attributes:
        plan: its plan; None if the partition runs no step of it.
        lacks: what the origin lacks, in words; empty if it can be built.
    """

    suite: str
    plan: Plan | None
    lacks: str = ""

    def __str__(self) -> str:
        """Return the cell of a table."""
        if self.plan is None:
            return "no step"
        return f"refused: {self.lacks}" if self.lacks else "runs"


@cache
def sites() -> dict[str, Site]:
    """Return the partitions of all shipped inventories, each with at most `MOST_HOSTS` hosts."""
    found = {}
    for folder in INVENTORIES:
        read, mistakes = read_sites(folder, "compute")
        assert mistakes == []
        for site in read:
            hosts = site.hosts[:MOST_HOSTS]
            found[f"{folder.name}/{site.partition_name}"] = site.model_copy(
                update={"hosts": hosts, "partition_hosts": hosts}
            )
    return found


def of_origin(site: Site, origin: str) -> Site:
    """Return `site` with the programs of `origin`."""
    partition = site.partition.model_copy(update={"provision_from": origin})
    return site.model_copy(update={"partition": partition})


def machines(site: Site) -> Machines:
    """Return the machines of `site`; a discovered one is like that of the site template."""
    if site.partition.node.topology:
        return machines_of(site)[0]
    declared = machines_of(sites()["template/cluster"])[0](CURRENT)
    return replace(declared, symbols={**declared.symbols, "nodes": len(site.hosts)})


_made: dict[tuple[object, ...], Plan | None] = {}


def plans(site: Site) -> dict[str, Plan | None]:
    """Return the plan of each suite; None if the partition runs no step of it.

    Origins that no case distinguishes have the same plan, which is made once.
    """
    made: dict[str, Plan | None] = {}
    for suite in shipped_benchmarks().suites:
        key = (site.name, site.partition_name, suite, *_distinguished(suite, site))
        if key not in _made:
            _made[key] = _plan(suite, site)
        made[suite] = _made[key]
    return made


def _plan(suite: str, site: Site) -> Plan | None:
    try:
        return make_plan(shipped_benchmarks(), suite, site, machines(site), digest=False)
    except NothingToRun:
        return None


def _distinguished(suite: str, site: Site) -> Iterator[object]:
    """Yield the cases of a suite, and what their conditions ask of the origin of the programs."""
    origin = site.partition.provision_from
    for name in members_at(shipped_benchmarks(), suite, site):
        text = (ROOT / f"benchmarks/{name}.yml").read_text(encoding="utf-8")
        compared = re.findall(rf"{ORIGIN} [!=]= '(\w+)'", text)
        asked = text.count(ORIGIN) == len(compared)
        yield name, tuple(origin == each for each in compared) if asked else origin


def available_packages(site: Site) -> Available | None:
    """Return what the origin of `site` has on a controller with a lock and an EasyBuild."""
    with sound_controller(site):
        return packages_at(ROOT, site)


def entries(site: Site, available: Available) -> Iterator[Entry]:
    """Yield each suite on `site`, whose origin has `available`."""
    for suite, plan in plans(site).items():
        lacks = in_words(lacking(plan.packages(), available)) if plan else ""
        yield Entry(suite, plan, lacks)


def matrix(names: Sequence[str] = NAMES) -> Iterator[str]:
    """Yield the lines of the matrix suites × partitions."""
    columns: dict[str, list[str]] = {}
    for name in names:
        site = sites()[name]
        title = f"{name} ({site.partition.provision_from})"
        try:
            available = available_packages(site)
        except BadInput as error:
            columns[title] = [f"refused: {error}"] * len(shipped_benchmarks().suites)
            continue
        assert available is not None
        columns[title] = [str(entry) for entry in entries(site, available)]
    yield f"| suite | {' | '.join(columns)} |"
    yield f"|---|{'---|' * len(columns)}"
    for row, suite in enumerate(shipped_benchmarks().suites):
        yield f"| `{suite}` | {' | '.join(cells[row] for cells in columns.values())} |"


if __name__ == "__main__":
    print(*matrix(), sep="\n")

"""``growth/<n>.json``: what joined a run that grows (`proofmark.plan.kinds`) after its start.

No file of the run is changed. A file has jobs and nodes only: the limits, the contract and
everything else that judges are those of the start.
"""

from __future__ import annotations

from pathlib import Path

from proofmark.common.files import paths_in, read_json, write_whole
from proofmark.common.strict_model import StrictModel
from proofmark.plan.kinds import Part, kind_of
from proofmark.plan.plan import Group, Plan
from proofmark.plan.search import Search
from proofmark.runs.run_files import RunFiles
from proofmark.site.access import Access
from proofmark.site.inventory import Site


class Growth(StrictModel):
    """Jobs that joined a run.

    Attributes:
        hosts: the nodes that joined.
        partition_hosts: the nodes of the partition at that time.
        aliases: the further names of these nodes.
        ssh: how the inventory reaches them; None: as before.
    """

    groups: list[Group]
    searches: list[Search] = []
    hosts: list[str]
    partition_hosts: list[str]
    aliases: dict[str, list[str]]
    ssh: Access | None


def _growths(folder: Path) -> list[Growth]:
    """Return what joined the run in `folder`, the oldest first."""
    return [read_json(path, Growth) for path in paths_in(RunFiles(folder).growth, "*.json")]


def with_growth(folder: Path, plan: Plan) -> Plan:
    """Return `plan`, that of the start of the run in `folder`, with all that joined it.

    Raises:
        BadInput: no installed package has the kind of the plan, or a file is damaged.
    """
    kind = kind_of(plan)
    for each in _growths(folder) if kind.grows else ():
        plan = kind.grown(plan, (each.groups, each.searches))
    return plan


def site_now(folder: Path) -> Site:
    """Return the site of the run in `folder`: its partition at the start, with all nodes."""
    site = read_json(RunFiles(folder).site, Site)
    for each in _growths(folder):
        site = _joined(site, each)
    return site


def add_growth(folder: Path, part: Part, joining: Site) -> None:
    """Add `part`, and the hosts of the site `joining`, to the run in `folder`.

    Raises:
        BadInput: the file cannot be written.
    """
    growth = RunFiles(folder).growth
    path = growth / f"{len(_growths(folder)) + 1:04d}.json"
    growth.mkdir(exist_ok=True)
    made = Growth(
        groups=part[0],
        searches=part[1],
        hosts=list(joining.hosts),
        partition_hosts=list(joining.partition_hosts),
        aliases=joining.aliases,
        ssh=joining.ssh,
    )
    write_whole(path, made.model_dump_json(indent=1) + "\n")


def _joined(site: Site, joining: Growth) -> Site:
    """Return `site` with the hosts of `joining`, as the inventory reached them at that time."""
    access = site.ssh
    if access is not None and joining.ssh is not None:
        hosts = {host: joining.ssh.of(host) for host in joining.hosts}
        others = {host: each for host, each in hosts.items() if each != access.usual}
        access = Access(shell=access.shell, usual=access.usual, hosts={**access.hosts, **others})
    return site.model_copy(
        update={
            "hosts": tuple(dict.fromkeys((*site.hosts, *joining.hosts))),
            "partition_hosts": joining.partition_hosts,
            "aliases": {**site.aliases, **joining.aliases},
            "ssh": access,
        }
    )

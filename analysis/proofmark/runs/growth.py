"""``growth/<n>.json``: what joined a rolling run after its start (`proofmark.plan.rolling`).

No file of the run is changed when nodes join. A file has jobs and nodes only: the limits, the
contract and everything else that judges are those of the start.
"""

from __future__ import annotations

from pathlib import Path

from proofmark.common.files import paths_in, read_json, write_whole
from proofmark.common.strict_model import StrictModel
from proofmark.plan.plan import Group, Job, Plan
from proofmark.plan.rolling import grown
from proofmark.plan.search import Search
from proofmark.plan.stability_plan import with_round
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
    """Return `plan`, that of the start of the run in `folder`, with all that joined it."""
    if plan.stability:
        for each in _growths(folder):
            found = []
            for group in each.groups:
                found += group.jobs
            plan = with_round(plan, found)
    elif plan.rolling:
        for each in _growths(folder):
            plan = grown(plan, (each.groups, each.searches))
    return plan


def site_now(folder: Path) -> Site:
    """Return the site of the run in `folder`: its partition at the start, with all nodes."""
    site = read_json(RunFiles(folder).site, Site)
    for each in _growths(folder):
        site = _joined(site, each)
    return site


def add_round(folder: Path, plan: Plan, jobs: list[Job], site: Site) -> Plan:
    """Add the jobs of a round to the stability run in `folder`; return its plan with them.

    Raises:
        BadInput: the file cannot be written, or the plan would have too many steps.
    """
    longer = with_round(plan, jobs)
    add_growth(folder, [plan.groups[0].model_copy(update={"jobs": jobs})], [], site)
    return longer


def add_growth(folder: Path, groups: list[Group], searches: list[Search], joining: Site) -> None:
    """Add jobs, and the hosts of the site `joining`, to the rolling run in `folder`.

    Raises:
        BadInput: the file cannot be written.
    """
    growth = RunFiles(folder).growth
    path = growth / f"{len(_growths(folder)) + 1:04d}.json"
    growth.mkdir(exist_ok=True)
    made = Growth(
        groups=groups,
        searches=searches,
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

"""Compares an inventory with the findings of a survey. Nothing is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from proofmark.common.errors import bad_input
from proofmark.common.files import text_or_empty
from proofmark.common.host_names import HostTable
from proofmark.common.input_limits import MAX_YAML_BYTES
from proofmark.common.nodesets import folded, unfold
from proofmark.common.text import one_line
from proofmark.common.yaml_models import NOT_YAML, check_files, placed
from proofmark.site.inventory import Site
from proofmark.site.machines import topology_of_mode
from proofmark.site.mount_source import may_be_same, same_type
from proofmark.site.node.numa import MEMORY_TOLERANCE
from proofmark.site.partition_facts import variable_files
from proofmark.site.survey.entries import Fact, Found, Question
from proofmark.site.survey.findings import partition_found, topology_facts, topology_of
from proofmark.site.survey.further_facts import further_facts
from proofmark.site.survey.inventory_files import FOUND
from proofmark.site.survey.listed import NodeKind
from proofmark.site.survey.node_answers import NodeReport, Survey

COMPARED = (
    *("node.cpu_model", "node.architecture", "node.clock_hz"),
    *("node.flop_per_cycle", "node.memory.bytes", "node.llc_bytes"),
    *("scheduler", "queue.name", "queue.max_walltime_s", "queue.cpus_per_node", "nodes_per_job"),
    *("scratch.type", "scratch.source"),
    *("fabric.rate", "fabric.network.kind", "fabric.network.interfaces"),
)
"""Keys whose values are facts; the others are choices of the site."""
OF_QUEUE = ("queue.name", "queue.max_walltime_s", "nodes_per_job")
MEMORY = "memory_bytes"


@dataclass(frozen=True)
class SiteDifference:
    """A fact that the inventory and the machine state differently.

    Attributes:
        file: with the line, if it is known.
        source: of the found value.
    """

    file: str
    key: str
    declared: str
    found: str
    source: str

    def __str__(self) -> str:
        """Return one line."""
        return one_line(
            f"{self.file}: {self.key}: declared {self.declared}; found {self.found} ({self.source})"
        )


def site_of_node(sites: Sequence[Site], node: str) -> Site:
    """Return the site of the partition that contains `node`, by any of its names.

    Raises:
        BadInput: no partition contains it.
    """
    for site in sites:
        if site.host_of(node):
            return site
    hosts: list[str] = []
    for site in sites:
        hosts += site.hosts
    names = folded(hosts)
    raise bad_input("--from-node", "", repr(node), f"a host of the inventory: {names}")


def compare(sites: Sequence[Site], survey: Survey) -> tuple[list[SiteDifference], list[str]]:
    """Return the differences of an inventory, and the facts that were not found.

    A key that the inventory does not declare is not compared.

    Args:
        sites: all partitions of the inventory.
        survey: what was found, with the report of at least one node.

    Raises:
        BadInput: the declared topology, or ``found.yml``, cannot be read.
    """
    differences: list[SiteDifference] = []
    open_questions: list[str] = []
    for node, report in survey.reports.items():
        site = site_of_node(sites, node)
        kind = next(kind for kind in survey.kinds if kind.find(node))
        found = partition_found(survey, kind, {})
        differences += _hosts(sites, site, kind, survey)
        differences += _of_keys(site, kind, found, report)
        differences += _topology(site, report)
        differences += _levels(site, found)
        differences += _further(site, report)
        declared = site.partition.model_dump()
        open_questions += (
            one_line(f"{key}: not found: {entry.text}")
            for key, entry in found.items()
            if isinstance(entry, Question)
            and key in COMPARED
            and _at(declared, key) not in (None, "")
        )
        open_questions += (
            one_line(f"{part} of {node}: not found: {reason}")
            for part, reason in report.problems.items()
        )
    return list(dict.fromkeys(differences)), list(dict.fromkeys(open_questions))


def _at(declared: Any, key: str) -> Any:
    """Return the value at a dotted key of nested mappings; None if it is not there."""
    for part in key.split("."):
        declared = declared.get(part) if isinstance(declared, dict) else None
    return declared


def _place(site: Site, key: str) -> str:
    file, _ = placed(variable_files(site.facts), ["partition", *key.split(".")])
    return file or str(site.facts)


def _hosts(
    sites: Sequence[Site], site: Site, kind: NodeKind, survey: Survey
) -> Iterator[SiteDifference]:
    """Yield the hosts that only the inventory or only the scheduler has."""
    if survey.listing_problem or survey.scheduler == "none":
        return
    partition_hosts = []
    for each in sites:
        partition_hosts += each.partition_hosts
    declared = HostTable.of(partition_hosts)
    own = site.partition_hosts
    names_listed = []
    for kind_listed in survey.kinds:
        names_listed += kind_listed.names
    listed = HostTable.of(names_listed)
    kept = [host for host in own if listed.find(host)]
    new = [name for name in kind.names if not declared.find(name)]
    if kept != own or new:
        file = site.inventory / "hosts.yml"
        yield SiteDifference(
            str(file if file.exists() else site.inventory),
            f"{site.partition_name}.hosts",
            folded(own),
            folded([*kept, *new]) or "none of them",
            survey.listing_source,
        )


def _of_keys(
    site: Site, kind: NodeKind, found: Found, report: NodeReport
) -> Iterator[SiteDifference]:
    declared = site.partition.model_dump()
    queue, chosen = site.partition.queue.name, found.get("queue.name")
    other_queue = isinstance(chosen, Fact) and queue != chosen.value and queue in kind.groups
    for key in COMPARED:
        if other_queue and key in OF_QUEUE:
            continue  # another queue with all the nodes is right too
        entry, value = found.get(key), _at(declared, key)
        if key.startswith("scratch."):
            entry = _mount_fact(site, report, key.partition(".")[2])
        if key == "fabric.network.interfaces" and not value:
            continue  # every interface of the network
        if value in (None, "") or not isinstance(entry, Fact) or _same(key, value, entry.value):
            continue
        yield SiteDifference(
            _place(site, key), f"partition.{key}", f"{value}", f"{entry.value}", entry.source
        )


def _same(key: str, declared: Any, found: Any) -> bool:
    if key.endswith(MEMORY):
        tolerance = MEMORY_TOLERANCE * max(int(declared), int(found))
        return abs(int(declared) - int(found)) <= tolerance
    if key == "scratch.type":
        return same_type(found, declared)
    if key == "scratch.source":
        return may_be_same(found, declared)
    return bool(declared == found)


def _mount_fact(site: Site, report: NodeReport, key: str) -> Fact | None:
    """Return the type or the source of the file system that contains the scratch directory."""
    if report.facts is None:
        return None
    path = f"{site.partition.scratch.path.rstrip('/')}/"
    below = [each for each in report.facts.mounts if path.startswith(_folder(each.target))]
    if not below:
        return None
    mount = max(below, key=lambda each: len(each.target))
    value = mount.kind if key == "type" else mount.source
    return Fact(value, f"/proc/mounts of {report.node}: {mount.target}")


def _folder(target: str) -> str:
    return f"{target.rstrip('/')}/"


def _topology(site: Site, report: NodeReport) -> Iterator[SiteDifference]:
    """Yield the differences of the shape of the topology in the current mode."""
    actual = topology_of(report.facts)[0] if report.facts else None
    if not site.partition.node.topology or not actual:
        return
    declared = topology_facts(topology_of_mode(site, site.partition.current_mode))
    found = topology_facts(actual)
    for key, value in declared.items():
        unknown = key in (MEMORY, "caches") and not (value and found[key])
        if not unknown and not _same(key, value, found[key]):
            yield SiteDifference(
                _place(site, "node.topology"),
                f"partition.node.topology: {key}",
                f"{value}",
                f"{found[key]}",
                f"lstopo on {report.node}",
            )


def _levels(site: Site, found: Found) -> Iterator[SiteDifference]:
    """Yield each level that divides the hosts, those that both have, in another way."""
    entry, levels = found.get("fabric.levels"), site.partition.fabric.levels
    if not isinstance(entry, Fact) or not levels:
        return
    place = _place(site, "fabric.levels")
    if len(levels) != len(entry.value):
        numbers = f"{len(levels)} levels", f"{len(entry.value)} levels"
        yield SiteDifference(place, "partition.fabric.levels", *numbers, entry.source)
        return
    own = set(site.partition_hosts)
    for level, other in zip(levels, entry.value, strict=True):
        switches = [unfold([nodes]) for nodes in other["switches"].values()]
        known = set()
        for group in switches:
            known.update(group)
        groups: dict[str, list[str]] = {}
        for number, host in enumerate(site.partition_hosts):
            if host in known:
                groups.setdefault(level.group(number, host) or "no switch", []).append(host)
        declared = sorted(folded(group) for group in groups.values())
        common = [[host for host in group if host in own] for group in switches]
        actual = sorted(folded(group) for group in common if group)
        if declared != actual:
            yield SiteDifference(
                place,
                f"partition.fabric.levels: {level.name}",
                "; ".join(declared),
                "; ".join(actual),
                entry.source,
            )


def _further(site: Site, report: NodeReport) -> Iterator[SiteDifference]:
    """Yield the facts of ``found.yml`` that the same node reports differently."""
    file = site.facts / "found.yml"
    declared = _declared_facts(file, report.node)
    found = further_facts(report)
    for name, entry in declared.items():
        value, fact = entry.get("value"), found.get(name)
        if fact is None and (report.facts is None or name in _OF_TOOLS):
            continue  # the tool did not run; its problem is printed
        if fact is None or value != fact.value:
            yield SiteDifference(
                str(file),
                f"{FOUND}.{report.node}.{name}",
                _text(value),
                _text(fact.value) if fact else "nothing",
                fact.source if fact else f"{report.node}",
            )


_OF_TOOLS = frozenset(
    {"compilers", "mpi", "module_system", "modules", "bmc_address", "bmc_vendor", "dimms"}
)
"""Facts that need a tool of the node, which may be missing."""


def _text(value: Any) -> str:
    return "; ".join(map(str, value)) if isinstance(value, list) else f"{value}"


def _declared_facts(file: Path, node: str) -> dict[str, Mapping[str, Any]]:
    """Return the facts of `node` in ``found.yml``; empty if the file has none.

    Raises:
        BadInput: the file is not YAML of this form.
    """
    check_files(file)
    try:
        data = yaml.load(text_or_empty(file, MAX_YAML_BYTES), Loader=yaml.CSafeLoader) or {}
        facts = data.get(FOUND, {}).get(node, {})
        return {str(name): dict(entry) for name, entry in facts.items()}
    except NOT_YAML:
        accepted = f"{FOUND}, as `proofmark init` writes it"
        raise bad_input(file, FOUND, "another form", accepted) from None

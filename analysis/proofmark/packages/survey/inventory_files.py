"""The files of an inventory from the findings of a survey, and how an inventory differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from proofmark.common.errors import bad_input
from proofmark.common.files import new_folder, text_or_empty
from proofmark.common.host_names import HostTable
from proofmark.common.input_limits import MAX_YAML_BYTES
from proofmark.common.nodesets import folded, is_name, unfold
from proofmark.common.text import one_line
from proofmark.common.yaml_models import NOT_YAML, check_files, placed
from proofmark.packages.survey.answers import (
    Entry,
    Fact,
    Found,
    NodeKind,
    NodeReport,
    Question,
    Survey,
    ansible_ranges,
)
from proofmark.packages.survey.findings import (
    Environment,
    further_facts,
    partition_found,
    topology_facts,
    topology_file,
    topology_of,
    written_topology,
)
from proofmark.site.file_systems import may_be_same, same_type
from proofmark.site.groups import ALIASES, MARK, literal_yaml
from proofmark.site.hardware import NODE
from proofmark.site.inventory import Site, variable_files
from proofmark.site.machines import topology_of_mode
from proofmark.site.node.parts import mount_of
from proofmark.site.node.topology import MEMORY_TOLERANCE

ASKED = frozenset({"probe", "bmc"})
"""Parts of a report whose questions are in the file of the partition."""
REQUIRED = frozenset(
    {
        *("node.cpu_model", "node.architecture", "node.topology"),
        *("environment", "provision_from", "scheduler", "scratch.path"),
    }
)
"""Keys that a partition must have. Their questions are values, so that `check` prints them."""
FOUND = "proofmark_found"
"""The variable with the facts of a node that no key of ``partition`` has."""
LOCAL_TMP = "{{ lookup('ansible.builtin.env', 'ANSIBLE_LOCAL_TEMP', default='/var/tmp') }}"
"""A folder that exists. A lookup of Ansible's ``DEFAULT_LOCAL_TMP`` makes a new one each time."""


def inventory_files(survey: Survey, environments: Mapping[str, Environment]) -> dict[str, str]:
    """Return the text of each file of the inventory, by its path in the folder of the site."""
    files = {"hosts.yml": _hosts(survey)}
    for kind in survey.kinds:
        folder = f"group_vars/{kind.name}"
        report = survey.report_of(kind)
        found = partition_found(survey, kind, environments)
        files[f"{folder}/partition.yml"] = _partition(kind, found, report)
        if report is None:
            continue
        files[f"{folder}/found.yml"] = _further(report)
        if report.facts and topology_of(report.facts)[0]:
            text = written_topology(report.facts)
            files[f"{folder}/{topology_file(report.node)}"] = f"{text}\n"
    return files


def check_new(folder: Path, names: Mapping[str, str]) -> None:
    """Check that none of the files `names` exists in `folder`.

    Raises:
        BadInput: some exist. It names them.
    """
    if existing := [name for name in names if (folder / name).exists()]:
        accepted = f"new files; `init --diff {folder}` compares, and writes nothing"
        raise bad_input(folder, "", f"{', '.join(existing)} already", accepted)


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write `files` into `folder`. A file that exists is never replaced.

    Raises:
        BadInput: a file exists, or cannot be written.
    """
    check_new(folder, files)
    path = folder
    try:
        with new_folder(folder):
            for name, text in files.items():
                path = folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("x", encoding="utf-8") as file:
                    file.write(text)
    except OSError as error:
        found = f"cannot be written: {error.strerror}"
        raise bad_input(path, "", found, "a writable folder with free space") from None


def _hosts(survey: Survey) -> str:
    lines = ["---", f"# The partitions and hosts of the site. Source: {survey.listing_source}."]
    if survey.listing_problem:
        reason = one_line(survey.listing_problem)
        lines.append(f"# {MARK} hosts: which other nodes has the site? {reason}")
    lines += ["all:", "  children:", "    compute:", "      children:"]
    for kind in survey.kinds:
        shared = ", ".join((f"hosts: {len(kind.nodes)}", *kind.kind_texts))
        lines.append(f"        # {one_line(shared)}")
        lines += [f"        {kind.name}:", "          hosts:"]
        lines += (f"            {line}" for line in _host_lines(kind, local=survey.local))
    return "\n".join([*lines, ""])


def _host_lines(kind: NodeKind, *, local: bool) -> Iterator[str]:
    if local:
        yield f"{kind.names[0]}:"
        yield "  ansible_connection: local"
        yield "  # Ansible uses the home of the user database, which may be missing, and not HOME."
        yield f'  ansible_remote_tmp: "{LOCAL_TMP}"'
    elif any(is_name(node.alias) for node in kind.nodes):
        for node in kind.nodes:
            yield f"{node.name}:"
            if is_name(node.alias):
                yield f"  {ALIASES}: {node.alias}"
    else:
        yield from (f"{each}:" for each in ansible_ranges(kind.names))


def _partition(kind: NodeKind, found: Found, report: NodeReport | None) -> str:
    read = f"from {report.node}" if report else "from the scheduler alone"
    lines = [
        "---",
        f"# The facts of the partition {kind.name}. `proofmark init` wrote them {read}.",
        f"# `{MARK}` marks a fact that was not found. docs/new-site.md explains each key.",
        "partition:",
    ]
    for head in dict.fromkeys(key.partition(".")[0] for key in found):
        entries = {key: entry for key, entry in found.items() if key.partition(".")[0] == head}
        lines += (f"  {line}" for line in _section(head, entries))
    return "\n".join([*lines, ""])


def _section(head: str, entries: Found) -> Iterator[str]:
    """Yield the lines of one key below ``partition``, its open questions first.

    The sources of the facts of a node are a key of their own.
    """
    values: dict[str, Entry] = {}
    for key, entry in entries.items():
        if isinstance(entry, Question) and key not in REQUIRED:
            yield f"# {MARK} {one_line(entry.text)}"
            yield from (f"# {line}" for line in entry.answer)
        else:
            values[key] = entry
    sources = {
        key.split(".")[1]: entry.source
        for key, entry in values.items()
        if head == NODE and isinstance(entry, Fact)
    }
    above: list[str] = []
    for key, entry in values.items():
        parts = key.split(".")
        for depth, part in enumerate(parts[:-1]):
            if above[: depth + 1] != parts[: depth + 1]:
                yield f"{'  ' * depth}{part}:"
        above = parts[:-1]
        comment = entry.source if isinstance(entry, Fact) and head != NODE else ""
        indent = "  " * (len(parts) - 1)
        yield from (f"{indent}{line}" for line in _value(parts[-1], entry, comment))
    if sources:
        yield from (f"  {line}" for line in _block({"sources": sources}))


def _value(key: str, entry: Entry, comment: str) -> Iterator[str]:
    """Yield the lines of one key with its value, and its source as a comment."""
    note = f"  # {one_line(comment)}" if comment else ""
    if isinstance(entry, Question):
        yield f"{key}: {_flow(f'{MARK} {one_line(entry.text)}')}"
    elif isinstance(entry.value, list) and entry.value and isinstance(entry.value[0], dict):
        yield f"{key}:{note}"
        yield from (f"  {line}" for line in _block(entry.value))
    else:
        yield f"{key}: {_flow(entry.value)}{note}"


def _further(report: NodeReport) -> str:
    facts = {
        name: {"value": fact.value, "source": fact.source}
        for name, fact in further_facts(report).items()
    }
    head = [
        "---",
        f"# Facts of {report.node} that no key of `partition` has, and their sources. No play uses",
        "# them; `proofmark init --diff` compares them with the node.",
    ]
    for part, reason in report.problems.items():
        mark = "" if part in ASKED else f"{MARK} "
        head.append(f"# {mark}{part}: not found on {report.node}: {one_line(reason)}")
    return "\n".join([*head, *_block({FOUND: {report.node: facts}}), ""])


def _flow(value: Any) -> str:
    """Return a value as YAML in one line."""
    return literal_yaml(value, flow=True).removesuffix("...\n").rstrip("\n")


def _block(value: Any) -> list[str]:
    return literal_yaml(value).splitlines()


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
        differences += _host_differences(sites, site, kind, survey)
        differences += _of_keys(site, kind, found, report)
        differences += _topology(site, report)
        differences += _levels(site, found)
        differences += _further_differences(site, report)
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


def _host_differences(
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
    mounts = report.facts.mounts if report.facts else ()
    if (mount := mount_of(site.partition.scratch.path, mounts)) is None:
        return None
    value = mount.kind if key == "type" else mount.source
    return Fact(value, f"/proc/mounts of {report.node}: {mount.target}")


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


def _further_differences(site: Site, report: NodeReport) -> Iterator[SiteDifference]:
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

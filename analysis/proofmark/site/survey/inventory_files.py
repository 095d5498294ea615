"""The files of an inventory, from the findings of a survey."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from proofmark.common.errors import bad_input
from proofmark.common.files import new_folder
from proofmark.common.nodesets import is_name
from proofmark.common.text import one_line
from proofmark.site.groups import ALIASES
from proofmark.site.hardware import NODE
from proofmark.site.literals import literal_yaml
from proofmark.site.questions import MARK
from proofmark.site.survey.entries import Assumed, Entry, Fact, Found, Question
from proofmark.site.survey.environment import Environment
from proofmark.site.survey.findings import partition_found, topology_file
from proofmark.site.survey.further_facts import further_facts
from proofmark.site.survey.listed import NodeKind, ansible_ranges
from proofmark.site.survey.node_answers import NodeReport, Survey

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
        if report.facts and report.facts.topology_xml:
            files[f"{folder}/{topology_file(report.node)}"] = f"{report.facts.topology_xml}\n"
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
    lines = [
        "---",
        f"# The partitions and hosts of the site. Source: {survey.listing_source}.",
    ]
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
        assumed = _assumptions(found) if head == NODE else {}
        lines += (f"  {line}" for line in _section(head, entries, assumed))
    return "\n".join([*lines, ""])


def _section(head: str, entries: Found, assumed: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of one key below ``partition``, its open questions first.

    The sources of the facts of a node are a key of their own, and so are all assumptions.
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
    for key, texts in (("sources", sources), ("assumed", assumed)):
        if texts:
            yield from (f"  {line}" for line in _block({key: texts}))


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


def _assumptions(found: Found) -> dict[str, str]:
    return {key: entry.reason for key, entry in found.items() if isinstance(entry, Assumed)}


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

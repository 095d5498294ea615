"""The nodes, partitions and switches that Slurm lists."""

from __future__ import annotations

import re

from proofmark.common.text import one_line
from proofmark.machine.listing import Ask, NodeListing, no_listing
from proofmark.site.survey.listed import GroupLimits, ListedNode

MIB = 2**20
_FIELD = re.compile(r"(?:^|\s)([A-Z][A-Za-z]*)=(\S*)")
_KIND = ("Sockets", "CoresPerSocket", "ThreadsPerCore", "Gres")
"""The fields that like nodes share."""


class SlurmNodes(NodeListing):
    """Slurm (20.11 and later)."""

    program = "scontrol"
    source = "scontrol show node"
    groups_are_queues = True

    def nodes(self, ask: Ask) -> list[ListedNode]:
        """Return all nodes, also those of hidden partitions."""
        printed = ask("scontrol", "--all", "--oneliner", "show", "node")
        listed = [_node(_fields(line)) for line in printed.splitlines() if line.strip()]
        nodes = [node for node in listed if node.name]
        if not nodes:
            raise no_listing(self.source, f"no NodeName= in {one_line(printed)!r}")
        return nodes

    def limits(self, ask: Ask) -> dict[str, GroupLimits]:
        """Return the limits of all partitions."""
        printed = ask("scontrol", "--all", "--oneliner", "show", "partition")
        listed = [_fields(line) for line in printed.splitlines()]
        return {
            fields["PartitionName"]: GroupLimits(
                default=fields.get("Default") == "YES",
                max_walltime_s=_seconds(fields.get("MaxTime", "")),
                max_nodes=_number(fields.get("MaxNodes", "")),
            )
            for fields in listed
            if "PartitionName" in fields
        }

    def fabric(self, ask: Ask) -> str:
        """Return the switches as in topology.conf, without the nodes of switches of switches."""
        printed = ask("scontrol", "--oneliner", "show", "topology")
        lines = [line for line in printed.splitlines() if line.startswith("SwitchName=")]
        return "".join(f"{_of_topology_conf(line)}\n" for line in lines)


def _fields(line: str) -> dict[str, str]:
    """Return the fields of a node; the first of a name, because a reason may contain any text."""
    fields: dict[str, str] = {}
    for key, value in _FIELD.findall(line):
        if value not in ("", "(null)"):
            fields.setdefault(key, value)
    return fields


def _node(fields: dict[str, str]) -> ListedNode:
    name = fields.get("NodeName", "")
    memory = fields.get("RealMemory", "")
    reported = fields.get("NodeHostName", "")
    partitions = fields.get("Partitions", "").split(",")
    return ListedNode(
        name=name,
        kind=tuple(f"{key}={fields[key]}" for key in _KIND if key in fields),
        memory_bytes=int(memory) * MIB if memory.isdecimal() else 0,
        groups=tuple(partition for partition in partitions if partition),
        alias=reported if reported != name else "",
    )


def _number(text: str) -> int | None:
    """Return a number, None for UNLIMITED and 0, which cannot be a limit."""
    return int(text) if text.isdecimal() and int(text) else None


def _seconds(text: str) -> int | None:
    """Return the seconds of ``days-hours:minutes:seconds``, None for UNLIMITED."""
    match = re.fullmatch(r"(?:(\d{1,6})-)?(\d{1,6}):(\d\d):(\d\d)", text)
    if match is None:
        return None
    days, hours, minutes, seconds = (int(each or 0) for each in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds or None


def _of_topology_conf(line: str) -> str:
    """Return a line of ``show topology`` in the syntax of topology.conf(5).

    ``show topology`` lists all nodes below a switch, and topology.conf only those of its ports.
    """
    words = [word for word in line.split() if not word.startswith(("Level=", "LinkSpeed="))]
    if any(word.startswith("Switches=") and word != "Switches=" for word in words):
        words = [word for word in words if not word.startswith("Nodes=")]
    return " ".join(word for word in words if not word.endswith("="))

"""Grid Engine 6.2 and later: ``qhost -q -xml``, and the execution hosts of ``qconf -sel``."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from proofmark.common.host_names import HostTable
from proofmark.machine.listing import Ask, NodeListing, unreadable
from proofmark.machine.sge_output import read_xml
from proofmark.site.survey.listed import ListedNode

_SIZE = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?)([KMGTPE]?)")
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50, "E": 2**60}
_UNKNOWN = {"", "-"}
_KIND = ("num_proc", "m_socket", "arch_string")
"""The values that like hosts share."""


class GridEngine(NodeListing):
    """Grid Engine 6.2 and later."""

    program = "qhost"
    source = "qhost -q"
    groups_are_queues = True

    def nodes(self, ask: Ask) -> list[ListedNode]:
        """Return all execution hosts. ``qhost`` also lists hosts that only administer."""
        executing = HostTable.of(line.strip() for line in ask("qconf", "-sel").splitlines())
        printed = ask("qhost", "-q", "-xml")
        try:
            hosts = list(read_xml(printed).iter("host"))
        except ValueError:
            raise unreadable(self.source, f"no XML: {printed[:100]!r}") from None
        listed = [_host(host) for host in hosts if host.get("name") != "global"]
        return [node for node in listed if executing.find(node.name)]


def _host(host: ElementTree.Element) -> ListedNode:
    values = {each.get("name", ""): (each.text or "").strip() for each in host.iter("hostvalue")}
    known = {key: value for key, value in values.items() if value not in _UNKNOWN}
    memory = _SIZE.fullmatch(known.get("mem_total", "0"))
    return ListedNode(
        name=host.get("name", ""),
        kind=tuple(f"{key}={known[key]}" for key in _KIND if key in known),
        memory_bytes=round(float(memory[1]) * _UNITS[memory[2]]) if memory else 0,
        groups=tuple(queue.get("name", "") for queue in host.iter("queue")),
    )

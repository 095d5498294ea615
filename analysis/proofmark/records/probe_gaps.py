"""Nodes whose probe lacks what the probes of their like nodes have: it proves less than theirs.

One driver that is not loaded, or one tool that was too slow, would hide the faults of a node. A
section that all like nodes lack is no gap: the machine does not have it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from proofmark.common.message import Message
from proofmark.runs.nodes import Node
from proofmark.site.node.facts import NodeFacts
from proofmark.site.node.probe_sections import COUNTERS, INFORMATION

NO_PROOF = {
    *("clock", "lscpu", "topology", "cgroup"),
    *(f"{COUNTERS}.{group}" for group in INFORMATION),
}
"""Sections from which no figure is judged; ``cgroup`` has no line if nothing is limited."""
HARDWARE = {"fabric": ("infiniband",), "nics": ("net", "pcie")}
"""Sections that are absent if the node has no such hardware, with the groups of their counters. The
comparison of parts judges what hardware a node has."""

Gaps = Mapping[tuple[str, str], tuple[Message, ...]]
"""What a probe lacks, by node and attempt of a job as in ``when.json``."""


def probe_gaps(nodes: Mapping[str, Node]) -> Gaps:
    """Return what the probe before each attempt lacks and at least half of the like nodes have.

    Like nodes have the same processor. What another attempt on the node has is not absent either.
    """
    jobs = {host: node.jobs for host, node in nodes.items() if node.jobs}
    lacking = {
        host: [dict(_lacks(job.provenance.facts)) for job in of_host]
        for host, of_host in jobs.items()
    }
    always = {host: set.intersection(*map(set, each)) for host, each in lacking.items()}
    alike: dict[str, list[str]] = {}
    for host in jobs:
        alike.setdefault(nodes[host].newest.cpu_model, []).append(host)
    gaps: dict[tuple[str, str], tuple[Message, ...]] = {}
    for hosts in alike.values():
        missing = Counter(name for host in hosts for name in always[host])
        for host in hosts:
            for job, reasons in zip(jobs[host], lacking[host], strict=True):
                having = {name: len(hosts) - missing[name] for name in reasons}
                found = tuple(
                    Message(
                        "probe-gap",
                        node=host,
                        file=f"jobs/{job.name}/{host}.before",
                        section=name,
                        text=reasons[name],
                        having=number,
                        nodes=len(hosts),
                    )
                    for name, number in having.items()
                    if 2 * number >= len(hosts) or name not in always[host]
                )
                if found:
                    gaps[host, job.name] = found
    return gaps


def _lacks(facts: NodeFacts) -> Iterator[tuple[str, Message]]:
    """Yield the sections, counters and values that a probe does not have, each with its reason.

    The key of another section differs from node to node: its absence is shown with the node.
    """
    not_there = {
        name
        for section, groups in HARDWARE.items()
        if section in facts.absent
        for name in (section, *(f"{COUNTERS}.{group}" for group in groups))
    }
    for name, reason in facts.absent.items():
        section, _, key = name.partition(".")
        if name not in NO_PROOF | not_there and (not key or section == COUNTERS):
            yield name, reason
    for name, text in facts.unread.items():
        if name.partition(".")[0] not in NO_PROOF:
            yield name, Message("absent-unread", value=text)

"""Nodes whose results need an explanation: two names of a machine, too good ones.

A value beyond its physical bound is INVALID (`proofmark.records.step_records`). Here are values
that are possible, and still not those of this node.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from proofmark.cases.suite import Benchmarks
from proofmark.common.message import Message
from proofmark.common.nodesets import folded, hosts_of
from proofmark.judge.aggregate import Aggregates
from proofmark.judge.fleet.critical_values import LEAST_NODES
from proofmark.judge.fleet.fleet import Fleet
from proofmark.judge.fleet.populations import LIKE_NODES
from proofmark.judge.references.judgement import ByReference
from proofmark.judge.stated_parts import NodeFaults
from proofmark.records.columns import VIRTUAL
from proofmark.site.node.facts import HostFacts, NodeFacts

TOO_GOOD = 1.5
"""A node that is this much better than the median of its peers is not like them."""
CERTAIN = 6.0
"""Its distance from the median in spreads (MAD × 1.4826), to which better nodes add little."""
ABOVE_NOMINAL = 1.05
"""Memory bandwidth ÷ that of its modules. The caches hold a twelfth of the arrays at most."""
OWN, OF_CHASSIS = "board_serial", "product_serial"
"""Keys of SMBIOS: the number of the board of one node; one that nodes of a chassis can share."""
PLACEHOLDERS = frozenset(
    {
        *("", "none", "not specified", "unknown", "n/a", "na", "empty", "oem", "invalid", "na"),
        *("to be filled by o.e.m.", "default string", "system serial number", "serial number"),
        *("base board serial number", "chassis serial number", "0123456789", "123456789"),
        *("1234567890", "not available", "not applicable"),
    }
)
"""Numbers that firmware prints in place of a serial number."""


def same_machines(nodes: HostFacts, origin: str) -> NodeFaults:
    """Return the nodes that are one machine with another node.

    They have one boot id, one number of a board, or one product number that nothing else tells
    apart: nodes of one chassis share it, and have boards and boots of their own. Virtual nodes of
    one machine share all of them.
    """
    sharing: dict[tuple[str, ...], list[str]] = {}
    for host, facts in nodes.items() if origin not in VIRTUAL else ():
        for identity in _identities(facts):
            sharing.setdefault(identity, []).append(host)
    found: dict[str, list[Message]] = {}
    for (key, value, *_), hosts in sharing.items():
        for host in hosts if len(hosts) > 1 else ():
            message = Message("same-machine", key=key, value=value, nodes=folded(hosts))
            found.setdefault(host, []).append(message)
    return {host: tuple(messages) for host, messages in found.items()}


def _identities(facts: NodeFacts) -> Iterator[tuple[str, ...]]:
    """Yield what belongs to one machine: a key, its value, and what must be equal as well."""
    boot = "" if facts.container else facts.boot_id or ""
    board, product = (_serial(facts, key) for key in (OWN, OF_CHASSIS))
    if boot:
        yield "boot_id", boot
    if board:
        yield OWN, board
    if product and product != facts.firmware.get("chassis_serial"):
        yield OF_CHASSIS, product, board, boot


def _serial(facts: NodeFacts, key: str) -> str:
    """Return a serial number of SMBIOS; empty if the firmware prints none of its own."""
    value = facts.firmware.get(key, "").strip()
    return value if value.lower() not in PLACEHOLDERS and len(set(value)) > 1 else ""


def _within_expected(judged: ByReference) -> set[int]:
    """Return the figures that are not above a value that was computed from the hardware."""
    figures: set[int] = set()
    for each, judgements in judged.items():
        if each.reference.rule:
            figures |= {at for at, one in judgements if one.ratio is not None and one.ratio <= 1}
    return figures


def too_good(
    figures: Aggregates,
    benchmarks: Benchmarks,
    fleet: Fleet,
    judged: ByReference,
) -> NodeFaults:
    """Return the nodes with a rate far above that of their peers, and above what is expected.

    Rates of storage are left out: the load of others decides on them. So are those of virtual
    nodes, which share the cores of one machine.
    """
    found: dict[str, list[Message]] = {}
    possible = _within_expected(judged)
    for at, of in enumerate(fleet.figures):
        limit = of.fleet_limit
        storage = benchmarks.case(of.record.case).writes is not None
        # A fleet whose spread hides a slow node can have one that is too good.
        few = limit.nodes < LEAST_NODES or limit.centre <= 0 or of.record.origin in VIRTUAL
        if few or of.better != "higher" or of.members != LIKE_NODES or storage:
            continue
        ratios = fleet.median[fleet.of == at] / limit.centre
        least = max(TOO_GOOD - 1, CERTAIN * 1.4826 * float(np.median(np.abs(ratios - 1))))
        if not (ratios > 1 + least).any():
            continue
        for figure in np.flatnonzero(fleet.of == at)[ratios > 1 + least].tolist():
            if figure in possible:
                continue
            ratio = float(fleet.median[figure]) / limit.centre
            name = of.reason("too-good", ratio, metric=f"{of.record.case} {of.record.metric}")
            for host in hosts_of(figures.node_of(figure)):
                found.setdefault(host, []).append(name)
    return {host: tuple(messages) for host, messages in found.items()}


def above_nominal(figures: Aggregates, judged: ByReference) -> NodeFaults:
    """Return the nodes whose memory is faster than its modules."""
    found: dict[str, tuple[Message, ...]] = {}
    for each, judgements in judged.items():
        if each.reference.rule != "memory_bandwidth":
            continue
        for figure, judgement in judgements:
            if judgement.ratio is not None and judgement.ratio > ABOVE_NOMINAL:
                message = Message(
                    "above-nominal",
                    metric=f"{each.case} {each.reference.metric}",
                    ratio=f"{judgement.ratio:.3g}",
                    source=judgement.source,
                )
                for host in hosts_of(figures.node_of(figure)):
                    found[host] = (message,)
    return found

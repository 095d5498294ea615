"""The ports of a node that carry messages, and the least rate of the path of a message.

A node can have an active port for messages and another one for storage. Only a statement tells
which is which: the fastest port may be that of the storage.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

from proofmark.site.fabric import Network
from proofmark.site.hardware import StatedNode
from proofmark.site.hardware_limits import ETHERNET, SLINGSHOT, card, pcie_bytes_per_s
from proofmark.site.node.facts import NodeFacts
from proofmark.site.node.parts import Port
from proofmark.site.rails import ports_of, rails_in


class PathPart(NamedTuple):
    """A part of the path of a message: its rate in one direction in bytes/s, and its source."""

    bytes_per_s: float
    source: str


def name_of(port: Port) -> str:
    """Return the name of the rail of a port: ``mlx5_0:1``."""
    return f"{port.adapter}:{port.port}"


def message_ports(
    facts: NodeFacts,
    node: StatedNode,
    network: Network | None,
    variables: Mapping[str, str],
    moved: Collection[str] = (),
) -> tuple[str, ...]:
    """Return the names of the ports that carry messages; empty if nothing states them.

    The adapters of the inventory come first, then the variables of the launcher, then the
    interfaces of the network, then its kind. Of several ports of this kind, and of all ports if
    nothing is stated, those count whose adapters carried the messages of a step.

    Args:
        node: what the inventory states about it.
        variables: the run-time variables of its programs.
        moved: the adapters that carried messages between nodes.
    """
    names = {name_of(port): port for port in ports_of(facts)}
    of_kind = {name for name, port in names.items() if network is None or _is_of(port, network)}
    by_rank = (
        names.keys() & node.rails.adapters.keys(),
        rails_in(variables, names),
        {
            name
            for name, port in names.items()
            if network and any(fnmatchcase(port.adapter, each) for each in network.interfaces)
        },
        {name for name in of_kind if names[name].adapter in moved},
        of_kind if network else (),
    )
    return tuple(sorted(next(filter(None, by_rank), ())))


def _is_of(port: Port, network: Network) -> bool:
    """Return whether a port is of the kind of a network whose interfaces are not named."""
    omni = port.adapter.startswith("hfi1")
    kinds = {
        "infiniband": not omni and port.layer not in (ETHERNET, SLINGSHOT),
        "omni-path": omni,
        "slingshot": port.layer == SLINGSHOT,
        "ethernet": port.layer == ETHERNET,
    }
    return not network.interfaces and kinds.get(network.kind, False)


def parts_after(port: Port) -> Iterator[PathPart]:
    """Yield what a message passes besides the port: the card, and its slot, as far as known."""
    of_card = card(port.kind or "")
    if of_card is not None:
        yield PathPart(of_card.bytes_per_s, f"card {port.kind}; {of_card.source}")
    rate = pcie_bytes_per_s(port.link or "")
    if rate is not None:
        yield PathPart(rate, f"slot {port.link}: {rate / 1e9:.3g} GB/s in packets of 256 bytes")

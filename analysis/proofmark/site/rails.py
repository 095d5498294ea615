"""The rails of a node: the ports of its network, and which of them carry messages.

A node can have an active port for messages and another one for storage. Only a statement tells
which is which: the fastest port may be that of the storage.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from itertools import chain, product
from typing import NamedTuple

from proofmark.cases.vocabulary import Text
from proofmark.common.shared_models import StrictModel
from proofmark.common.text import by_number
from proofmark.common.yaml_models import shipped_data
from proofmark.site.fabric import Network
from proofmark.site.hardware import StatedNode
from proofmark.site.hardware_limits import ETHERNET, SLINGSHOT, card, pcie_bytes_per_s, shown_gbit
from proofmark.site.node.facts import NodeFacts
from proofmark.site.node.parts import SLINGSHOT_DRIVER, Port


@dataclass(frozen=True)
class Rail:
    """A port of an adapter to the network of MPI.

    Attributes:
        numa: the NUMA domain of the adapter; None is not known.
        gbit_per_s: its rate as Linux prints it; 0 is not known.
        state: as Linux prints it (``4: ACTIVE``); that of an interface of Slingshot is the same.
        ethernet: whether it is a port of RoCE.
        card: the model of the adapter, and the PCI address of its card.
        link: the width and the speed of its slot, as the probe prints them; empty is not known.
    """

    numa: int | None
    gbit_per_s: float
    state: str
    ethernet: bool = False
    card: tuple[str, str] = ("", "")
    link: str = ""

    @property
    def active(self) -> bool:
        """Whether the port works."""
        return self.state.endswith("ACTIVE")

    @property
    def is_fabric(self) -> bool:
        """Whether it works, and is of a network that carries messages: RoCE need not be one."""
        return self.active and not self.ethernet


def ports_of(facts: NodeFacts) -> tuple[Port, ...]:
    """Return the ports of a node, those of Slingshot included.

    The interface ``hsn0`` of Slingshot is the adapter ``cxi0``.
    """
    slingshot = [
        Port(
            adapter=f"cxi{re.sub(r'[^0-9]', '', nic.name)}",
            port="1",
            firmware=nic.firmware,
            state="4: ACTIVE" if nic.state in ("up", "unknown") else nic.state,
            rate=None if nic.megabits is None else f"{nic.megabits / 1000:g} Gb/sec",
            layer=SLINGSHOT,
            numa=nic.numa,
            link=nic.link,
            link_best=nic.link_best,
        )
        for nic in facts.nics
        if nic.driver == SLINGSHOT_DRIVER
    ]
    return (*facts.ports, *slingshot)


def rails_of(facts: NodeFacts) -> dict[str, Rail]:
    """Return the rails of a node by name: ``mlx5_0:1``, ``hfi1_0:1``, ``cxi0:1``.

    Ports of RoCE are rails only if no port is of InfiniBand, Omni-Path or Slingshot.
    """
    rails = {
        name_of(port): Rail(
            port.numa,
            shown_gbit(port.rate or "") or 0,
            port.state or "",
            port.layer == ETHERNET,
            # The ports of a card of mlx5 are functions of one PCI device.
            (port.board or "", (port.slot or "").partition(".")[0]),
            port.link or "",
        )
        for port in ports_of(facts)
    }
    chosen = {name: rail for name, rail in rails.items() if not rail.ethernet} or rails
    return dict(sorted(chosen.items(), key=lambda each: by_number(each[0])))


class Choice(StrictModel):
    """The variables that make families of MPI use one rail of some adapters."""

    adapters: tuple[str, ...]
    mpis: tuple[str, ...]
    variables: dict[str, str]
    source: Text


@cache
def _choices() -> tuple[Choice, ...]:
    return shipped_data("proofmark.site", "rails.yml", tuple[Choice, ...])


def variables_of_rail(name: str, mpi: str | None) -> dict[str, str] | None:
    """Return the variables with which an MPI uses only the rail `name`; None if it is not known."""
    adapter, _, port = name.partition(":")
    unit = re.search(r"\d*$", adapter)
    words = {"adapter": adapter, "port": port or "1", "unit": unit[0] if unit else ""}
    for choice in _choices():
        if mpi in choice.mpis and any(fnmatchcase(adapter, each) for each in choice.adapters):
            return {key: value.format_map(words) for key, value in choice.variables.items()}
    return None


def rails_in(variables: Mapping[str, str], names: Iterable[str]) -> set[str]:
    """Return the rails of `names` that run-time variables choose for an MPI of the table."""
    found: set[str] = set()
    for name, mpi in product(names, dict.fromkeys(chain(*(each.mpis for each in _choices())))):
        of_rail = variables_of_rail(name, mpi) or {}
        given = {key: variables[key].split(",") for key in of_rail if key in variables}
        if any(of_rail[key] in values for key, values in given.items()):
            found.add(name)
    return found


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

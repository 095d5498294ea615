"""The network between nodes, as declared by a site: switch levels and racks."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

from pydantic import model_validator

from proofmark.cases.vocabulary import Slug, Text
from proofmark.common.errors import KeyMistake
from proofmark.common.host_names import HostTable
from proofmark.common.nodesets import unfold
from proofmark.common.shared_models import StrictModel, with_package_keys
from proofmark.site.hardware import Count, Rate, bytes_per_s

UNKNOWN_LINK = 1.25e8
"""The assumed rate of a link whose rate is not declared, in bytes/s: Ethernet of 1 Gb/s. The run
times of steps between nodes are then estimated too long rather than too short."""


@with_package_keys("partition.fabric.levels")
class Level(StrictModel):
    """A level of switches. Nodes on the same switch are near each other.

    Attributes:
        hosts_per_switch: in the inventory's order, the hosts that share one switch.
        switches: the nodes (a node set) of each switch, by its name. ``proofmark init --fabric``
            writes them from the site's files.
    """

    name: Slug
    hosts_per_switch: Count | None = None
    switches: dict[str, Text] = {}

    @model_validator(mode="after")
    def _one_definition(self) -> Level:
        if (self.hosts_per_switch is None) == (not self.switches):
            raise ValueError("exactly one of hosts_per_switch and switches")
        return self

    @cached_property
    def _by_host(self) -> dict[str, str]:
        by_host: dict[str, str] = {}
        for name, hosts in self.switches.items():
            by_host |= {host: name for host in unfold([hosts])}
        return by_host

    @cached_property
    def _names(self) -> HostTable:
        return HostTable.of(self._by_host)

    def group(self, index: int, host: str) -> str | None:
        """Return the switch of the host with the number `index`, from 0; None if it has none."""
        if self.hosts_per_switch:
            return f"{self.name}-{index // self.hosts_per_switch + 1:03d}"
        # The files of a site may name a host with its domain, and the inventory without it.
        return self._by_host.get(host) or self._by_host.get(self._names.find(host) or "")


class Network(StrictModel):
    """The network that carries the messages between nodes.

    Attributes:
        kind: its technology; ``slingshot`` is Slingshot 11, Slingshot 10 is Ethernet.
        interfaces: patterns of the adapters (``mlx5_*``, ``cxi0``) or network interfaces
            (``eth1``) that carry messages. If empty, it is every one of this kind.
    """

    kind: Literal["infiniband", "omni-path", "slingshot", "ethernet"]
    interfaces: list[Text] = []

    def __str__(self) -> str:
        names = f" ({', '.join(self.interfaces)})" if self.interfaces else ""
        return f"{self.kind}{names}"


@with_package_keys("partition.fabric")
class Fabric(StrictModel):
    """The switch levels between two nodes, the nearest first, and the racks.

    Attributes:
        top: the distance of two nodes that share no switch of `levels`.
        rack: hosts of one rack, in the inventory's order.
        rate: of one direction of the link of a node. The plan estimates run times with it, and
            nothing is judged by it. A rate that judges is `rails.rate` of the node, and not here.
        network: the network of the messages. If it is set, a step between nodes whose messages
            another network carried is INVALID.
        source: where these facts come from.
    """

    levels: list[Level] = []
    top: Slug = "fabric"
    rack: Count | None = None
    rate: Rate | None = None
    network: Network | None = None
    source: Text = "not stated"

    @model_validator(mode="after")
    def _nested(self) -> Fabric:
        inner = 1
        for place, level in enumerate(self.levels):
            key, outer = ("levels", place), level.hosts_per_switch
            if outer and outer % inner:
                words = f"a multiple of {inner}, of the level before it: whole switches"
                raise KeyMistake(words, *key, "hosts_per_switch")
            if level.name in self.names[place + 1 :]:
                raise KeyMistake("a name of no other level, and not that of top", *key, "name")
            inner = outer or inner
        return self

    @property
    def link_bytes_per_s(self) -> float:
        """The rate of one direction of the link of a node; `UNKNOWN_LINK` if it is not declared."""
        return bytes_per_s(self.rate) or UNKNOWN_LINK

    @property
    def names(self) -> list[str]:
        """The possible distances of two nodes, the nearest first."""
        return [*(level.name for level in self.levels), self.top]

    def location(self, index: int, host: str = "") -> dict[str, str]:
        """Return the switch of each level, and the rack, of the host with the number `index`."""
        groups = {level.name: level.group(index, host) for level in self.levels}
        if self.rack:
            groups["rack"] = f"rack-{index // self.rack + 1:03d}"
        return {name: group for name, group in groups.items() if group}

    def distance(self, one: tuple[int, str], other: tuple[int, str]) -> str:
        """Return the nearest level whose switch two hosts share; a host is its number and name."""
        for level in self.levels:
            group = level.group(*one)
            if group and group == level.group(*other):
                return level.name
        return self.top

"""The switches of a virtual cluster: one bridge, or a fat tree of leaf and spine bridges.

Two paths between two Linux bridges are a loop. The bridges of a fat tree therefore learn no address
behind an uplink: each one has a static entry for each node, which is the route of
destination-modulo routing (D-mod-k: Zahavi, Fat-tree routing and node ordering providing contention
free traffic for MPI global collectives, JPDC 72, 2012). Broadcasts pass the first spine only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

HEAD_ADDRESS = "10.77.0.1"
HEAD_MAC = "02:77:ff:00:00:00"
SHAPE = "root tbf rate {rate} burst 32kb limit 16mb"
"""The words of tc that limit the speed of an interface."""


def loss(share: float) -> list[str]:
    """Return lines of ``tc -batch`` by which ``{port}`` loses this share of packets, both ways.

    Not every kernel has netem. A classic BPF program loads a random number (`SKF_AD_RANDOM` of
    linux/filter.h), and drops the packet if it is below a limit.
    """
    load, compare = "32 0 0 4294963256", f"53 1 0 {round(share * 2**32)}"
    program = f"4,{load},{compare},6 0 0 2,6 0 0 0"
    filters = [
        f'filter add dev {{port}} {way} bpf direct-action bytecode "{program}"'
        for way in ("ingress", "egress")
    ]
    return ["qdisc add dev {port} clsact", *filters]


@dataclass(frozen=True)
class Switches:
    """The switches between the nodes; by default one, to which everything is connected.

    Attributes:
        hosts_per_leaf: the nodes of one leaf switch; 0: there is one switch and no leaf.
        uplinks: the number of spine switches; each leaf has one uplink to each of them.
        rate: the speed of an uplink, as tc writes it; empty: that of the machine.
        slow: the speed of single uplinks, by leaf (from 1) and uplink (from 0).
    """

    hosts_per_leaf: int = 0
    uplinks: int = 1
    rate: str = ""
    slow: Mapping[tuple[int, int], str] = field(default_factory=dict)

    def leaf(self, index: int) -> int:
        """Return the number of the leaf, from 1, of the node with the number `index`, from 0."""
        return index // self.hosts_per_leaf + 1

    def of_node(self, index: int) -> str:
        """Return the bridge of the node with the number `index`."""
        return f"leaf-{self.leaf(index):03d}" if self.hosts_per_leaf else self.of_server()

    def of_server(self) -> str:
        """Return the bridge of the head and of the servers: the first spine, or the one switch."""
        return "spine-0" if self.hosts_per_leaf else "br0"

    def links(self, nodes: int) -> Iterator[str]:
        """Yield the lines of ``ip -batch`` that make the switches of `nodes` nodes."""
        bridges = [self.of_server()]
        ports = list(self._ports(nodes))
        if self.hosts_per_leaf:
            bridges = [f"spine-{number}" for number in range(self.uplinks)]
            bridges += [f"leaf-{number:03d}" for number in self._leaves(nodes)]
        for bridge in bridges:
            address = f" address {HEAD_MAC}" if bridge == self.of_server() else ""
            yield f"link add {bridge}{address} type bridge mcast_snooping 0"
            yield f"link set {bridge} up"
        yield f"addr add {HEAD_ADDRESS}/16 dev {self.of_server()}"
        for leaf, uplink, up, down in ports:
            yield f"link add {up} type veth peer name {down}"
            yield f"link set {up} master leaf-{leaf:03d} up"
            yield f"link set {down} master spine-{uplink} up"
            for port in (up, down):
                floods = "off" if uplink else "on"
                yield (
                    f"link set {port} type bridge_slave learning off flood off mcast_flood off"
                    f" bcast_flood {floods}"
                )

    def shapes(self, nodes: int) -> Iterator[str]:
        """Yield the lines of ``tc -batch`` that limit the speed of the uplinks."""
        for leaf, uplink, *ports in self._ports(nodes):
            if rate := self.slow.get((leaf, uplink), self.rate):
                for port in ports:
                    yield f"qdisc add dev {port} {SHAPE.format(rate=rate)}"

    def routes(self, nodes: Sequence[str], servers: Sequence[str]) -> Iterator[str]:
        """Yield the lines of ``bridge -batch`` that route to each node, server and the head.

        Args:
            nodes: the hardware addresses of the nodes, in the order of their numbers.
            servers: the hardware addresses of the servers.
        """
        for leaf, uplink, up, down in self._ports(len(nodes)):
            for index, address in enumerate(nodes):
                if self.leaf(index) == leaf:
                    yield f"fdb add {address} dev {down} master static"
                elif index % self.uplinks == uplink:
                    yield f"fdb add {address} dev {up} master static"
            if not uplink:
                for address in (HEAD_MAC, *servers):
                    yield f"fdb add {address} dev {up} master static"

    def _leaves(self, nodes: int) -> range:
        return range(1, self.leaf(nodes - 1) + 1)

    def _ports(self, nodes: int) -> Iterator[tuple[int, int, str, str]]:
        """Yield leaf, uplink, and the interfaces of the uplink at the leaf and at the spine."""
        for leaf in self._leaves(nodes) if self.hosts_per_leaf else ():
            for uplink in range(self.uplinks):
                yield leaf, uplink, f"leaf-{leaf:03d}-up{uplink}", f"leaf-{leaf:03d}-dn{uplink}"

"""The kinds of virtual nodes: their description for Slurm, and their /proc/cpuinfo.

The emulated firmware (`tests.emulators.bmc.node`) writes the facts that change with the mode:
NUMA domains, topology, SMBIOS, the boot id. This module has the other facts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.emulators.vcluster.fabric import Switches
from tests.folders import PROBES

RATE = "200mbit"
"""The speed of every link: far below that of the machine, so that the links limit the rate."""


@dataclass(frozen=True)
class Shape:
    """A kind of node.

    Attributes:
        prefix: the prefix of the host names.
        sample: the probe of such a node, for /proc/cpuinfo.
        cores: the cores of a socket. `threads` are the threads of a core.
        memory_mb: the memory in the configuration of the scheduler.
        firmware: the kind of the emulated firmware.
        group: the group of the inventory that has all of its nodes.
        nodes: their number.
        switches: the bridges between the nodes.
        served: whether a machine of its own serves scratch over its link.
    """

    prefix: str
    sample: str
    sockets: int
    cores: int
    threads: int
    memory_mb: int
    firmware: str
    group: str
    nodes: int = 8
    switches: Switches = field(default_factory=Switches)
    served: bool = False

    @property
    def slurm(self) -> dict[str, int]:
        """The description of a node in the configuration of Slurm."""
        return {
            "CPUs": self.sockets * self.cores * self.threads,
            "Boards": 1,
            "SocketsPerBoard": self.sockets,
            "CoresPerSocket": self.cores,
            "ThreadsPerCore": self.threads,
            "RealMemory": self.memory_mb,
        }

    def places(self) -> Iterator[tuple[int, int, int]]:
        """Yield CPU, socket and core; the first threads of all cores precede the second threads."""
        for thread in range(self.threads):
            for socket in range(self.sockets):
                for core in range(self.cores):
                    number = (thread * self.sockets + socket) * self.cores + core
                    yield number, socket, core

    def cpuinfo(self) -> str:
        """Return a /proc/cpuinfo."""
        lines = (PROBES / self.sample).read_text().splitlines()
        first = lines.index("=== cpuinfo") + 1
        last = next(at for at in range(first, len(lines)) if not lines[at].startswith("| "))
        block = "\n".join(line.removeprefix("| ") for line in lines[first:last])
        blocks = []
        for number, socket, core in self.places():
            text = block
            for key, value in (("processor", number), ("physical id", socket), ("core id", core)):
                text = re.sub(rf"(?m)^({key}\s*:).*", rf"\g<1> {value}", text)
            blocks.append(text + "\n\n")
        return "".join(blocks)


SHAPES = {
    "knl": Shape("rknl", "knl-7250-quadrant-flat.txt", 1, 68, 4, 98304, "knl", "knl"),
    "skl": Shape("rskl", "skl-2x6148.txt", 2, 20, 1, 196608, "skl", "skl"),
    "fabric": Shape(
        "rfab",
        "skl-2x6148.txt",
        2,
        20,
        1,
        196608,
        "skl",
        "fabric",
        nodes=16,
        switches=Switches(hosts_per_leaf=4, uplinks=2, rate=RATE),
        served=True,
    ),
}

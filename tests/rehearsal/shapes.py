"""What virtual nodes are: what Slurm is told of them, and their /proc/cpuinfo.

The emulated firmware (`tests.emulators.bmc.node`) writes what changes with the mode:
NUMA domains, topology, SMBIOS, the boot id. This is the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.folders import PROBES


@dataclass(frozen=True)
class Shape:
    """A kind of node.

    Attributes:
        prefix: of the hosts' names.
        sample: the probe of such a node, for /proc/cpuinfo.
        cores: of a socket; `threads` are those of a core.
        memory_mb: what the scheduler is told.
    """

    prefix: str
    sample: str
    sockets: int
    cores: int
    threads: int
    memory_mb: int

    @property
    def slurm(self) -> dict[str, int]:
        """What a node tells Slurm of itself."""
        return {
            "CPUs": self.sockets * self.cores * self.threads,
            "Boards": 1,
            "SocketsPerBoard": self.sockets,
            "CoresPerSocket": self.cores,
            "ThreadsPerCore": self.threads,
            "RealMemory": self.memory_mb,
        }

    def places(self) -> Iterator[tuple[int, int, int]]:
        """Yield CPU, socket and core in it; the second threads follow the first ones of all."""
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
        found = []
        for number, socket, core in self.places():
            own = block
            for key, value in (("processor", number), ("physical id", socket), ("core id", core)):
                own = re.sub(rf"(?m)^({key}\s*:).*", rf"\g<1> {value}", own)
            found.append(own + "\n\n")
        return "".join(found)


SHAPES = {
    "knl": Shape("rknl", "knl-7250-quadrant-flat.txt", 1, 68, 4, memory_mb=98304),
    "skl": Shape("rskl", "skl-2x6148.txt", 2, 20, 1, memory_mb=196608),
}

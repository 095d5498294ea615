"""Machines as people buy and run them: what is special about each node, and whether it is sound.

A machine of 8 nodes measures one rate, three times on each node. All that a run of a real machine
leaves is written: outputs, probes, digests. The run is then judged from its folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from tests.fixtures.fleet import fleet_run
from tests.fixtures.kit import item
from tests.fixtures.stated import sourced

from proofmark.judge.judging import judge_run
from proofmark.judge.verdict import Verdict

HOSTS = tuple(f"n{number:02}" for number in range(8))
ALL = "all"
"""The key of a change on each node."""
LEVEL = 190.0
"""Triad of a sound node, GB/s: twelve channels with 2666 MT/s have a peak of 256 GB/s."""
REPEATS = 3


@dataclass(frozen=True)
class RealMachine:
    """A machine whose nodes were probed, and a contract with a share of the hardware.

    Attributes:
        name: what is special about it.
        sound: whether it is sound: no FAIL. Another one is FAIL or UNJUDGED, never PASS.
        code: of the message that a faulty machine must have; a sound one must not.
        level: the rate of all nodes, GB/s.
        nodes: the rate of single nodes ÷ that of the others.
        changes: replacements in both probes of a node, or of `ALL`.
        node: what the inventory states about each node.
        partition: further facts of the partition.
        rule, least: of the item of the contract: the rate is at least this share.
        array: the elements of an array of the program.
        probe: the file of the probe of each node.
    """

    name: str
    sound: bool
    code: str
    level: float = LEVEL
    nodes: Mapping[str, float] = field(default_factory=dict)
    changes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    node: Mapping[str, Any] = field(default_factory=dict)
    partition: Mapping[str, Any] = field(default_factory=dict)
    rule: str = "memory_bandwidth"
    least: float = 0.7
    array: int = 1000
    probe: str = "skl-2x6148.txt"

    def verdict(self, folder: Path) -> Verdict:
        """Write the finished run of the machine, and judge it."""
        noise = np.random.default_rng(len(self.name)).normal(0, 0.003, (len(HOSTS), REPEATS))
        rates = {
            host: (1000 * self.level * self.nodes.get(host, 1.0) * np.exp(noise[number]))
            .round(3)
            .tolist()
            for number, host in enumerate(HOSTS)
        }
        limit = {"case": "fake", "metric": "rate", "rule": self.rule, "at_least": self.least}
        run = fleet_run(
            folder,
            rates,
            changes={host: self._changes(host) for host in HOSTS},
            bound="{memory}" if self.rule == "memory_bandwidth" else "{link}",
            partition={"node": sourced(**self.node), **self.partition},
            items=[item(**limit, source="tender, annex 3")],
            case={"labels": {"array": f"{{{self.array}}}"}},
            probe=self.probe,
        )
        return judge_run(run)

    def _changes(self, host: str) -> dict[str, str]:
        """Return the changes of the probe of a host. The probe of the Xeon Phi has one serial."""
        own = {"BQWL00000042": f"S{host}", "QSAP00000042": f"B{host}"} if self.probe == KNL else {}
        changes = self.changes.get(ALL, {}), self.changes.get(host, {})
        return {**own, **WHOLE.get(self.probe, {}), **changes[0], **changes[1]}


KNL = "knl-7250-quadrant-flat.txt"
WHOLE = {
    "skl-2x6148.txt": {"Configured Clock Speed: 2400 MT/s": "Configured Clock Speed: 2666 MT/s"}
}
"""One module of the probe is slow."""
OTHER = {
    "model name	: Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz": (
        "model name	: Intel(R) Xeon(R) Gold 6138 CPU @ 2.00GHz"
    ),
    "| base_khz: 2400000\n": "| base_khz: 2000000\n",
}
"""A processor with the same sockets and cores, and a lower frequency."""
BOUGHT = {"cpu_model": "Intel Xeon Gold 6148"}
PROCESSORS = (
    RealMachine("the declared processor", True, "other-declared", node=BOUGHT),
    RealMachine("the same processor on all nodes, nothing declared", True, "other-usual"),
    RealMachine(
        "Gold 6138 on all nodes where 6148 is declared",
        False,
        "other-declared",
        changes={ALL: OTHER},
        node=BOUGHT,
    ),
    RealMachine(
        "Gold 6138 on one node, which is 15 % slower",
        False,
        "other-usual",
        changes={"n03": OTHER},
        nodes={"n03": 0.85},
    ),
    RealMachine("Gold 6138 on one node", False, "other-usual", changes={"n03": OTHER}),
    RealMachine(
        "Gold 6138 on half of the nodes, nothing declared",
        False,
        "order-unknown",
        changes=dict.fromkeys(HOSTS[:4], OTHER),
        nodes=dict.fromkeys(HOSTS[:4], 0.95),
    ),
    RealMachine(
        "another adapter of the same rate in one node",
        False,
        "other-cards",
        changes={"n03": {"mlx5_0 hca_type: MT4119": "mlx5_0 hca_type: MT4115"}},
    ),
    RealMachine(
        "another BIOS and microcode on one node",
        True,
        "other-usual",
        changes={
            "n03": {"bios_version: ": "bios_version: 1.", "microcode	: 0x": "microcode	: 0x1"}
        },
    ),
)
CACHE = {
    "| node1 cpulist: \n": "",
    "| node0 distance: 10 31\n": "| node0 distance: 10\n",
    "| node1 distance: 31 10\n": "",
    "| node1 meminfo: 16777216 kB\n": "",
    "| MemTotal:       115048320 kB": "| MemTotal:       98271104 kB",
}
"""MCDRAM is a cache of DDR4: the node does not show it."""
HYBRID = {"| node1 meminfo: 16777216 kB\n": "| node1 meminfo: 8388608 kB\n"}
"""Half of MCDRAM is a cache, and half is a domain."""
INSIDE, BEYOND = 10**8, 10**9
"""Arrays of 2.4 GB and of 24 GB in all."""


def _knl(name: str, code: str, level: float, **what: Any) -> RealMachine:
    return RealMachine(name, level > 60, code, level, probe=KNL, least=0.5, **what)


SIDE_CACHES = (
    _knl("KNL, flat mode, DDR4", "above-nominal", 85),
    _knl("KNL, cache mode", "above-nominal", 330, changes={ALL: CACHE}, array=INSIDE),
    _knl("KNL, hybrid mode", "above-nominal", 320, changes={ALL: HYBRID}, array=INSIDE),
    _knl("KNL, cache mode, large data", "above-nominal", 140, changes={ALL: CACHE}, array=BEYOND),
    RealMachine(
        "Xeon Max, cache mode",
        True,
        "above-nominal",
        1000,
        changes={
            ALL: {
                "model name	: Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz": (
                    "model name	: Intel(R) Xeon(R) CPU Max 9480"
                )
            }
        },
    ),
    RealMachine(
        "KNL, cache mode, at the rate of DDR4",
        False,
        "least-missed",
        85,
        changes={ALL: CACHE},
        array=INSIDE,
        probe=KNL,
        least=0.5,
    ),
)
MACHINES = (*PROCESSORS, *SIDE_CACHES)

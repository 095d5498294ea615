"""Machines as people buy and run them: what is special about each node, and whether it is sound.

A machine of 8 nodes measures one rate, three times on each node. All that a run of a real machine
leaves is written: outputs, probes, digests. The run is then judged from its folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from tests.fixtures.fleet import fleet_run
from tests.fixtures.kit import item
from tests.fixtures.stated import sourced

from proofmark.judge.judging import judge_run
from proofmark.judge.verdict import Verdict
from proofmark.plan.plan import Plan
from proofmark.runs.run import Run

HOSTS = tuple(f"n{number:02}" for number in range(8))
Text = dict[str, str]
"""The replacements in a probe."""
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
        moved: the adapter whose counters moved while the program ran.
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
    moved: str = ""

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
        return judge_run(_with_samples(run, self.moved) if self.moved else run)

    def _changes(self, host: str) -> dict[str, str]:
        """Return the changes of the probe of a host. The probe of the Xeon Phi has one serial."""
        own = {"BQWL00000042": f"S{host}", "QSAP00000042": f"B{host}"} if self.probe == KNL else {}
        changes = self.changes.get(ALL, {}), self.changes.get(host, {})
        return {**own, **WHOLE.get(self.probe, {}), **changes[0], **changes[1]}


def _with_samples(run: Run, moved: str) -> Run:
    """Write the counters of two adapters around the step, of which one moved 4 GB."""
    plan = run.plan.model_dump()
    (job,) = plan["groups"][0]["jobs"]
    (step,) = job["steps"]
    step["network_bytes"] = 10**9
    folder = run.files.job(job["id"]).folder / "attempt-1/network" / f"1-{step['id']}"
    folder.mkdir(parents=True)
    for host in HOSTS:
        for when, words in (("before", 0), ("after", 10**9)):
            sums = {name: words if name == moved else 0 for name in ("mlx5_0", "mlx5_1")}
            lines = [f"adapter {name} 1 InfiniBand {sum_} 0" for name, sum_ in sums.items()]
            date = "2026-11-21T10:00:00Z 10" if when == "before" else "2026-11-21T11:00:00Z 3610"
            text = "\n".join([f"sample {date}", *lines, "end", ""])
            (folder / f"{host}.{when}").write_text(text, encoding="utf-8")
    return replace(run, plan=Plan.model_validate(plan))


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


def second_port(rate: str, layer: str, name: str = "mlx5_1/1") -> dict[str, str]:
    """Return the change that adds an active port of another adapter."""
    adapter = name.partition("/")[0]
    lines = [f"{adapter} hca_type: MT4123", f"{name} state: 4: ACTIVE", f"{name} rate: {rate}"]
    lines += [f"{name} link_layer: {layer}"]
    end = "| mlx5_0/1 link_layer: InfiniBand\n"
    return {end: end + "".join(f"| {line}\n" for line in lines)}


def hdr(speed: str = "16.0", width: int = 16, best: str = "16.0", ports: int = 1) -> dict[str, str]:
    """Return the change to a card with ports of HDR in a slot of this speed and width."""
    card = {
        "current_link_speed": f"{speed} GT/s PCIe",
        "current_link_width": f"{width}",
        "max_link_speed": f"{best} GT/s PCIe",
        "max_link_width": "16",
        "slot": "0000:17:00.0",
    }
    lines = "".join(f"| mlx5_0 {key}: {value}\n" for key, value in card.items())
    second = {
        "hca_type": "MT4123",
        "slot": "0000:17:00.1",
        "current_link_speed": card["current_link_speed"],
        "current_link_width": card["current_link_width"],
    }
    more = "".join(f"| mlx5_1 {key}: {value}\n" for key, value in second.items())
    more += "| mlx5_1/1 state: 4: ACTIVE\n| mlx5_1/1 rate: 200 Gb/sec (4X HDR)\n"
    more += "| mlx5_1/1 link_layer: InfiniBand\n"
    end = "| mlx5_0/1 link_layer: InfiniBand\n"
    return {
        "| mlx5_0 hca_type: MT4119\n": f"| mlx5_0 hca_type: MT4123\n{lines}",
        "100 Gb/sec (4X EDR)": "200 Gb/sec (4X HDR)",
        end: end + (more if ports == 2 else ""),
    }


STORAGE = second_port("200 Gb/sec (4X HDR)", "Ethernet")
UNKNOWN_CABLE = second_port("200 Gb/sec (4X HDR)", "InfiniBand")
LINK: dict[str, Any] = {"rule": "link_bandwidth", "least": 0.85}
MPI = {"fabric": {"network": {"kind": "infiniband"}}}
NAMED = {"fabric": {"network": {"kind": "infiniband", "interfaces": ["mlx5_0"]}}}
BY_VARIABLE = {"launch": {"environment": {"UCX_NET_DEVICES": "mlx5_0:1"}}}
PORTS = (
    RealMachine("EDR", True, "least-missed", 12.1, **LINK),
    RealMachine(
        "EDR, and RoCE for storage, by the kind of the network",
        True,
        "least-missed",
        12.1,
        changes={ALL: STORAGE},
        partition=MPI,
        **LINK,
    ),
    RealMachine(
        "EDR, and HDR for storage, by its name",
        True,
        "least-missed",
        12.1,
        changes={ALL: UNKNOWN_CABLE},
        partition=NAMED,
        **LINK,
    ),
    RealMachine(
        "EDR, and HDR for storage, by the variable of the MPI",
        True,
        "least-missed",
        12.1,
        changes={ALL: UNKNOWN_CABLE},
        partition=BY_VARIABLE,
        **LINK,
    ),
    RealMachine(
        "EDR at half of its rate beside RoCE",
        False,
        "least-missed",
        6.0,
        changes={ALL: STORAGE},
        partition=MPI,
        **LINK,
    ),
    RealMachine(
        "EDR, and HDR for storage, by the counters that moved",
        True,
        "fact-port",
        12.1,
        changes={ALL: UNKNOWN_CABLE},
        moved="mlx5_0",
        **LINK,
    ),
    RealMachine(
        "HDR at the rate of EDR, by the counters that moved",
        False,
        "least-missed",
        12.1,
        changes={ALL: UNKNOWN_CABLE},
        moved="mlx5_1",
        **LINK,
    ),
    RealMachine(
        "EDR, and HDR of unknown use",
        False,
        "fact-port",
        12.1,
        changes={ALL: UNKNOWN_CABLE},
        **LINK,
    ),
)


def rate(text: str, layer: str = "InfiniBand", kind: str = "MT4119", slot: str = "") -> Text:
    """Return the change of the rate of the port, and of its adapter in a slot with this speed."""
    card = {
        "current_link_speed": f"{slot} GT/s PCIe",
        "current_link_width": "16",
        "max_link_speed": f"{slot} GT/s PCIe",
        "max_link_width": "16",
    }
    lines = "".join(f"| mlx5_0 {key}: {value}\n" for key, value in card.items() if slot)
    old = "| mlx5_0/1 rate: 100 Gb/sec (4X EDR)\n| mlx5_0/1 link_layer: InfiniBand\n"
    return {
        old: f"| mlx5_0/1 rate: {text}\n| mlx5_0/1 link_layer: {layer}\n{lines}",
        "hca_type: MT4119": f"hca_type: {kind}",
    }


def slingshot(storage: str = "") -> Text:
    """Return the change to one port of Slingshot 11, and to one of RoCE, which is down or not."""
    end = "| ib0 operstate: up\n"
    lines = ("hsn0 driver: cxi_ss1", "hsn0 operstate: up", "hsn0 speed: 200000")
    state = "4: ACTIVE" if storage else "1: DOWN"
    return {
        end: "".join(f"| {line}\n" for line in lines) + end,
        "mlx5_0/1 state: 4: ACTIVE": f"mlx5_0/1 state: {state}",
        **rate(storage or "100 Gb/sec (4X EDR)", "Ethernet"),
    }


SLINGSHOT: dict[str, Any] = {
    "changes": {ALL: slingshot("100 Gb/sec (4X EDR)")},
    "partition": {"fabric": {"network": {"kind": "slingshot"}}},
    **LINK,
}
NDR = "400 Gb/sec (4X NDR)"
RATES = (
    RealMachine(
        "HDR100",
        True,
        "least-missed",
        12.2,
        changes={ALL: rate("100 Gb/sec (2X HDR)", kind="MT4123")},
        **LINK,
    ),
    RealMachine(
        "NDR200",
        True,
        "least-missed",
        24.3,
        changes={ALL: rate("200 Gb/sec (2X NDR)", kind="MT4129")},
        **LINK,
    ),
    RealMachine(
        "NDR, Gen5",
        True,
        "least-missed",
        48.5,
        changes={ALL: rate(NDR, kind="MT4129", slot="32.0")},
        **LINK,
    ),
    RealMachine(
        "NDR, Gen4",
        True,
        "least-missed",
        26.0,
        changes={ALL: rate(NDR, kind="MT4129", slot="16.0")},
        **LINK,
    ),
    RealMachine(
        "RoCE alone, at half of its rate",
        False,
        "least-missed",
        12.0,
        changes={ALL: rate("200 Gb/sec (4X HDR)", "Ethernet", "MT4123")},
        **LINK,
    ),
    RealMachine("Slingshot 11", True, "least-missed", 22.5, changes={ALL: slingshot()}, **LINK),
    RealMachine("Slingshot 11, RoCE for storage", True, "least-missed", 22.5, **SLINGSHOT),
    RealMachine(
        "Slingshot 11 at half of its rate beside RoCE", False, "least-missed", 11.5, **SLINGSHOT
    ),
    RealMachine(
        "Slingshot 11, and RoCE of unknown use",
        False,
        "fact-port",
        11.5,
        **{**SLINGSHOT, "partition": {}},
    ),
)
SLOTS = (
    RealMachine("HDR, Gen4", True, "least-missed", 24.2, changes={ALL: hdr()}, **LINK),
    RealMachine("HDR, Gen3", True, "least-missed", 13.1, changes={ALL: hdr("8.0")}, **LINK),
    RealMachine(
        "HDR, Gen4, at the rate of Gen3",
        False,
        "least-missed",
        13.1,
        changes={ALL: hdr()},
        **LINK,
    ),
    RealMachine(
        "HDR, eight of sixteen lanes in one node",
        False,
        "rail-slot",
        24.2,
        nodes={"n03": 0.54},
        changes={
            ALL: hdr(),
            "n03": {
                "current_link_width: 16\n| mlx5_0 max": ("current_link_width: 8\n| mlx5_0 max")
            },
        },
        **LINK,
    ),
    RealMachine(
        "HDR, eight of sixteen lanes in all nodes",
        False,
        "slot-narrow",
        13.1,
        changes={ALL: hdr(width=8)},
        **LINK,
    ),
    RealMachine(
        "HDR, a card with two ports",
        True,
        "least-missed",
        24.2,
        changes={ALL: hdr(ports=2)},
        **LINK,
    ),
)
_MODULES = [f"P{socket}-DIMM{slot}1" for socket in (1, 2) for slot in "ABCDEF"]
HALF = {
    f"Size: 16384 MB\n| \tLocator: {each}\n": f"Size: No Module Installed\n| \tLocator: {each}\n"
    for each in _MODULES
    if each[-2] in "DEF"
}
CHANNELS = tuple(
    replace(each, changes={ALL: HALF})
    for each in (
        RealMachine("half of the channels empty, nothing declared", False, "channels-empty", 95),
        RealMachine(
            "half of the channels empty, declared",
            True,
            "channels-empty",
            95,
            node={"memory": {"modules": 6}},
        ),
        RealMachine(
            "half of the channels empty where twelve modules are declared",
            False,
            "hardware-declared",
            95,
            node={"memory": {"modules": 12}},
        ),
    )
)


def persistent(*, memory_mode: bool) -> Text:
    """Return the change to twelve modules of persistent memory beside those that are there."""
    device = (
        "| Handle 0x0080, DMI type 17, 84 bytes\n| Memory Device\n| \tSize: 126 GB\n"
        "| \tLocator: {}\n| \tType: Logical non-volatile device\n| \tSpeed: 2666 MT/s\n"
        "| \tConfigured Clock Speed: 2666 MT/s\n| \n"
    )
    modules = "".join(device.format(name.replace("1", "2")) for name in _MODULES)
    mode = {"MemTotal:       196000000 kB": "MemTotal:       1555000000 kB"} if memory_mode else {}
    return {"=== nics\n": f"{modules}=== nics\n", **mode}


PERSISTENT = (
    RealMachine(
        "persistent memory in memory mode, data in the cache",
        True,
        "fact-beyond-cache",
        changes={ALL: persistent(memory_mode=True)},
    ),
    RealMachine(
        "persistent memory in memory mode, data beyond the cache",
        False,
        "fact-beyond-cache",
        60,
        changes={ALL: persistent(memory_mode=True)},
        array=10**10,
    ),
    RealMachine(
        "persistent memory as a device",
        True,
        "fact-beyond-cache",
        changes={ALL: persistent(memory_mode=False)},
        array=10**9,
    ),
    RealMachine(
        "persistent memory in front of empty channels",
        False,
        "channels-empty",
        95,
        changes={ALL: {**HALF, **persistent(memory_mode=False)}},
        array=10**9,
    ),
)


def gpus(number: int = 4, lanes: int = 16, ecc: str = "Enabled") -> Text:
    """Return the change to GPUs, of which the first has so many lanes."""
    values = {
        "class": "0x030200",
        "vendor": "0x10de",
        "device": "0x20b0",
        "current_link_speed": "2.5 GT/s PCIe",
        "max_link_speed": "16.0 GT/s PCIe",
        "port_link_speed": "16.0 GT/s PCIe",
        "driver": "nvidia",
        "ecc": ecc,
    }
    lines = ""
    for card in range(number):
        own = {**values, "current_link_width": 16 if card else lanes}
        lines += "".join(f"| 0000:{card}1:00.0 {key}: {value}\n" for key, value in own.items())
    return {"=== load\n": f"=== accelerators\n{lines}=== load\n"}


def one_other(change: Text) -> dict[str, Text]:
    """Return the changes to nodes with four GPUs, but for one node."""
    return {**dict.fromkeys(HOSTS, gpus()), "n03": change}


ACCELERATORS = (
    RealMachine("four GPUs", True, "hardware-usual", changes={ALL: gpus()}),
    RealMachine("a GPU is lost", False, "lost-accelerators", changes=one_other(gpus(3))),
    RealMachine("a GPU with half of its lanes", False, "lost-lanes", changes=one_other(gpus(4, 8))),
    RealMachine(
        "ECC is off", False, "lost-accelerator_ecc", changes=one_other(gpus(ecc="Disabled"))
    ),
    RealMachine(
        "three of four GPUs on all nodes",
        False,
        "hardware-declared",
        changes={ALL: gpus(3)},
        node={"accelerators": {"count": 4}},
    ),
)
CHASSIS = {"product_serial: ": "product_serial: SAME\n| was: "}
BOARD = {"board_serial: ": "board_serial: SAME\n| board was: "}
BOOT = {"boot_id: ": "boot_id: 2a0c0f5e-1111-4222-8333-000055556666\n| boot was: "}
NAMES = (
    RealMachine(
        "four nodes in one chassis",
        True,
        "same-machine",
        changes=dict.fromkeys(HOSTS[:4], CHASSIS),
    ),
    RealMachine(
        "one machine with two names",
        False,
        "same-machine",
        changes={host: {**CHASSIS, **BOARD, **BOOT} for host in HOSTS[:2]},
    ),
)
MACHINES = (
    *(*PROCESSORS, *CHANNELS, *PORTS, *RATES, *SLOTS, *SIDE_CACHES),
    *(*PERSISTENT, *ACCELERATORS, *NAMES),
)

"""Sweeps as the papers describe them, and sweeps that contradict them.

Models of machines, made from the papers' own words and from nothing of the package: what is
claimed stands here a second time. Each generator gives a table with the columns of records.parquet.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

COLUMNS = (
    *("run", "step", "attempt", "system", "partition", "node", "origin", "case", "benchmark"),
    *("metric", "value", "unit", "repeat", "mode", "placement", "parameters"),
    *("environment_hash", "valid", "reason"),
)


@dataclass(frozen=True)
class Machine:
    """A node of the simulated kind; `noise` is the standard deviation of a figure, as a part."""

    cores: int = 68
    noise: float = 0.01
    seed: int = 1

    @property
    def tiles(self) -> int:
        return self.cores // 2


@dataclass
class Sheet:
    """Collects records."""

    machine: Machine
    rows: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.machine.seed)

    def add(
        self, system: str, case: str, metric: str, value: float, unit: str, **other: Any
    ) -> None:
        parameters = other.pop("parameters")
        noisy = value * math.exp(self._random.gauss(0, self.machine.noise))
        row = {
            "run": "r",
            "step": f"{len(self.rows):04d}",
            "attempt": 1,
            "system": system,
            "partition": system,
            "node": f"{system}0001",
            "origin": "measured",
            "case": case,
            "benchmark": case.upper(),
            "metric": metric,
            "value": noisy,
            "unit": unit,
            "repeat": 1,
            "mode": "current",
            "placement": "close",
            "parameters": json.dumps(parameters, sort_keys=True),
            "environment_hash": "e",
            "valid": True,
            "reason": "",
        }
        self.rows.append({**row, **other})

    def table(self) -> pl.DataFrame:
        return pl.DataFrame(self.rows, schema_overrides={"value": pl.Float64}).select(COLUMNS)


# Paper P1

KNL_GFLOPS_A_CORE = 32 * 1.4
SKL_NODE_GFLOPS = 3072.0
TO_64_GB = 64e9
NODES = range(1, 17)


def hpl_knl(m: Machine, part: float = 0.6, snc2: float = 0.55, snc4: float = 0.4) -> Sheet:
    """HPL on KNL: a part of Rpeak, and of that a part where the job is not fitted."""
    sheet = Sheet(m)
    peak = m.cores * KNL_GFLOPS_A_CORE
    rates = {
        ("a2a-flat", "fitted"): part,
        ("quadrant-flat", "fitted"): part * 1.02,
        ("hemisphere-flat", "fitted"): part * 1.01,
        ("snc2-flat", "fitted"): part * 1.03,
        ("snc4-flat", "fitted"): part * 0.95,
        ("snc2-flat", "unfitted"): part * snc2,
        ("snc4-flat", "unfitted"): part * snc4,
    }
    for (mode, placement), share in rates.items():
        for nodes in NODES:
            for tuning, loss in ((192, 0.93), (336, 1.0)):
                value = peak * nodes * share * loss * 0.995 ** (nodes - 1)
                parameters = {"nodes": nodes, "nb": tuning, "memory": "ddr"}
                about = {"mode": mode, "placement": placement, "parameters": parameters}
                sheet.add("knl", "hpl", "rmax", value, "Gflops", **about)
    return sheet


def skl_share(first: float, last: float) -> Callable[[int], float]:
    return lambda nodes: first + (last - first) * math.log2(nodes) / 4


def hpl_skl(m: Machine, share: Callable[[int], float] | None = None) -> Sheet:
    sheet = Sheet(m)
    share = share or skl_share(0.655, 0.52)
    for nodes in NODES:
        value = SKL_NODE_GFLOPS * nodes * share(nodes)
        about = {"placement": "fitted", "parameters": {"nodes": nodes, "memory": "ddr"}}
        sheet.add("skl", "hpl", "rmax", value, "Gflops", **about)
    return sheet


def saturating(threads: int, cores: int, sharpness: float = 5.0) -> float:
    return (1 - math.exp(-sharpness * threads / cores)) / (1 - math.exp(-sharpness))


def stream_knl(
    m: Machine, ddr: float = 89.0, mcdram: float = 360.0, quadrant: float = 1.0
) -> Sheet:
    sheet = Sheet(m)
    for memory, best in (("ddr", ddr), ("mcdram", mcdram)):
        for mode, factor in (("a2a-flat", 1.0), ("quadrant-flat", quadrant)):
            for threads in range(1, m.cores + 1):
                value = 1000 * best * factor * saturating(threads, m.cores)
                about = {
                    "mode": mode,
                    "placement": "spread",
                    "parameters": {"threads": threads, "memory": memory, "array": 2**27},
                }
                sheet.add("knl", "stream", "triad", value, "MB/s", **about)
    return sheet


def stream_skl(
    m: Machine, best: float = 177.2, shape: Callable[[int, int], float] = saturating
) -> Sheet:
    sheet = Sheet(m)
    for threads in range(1, m.cores + 1):
        value = 1000 * best * shape(threads, m.cores)
        about = {"placement": "spread", "parameters": {"threads": threads, "memory": "ddr"}}
        sheet.add("skl", "stream", "triad", value, "MB/s", **about)
    return sheet


def ior(
    m: Machine, system: str, tasks: int, cliffs: Mapping[str, float], depth: float = 0.25
) -> Sheet:
    """IOR: it rises with the file's size, then falls to `depth` behind `cliffs` bytes a memory."""
    sheet = Sheet(m)
    for memory, cliff in cliffs.items():
        for layout, better in (("single-shared-file", 1.0), ("file-per-process", 1.4)):
            for doubling in range(1, 16):
                block = 1024 * 1024 * 2**doubling
                rise = 1 - 0.6 * math.exp(-doubling / 4)
                fall = depth if block * tasks > cliff else 1.0
                for way, speed in (("write", 1500.0), ("read", 6000.0)):
                    parameters = {
                        "api": "POSIX",
                        "cache": "as-the-paper",
                        "layout": layout,
                        "block_bytes": block,
                        "transfer_bytes": 2 * 1024 * 1024,
                        "tasks": tasks,
                        "ranks": tasks,
                        "memory": memory,
                        "iteration": 0,
                    }
                    value = speed * better * rise * fall
                    about = {"mode": "quadrant-flat", "parameters": parameters}
                    sheet.add(system, "ior", way, value, "MiB/s", **about)
    return sheet


def ior_knl(m: Machine, ddr: float = 64e9, mcdram: float = 16e9, depth: float = 0.25) -> Sheet:
    return ior(m, "knl", 16, {"ddr": ddr, "mcdram": mcdram}, depth)


def ior_skl(m: Machine, cliff: float = 95e9, depth: float = 0.25) -> Sheet:
    return ior(m, "skl", 10, {"ddr": cliff}, depth)


def both_nodes(m: Machine, knl: float = 0.6, skl: float = 0.66, mcdram: float = 360.0) -> Sheet:
    """What C1.8 is about, of both systems."""
    sheets = [
        hpl_knl(m, part=knl),
        hpl_skl(m, skl_share(skl, 0.52)),
        stream_knl(m, mcdram=mcdram),
        stream_skl(Machine(40, m.noise, m.seed)),
    ]
    return Sheet(m, [row for sheet in sheets for row in sheet.rows])


# Paper P2

KERNELS = ("copy", "scale", "add", "triad")


@dataclass(frozen=True)
class Placing:
    """How spread compares with close.

    Attributes:
        alone: spread ÷ close while each thread has a tile.
        dip_at: the first number of threads that shares tiles.
        after: spread ÷ close from there on, by kernel.
        end: spread ÷ close with all cores.
        meets: part of the cores from which Copy is like close.
        scale_falls: whether Scale falls as Add does.
    """

    alone: float = 1.3
    dip_at: int | None = None
    copy_after: float = 0.7
    after: float = 1.0
    end: float = 1.0
    meets: float = 0.81
    scale_falls: bool = False


def spread_over_close(m: Machine, kernel: str, threads: int, how: Placing) -> float:
    dip = how.dip_at or m.tiles + 1
    if kernel == "scale" and not how.scale_falls:
        return how.end if threads > 0.9 * m.cores else 1.0
    if threads < dip:
        return 1 + (how.alone - 1) * min(1.0, (threads - 1) / 3)
    if threads > 0.9 * m.cores:
        return how.end
    if kernel != "copy":
        return how.after
    way = (threads - dip) / max(1.0, how.meets * m.cores - dip)
    return min(how.copy_after + (1 - how.copy_after) * max(0.0, way), 1.0) if way < 1 else 1.0


def placements(m: Machine, how: Placing | None = None) -> Sheet:
    """STREAM with 1 … cores threads, close and spread."""
    sheet = Sheet(m)
    for memory, best in (("ddr", 85e3), ("mcdram", 420e3)):
        for kernel in KERNELS:
            for threads in range(1, m.cores + 1):
                close = best * saturating(threads, m.cores, 2.0)
                ratio = spread_over_close(m, kernel, threads, how or Placing())
                for placement, value in (("close", close), ("spread", close * ratio)):
                    about = {
                        "mode": "quadrant-flat",
                        "placement": placement,
                        "parameters": {"threads": threads, "memory": memory},
                    }
                    sheet.add("knl", "stream", kernel, value, "MB/s", **about)
    return sheet


def two_threads_a_core(
    m: Machine, *, at: int | None = None, to: float = 0.55, end: float = 0.93, flat: bool = False
) -> Sheet:
    """STREAM with 1 … twice the cores threads, close: it falls behind `at` to `to`."""
    sheet = Sheet(m)
    at = at or m.cores
    for memory, best in (("ddr", 85e3), ("mcdram", 420e3)):
        for kernel in KERNELS:
            for threads in range(1, 2 * m.cores + 1):
                if threads <= at:
                    value = best * (1.0 if flat else saturating(threads, at, 2.0))
                else:
                    value = best * (to + (end - to) * (threads - at) / (2 * m.cores - at))
                about = {
                    "mode": "quadrant-flat",
                    "placement": "close",
                    "parameters": {"threads": threads, "memory": memory},
                }
                sheet.add("knl", "stream", kernel, value, "MB/s", **about)
    return sheet


# Paper P3


def link(best: float, size: int) -> float:
    return best * size / (size + 6000)


def pairs_of_processes(
    m: Machine,
    *,
    old: float = 1000.0,
    same: float = 5.0,
    between: float = 2.4,
    hops: float = 0.97,
    old_network: float = 900.0,
    new_network: float = 2900.0,
) -> Sheet:
    """osu_bw on both systems: on a socket, between sockets, between nodes."""
    sheet = Sheet(m)
    best = {
        ("tachyon1", "same-socket"): old,
        ("tachyon1", "other-socket"): old * hops,
        ("tachyon1", "2-hop"): old * hops * 0.99,
        ("tachyon2", "same-socket"): old * same,
        ("tachyon2", "other-socket"): old * hops * between,
    }
    levels = {"tachyon1": ("chip", "line-card", "switch"), "tachyon2": ("fabric",)}
    for doubling in range(23):
        size = 2**doubling
        for (system, placement), rate in best.items():
            about = {"benchmark": "Bandwidth", "placement": placement}
            parameters = {"bytes": size, "ranks": 2}
            value = link(rate, size)
            sheet.add(system, "osu-bw", "bandwidth", value, "MB/s", parameters=parameters, **about)
        for system, network in (("tachyon1", old_network), ("tachyon2", new_network)):
            for farther, level in enumerate(levels[system]):
                value = link(network * 0.97**farther, size)
                parameters = {"bytes": size, "ranks": 2, "nodes": 2, "apart": level}
                about = {"benchmark": "Bandwidth", "placement": "other-node"}
                about |= {"parameters": parameters}  # type: ignore[dict-item]
                sheet.add(system, "osu-bw", "bandwidth", value, "MB/s", **about)
    return sheet


def contention(
    m: Machine, system: str, whole: float = 1400.0, share: Callable[[int, int], float] | None = None
) -> Sheet:
    """osu_bw, 1 … cores at once; `share` of `whole` of a pair, by its number and their number."""
    sheet = Sheet(m)
    for pairs in range(1, m.cores + 1):
        for power in range(0, 12):
            size = 4**power
            for pair in range(1, pairs + 1):
                part = share(pair, pairs) if share else 1 / pairs
                parameters = {"pairs": pairs, "message_bytes": size, "bytes": size, "nodes": 2}
                parameters |= {"pair": pair} if pairs > 1 else {}
                about = {"benchmark": "Bandwidth", "placement": "other-node"}
                about |= {"parameters": parameters}  # type: ignore[dict-item]
                value = link(whole, size) * part
                sheet.add(system, "osu-contention", "bandwidth", value, "MB/s", **about)
    return sheet


# Paper P4

SQUARES = tuple(number * number for number in range(1, 33))


@dataclass(frozen=True)
class Files:
    """How I/O time depends on things: factors."""

    acc: float = 1.02
    unbal: Mapping[str, float] = field(default_factory=lambda: {"A": 1.02, "B": 1.12, "C": 1.45})
    small_blocks: float = 1.3
    a_gains: float = 0.0
    c_gains: float = 0.5


def bt_io(m: Machine, how: Files | None = None) -> Sheet:
    """BT-IO on 16 nodes: seconds of I/O by class, placement, block size and processes."""
    sheet, how = Sheet(m), how or Files()
    for name, first in (("A", 4.0), ("B", 15.0), ("C", 70.0)):
        for ranks in SQUARES:
            if name == "A" and ranks >= 400:
                continue
            grows = 1 + 0.08 * math.log2(ranks)
            gain = {"A": how.a_gains, "B": 0.2, "C": how.c_gains}[name]
            dip = 1 - gain * math.exp(-(((math.log2(ranks) - 5.5) / 1.5) ** 2))
            for balanced in (True, False):
                for inside in ("DIST", "ACC"):
                    for block in (524288, 1048576):
                        value = first * grows * dip
                        same = balanced or ranks in (1, 1024)
                        value *= 1.0 if same else how.unbal[name]
                        value *= how.acc if inside == "ACC" else 1.0
                        value *= how.small_blocks if block == 524288 else 1.0
                        parameters = {"class": name, "ranks": ranks, "subtype": "full"}
                        parameters |= {"nodes": 16, "fs_block_bytes": block}
                        placement = f"{'BAL' if balanced else 'UNBAL'}-{inside}"
                        about = {"placement": placement, "parameters": parameters}
                        sheet.add("p595", "npb-btio", "io_time", value, "s", **about)
    return sheet


# Paper P5

OPERATIONS = {"Bcast": 0.4, "Allreduce": 0.5, "Allgather": 0.9, "Alltoall": 1.1, "Alltoallv": 1.1}
"""Power of the number of processes with which the time of each grows."""


@dataclass(frozen=True)
class Layout:
    """How the time depends on the placement: relative excess.

    Attributes:
        distributed: of distributed over adjacent inside a node, by collective ("" for others).
        within: of balanced over filled nodes up to one node's worth of processes.
        beyond: the same above.
    """

    distributed: Mapping[str, float] = field(default_factory=lambda: {"": 0.06})
    within: float = 1.2
    beyond: float = 0.12
    grows: bool = True


def collectives(m: Machine, how: Layout | None = None) -> Sheet:
    """IMB on 16 nodes of `cores` cores: microseconds."""
    sheet, how = Sheet(m), how or Layout()
    for name, power in OPERATIONS.items():
        for ranks in (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024):
            for size in (0, *(2**each for each in range(21))):
                for placement in ("BD", "BA", "UD", "UA"):
                    value = (5 + size / 300) * (ranks**power if how.grows else 1)
                    excess = how.within if ranks <= m.cores else how.beyond
                    value *= 1 + excess if placement[0] == "B" else 1.0
                    inside = how.distributed.get(name, how.distributed.get("", 0.06))
                    value *= 1 + inside if placement[1] == "D" else 1.0
                    parameters = {"ranks": ranks, "bytes": size, "nodes": 16, "collective": name}
                    for metric, off in (("t_min", 0.9), ("t_avg", 1.0), ("t_max", 1.2)):
                        about = {"benchmark": name, "placement": placement}
                        about |= {"parameters": parameters}  # type: ignore[dict-item]
                        timed = value * off
                        sheet.add("p595", "imb-collectives", metric, timed, "usec", **about)
    return sheet


def together(sheets: Iterable[Sheet]) -> pl.DataFrame:
    return pl.concat([sheet.table() for sheet in sheets])


TABLE_2 = """
Bcast      0.0785  0.2381 1.1605 0.6587
Allreduce  0.0686  0.5217 1.2899 0.7402
Allgather  0.0926  0.3418 0.5693 0.2917
Alltoall   0.0173  0.1331 0.6129 0.3545
Alltoallv -0.0038  0.0804 0.3958 0.2533
"""
"""The means of table 2 of paper P5: (BD-BA)/BA, (UD-UA)/UA, (BA-UA)/UA, (BD-UD)/UD."""


def table_2() -> dict[str, dict[tuple[str, str], float]]:
    columns = (("BD", "BA"), ("UD", "UA"), ("BA", "UA"), ("BD", "UD"))
    rows = (line.split() for line in TABLE_2.strip().splitlines())
    return {name: dict(zip(columns, map(float, means), strict=True)) for name, *means in rows}

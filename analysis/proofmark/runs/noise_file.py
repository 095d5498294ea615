"""Reads ``noise.json``: what the sampler of each node of a step recorded while it ran."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from proofmark.common.input_limits import MAX_CPUS, MAX_NODES, MAX_NOISE_BYTES
from proofmark.common.json_text import parse_json
from proofmark.common.nodesets import check_name
from proofmark.common.text import one_line
from proofmark.runs.read_once import ReadOnce
from proofmark.runs.run_files import StepFiles

MOST_NAMES = 5
"""The largest number of other processes of a node."""


class NodeNoise(NamedTuple):
    """The sums of one node until the last sample in which a rank was alive, in seconds.

    Attributes:
        host: the node.
        seconds: from the start of the sampler to the last sample.
        rank_seconds: from the start of the first rank to the last sample.
        cpus: the number of CPUs to which the ranks are bound.
        ranks_s: CPU time of the ranks.
        others_s: CPU time of other processes on the cores of the ranks.
        steal_s: CPU time that a hypervisor withheld, on all CPUs of the ranks.
        worst_steal_s: the same on the CPU that lost most.
        worst_delay_s: the run-queue delay of the thread that waited most.
        burst: the largest share of a window of one second that a thread waited for a CPU.
        burst_others: CPU time of other processes in this window, as a number of CPUs.
        others: the names of the busiest other processes, each with its CPU time.
    """

    host: str
    seconds: float
    rank_seconds: float
    cpus: int
    ranks_s: float
    others_s: float
    steal_s: float
    worst_steal_s: float
    worst_delay_s: float
    burst: float
    burst_others: float
    others: tuple[tuple[str, float], ...]

    @property
    def share(self) -> float:
        """The CPU time of the ranks ÷ (elapsed time × CPUs)."""
        time = self.rank_seconds * self.cpus
        return min(1.0, self.ranks_s / time) if time > 0 else math.nan


Shares = tuple[tuple[str, float], ...]
"""What took CPU time from the ranks, each with its share of one CPU."""
HYPERVISOR = "a hypervisor"


def shares_of(nodes: Iterable[NodeNoise]) -> Shares:
    """Return what took CPU time from the ranks of `nodes`: the mean share, the largest first.

    CPU time that a hypervisor withheld is that of `HYPERVISOR`.
    """
    used: dict[str, float] = {}
    elapsed = 0.0
    for node in nodes:
        elapsed += node.seconds
        for name, took in (*node.others, (HYPERVISOR, node.worst_steal_s)):
            used[name] = used.get(name, 0.0) + took
    shares = ((name, took / elapsed) for name, took in used.items() if elapsed)
    return _largest(shares)


def mean_shares(executions: Sequence[Shares]) -> Shares:
    """Return the mean of the shares of `executions`, the largest first."""
    sums: dict[str, float] = {}
    for name, share in chain.from_iterable(executions):
        sums[name] = sums.get(name, 0.0) + share / len(executions)
    return _largest(sums.items())


def _largest(shares: Iterable[tuple[str, float]]) -> Shares:
    """Return at most `MOST_NAMES` of `shares`, those of at least 1 % of a CPU."""
    seen = (each for each in shares if each[1] >= _LEAST_SHARE)
    return tuple(sorted(seen, key=lambda each: -each[1])[:MOST_NAMES])


_LEAST_SHARE = 0.01
_SECONDS = tuple(name for name in NodeNoise._fields if name not in ("host", "cpus", "others"))


def read_noise(contents: ReadOnce) -> list[NodeNoise]:
    """Return the samples of each node of an execution; empty if there is no file.

    Raises:
        OSError: the file is too large, or no regular file.
        ArithmeticError, AttributeError, KeyError, TypeError, ValueError: it is damaged.
    """
    try:
        content = contents.read(StepFiles.noise.path, MAX_NOISE_BYTES)
    except FileNotFoundError:
        return []
    entries = parse_json(content)
    if not isinstance(entries, list) or len(entries) > MAX_NODES:
        raise ValueError("it is no list of nodes")
    return [_node(entry) for entry in entries]


def _node(entry: Mapping[str, Any]) -> NodeNoise:
    values = {name: _amount(entry[name]) for name in _SECONDS}
    cpus = int(entry["cpus"])
    if not 0 < cpus <= MAX_CPUS:
        raise ValueError(f"{cpus} CPUs")
    others = tuple(
        (one_line(str(each["name"]))[:64], _amount(each["seconds"])) for each in entry["others"]
    )
    return NodeNoise(
        host=check_name(str(entry["host"])), cpus=cpus, others=others[:MOST_NAMES], **values
    )


def _amount(value: Any) -> float:
    """Return `value` as a number.

    Raises:
        TypeError or ValueError: it is no number, is not finite, or is negative.
    """
    number = float(value)
    if not (math.isfinite(number) and number >= 0):
        raise ValueError(f"{value!r} is no amount of time")
    return number

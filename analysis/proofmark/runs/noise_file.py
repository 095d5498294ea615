"""Reads ``noise.json``: what the sampler of each node of a step recorded while it ran."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, NamedTuple

from proofmark.common.files import names_in, parse_json, text_or_empty
from proofmark.common.input_limits import MAX_CPUS, MAX_NODES, MAX_NOISE_BYTES
from proofmark.common.message import Message
from proofmark.common.nodesets import check_name
from proofmark.common.text import one_line
from proofmark.runs.read_once import ReadOnce
from proofmark.runs.run_files import StepFiles

MOST_NAMES = 5
"""The largest number of other processes of a node."""


class Other(NamedTuple):
    """Other processes with one name, on one node.

    Attributes:
        seconds: their CPU time.
        pid: the busiest of them; 0 if the node did not record it.
        user: its user; empty if the node did not record it.
        command: its program, and the first word after it that is no option; empty as `user`.
    """

    name: str
    seconds: float
    pid: int = 0
    user: str = ""
    command: str = ""


class NodeNoise(NamedTuple):
    """The sums of one node until the last sample in which a rank was alive, in seconds.

    Attributes:
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
        others: the busiest other processes, by name. CPU time that belongs to none of the processes
            that the node saw is that of `ENDED`, or of `OUTSIDE`.
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
    others: tuple[Other, ...]

    @property
    def share(self) -> float:
        """The CPU time of the ranks ÷ (elapsed time × CPUs)."""
        time = self.rank_seconds * self.cpus
        return min(1.0, self.ranks_s / time) if time > 0 else math.nan


Shares = tuple[tuple[str, float], ...]
"""What took CPU time from the ranks, each with its share of one CPU."""
HYPERVISOR, ENDED, OUTSIDE = "disturber-hypervisor", "disturber-ended", "disturber-outside"
"""The codes of what is no process by name: a hypervisor, processes that ended before they were
seen, and those that /proc does not show (a container, or a /proc that hides those of others)."""
NOT_NAMED = (HYPERVISOR, ENDED, OUTSIDE)
MAX_PROCESSES_NAMED = 3
"""The largest number of processes that a message names."""


def disturbers(shares: Shares) -> tuple[Message, ...]:
    """Return what took most CPU time, each with its share of a CPU."""
    named = [
        Message(name, percent=f"{100 * share:.0f}")
        if name in NOT_NAMED
        else Message("disturber", name=name, percent=f"{100 * share:.0f}")
        for name, share in shares[:MAX_PROCESSES_NAMED]
    ]
    return tuple(named) or (Message("disturbers-unknown"),)


def shares_of(nodes: Iterable[NodeNoise]) -> Shares:
    """Return what took CPU time from the ranks of `nodes`: the mean share, the largest first.

    CPU time that a hypervisor withheld is that of `HYPERVISOR`.
    """
    used: dict[str, float] = {}
    elapsed = 0.0
    for node in nodes:
        elapsed += node.seconds
        for other in (*node.others, Other(HYPERVISOR, node.worst_steal_s)):
            used[other.name] = used.get(other.name, 0.0) + other.seconds
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
_MOST_LIVE = 8
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


def read_samples(execution: StepFiles) -> list[NodeNoise]:
    """Return the newest samples of the nodes of a running execution, at most `_MOST_LIVE`.

    A node that has none yet, or that is writing them, is left out.
    """
    nodes = []
    for host in sorted(names_in(execution.samples))[:_MOST_LIVE]:
        text = text_or_empty(execution.samples / host / "sums", MAX_NOISE_BYTES)
        with suppress(ArithmeticError, AttributeError, KeyError, TypeError, ValueError):
            nodes.append(_node(parse_json(text.encode())))
    return nodes


def _node(entry: Mapping[str, Any]) -> NodeNoise:
    values = {name: _amount(entry[name]) for name in _SECONDS}
    cpus = int(entry["cpus"])
    if not 0 < cpus <= MAX_CPUS:
        raise ValueError(f"{cpus} CPUs")
    others = [_other(each) for each in entry["others"]][:MOST_NAMES]
    unnamed = _amount(entry.get("unnamed_s", 0))  # not in runs of earlier versions
    if unnamed > _LEAST_SHARE * values["seconds"]:
        others.append(Other(OUTSIDE if entry.get("outside") else ENDED, unnamed))
    others.sort(key=lambda other: -other.seconds)
    return NodeNoise(host=check_name(str(entry["host"])), cpus=cpus, others=tuple(others), **values)


def _other(entry: Mapping[str, Any]) -> Other:
    """Return one entry of the list of other processes."""
    words = (one_line(str(entry.get(key, "")))[:80] for key in ("user", "command"))
    name = one_line(str(entry["name"]))[:64]
    return Other(name, _amount(entry["seconds"]), int(entry.get("pid", 0)), *words)


def _amount(value: Any) -> float:
    """Return `value` as a number.

    Raises:
        TypeError or ValueError: it is no number, is not finite, or is negative.
    """
    number = float(value)
    if not (math.isfinite(number) and number >= 0):
        raise ValueError(f"{value!r} is no amount of time")
    return number

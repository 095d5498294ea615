"""What samplers recorded of the nodes of an execution, and what BMCs stated during a run.

A line of ``telemetry.jsonl`` is one interval of one node, as JSON:

===============  ==================================================================================
``host``         the node
``time``         the end of the interval, in seconds since 1970 by the clock of the node
``span``         its length in seconds
``rapl_w``       power of the processors and their memory, by the energy counters (powercap)
``acpi_w``       power of the node by its ACPI power meter
``ipmi_w``       power of the node by its BMC (``ipmitool dcmi power reading``)
``celsius``      the highest temperature of a processor
``mhz``          the mean clock of the cores of the ranks
``mhz_least``    the lowest clock of one of them
``throttled``    how often a processor reduced its clock (``thermal_throttle``)
===============  ==================================================================================

A sensor that is not there, or that the user of the job cannot read, has no key.

A line of ``telemetry/bmc.jsonl`` is one look at all BMCs: ``time`` (seconds since 1970 by the clock
of the controller), ``nodes`` with the values of each node that answered (``watts``, ``celsius``),
and ``failed`` with the number of the others by outcome.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

from proofmark.common.files import (
    names_in,
    parse_json,
    read_bytes,
    seconds_of,
    text_or_empty,
)
from proofmark.common.host_names import HostTable
from proofmark.common.input_limits import MAX_CPUS, MAX_NODES, MAX_NOISE_BYTES
from proofmark.common.message import Message
from proofmark.common.nodesets import check_name
from proofmark.common.text import one_line
from proofmark.runs.attempts import UNREADABLE, ReadOnce
from proofmark.runs.run_files import RunFiles, StepFiles

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
        with suppress(*UNREADABLE):
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


MAX_TELEMETRY_BYTES = 64 << 20
POWER_SENSORS = ("rapl", "acpi", "ipmi")
"""The sensors of power, by the beginning of their keys."""
_LIMITS = {
    "span": (0.0, 1e7),
    **{f"{sensor}_w": (0.0, 1e6) for sensor in POWER_SENSORS},
    "celsius": (-100.0, 200.0),
    "mhz": (0.0, 1e5),
    "mhz_least": (0.0, 1e5),
    "throttled": (0.0, 1e12),
}


class TelemetryInterval(NamedTuple):
    """One line: the values of the sensors by the key of the file; `time` and `span` in seconds."""

    host: str
    time: float
    span: float
    values: dict[str, float]


def read_telemetry(contents: ReadOnce) -> list[TelemetryInterval]:
    """Return the intervals of all nodes of an execution; empty without a file.

    Raises:
        OSError: the file is too large, or no regular file.
        ArithmeticError, AttributeError, KeyError, TypeError, ValueError: it is damaged.
    """
    try:
        content = contents.read(StepFiles.telemetry.path, MAX_TELEMETRY_BYTES)
    except FileNotFoundError:
        return []
    return [_interval(line) for line in content.splitlines()]


def _interval(line: bytes) -> TelemetryInterval:
    entry = parse_json(line)
    host, time = check_name(str(entry.pop("host"))), seconds_of(entry.pop("time"))
    values = {key: _checked(key, value) for key, value in entry.items()}
    return TelemetryInterval(host, time, values.pop("span"), values)


def _checked(key: str, value: object) -> float:
    """Return the value of a sensor.

    Raises:
        KeyError, TypeError or ValueError: the key is unknown, or the value is impossible.
    """
    low, high = _LIMITS[key]
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise ValueError(f"{key} {value!r}; accepted: a number from {low:g} to {high:g}")
    return float(value)


MAX_BMC_BYTES = 256 << 20
"""The largest size of the file; then the BMCs are no longer asked."""


@dataclass(frozen=True)
class BmcSeries:
    """The values of each node over time, by its name: times, and one dict for each time."""

    times: Mapping[str, list[float]] = field(default_factory=dict)
    values: Mapping[str, list[dict[str, float]]] = field(default_factory=dict)

    def within(self, host: str, begin: float, end: float) -> list[dict[str, float]]:
        """Return the values of `host` between two times."""
        name = self._table.find(host) or host
        times = self.times.get(name, [])
        return self.values.get(name, [])[bisect_left(times, begin) : bisect_right(times, end)]

    @cached_property
    def _table(self) -> HostTable:
        return HostTable.of(self.times)


def read_looks(files: RunFiles) -> BmcSeries:
    """Return all looks; empty if there is no file.

    A damaged line, such as the last one of a command that was killed, is left out.
    """
    try:
        content = read_bytes(files.bmc_telemetry, MAX_BMC_BYTES)
    except OSError:
        return BmcSeries()
    times: dict[str, list[float]] = {}
    values: dict[str, list[dict[str, float]]] = {}
    last = -math.inf
    for line in content.splitlines():
        try:
            look = parse_json(line)
            time = seconds_of(look["time"])
            nodes = {
                check_name(str(node)): {
                    key: float(value) for key, value in of_node.items() if math.isfinite(value)
                }
                for node, of_node in look["nodes"].items()
            }
        except UNREADABLE:
            continue
        if time < last:
            continue
        last = time
        for name, of_node in nodes.items():
            times.setdefault(name, []).append(time)
            values.setdefault(name, []).append(of_node)
    return BmcSeries(times, values)

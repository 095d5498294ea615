"""``telemetry/bmc.jsonl``: power and temperature of the nodes by their BMCs while a run runs.

A line is one look at all BMCs: ``time`` (seconds since 1970 by the clock of the controller),
``nodes`` with the values of each node that answered (``watts``, ``celsius``), and ``failed`` with
the number of the others by outcome.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from proofmark.common.files import open_to_append, parse_json, read_bytes, seconds_of
from proofmark.common.host_names import HostTable
from proofmark.common.nodesets import check_name
from proofmark.runs.run_files import RunFiles

MAX_BYTES = 256 << 20
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


def append_look(
    files: RunFiles,
    time: float,
    nodes: Mapping[str, Mapping[str, float]],
    failed: Mapping[str, int],
) -> bool:
    """Add one look; return False if the file is full.

    Raises:
        BadInput: the file is a link, is not a regular file, or cannot be opened.
    """
    line = json.dumps({"time": round(time), "nodes": nodes, "failed": failed}, sort_keys=True)
    files.bmc_telemetry.parent.mkdir(exist_ok=True)
    with open_to_append(files.bmc_telemetry) as file:
        if file.tell() + len(line) >= MAX_BYTES:
            return False
        file.write(f"{line}\n")
    return True


def read_looks(files: RunFiles) -> BmcSeries:
    """Return all looks; empty if there is no file.

    A damaged line, such as the last one of a command that was killed, is left out.
    """
    try:
        content = read_bytes(files.bmc_telemetry, MAX_BYTES)
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
        except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError):
            continue
        if time < last:
            continue
        last = time
        for name, of_node in nodes.items():
            times.setdefault(name, []).append(time)
            values.setdefault(name, []).append(of_node)
    return BmcSeries(times, values)

"""Warns of processes that run on nodes before the measurements of a run.

A job notes the busy processes that the first probe of each node reports in
``jobs/<id>/attempt-<n>/busy``, one a line: ``<host> <pid> <percent of a CPU> <command>``. The first
line is ``probed``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

from proofmark.common.files import text_or_empty
from proofmark.common.input_limits import MAX_SMALL_BYTES
from proofmark.common.nodesets import folded
from proofmark.common.printed_command import setting
from proofmark.common.text import one_line
from proofmark.runs.run_files import RunFiles
from proofmark.site.node.counters import BusyProcess, parse_counters

LEAST_PERCENT = 50
"""The share of one CPU from which the busy processes of a node together are worth a warning."""
_NAMED = 3
"""The largest number of processes of a node, and of groups of nodes, that a warning names."""
_LINE = re.compile(r"(\S+) (\d+) (\d+) (.+)")


def warning_of_probe(probe: str, source: str) -> str:
    """Return the warning that the machine with this probe is busy; "" if it is not.

    The processes above this one, which started the command, do not count.

    Raises:
        BadInput: the probe is not complete.
    """
    counters, own = parse_counters(probe, source), _ancestors()
    return _warning({counters.hostname: [each for each in counters.busy if each.pid not in own]})


def warning_of_job(files: RunFiles, job: str, earlier: int = 0) -> str | None:
    """Return the warning that nodes of a job are busy; "" if none is; None: not probed yet.

    `earlier` is the number of attempts of the job that do not count.
    """
    attempts = files.job(job).attempts()[earlier:]
    text = text_or_empty(attempts[-1] / "busy", MAX_SMALL_BYTES) if attempts else ""
    if not text:
        return None
    nodes: dict[str, list[BusyProcess]] = {}
    for found in filter(None, map(_LINE.fullmatch, text.splitlines())):
        host, pid, percent, command = found.groups()
        process = BusyProcess(pid=int(pid), percent=int(percent), command=one_line(command))
        nodes.setdefault(host, []).append(process)
    return _warning(nodes)


def _warning(nodes: Mapping[str, Sequence[BusyProcess]]) -> str:
    """Return the warning that names the busy processes of `nodes`; "" if no node is busy."""
    like: dict[str, list[str]] = {}
    for host, processes in nodes.items():
        if sum(each.percent for each in processes) >= LEAST_PERCENT:
            worst = sorted(processes, key=lambda each: -each.percent)[:_NAMED]
            shown = ", ".join(f"{each.command} ({each.percent} % of a CPU)" for each in worst)
            like.setdefault(shown, []).append(host)
    if not like:
        return ""
    groups = [f"{folded(hosts)}: {shown}" for shown, hosts in [*like.items()][:_NAMED]]
    more = f"; and {len(like) - _NAMED} more" if len(like) > _NAMED else ""
    return (
        f"warning: other processes run on {'; '.join(groups)}{more}. A step that they disturb is "
        "repeated, and its figures are INVALID if it stays disturbed. Stop these processes first. "
        f"With {setting('fail_fast')} the run stops at the first such step"
    )


def _ancestors() -> set[int]:
    """Return the numbers of this process and of all processes above it."""
    found: set[int] = set()
    process = os.getpid()
    while process > 1 and process not in found:
        found.add(process)
        status = text_or_empty(f"/proc/{process}/stat", MAX_SMALL_BYTES)
        words = status.rpartition(") ")[2].split()
        process = int(words[1]) if len(words) > 1 else 0
    return found

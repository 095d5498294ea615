"""Reads the executions of a step from its folder: exit code, times, nodes and last message."""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from proofmark.common.files import parse_json, read_bytes, text_or_empty
from proofmark.common.limits import MAX_BINDING_BYTES, MAX_SMALL_BYTES
from proofmark.common.nodesets import check_name
from proofmark.runs.binding_file import UNREADABLE, BindingReport, damage, read_binding
from proofmark.runs.files import StepFiles


@dataclass(frozen=True)
class Attempt:
    """One execution of a step.

    Attributes:
        number: 1 for the folder of the step; 2, 3, … for ``again-1``, ``again-2``, …
        path: its folder.
        rc: the exit code; negative if a file of the execution is damaged.
        host: the node that ran the command.
        start, end: UTC in ISO 8601.
        timed_out: whether the watchdog stopped it.
        seconds: the duration.
        binding: the content of ``binding.json``: the reports of ranks and threads.
        steal: the share of CPU time that a hypervisor took, steal ÷ (busy + steal) on all CPUs of
            `host`; NaN if the step did not record it.
        others: the share of CPU time of other processes, (busy - own) ÷ busy; NaN if the step did
            not record it.
        job_attempt: the attempt of the job that started it, ``<job>/attempt-<n>``; empty if it was
            started by hand; None if the step did not record it.
        boot_id: the boot of `host` in which it ran; None if the step did not record it.
        damage: why a file of the execution cannot be read; empty if all can.
    """

    number: int
    path: str
    rc: int
    host: str
    start: str
    end: str
    timed_out: bool
    seconds: float
    binding: bytes
    steal: float = math.nan
    others: float = math.nan
    job_attempt: str | None = None
    boot_id: str | None = None
    damage: str = ""

    @property
    def files(self) -> StepFiles:
        """The files of the execution."""
        return StepFiles(Path(self.path))

    @cached_property
    def binding_report(self) -> BindingReport:
        """Return the binding that ranks and threads reported; empty if the file is damaged."""
        try:
            return read_binding(parse_json(self.binding))
        except UNREADABLE:
            return BindingReport([], [], [])


def attempts(folder: Path | str) -> list[Attempt]:
    """Return the finished executions of the step in `folder`, oldest first."""
    step = os.fspath(folder)
    try:
        names = os.listdir(step)  # noqa: PTH208 (as in content_of)
    except (FileNotFoundError, NotADirectoryError):
        return []
    finished = [_attempt(step, 1)] if "rc" in names else []
    numbered = {
        1 + int(number): f"{step}/{name}"
        for name in names
        if name.startswith("again-") and (number := name.removeprefix("again-")).isdecimal()
    }
    finished += [
        _attempt(path, number)
        for number, path in sorted(numbered.items())
        if os.path.exists(f"{path}/rc")  # noqa: PTH110
    ]
    return finished


def _attempt(path: str, number: int) -> Attempt:
    name = "rc"
    try:
        rc = int(read_bytes(f"{path}/{name}", MAX_SMALL_BYTES))
        name = "binding.json"
        binding = read_bytes(f"{path}/{name}", MAX_BINDING_BYTES)
        name = "when.json"
        when = parse_json(read_bytes(f"{path}/{name}", MAX_SMALL_BYTES))
        host, start, end = check_name(str(when["host"])), _time(when["start"]), _time(when["end"])
        late, seconds = bool(when["timed_out"]), _seconds(when["seconds"])
        steal, others = _shares(when)
        origin = when.get("attempt"), when.get("boot")
        job_attempt, boot_id = (None if each is None else str(each) for each in origin)
    except (OSError, *UNREADABLE) as error:
        # The step script writes these files before rc, so the damage is later.
        why = damage(name, error)
        return Attempt(number, path, -1, "", "", "", False, 0.0, b"[]", damage=why)
    shares = steal, others
    origin = job_attempt, boot_id
    return Attempt(number, path, rc, host, start, end, late, seconds, binding, *shares, *origin)


def _time(text: str) -> str:
    """Return a time in ISO 8601.

    Raises:
        TypeError or ValueError: it is not one.
    """
    datetime.fromisoformat(text)
    return text


def _seconds(value: Any) -> float:
    """Return a duration in seconds.

    Raises:
        TypeError or ValueError: it is no number, infinite or NaN.
    """
    seconds = float(value)
    if not math.isfinite(seconds):
        raise ValueError(f"{value!r} is no duration")
    return seconds


def _shares(when: Mapping[str, Any]) -> tuple[float, float]:
    """Return `steal` and `others` of an attempt."""
    if "stolen_ticks" not in when:
        return math.nan, math.nan
    busy, stolen, own = int(when["busy_ticks"]), int(when["stolen_ticks"]), when["own_ticks"]
    steal = stolen / (busy + stolen) if busy + stolen > 0 else 0.0
    if own is None or busy <= 0:
        return steal, math.nan
    return steal, max(0.0, 1 - int(own) / busy)


def last_words(path: Path) -> str:
    """Return the last message in the file `path`, shortened; empty if it has none.

    A line about a full file system has priority over the last line.
    """
    text = text_or_empty(path)[-20_000:]
    lines = [line.strip() for line in text.splitlines() if line.strip(" -=#*\t")]
    messages = [line for line in lines if os.strerror(errno.ENOSPC) in line] or lines
    shown = messages[-1] if messages else ""
    if len(shown) > 160:
        shown = f"…{shown[-159:]}"  # a message begins with a path and ends with the problem
    return "".join(letter if letter.isprintable() else "·" for letter in shown)

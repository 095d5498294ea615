"""Executions of a step, as its folder tells: how each ended, where it ran, and what went wrong."""

from __future__ import annotations

import errno
import json
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from proofmark.declared import StandIns
from proofmark.plan import Step
from proofmark.seats import Bound, Thread, read_binding, seat_trouble

_SIGNALS = {number.value: number.name for number in signal.Signals}


@dataclass(frozen=True)
class Attempt:
    """One execution of a step, as its folder tells.

    Attributes:
        number: 1 for the step's own folder, then 2, 3, … for ``again-1``, ``again-2``, …
        rc: the exit code.
        host: the node that ran the command.
        start: UTC in ISO 8601, as is `end`.
        timed_out: whether the watchdog stopped it.
        ranks: where each rank ran, as it noted itself.
        threads: where each thread ran, as OpenMP told.
    """

    number: int
    folder: Path
    rc: int
    host: str
    start: str
    end: str
    timed_out: bool
    seconds: float
    ranks: Sequence[Bound]
    threads: Sequence[Thread]


def attempts(folder: Path) -> list[Attempt]:
    """Return the finished executions of the step in `folder`, oldest first."""
    try:
        names = os.listdir(folder)  # noqa: PTH208 (as in _content)
    except (FileNotFoundError, NotADirectoryError):
        return []
    found = [_attempt(folder, 1)] if "rc" in names else []
    numbered = {
        1 + int(number): folder / name
        for name in names
        if name.startswith("again-") and (number := name.removeprefix("again-")).isdecimal()
    }
    found += [
        _attempt(path, number)
        for number, path in sorted(numbered.items())
        if (path / "rc").exists()
    ]
    return found


def _attempt(folder: Path, number: int) -> Attempt:
    try:
        when = json.loads(_content(folder, "when.json"))
        ranks, threads = read_binding(json.loads(_content(folder, "binding.json")))
        rc = int(_content(folder, "rc"))
        host, start, end = (str(when[key]) for key in ("host", "start", "end"))
        late, seconds = bool(when["timed_out"]), float(when["seconds"])
    except (OSError, ValueError, KeyError, TypeError):
        # The loop writes these files before rc: what is damaged now was damaged afterwards.
        return Attempt(number, folder, -1, "", "", "", False, 0.0, [], [])
    return Attempt(number, folder, rc, host, start, end, late, seconds, ranks, threads)


def _content(folder: Path, name: str) -> bytes:
    """Read a small file; there are some hundred thousand of them, and every call counts."""
    with open(os.path.join(folder, name), "rb") as file:  # noqa: PTH118, PTH123
        return file.read()


def step_trouble(
    step: Step, attempt: Attempt, hosts: Sequence[str] = (), stand_ins: StandIns | None = None
) -> str:
    """Return why no number of this execution counts, or an empty string.

    The program's exit code, the watchdog, and where each rank and thread really was. `hosts` are
    the nodes of an instance, if the step has such.
    """
    if attempt.timed_out:
        return f"timed out after {attempt.seconds:.0f} s (limit {step.timeout} s)"
    if attempt.rc < 0:
        return "when.json, binding.json or rc is damaged"
    if attempt.rc - 128 in _SIGNALS:
        return f"killed by {_SIGNALS[attempt.rc - 128]}"
    if attempt.rc:
        meaning = {126: "cannot be executed", 127: "not found"}.get(attempt.rc)
        what = f" ({step.program} {meaning})" if meaning else ""
        said = last_words(attempt.folder / "stderr")
        return f"exit code {attempt.rc}{what}" + (f": {said}" if said else "")
    return seat_trouble(step, hosts or step.nodes, attempt.ranks, attempt.threads, stand_ins)


def last_words(path: Path) -> str:
    """Return the line of `path` that best says what went wrong, shortened; empty if there is none.

    A full file system is named wherever it stands; else the last line that is not blank.
    """
    try:
        text = path.read_bytes()[-20_000:].decode("utf-8", errors="replace")
    except OSError:
        return ""
    lines = [line.strip() for line in text.splitlines() if line.strip(" -=#*\t")]
    telling = [line for line in lines if os.strerror(errno.ENOSPC) in line] or lines
    shown = telling[-1] if telling else ""
    if len(shown) > 160:
        shown = f"…{shown[-159:]}"  # what went wrong stands behind the path that it befell
    return "".join(letter if letter.isprintable() else "·" for letter in shown)

"""Reads the executions of a step from its folder: exit code, times, nodes and last message.

Each execution has a folder. While it runs this is ``unfinished-<n>``. At its end the script renames
it to ``execution-<n>``. The folder of an execution that was interrupted keeps its name and does not
count. Formats 1 and 2 have the first execution in the folder of the step itself, and the others in
``again-<n>``.
"""

from __future__ import annotations

import errno
import json
import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from proofmark.common.files import read_bytes
from proofmark.runs.binding_file import UNREADABLE, BindingReport, read_binding
from proofmark.runs.files import StepFiles


@dataclass(frozen=True)
class Attempt:
    """One execution of a step.

    Attributes:
        number: the number of its folder ``execution-<n>``. In the older formats: 1 for the folder
            of the step; 2, 3, … for ``again-1``, ``again-2``, …
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
        survivors: the processes that it left behind, with their names; empty if there are none,
            or if the node cannot find them.
        contents: the contents of the files that were read, by name.
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
    survivors: tuple[str, ...] = ()
    contents: Mapping[str, bytes] = field(default_factory=dict, compare=False, repr=False)

    @property
    def files(self) -> StepFiles:
        """The files of the execution."""
        return StepFiles(Path(self.path))

    @cached_property
    def binding_report(self) -> BindingReport:
        """Return the binding that ranks and threads reported; empty if the file is damaged."""
        try:
            return read_binding(json.loads(self.binding))
        except UNREADABLE:
            return BindingReport([], [], [])


def attempts(folder: Path | str) -> list[Attempt]:
    """Return the finished executions of the step in `folder`, oldest first."""
    return [_attempt(path, number) for number, path in _finished(os.fspath(folder)).items()]


def finished_executions(step: StepFiles) -> list[StepFiles]:
    """Return the files of each finished execution of a step, oldest first."""
    return [StepFiles(Path(path)) for path in _finished(os.fspath(step.folder)).values()]


def numbered_execution(step: StepFiles, number: int) -> StepFiles:
    """Return the files of the finished execution `number` of a step.

    Raises:
        KeyError: the step has no such execution.
    """
    return StepFiles(Path(_finished(os.fspath(step.folder))[number]))


def results(step: StepFiles) -> list[StepFiles]:
    """Return the files of the finished executions by a job or on a planned node, oldest first.

    The job script has the same rule: an execution by hand on another node does not keep the job
    from running the step.
    """
    return [each for each in finished_executions(step) if not _is_foreign(each.started)]


def has_result(step: StepFiles) -> bool:
    """Return whether a step needs no further execution."""
    return step.exit_code.exists() or bool(results(step))


def running_execution(step: StepFiles) -> StepFiles | None:
    """Return the files of the newest unfinished execution; None if no execution is unfinished."""
    numbered = _numbered(_names(step.folder), "unfinished-")
    newest = max(numbered, default=None)
    if newest is None:
        # Per-node steps, and the older formats.
        return step if step.started.exists() and not step.exit_code.exists() else None
    return StepFiles(step.folder / numbered[newest])


def _is_foreign(started: Path) -> bool:
    """Return whether a person ran the execution on a node that was not planned."""
    try:
        return started.read_text(errors="replace").split()[3:4] == ["other"]
    except OSError:
        return False


def _finished(step: str) -> dict[int, str]:
    """Return the folders of the finished executions of the step in `step`, by number, in order."""
    names = _names(step)
    if numbered := _numbered(names, "execution-"):
        return {number: f"{step}/{name}" for number, name in sorted(numbered.items())}
    finished = {1: step} if "rc" in names else {}
    for number, name in sorted(_numbered(names, "again-").items()):
        if os.path.exists(f"{step}/{name}/rc"):  # noqa: PTH110
            finished[1 + number] = f"{step}/{name}"
    return finished


_NUMBER = re.compile("[1-9][0-9]{0,8}")


def _names(folder: Path | str) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 (fleets have 100,000 folders)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _numbered(names: Iterable[str], prefix: str) -> dict[int, str]:
    """Return the names that are ``<prefix><n>``, by number."""
    return {
        int(name.removeprefix(prefix)): name
        for name in names
        if name.startswith(prefix) and _NUMBER.fullmatch(name, len(prefix))
    }


def _attempt(path: str, number: int) -> Attempt:
    contents: dict[str, bytes] = {}
    try:
        for name in ("when.json", "binding.json", "rc"):
            contents[name] = read_bytes(f"{path}/{name}")
        binding, rc = contents["binding.json"], int(contents["rc"])
        when = json.loads(contents["when.json"])
        host, start, end = str(when["host"]), str(when["start"]), str(when["end"])
        late, seconds = bool(when["timed_out"]), float(when["seconds"])
        steal, others = _shares(when)
        survivors = tuple(map(_survivor, when.get("survivors") or ()))
    except (OSError, *UNREADABLE):
        # The step script writes these files before the end of the execution: the damage is later.
        return Attempt(number, path, -1, "", "", "", False, 0.0, b"[]", contents=contents)
    times = (host, start, end, late, seconds)
    return Attempt(number, path, rc, *times, binding, steal, others, survivors, contents)


def _survivor(entry: Mapping[str, Any]) -> str:
    """Return the name and number of a process. The script writes each byte as one character."""
    name = str(entry["name"]).encode("latin-1").decode("utf-8", "replace")
    return f"{_printable(name)} (pid {int(entry['pid'])})"


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
    try:
        text = path.read_bytes()[-20_000:].decode("utf-8", errors="replace")
    except OSError:
        return ""
    lines = [line.strip() for line in text.splitlines() if line.strip(" -=#*\t")]
    messages = [line for line in lines if os.strerror(errno.ENOSPC) in line] or lines
    shown = messages[-1] if messages else ""
    if len(shown) > 160:
        shown = f"…{shown[-159:]}"  # a message begins with a path and ends with the problem
    return _printable(shown)


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else "·" for letter in text)

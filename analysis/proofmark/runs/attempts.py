"""Reads the executions of a step from its folder: exit code, times, nodes, binding, last message.

Each execution has a folder. While it runs this is ``unfinished-<n>``. At its end the script renames
it to ``execution-<n>``. The folder of an execution that was interrupted keeps its name and does not
count.

After a failure, the script of a step writes the report of its node about the scratch folder beside
the outputs. The script of the job then lets each of its nodes write a small file there, and has
these reports in ``jobs/<id>/attempt-<n>``.
"""

from __future__ import annotations

import errno
import math
import os
import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

from proofmark.common.files import (
    contents_in,
    exists,
    moment_of,
    moment_text,
    names_in,
    parse_json,
    read_bytes,
    seconds_of,
    text_or_empty,
)
from proofmark.common.input_limits import MAX_BINDING_BYTES, MAX_OUTPUT_BYTES, MAX_SMALL_BYTES
from proofmark.common.message import NOTHING, Message
from proofmark.common.nodesets import check_name
from proofmark.common.text import one_line
from proofmark.plan.rank_cpus import RankCpus
from proofmark.runs.run_files import RunFiles, StepFiles, numbered
from proofmark.site.node.cpu import cpu_list


@dataclass(frozen=True)
class RankReport:
    """The binding that a rank read from its kernel before it became the program.

    Attributes:
        cpus: its CPUs, on a node of `BindingReport.hosts`.
        memory: the memory policy as in ``numa_maps``: ``default``, ``bind:1``; empty if the rank
            did not report it.
    """

    rank: int
    cpus: RankCpus
    memory: str = ""


@dataclass(frozen=True)
class ThreadReport:
    """The CPUs of one thread, as the OpenMP runtime printed them when a team started."""

    thread: int
    host: str
    cpus: str


@dataclass(frozen=True)
class BindingReport:
    """The content of ``binding.json``.

    Attributes:
        hosts: the hosts of the ranks, each once.
        own_cpus: the CPUs that a thread is bound to alone, as the kernel reports them, by rank.
    """

    hosts: list[str]
    ranks: list[RankReport]
    threads: list[ThreadReport]
    own_cpus: dict[int, frozenset[int]] = field(default_factory=dict)

    @property
    def all_hosts(self) -> list[str]:
        """The hosts of the ranks and threads, each once."""
        return list(dict.fromkeys([*self.hosts, *(thread.host for thread in self.threads)]))


UNREADABLE = (ArithmeticError, AttributeError, KeyError, TypeError, ValueError)
"""The exceptions of reading a damaged file of a step."""


def damage(name: str, error: Exception) -> Message:
    """Return the reason why an execution with the unreadable file `name` is INVALID."""
    problem = error.strerror if isinstance(error, OSError) else str(error)
    if isinstance(error, KeyError):
        problem = f"no key {problem}"
    shown = one_line((problem or type(error).__name__)[:200])
    return Message("file-damaged", file=name, problem=shown)


def read_binding(entries: Any) -> BindingReport:
    """Return the content of a ``binding.json``.

    Raises:
        ValueError, KeyError or TypeError: it is damaged.
    """
    hosts: dict[str, int] = {}
    ranks: list[RankReport] = []
    threads: list[ThreadReport] = []
    own_cpus: dict[int, frozenset[int]] = {}
    for entry in entries:
        host, text = check_name(str(entry["host"])), str(entry["cpus"])
        cpus = cpu_list(text)
        if "thread" in entry:
            threads.append(ThreadReport(int(entry["thread"]), host, text))
        elif "threads_of" in entry:
            own_cpus[int(entry["threads_of"])] = frozenset(cpus)
        else:
            node = hosts.setdefault(host, len(hosts))
            rank_cpus = RankCpus(node, tuple(sorted(cpus)))
            ranks.append(RankReport(int(entry["rank"]), rank_cpus, str(entry.get("memory", ""))))
    return BindingReport(list(hosts), ranks, threads, own_cpus)


class ReadOnce:
    """Reads files of a folder, and keeps what it read.

    A file that is not in the list of the folder costs no system call: most executions lack half of
    the files that an execution can have, and a run has 100,000 executions.

    Attributes:
        read_names: the names of the files that were read.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.read_names: set[str] = set()

    @cached_property
    def names(self) -> Set[str]:
        """The names in the folder; empty if there is no such folder.

        Raises:
            OSError: the folder cannot be listed.
        """
        return frozenset(names_in(self.folder))

    @cached_property
    def _contents(self) -> dict[str, bytes]:
        return contents_in(self.folder)

    def read(self, name: str, limit: int = MAX_OUTPUT_BYTES) -> bytes:
        """Return the content of the file `name`, as `read_bytes`.

        Raises:
            OSError: as `read_bytes`.
        """
        content = self._contents.get(name)
        if content is None or len(content) > limit:  # a larger limit may have held before
            path = f"{self.folder}/{name}"
            if name not in self.names and "/" not in name:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            content = self._contents[name] = read_bytes(path, limit)
        self.read_names.add(name)
        return content

    def content(self, name: str, limit: int = MAX_OUTPUT_BYTES) -> bytes:
        """Return the content of the file `name`; empty if it is missing or cannot be read."""
        try:
            return self.read(name, limit)
        except OSError:
            return b""


@dataclass(frozen=True)
class Attempt:
    """One execution of a step.

    Attributes:
        number: the number of its folder ``execution-<n>``.
        rc: the exit code; negative if a file of the execution is damaged.
        host: the node that ran the command.
        start, end: UTC in ISO 8601.
        timed_out: whether the watchdog stopped it.
        binding: the content of ``binding.json``: the reports of ranks and threads.
        steal: the share of CPU time that a hypervisor took, steal ÷ (busy + steal) on all CPUs of
            `host`; NaN if the step did not record it.
        others: the share of CPU time of other processes, (busy - own) ÷ busy; NaN if the step did
            not record it.
        job_attempt: the attempt of the job that started it, ``<job>/attempt-<n>``; empty if it was
            started by hand; None if the step did not record it.
        boot_id: the boot of `host` in which it ran; None if the step did not record it.
        survivors: the processes that it left behind, with their names; empty if there are none,
            or if the node cannot find them.
        damage: why a file of the execution cannot be read; empty if all can.
        ended: when the program ended by the clock of `host`, in seconds since 1970; NaN if the step
            did not record it.
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
    survivors: tuple[str, ...] = ()
    damage: Message = NOTHING
    ended: float = math.nan

    @cached_property
    def start_s(self) -> float:
        """The start in seconds since 1970; NaN if it is not known."""
        return moment_of(self.start).timestamp() if self.start else math.nan

    @property
    def files(self) -> StepFiles:
        """The files of the execution."""
        return StepFiles(Path(self.path))

    @cached_property
    def contents(self) -> ReadOnce:
        """What the files of the execution contain."""
        return ReadOnce(self.path)

    @cached_property
    def binding_report(self) -> BindingReport:
        """Return the binding that ranks and threads reported; empty if the file is damaged."""
        try:
            return read_binding(parse_json(self.binding))
        except UNREADABLE:
            return BindingReport([], [], [])


def attempts(folder: Path | str) -> list[Attempt]:
    """Return the finished executions of the step in `folder`, oldest first."""
    return [_attempt(path, number) for number, path in _finished(os.fspath(folder)).items()]


def finished_executions(step: StepFiles) -> list[StepFiles]:
    """Return the files of each finished execution of a step, oldest first.

    The job writes the result of a per-node step into the folder of the step itself.
    """
    found = [StepFiles(Path(path)) for path in _finished(os.fspath(step.folder)).values()]
    return found or ([step] if exists(step.exit_code) else [])


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
    started = (
        (each, text_or_empty(each.started, MAX_SMALL_BYTES)) for each in finished_executions(step)
    )
    return [each for each, text in started if text.split()[3:4] != ["other"]]


def has_result(step: StepFiles) -> bool:
    """Return whether a step needs no further execution."""
    return bool(results(step))


def running_execution(step: StepFiles) -> StepFiles | None:
    """Return the files of the newest unfinished execution; None if no execution is unfinished."""
    if unfinished := numbered(names_in(step.folder), "unfinished-"):
        return StepFiles(step.folder / unfinished[max(unfinished)])
    return step if exists(step.started) and not exists(step.exit_code) else None


def interrupted(step: StepFiles) -> int:
    """Return the number of executions of a step that have not ended."""
    return len(numbered(names_in(step.folder), "unfinished-"))


def _finished(step: str) -> dict[int, str]:
    """Return the folders of the finished executions of the step in `step`, by number, in order."""
    finished = numbered(names_in(step), "execution-")
    return {number: f"{step}/{name}" for number, name in sorted(finished.items())}


_CODE, _WHEN, _BINDING = StepFiles.exit_code.path, StepFiles.when.path, StepFiles.binding.path
_DIGESTS = StepFiles.digests.path
_LIMITS = {_CODE: MAX_SMALL_BYTES, _BINDING: MAX_BINDING_BYTES, _WHEN: MAX_SMALL_BYTES}
"""Bytes of the files that each execution has."""


def _attempt(path: str, number: int) -> Attempt:
    contents = ReadOnce(path)
    name = ""
    try:
        for name, limit in _LIMITS.items():
            contents.read(name, limit)
        name = _CODE
        rc = int(contents.read(name))
        name = _WHEN
        when = parse_json(contents.read(name))
        host = check_name(str(when["host"]))
        start, end = moment_text(when["start"]), moment_text(when["end"])
        late, seconds = bool(when["timed_out"]), seconds_of(when["seconds"])
        ended = seconds_of(when["ended"]) if "ended" in when else math.nan
        steal, others = _shares(when)
        survivors = tuple(
            f"{one_line(_text(entry['name']))} (pid {int(entry['pid'])})"
            for entry in when.get("survivors") or ()
        )
        origin = when.get("attempt"), when.get("boot")
        job_attempt, boot_id = (None if each is None else str(each) for each in origin)
    except (OSError, *UNREADABLE) as error:
        # The step script writes these files before the end of the execution: the damage is later.
        why = damage(name, error)
        attempt = Attempt(number, path, -1, "", "", "", False, 0.0, b"[]", damage=why)
    else:
        attempt = Attempt(
            *(number, path, rc, host, start, end, late, seconds, contents.read(_BINDING)),
            *(steal, others, job_attempt, boot_id, survivors),
            ended=ended,
        )
    vars(attempt)["contents"] = contents  # what was read is not read again
    return attempt


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
    return one_line(shown)


_ALWAYS = tuple(
    each.path
    for each in (
        *(StepFiles.started, StepFiles.stdout, StepFiles.stderr),
        *(StepFiles.exit_code, StepFiles.when, StepFiles.binding, StepFiles.noise),
    )
)
_SOMETIMES = frozenset(
    each.path
    for each in (
        StepFiles.copies,
        StepFiles.scratch_files,
        StepFiles.layout,
        StepFiles.files_report,
        StepFiles.load_report,
        StepFiles.telemetry,
    )
)
"""Files of some executions. They are read if they are there."""
_LINE = re.compile(r"^([0-9a-f]{64}) [ *]([A-Za-z0-9][A-Za-z0-9._-]*)$", re.ASCII | re.MULTILINE)


def changed_output(contents: ReadOnce) -> Message:
    """Return which output of an execution is not that of its end, or `NOTHING`."""
    try:
        recorded = contents.read(_DIGESTS, MAX_SMALL_BYTES)
    except FileNotFoundError:
        return Message("digests-missing", file=_DIGESTS)
    except OSError as error:
        return damage(_DIGESTS, error)
    lines = _LINE.findall(recorded.decode("latin-1"))
    digests = {name: digest for digest, name in lines}
    if len(lines) != len(recorded.splitlines()) or not digests:
        return Message("digests-damaged", file=_DIGESTS)
    if absent := [name for name in _ALWAYS if name not in digests]:
        return Message("digest-missing", file=_DIGESTS, name=absent[0])
    for name, digest in digests.items():
        try:
            content = contents.read(name)
        except FileNotFoundError:
            return Message("file-missing", file=name)
        except OSError as error:
            return damage(name, error)
        if sha256(content).hexdigest() != digest:
            return Message("file-changed", file=name)
    evidence = {*(contents.names & _SOMETIMES), *contents.read_names} - {_DIGESTS, *digests}
    return Message("file-appeared", file=min(evidence)) if evidence else NOTHING


_FULL = {os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT)}
_JOB_ATTEMPT = re.compile(r"[A-Za-z0-9_-]+/attempt-[0-9]+", re.ASCII)
"""The name of an attempt; another one was started by hand, or its file was changed."""


@dataclass(frozen=True)
class FilesReport:
    """One try of a node to write a small file into the scratch folder.

    Attributes:
        answered: false if the try did not end within `seconds`.
        why: the message of the failed try; empty if it did not fail.
    """

    host: str
    folder: str
    answered: bool
    seconds: int
    why: str

    @property
    def problem(self) -> Message:
        """What failed, in words that are the same on all nodes; `NOTHING` if nothing failed."""
        if not self.answered:
            return Message("files-silent", seconds=self.seconds)
        said = self.why.rpartition(": ")[2]
        if not said:
            return NOTHING
        return Message("files-full" if said in _FULL else "files-said", problem=said)


def read_files_report(path: Path) -> FilesReport | None:
    """Return the report in `path`; None if there is none, or if it is damaged."""
    try:
        entry = parse_json(read_bytes(path, MAX_SMALL_BYTES))
        return FilesReport(
            host=check_name(str(entry["host"])),
            folder=_text(entry["scratch"]),
            answered=bool(entry["answered"]),
            seconds=int(entry["seconds"]),
            why=one_line(_text(entry["why"]))[-160:],
        )
    except (OSError, *UNREADABLE):
        return None


def read_files_reports(paths: Iterable[Path]) -> dict[str, FilesReport]:
    """Return the reports in `paths`, by node; a later one of a node replaces an earlier one."""
    found = (read_files_report(path) for path in paths)
    return {report.host: report for report in found if report}


def files_reports(files: RunFiles, step: str, attempt: Attempt) -> dict[str, FilesReport]:
    """Return the reports after an execution of `step`, by node.

    The report of the node that ran the command has priority: it was made first.
    """
    job = attempt.job_attempt or ""
    paths = files.work.files_reports(step, job) if _JOB_ATTEMPT.fullmatch(job) else []
    own = StepFiles(Path(attempt.path)).files_report
    return read_files_reports([*chain.from_iterable(paths), own])


def _text(value: object) -> str:
    """Return a text. The script writes each byte of an unusual text as one character."""
    return str(value).encode("latin-1").decode("utf-8", "replace")

"""The nodes of a run, from their probes before and after each attempt of a job.

``jobs/<id>/attempt-<n>/<host>.before`` and ``<host>.after`` prove the state of a node: its error
counters, its mode and its mounts. An attempt that was killed has no probe at its end. The first
probe of the next attempt is used instead; without one, what the node counted is not known. The
evidence of a run has the nodes as ``nodes/<host>.json``, made from the probes that it has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import zip_longest
from pathlib import Path
from typing import Literal

from proofmark.common.archive import found_in
from proofmark.common.errors import BadInput
from proofmark.common.files import paths_in, read_json, read_text, text_or_empty
from proofmark.common.grouping import batched
from proofmark.common.host_names import HostTable, ReportedNames
from proofmark.common.input_limits import MAX_PROBE_BYTES, MAX_SMALL_BYTES
from proofmark.common.message import Message
from proofmark.common.nodesets import is_name
from proofmark.common.processes import parallel_map
from proofmark.common.shared_models import StrictModel, shared
from proofmark.common.text import one_line
from proofmark.plan.plan import Job
from proofmark.runs.attempts import UNREADABLE, Attempt, attempts
from proofmark.runs.run import Run, reported_names, site_of
from proofmark.site.node.facts import NodeFacts
from proofmark.site.node.provenance import NodeProvenance, node_provenance
from proofmark.site.partition import PREDICTED

Problem = Literal["missing", "stopped", "empty", "cut", "damaged"]
"""Why a probe proves nothing. ``cut``: it has no end. ``stopped``: it is missing after the steps of
an attempt that was stopped before, or that still runs."""
STOPPED_BY_SIGNAL = "143"


class AttemptOnNode(StrictModel):
    """One attempt of a job on one node.

    Attributes:
        job: the id of the job; empty for a file of all jobs.
    """

    job: str
    attempt: int
    steps: tuple[str, ...]

    @property
    def name(self) -> str:
        """The attempt as in ``when.json``."""
        return f"{self.job}/attempt-{self.attempt}"


class JobOnNode(AttemptOnNode):
    """An attempt with the reports of its probes."""

    provenance: NodeProvenance

    @property
    def boots(self) -> set[str]:
        """The boot ids that the probes before and after the attempt report."""
        readings = self.provenance.before, self.provenance.after
        return {each.boot_id for each in readings if each is not None and each.boot_id}

    def covers(self, step: str, execution: Attempt) -> bool:
        """Return whether `step` was executed during this attempt.

        The clocks of nodes differ. They are only used for executions that recorded no attempt. An
        execution that was started by hand has the conditions of all attempts in the same boot.
        """
        if execution.job_attempt:
            return execution.job_attempt == self.name
        if execution.boot_id is not None:
            return execution.boot_id in self.boots
        # UTC in ISO 8601, so that the times compare as text.
        before, after = self.provenance.before, self.provenance.after
        began = step in self.steps and before.date <= execution.end
        return began and (after is None or execution.start <= after.date)


class DamagedProbe(AttemptOnNode):
    """A probe or a file of a node that proves nothing.

    Attributes:
        file: the file, below the folder of the run.
        section: the section, or ``section.key``, with the problem; empty if it is the whole file.
        problem: what is wrong in it; empty if it is missing.
        awaited: whether it is a missing probe of the end of an attempt, which may still run.
    """

    code: Problem
    file: str
    node: str = ""
    section: str = ""
    problem: str = ""
    awaited: bool = False

    @property
    def reason(self) -> Message:
        """Why the state of the node is not proven."""
        if self.code in ("missing", "stopped"):
            return Message("probe-missing", file=self.file)
        damaged = Message("probe-damaged", file=self.file, problem=self.problem)
        if not self.section:
            return damaged
        return Message("probe-section", text=damaged, node=self.node, section=self.section)


Entry = JobOnNode | DamagedProbe


def probes_by_node(run: Run) -> dict[str, list[Probes]]:
    """Return the probes of each attempt of each job by node, and those that are missing.

    A node has its name of the inventory. A name that no node or several nodes of the job may report
    stays as it is.

    A node that measured nothing in an attempt needs no probe of it. A model of a machine has no
    nodes.
    """
    site = site_of(run)
    names = reported_names(run, site)
    required = site.partition.origin != PREDICTED
    found: dict[str, list[Probes]] = {}
    for job in run.plan.jobs():
        folders = run.files.job(job.id).attempts()
        for folder, following in zip_longest(folders, folders[1:]):
            attempt = _Attempt(run, job, folder, following, required, names)
            for node, host in attempt.hosts():
                found.setdefault(node, []).append(Probes(attempt, node, host))
    return found


@dataclass(frozen=True, slots=True)
class Probes:
    """The probes before and after an attempt on a node.

    Attributes:
        node: the name of the node in the inventory.
        host: the name that it reports; None if there is no probe of it.
    """

    attempt: _Attempt
    node: str
    host: str | None

    def read(self) -> list[Entry]:
        """Return the attempt on the node, and its probes that prove nothing."""
        return self.attempt.on_node(self.host, self.node)


@dataclass(frozen=True)
class _Attempt:
    """An attempt of a job.

    Attributes:
        following: the folder of the next attempt, if there is one.
        required: whether each node that measured needs its probes.
        names: the further names that the nodes may report, by node.
    """

    run: Run
    job: Job
    folder: Path
    following: Path | None
    required: bool
    names: Mapping[str, Sequence[str]]

    @property
    def number(self) -> int:
        return int(self.folder.name.rpartition("-")[2])

    @property
    def steps(self) -> tuple[str, ...]:
        return tuple(step.id for step in self.job.steps)

    def hosts(self) -> Iterator[tuple[str, str | None]]:
        """Yield each node with the name of its probes; None: those of this node are missing."""
        hosts = set()
        for end in _ENDS:
            hosts |= {path.stem for path in paths_in(self.folder, f"*{end}")}
        planned = ReportedNames({node: self.names.get(node, ()) for node in self.job.nodes})
        for host in sorted(filter(is_name, hosts)):
            yield planned.node(host), host
        if not self.required:
            return
        stored = HostTable.reported(hosts)
        for node in self.job.nodes:
            if not stored.found((node, *self.names.get(node, ()))) and node in self.measured:
                yield node, None

    @cached_property
    def measured(self) -> frozenset[str]:
        """The planned nodes with a finished execution that this attempt started.

        They are read only if a probe is missing.
        """
        name = f"{self.job.id}/{self.folder.name}"
        hosts = set()
        for step in self.job.steps:
            for instance, nodes in step.instances().items():
                executions = attempts(self.run.files.step(f"{instance}").folder)
                if any(each.job_attempt in (name, None) for each in executions):
                    hosts.update(nodes)
        return frozenset(hosts)

    @property
    def _was_stopped(self) -> bool:
        """Whether a signal ended the attempt, or nothing has: it did not end by itself."""
        ends = (self.folder / name for name in ("finished", "exit"))
        finished, code = (text_or_empty(path, MAX_SMALL_BYTES).strip() for path in ends)
        return not finished and code in ("", STOPPED_BY_SIGNAL)

    @cached_property
    def _measured_names(self) -> HostTable:
        return HostTable({node: self.names.get(node, ()) for node in self.measured})

    def _has_measured(self, host: str) -> bool:
        """Return whether the node that calls itself `host` measured in this attempt."""
        return self.required and self._measured_names.find(host) is not None

    def on_node(self, host: str | None, node: str) -> list[Entry]:
        """Return the attempt on `node`, which reports `host`, and its probes that prove nothing."""
        if host is None:
            return [self._damaged(self.folder / f"{node}.before", "missing")]
        before, after = (self.folder / f"{host}{end}" for end in _ENDS)
        first = _read(before)
        if isinstance(first, _Unusable):
            needed = first.code == "damaged" or self._has_measured(host)
            return [self._damaged(before, first.code, first.problem)] if needed else []
        path, last = self._last(after, self.following and self.following / before.name)
        damaged: list[Entry] = []
        second = None if isinstance(last, _Unusable) else last
        try:
            provenance = self._provenance(first, second, before, node)
        except _UNREADABLE_PROBE as error:
            try:  # the second probe is the damaged one if the first is whole alone
                provenance = self._provenance(first, None, before, node)
            except _UNREADABLE_PROBE as of_first:
                return [self._unreadable(before, of_first)]
            damaged.append(self._unreadable(path, error))
        if isinstance(last, _Unusable) and (last.code != "missing" or self._has_measured(host)):
            code = "stopped" if last.code == "missing" and self._was_stopped else last.code
            damaged.append(self._damaged(path, code, last.problem))
        job = JobOnNode(
            job=self.job.id, attempt=self.number, steps=self.steps, provenance=provenance
        )
        return [job, *damaged]

    def _last(self, after: Path, following: Path | None) -> tuple[Path, str | _Unusable]:
        """Return the probe after the steps with its path.

        It is `after`. If this is missing, it is `following`, the first one of the next attempt.
        """
        last = _read(after)
        if following and isinstance(last, _Unusable) and last.code == "missing":
            other = _read(following)
            if isinstance(other, str) or other.code == "damaged":
                return following, other
        return after, last

    def _provenance(self, first: str, last: str | None, before: Path, node: str) -> NodeProvenance:
        path = before.with_suffix("").relative_to(self.run.folder)
        return node_provenance(first, last, f"{self.run.id}/{path}", node)

    def _unreadable(self, path: Path, error: Exception) -> DamagedProbe:
        """Return the damage of a probe that is whole, with the section that proves nothing."""
        mistakes = error.mistakes if isinstance(error, BadInput) else ()
        section = next((each.key for each in mistakes), "")
        damaged = self._damaged(path, "damaged", str(error))
        return damaged.model_copy(update={"node": path.stem, "section": one_line(section)})

    def _damaged(self, path: Path, code: Problem, problem: str = "") -> DamagedProbe:
        return DamagedProbe(
            job=self.job.id,
            attempt=self.number,
            steps=self.steps,
            code=code,
            file=self.run.files.link(path),
            problem=one_line(problem)[:_LONGEST],
            awaited=code in ("missing", "stopped") and path.suffix == _ENDS[1],
        )


_ENDS = (".before", ".after")
_UNREADABLE_PROBE = (BadInput, LookupError, *UNREADABLE)
_LONGEST = 400
"""Characters of the problem of a damaged probe."""


@dataclass(frozen=True)
class _Unusable:
    """A probe that proves nothing, and why."""

    code: Problem
    problem: str = ""


def _read(path: Path) -> str | _Unusable:
    """Return the text of the probe in `path`, or why it is not a whole one."""
    try:
        text = read_text(path, MAX_PROBE_BYTES)
    except FileNotFoundError:
        return _Unusable("missing")
    except OSError as error:
        return _Unusable("damaged", f"{error.strerror}")
    if not text.strip():
        return _Unusable("empty", "it is empty")
    if not text.rstrip().endswith("=== end"):
        return _Unusable("cut", "its end is missing")
    return text


_SLICE = 500
"""The number of nodes that one process reads at a time."""


class Node(StrictModel):
    """One node, with all its jobs of a run, oldest first.

    Attributes:
        damaged: the probes that cannot be read or are missing. Their attempts may not be in `jobs`.
    """

    host: str
    jobs: tuple[JobOnNode, ...]
    damaged: tuple[DamagedProbe, ...] = ()

    def damage(self, step: str, execution: Attempt) -> Iterator[Message]:
        """Yield why the conditions of `step` during `execution` are not proven.

        A damaged probe of another attempt proves nothing about this time. A step that ended before
        its job was stopped has its figures: the run, and not the step, lacks the probe.
        """
        if not self.damaged:
            return
        covering = {job.name for job in self.jobs if job.covers(step, execution)}
        covering |= {execution.job_attempt} if execution.job_attempt else set()
        for probe in self.damaged:
            of_job = {name for name in covering if name.rpartition("/")[0] == probe.job}
            proves = probe.code == "stopped" or step not in probe.steps
            if not proves and (not of_job or probe.name in of_job):
                yield probe.reason

    @property
    def stopped(self) -> bool:
        """Whether no probe followed the steps of an attempt: it was stopped, or still runs."""
        return any(probe.code == "stopped" for probe in self.damaged)

    @property
    def newest(self) -> NodeFacts:
        """Return the facts of the node at the start of its newest job."""
        return self.jobs[-1].provenance.facts


ProbedNodes = Mapping[str, Node]
"""The reports of each host."""


def probed_nodes(run: Run) -> dict[str, Node]:
    """Return the nodes from the probes of their jobs, by host name.

    A node shares the equal parts of a job with the node before it, as in `nodes_of`.
    """
    last: dict[str, JobOnNode] = {}
    found = (_probed(host, probes, last) for host, probes in probes_by_node(run).items())
    return {node.host: node for node in found if node.jobs or node.damaged}


def node_files(run: Run) -> Iterator[dict[str, bytes]]:
    """Yield the contents of the files of ``nodes/`` by name, some nodes at a time.

    They are made from the probes. Only these nodes are in memory.
    """
    probes = probes_by_node(run)

    def contents(hosts: Sequence[str]) -> dict[str, bytes]:
        nodes = (_probed(host, probes[host], {}) for host in hosts)
        known = [node for node in nodes if node.jobs or node.damaged]
        return {f"{each.host}.json": f"{each.model_dump_json()}\n".encode() for each in known}

    yield from parallel_map(contents, batched(probes, _SLICE))


def _probed(host: str, probes: Sequence[Probes], last: dict[str, JobOnNode]) -> Node:
    """Return a node from its probes; a job shares the equal parts of the newest one in `last`."""
    jobs: list[JobOnNode] = []
    damaged: list[DamagedProbe] = []
    for attempt in probes:
        for entry in attempt.read():
            if isinstance(entry, JobOnNode):
                last[entry.job] = shared(entry, last.get(entry.job))
                jobs.append(last[entry.job])
            else:
                damaged.append(entry)
    return Node(host=host, jobs=tuple(jobs), damaged=tuple(damaged))


def nodes_of(run: Run) -> dict[str, Node]:
    """Return the nodes of ``nodes/`` by host name; those of the probes if nothing was sealed.

    A node whose file is damaged has no jobs, and all steps in its `Node.damaged`.
    """
    paths = tuple(path for path in paths_in(run.files.nodes, "*.json") if is_name(path.stem))
    if not paths:
        return probed_nodes(run)
    sealed = found_in(run.folder)
    state = sealed[0] if sealed else tuple(path.lstat().st_mtime_ns for path in paths)
    return _nodes(paths, tuple(step.id for step in run.plan.steps()), state)


@lru_cache(maxsize=1)
def _nodes(paths: tuple[Path, ...], steps: tuple[str, ...], state: object) -> dict[str, Node]:
    """Read the files once for judging and for the report; `state` changes if a file changes."""
    by_host: dict[str, Node] = {}
    for nodes in parallel_map(partial(_slice, steps), batched(paths, _SLICE)):
        by_host |= {node.host: node for node in nodes}
    return by_host


def some_nodes(run: Run, hosts: Collection[str]) -> dict[str, Node]:
    """Return those of `nodes_of` that are in `hosts`. Of a sealed run only their files are read."""
    if not found_in(run.folder):
        return {host: node for host, node in nodes_of(run).items() if host in hosts}
    paths = [path for path in paths_in(run.files.nodes, "*.json") if path.stem in hosts]
    steps = tuple(step.id for step in run.plan.steps())
    return {node.host: node for node in _slice(steps, paths)}


def _slice(steps: tuple[str, ...], paths: Sequence[Path]) -> list[Node]:
    """Return some nodes. A job has the equal parts of the one before it, or of another node."""
    last: dict[str, JobOnNode] = {}
    nodes = []
    for path in paths:
        node, like, jobs = _node(path, steps), None, list[JobOnNode]()
        for job in node.jobs:
            like = last[job.job] = shared(job, like or last.get(job.job))
            jobs.append(like)
        nodes.append(node.model_copy(update={"jobs": tuple(jobs)}))
    return nodes


def _node(path: Path, steps: tuple[str, ...]) -> Node:
    problem = f"of another node than {path.stem}"
    try:
        node = read_json(path, Node)
        if node.host == path.stem:
            return node
    except BadInput as error:
        problem = "; ".join(f"{each.found[:200]}" for each in error.mistakes)
    damaged = DamagedProbe(
        job="",
        attempt=0,
        steps=steps,
        code="damaged",
        file=f"nodes/{path.name}",
        problem=one_line(problem),
    )
    return Node(host=path.stem, jobs=(), damaged=(damaged,))

"""Reads the probes of the nodes before and after each attempt of a job.

``jobs/<id>/attempt-<n>/<host>.before`` and ``<host>.after`` prove the state of a node: its error
counters, its mode and its mounts. An attempt that was killed has no probe at its end. The first
probe of the next attempt is used instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from proofmark.common.errors import BadInput
from proofmark.common.files import paths_in, read_text
from proofmark.common.host_names import HostTable, ReportedNames
from proofmark.common.input_limits import MAX_PROBE_BYTES
from proofmark.common.nodesets import is_name
from proofmark.common.text import one_line
from proofmark.plan.plan import Job
from proofmark.plan.step import StepInstance
from proofmark.runs.attempts import Attempt, attempts
from proofmark.runs.job_on_node import DamagedProbe, JobOnNode, Problem
from proofmark.runs.run import Run, reported_names, site_of
from proofmark.site.node.provenance import NodeProvenance, node_provenance
from proofmark.site.partition import PREDICTED

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
    for group in run.plan.groups:
        for job in group.jobs:
            folders = run.files.job(job.id).attempts()
            for place, folder in enumerate(folders):
                following = folders[place + 1] if place + 1 < len(folders) else None
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
            if node in self.measured and not stored.found((node, *self.names.get(node, ()))):
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
                if any(each.job_attempt in (name, None) for each in self._executions(instance)):
                    hosts.update(nodes)
        return frozenset(hosts)

    def _executions(self, instance: StepInstance) -> list[Attempt]:
        return attempts(self.run.files.step(str(instance)).folder)

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
            damaged.append(self._damaged(path, last.code, last.problem))
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
            awaited=code == "missing" and path.suffix == _ENDS[1],
        )


_ENDS = (".before", ".after")
_UNREADABLE_PROBE = (ArithmeticError, AttributeError, BadInput, LookupError, TypeError, ValueError)
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

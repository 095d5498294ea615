"""Collects the probes of the nodes before and after each job: ``runs/<id>/nodes/<host>.json``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from proofmark.common.errors import BadInput
from proofmark.common.files import read_json, read_text, write_whole
from proofmark.common.limits import MAX_PROBE_BYTES
from proofmark.common.nodesets import is_name
from proofmark.common.strict_model import StrictModel
from proofmark.common.text import one_line
from proofmark.runs.attempts import Attempt
from proofmark.runs.run import Run
from proofmark.site.node.facts import NodeFacts
from proofmark.site.node.provenance import NodeProvenance, node_provenance


class AttemptOnNode(StrictModel):
    """One attempt of a job on one node.

    Attributes:
        job: the id of the job; empty for a file of all jobs.
        attempt: the number of the attempt; 0 for a file of all jobs.
        steps: the ids of the steps of the job.
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
    """A probe or a file of a node that cannot be read; `reason` names the file and the problem."""

    reason: str


class Node(StrictModel):
    """One node, with all its jobs of a run, oldest first.

    Attributes:
        damaged: the probes that cannot be read. Their attempts may be missing in `jobs`.
    """

    host: str
    jobs: tuple[JobOnNode, ...]
    damaged: tuple[DamagedProbe, ...] = ()

    def damage(self, step: str, execution: Attempt) -> Iterator[str]:
        """Yield why the conditions of `step` during `execution` are not proven.

        A damaged probe of another attempt proves nothing about this time.
        """
        if not self.damaged:
            return
        covering = {job.name for job in self.jobs if job.covers(step, execution)}
        covering |= {execution.job_attempt} if execution.job_attempt else set()
        for probe in self.damaged:
            of_job = {name for name in covering if name.rpartition("/")[0] == probe.job}
            if step in probe.steps and (not of_job or probe.name in of_job):
                yield probe.reason

    @property
    def newest(self) -> NodeFacts:
        """Return the facts of the node at the start of its newest job."""
        return self.jobs[-1].provenance.facts


def collect_nodes(run: Run) -> list[Path]:
    """Write one file per node from the probes of its jobs; return the paths.

    A damaged probe is listed in the file of its node.

    Raises:
        BadInput: a file cannot be written.
    """
    run.files.nodes.mkdir(exist_ok=True)
    by_host: dict[str, list[JobOnNode | DamagedProbe]] = {}
    for host, entry in _probes(run):
        by_host.setdefault(host, []).append(entry)
    written = []
    for host, entries in by_host.items():
        node = Node(
            host=host,
            jobs=tuple(each for each in entries if isinstance(each, JobOnNode)),
            damaged=tuple(each for each in entries if isinstance(each, DamagedProbe)),
        )
        path = run.files.nodes / f"{host}.json"
        write_whole(path, node.model_dump_json(indent=1) + "\n")
        written.append(path)
    return written


def nodes_of(run: Run) -> dict[str, Node]:
    """Return the nodes that were collected, by host name.

    A node whose file is damaged has no jobs, and all steps in its `Node.damaged`.
    """
    paths = sorted(path for path in run.files.nodes.glob("*.json") if is_name(path.stem))
    stats = [path.lstat() for path in paths]
    state = tuple((each.st_mtime_ns, each.st_size, each.st_mode) for each in stats)
    steps = tuple(step.id for step in run.plan.steps())
    return _nodes(tuple(paths), steps, state)


@lru_cache(maxsize=1)
def _nodes(paths: tuple[Path, ...], steps: tuple[str, ...], state: object) -> dict[str, Node]:
    """Read the files once for judging and for the report; `state` changes if a file changes."""
    return {path.stem: _node(path, steps) for path in paths}


def _node(path: Path, steps: tuple[str, ...]) -> Node:
    problem = f"of another node than {path.stem}"
    try:
        node = read_json(path, Node)
        if node.host == path.stem:
            return node
    except BadInput as error:
        problem = "; ".join(f"{each.found[:200]}" for each in error.mistakes)
    reason = one_line(f"nodes/{path.name} is damaged: {problem}")
    damaged = DamagedProbe(job="", attempt=0, steps=steps, reason=reason)
    return Node(host=path.stem, jobs=(), damaged=(damaged,))


def _probes(run: Run) -> Iterator[tuple[str, JobOnNode | DamagedProbe]]:
    """Yield each attempt of each job on each node, and each damaged probe.

    An attempt that was killed has no probe at its end. The first probe of the next attempt is
    used instead.
    """
    for group in run.plan.groups:
        for job in group.jobs:
            folders = run.files.job(job.id).attempts()
            steps = tuple(step.id for step in job.steps)
            for number, folder in enumerate(folders, start=1):
                for before in sorted(folder.glob("*.before")):
                    host = before.name.removesuffix(".before")
                    afters = [folder / f"{host}.after"]
                    afters += [each / before.name for each in folders[number : number + 1]]
                    if is_name(host):
                        attempt = _Attempt(run, job.id, number, steps)
                        yield from ((host, each) for each in attempt.on_node(before, afters))


@dataclass(frozen=True)
class _Attempt:
    """An attempt of a job: the id of the job, its number, the ids of its steps."""

    run: Run
    job: str
    number: int
    steps: tuple[str, ...]

    def on_node(self, before: Path, afters: Sequence[Path]) -> list[JobOnNode | DamagedProbe]:
        """Return the attempt on one node, and the damaged probes.

        Args:
            before: the probe before the steps.
            afters: the probes that can be the one after the steps; the first complete one is used.
        """
        damaged: list[DamagedProbe] = []
        try:
            first = _complete(before)
        except OSError as error:
            return [self._damaged(before, f"{error.strerror}")]
        if first is None:
            return []  # the node was lost during its first probe: it measured nothing
        last = None
        for path in afters:
            try:
                last = _complete(path)
            except OSError as error:
                damaged.append(self._damaged(path, f"{error.strerror}"))
                break
            if last is not None:
                break
        try:
            provenance = self._provenance(first, None, before)
        except _UNREADABLE_PROBE as error:
            return [self._damaged(before, str(error))]
        if last is not None:
            try:
                provenance = self._provenance(first, last, before)
            except _UNREADABLE_PROBE as error:
                damaged.append(self._damaged(path, str(error)))
        job = JobOnNode(job=self.job, attempt=self.number, steps=self.steps, provenance=provenance)
        return [job, *damaged]

    def _provenance(self, first: str, last: str | None, before: Path) -> NodeProvenance:
        path = before.with_suffix("").relative_to(self.run.folder)
        return node_provenance(first, last, f"{self.run.id}/{path}")

    def _damaged(self, path: Path, problem: str) -> DamagedProbe:
        reason = one_line(f"{path.relative_to(self.run.folder)} is damaged: {problem}")
        return DamagedProbe(
            job=self.job, attempt=self.number, steps=self.steps, reason=reason[:_LONGEST]
        )


_UNREADABLE_PROBE = (ArithmeticError, AttributeError, BadInput, LookupError, TypeError, ValueError)
_LONGEST = 400
"""Characters of the reason of a damaged probe."""


def _complete(path: Path) -> str | None:
    """Return the probe in `path`; None if it is missing or not complete.

    Raises:
        OSError: it is not a regular file, or too large.
    """
    try:
        text = read_text(path, MAX_PROBE_BYTES)
    except FileNotFoundError:
        return None
    return text if text.rstrip().endswith("=== end") else None

"""Collects the probes of the nodes before and after each job: ``runs/<id>/nodes/<host>.json``."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path

from proofmark.common.files import read_json
from proofmark.common.strict_model import StrictModel
from proofmark.runs.attempts import Attempt
from proofmark.runs.run import Run
from proofmark.site.node.facts import NodeFacts
from proofmark.site.node.provenance import NodeProvenance, node_provenance


class JobOnNode(StrictModel):
    """One node during one attempt of a job; `steps` are the ids of the steps of the job."""

    job: str
    attempt: int
    steps: tuple[str, ...]
    provenance: NodeProvenance

    @property
    def name(self) -> str:
        """The attempt as in ``when.json``."""
        return f"{self.job}/attempt-{self.attempt}"

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


class Node(StrictModel):
    """One node, with all its jobs of a run, oldest first."""

    host: str
    jobs: tuple[JobOnNode, ...]

    @property
    def newest(self) -> NodeFacts:
        """Return the facts of the node at the start of its newest job."""
        return self.jobs[-1].provenance.facts


def collect_nodes(run: Run) -> list[Path]:
    """Write one file per node from the probes of its jobs; return the paths.

    Raises:
        BadInput: a probe is damaged.
    """
    run.files.nodes.mkdir(exist_ok=True)
    by_host: dict[str, list[JobOnNode]] = {}
    for host, job in _probes(run):
        by_host.setdefault(host, []).append(job)
    written = []
    for host, jobs in by_host.items():
        path = run.files.nodes / f"{host}.json"
        path.write_text(Node(host=host, jobs=tuple(jobs)).model_dump_json(indent=1) + "\n")
        written.append(path)
    return written


def nodes_of(run: Run) -> dict[str, Node]:
    """Return the nodes that were collected, by host name."""
    paths = sorted(run.files.nodes.glob("*.json"))
    stats = [path.stat() for path in paths]
    return _nodes(tuple(paths), tuple((each.st_mtime_ns, each.st_size) for each in stats))


@lru_cache(maxsize=1)
def _nodes(paths: tuple[Path, ...], state: object) -> dict[str, Node]:
    """Read the files once for judging and for the report; `state` changes if a file changes."""
    nodes = (read_json(path, Node) for path in paths)
    return {node.host: node for node in nodes}


def _probes(run: Run) -> Iterator[tuple[str, JobOnNode]]:
    """Yield each attempt of each job on each node.

    An attempt that was killed has no probe at its end. The first probe of the next attempt is
    used instead.
    """
    for group in run.plan.groups:
        for job in group.jobs:
            folders = run.files.job(job.id).attempts()
            steps = tuple(step.id for step in job.steps)
            for number, (folder, following) in enumerate(
                zip_longest(folders, folders[1:]), start=1
            ):
                for before in sorted(folder.glob("*.before")):
                    host = before.name.removesuffix(".before")
                    afters = [folder / f"{host}.after"]
                    afters += [following / before.name] if following else []
                    after = next((path.read_text() for path in afters if _whole(path)), None)
                    if not _whole(before):
                        continue  # the node was lost during its first probe: it measured nothing
                    source = f"{run.id}/{folder.relative_to(run.folder)}/{host}"
                    provenance = node_provenance(before.read_text(), after, source)
                    yield (
                        host,
                        JobOnNode(job=job.id, attempt=number, steps=steps, provenance=provenance),
                    )


def _whole(path: Path) -> bool:
    """Return whether the probe in `path` is complete."""
    try:
        return path.read_text(errors="replace").rstrip().endswith("=== end")
    except FileNotFoundError:
        return False

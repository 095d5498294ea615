"""The nodes of a run, from their probes before and after each job.

The evidence of a run has them as ``nodes/<host>.json``, made from the probes that it has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import TypeVar

from proofmark.common.archive import found_in
from proofmark.common.errors import BadInput
from proofmark.common.files import paths_in, read_json
from proofmark.common.message import Message
from proofmark.common.nodesets import is_name
from proofmark.common.processes import parallel_map
from proofmark.common.shared_models import shared
from proofmark.common.strict_model import StrictModel
from proofmark.common.text import one_line
from proofmark.runs.attempts import Attempt
from proofmark.runs.job_on_node import DamagedProbe, JobOnNode
from proofmark.runs.node_probes import Probes, probes_by_node
from proofmark.runs.run import Run
from proofmark.site.node.facts import NodeFacts

Part = TypeVar("Part")
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

    def while_running(self) -> Node:
        """Return the node without the missing probes of the end of a job, which may still run."""
        left = tuple(probe for probe in self.damaged if not probe.awaited)
        return self.model_copy(update={"damaged": left})

    @property
    def newest(self) -> NodeFacts:
        """Return the facts of the node at the start of its newest job."""
        return self.jobs[-1].provenance.facts


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
        return {f"{each.host}.json": _text(each) for each in known}

    slices = _slices(list(probes))
    yield from parallel_map(contents, slices, large=len(slices) > 1)


def _text(node: Node) -> bytes:
    return f"{node.model_dump_json(indent=1)}\n".encode()


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
    slices = _slices(paths)
    read = parallel_map(partial(_slice, steps), slices, large=len(slices) > 1)
    by_host: dict[str, Node] = {}
    for nodes in read:
        by_host |= {node.host: node for node in nodes}
    return by_host


def some_nodes(run: Run, hosts: Collection[str]) -> dict[str, Node]:
    """Return those of `nodes_of` that are in `hosts`. Of a sealed run only their files are read."""
    if not found_in(run.folder):
        return {host: node for host, node in nodes_of(run).items() if host in hosts}
    paths = [path for path in paths_in(run.files.nodes, "*.json") if path.stem in hosts]
    steps = tuple(step.id for step in run.plan.steps())
    return {node.host: node for node in _slice(steps, paths)}


def _slices(parts: Sequence[Part]) -> list[Sequence[Part]]:
    return [parts[first : first + _SLICE] for first in range(0, len(parts), _SLICE)]


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

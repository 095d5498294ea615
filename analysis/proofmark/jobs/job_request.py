"""Makes the request of a job to its scheduler."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, islice
from math import ceil
from pathlib import Path

from proofmark.machine.scheduler import Request
from proofmark.plan.plan import Job, Step
from proofmark.plan.rank_cpus import RankCpus, ranges_of
from proofmark.plan.totals import longest_step_s, requested_s
from proofmark.runs.cost_history import measured_cost
from proofmark.runs.job_folder import cut_before
from proofmark.runs.run import Run, site_of
from proofmark.runs.run_files import RunFiles
from proofmark.runs.work_folder import work_files
from proofmark.site.execution import Queue


@dataclass(frozen=True)
class BatchQueue:
    """Where the jobs of a run are submitted.

    Attributes:
        scheduler: name of the scheduler.
        queue: the settings of the queue.
        measured: the seconds of steps in earlier runs, by id.
    """

    scheduler: str
    queue: Queue = field(default_factory=Queue)
    measured: Mapping[str, float] = field(default_factory=dict)


def batch_of(run: Run, scheduler: str = "") -> BatchQueue:
    """Return where the jobs of `run` are submitted; `scheduler` replaces that of the site."""
    partition = site_of(run).partition
    measured = measured_cost(run.plan, run.folder.parent).seconds
    return BatchQueue(scheduler or partition.scheduler, partition.queue, measured)


def request(job: Job, name: str, log: Path, batch: BatchQueue, *, was_cut: bool = False) -> Request:
    """Return the request of `job`.

    Its time limit is `proofmark.plan.totals.requested_s`. Its CPUs are those of the queue, or
    as many as the step uses that uses the most.

    Args:
        job: the job.
        name: its name in the queue.
        log: the file for its messages.
        batch: where it is submitted.
        was_cut: whether its last attempt ended at its time limit. Then its time limit is at least
            that of its longest step.
    """
    queue, unlike = batch.queue, unlike_steps(job.steps)
    seconds = requested_s(job.steps, queue, batch.measured)
    return Request(
        name=name,
        nodes=job.nodes,
        seconds=max(seconds, longest_step_s(job.steps, queue)) if was_cut else seconds,
        log=log,
        queue=queue,
        independent=all(step.scope != "job" for step in job.steps),
        cpus=queue.cpus_per_node or max(map(cpus_used, unlike)),
        tasks=_tasks(unlike, len(job.nodes)),
        threads=max(map(_threads, unlike)),
    )


def unlike_steps(steps: Iterable[Step]) -> list[Step]:
    """Return the first of the steps that have the same ranks: repeats share their list of CPUs."""
    found: dict[tuple[object, ...], Step] = {}
    for step in steps:
        shared = (id(step.cpus), id(step.load))
        key = (*shared, step.scope, len(step.nodes), step.ranks, step.threads, step.copies)
        found.setdefault(key, step)
    return list(found.values())


def cpus_used(step: Step) -> int:
    """Return the largest number of CPUs that `step` uses on a node.

    A program that binds its own processes uses a CPU for each thread of each rank, and its ranks
    are distributed evenly. A load uses other CPUs of the same nodes, or other nodes.
    """
    if step.load:
        own = cpus_used(step.model_copy(update={"load": None}))
        of_load = cpus_used(step.load.step)
        return own + of_load if step.load.place == "same-nodes" else max(own, of_load)
    if not step.cpus:
        nodes = {"job": len(step.nodes), "each-node": 1, "each-pair": 2}[step.scope]
        return ceil(step.ranks / nodes) * step.threads
    of_nodes: dict[int, set[int]] = {}
    for first, each in ranges_of(step.cpus):
        of_nodes.setdefault(first, set()).update(*each.cpus)
    return max(map(len, of_nodes.values()))


def _threads(step: Step) -> int:
    widths = (max(map(len, each.cpus), default=0) for _, each in ranges_of(step.cpus))
    return max(widths, default=step.threads)


def _tasks(steps: Sequence[Step], nodes: int) -> list[Sequence[int]]:
    """Return the numbers of the ranks of a job of `steps` on each of its nodes, see `Request`.

    They are those of the step with the most ranks. A node gets more of them if it has none, or if
    another step has more ranks there.
    """
    counts = [_counts(step, nodes) for step in steps]
    most = max(range(len(steps)), key=lambda place: sum(counts[place]))
    tasks = _ranks_of_nodes(steps[most], nodes)
    needed = [max(1, *of_node) for of_node in zip(*counts, strict=True)]
    numbers = count(sum(map(len, tasks)))
    return [
        [*ranks, *islice(numbers, each - len(ranks))] if each > len(ranks) else ranks
        for each, ranks in zip(needed, tasks, strict=True)
    ]


def _counts(step: Step, nodes: int) -> list[int]:
    """Return the number of the ranks of `step` on each of `nodes` nodes."""
    if step.scope != "job":
        of_nodes = Counter[int]()
        for node, each in ranges_of(step.cpus):
            of_nodes[node] += len(each.cpus)
        return [max(of_nodes.values(), default=step.ranks)] * nodes
    unbound = 0 if step.cpus else step.ranks
    counts = [len(range(node, unbound, nodes)) for node in range(nodes)]
    for before, cpus in ((0, step.cpus), *_of_load(step, nodes)):
        for first, each in ranges_of(cpus):
            for node in range(before + first, before + first + each.nodes):
                counts[node] += len(each.cpus)
    return counts


def _of_load(step: Step, nodes: int) -> list[tuple[int, Sequence[RankCpus]]]:
    """Return the first of `nodes` nodes and the ranks of the load of a step; empty without one."""
    load = step.load
    return [(nodes - len(load.step.nodes), load.step.cpus)] if load else []


def _ranks_of_nodes(step: Step, nodes: int) -> list[Sequence[int]]:
    """Return the numbers of the ranks of `step` on each of `nodes` nodes, mostly as ranges."""
    if step.scope != "job":
        alike = _counts(step, 1)[0]
        return [range(node * alike, (node + 1) * alike) for node in range(nodes)]
    unbound = 0 if step.cpus else step.ranks
    ranks: list[Sequence[int]] = [range(node, unbound, nodes) for node in range(nodes)]
    number = unbound
    for before, cpus in ((0, step.cpus), *_of_load(step, nodes)):
        for first, each in ranges_of(cpus):
            for node in range(before + first, before + first + each.nodes):
                more = range(number, number + len(each.cpus))
                ranks[node] = [*ranks[node], *more] if ranks[node] else more
                number += len(each.cpus)
    return ranks


def request_of(run: Path, job: Job, batch: BatchQueue) -> Request:
    """Return the request of `job` of the run in the folder `run`."""
    folder = run.resolve()
    name, log = f"{_begin(folder)}{job.id}", work_files(folder).job(job.id).messages
    return request(job, name, log, batch, was_cut=cut_before(RunFiles(folder).queued(job.id)))


def job_names(run: Path) -> str:
    """Return the beginning of the names of all jobs of a run.

    A name has 15 characters, the most in old versions of PBS.
    """
    return _begin(run.resolve())


def _begin(folder: Path) -> str:
    return f"p{hashlib.sha256(str(folder).encode()).hexdigest()[:6]}-"

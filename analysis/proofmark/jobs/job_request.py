"""The request of a job to its scheduler, its parts, and what keeps it from running on its site.

A part of a job has fewer nodes or steps. The checks of the site need no access to its nodes.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, islice
from math import ceil
from pathlib import Path

from proofmark.common.errors import BadInput, InputError
from proofmark.common.nodesets import folded
from proofmark.jobs.launcher import LAUNCHERS, launchers_of_ranks
from proofmark.machine.scheduler import (
    IDLE,
    SCHEDULERS,
    NodeStates,
    NodeUse,
    Request,
    is_closed,
    is_down,
    scheduler,
)
from proofmark.plan.plan import Job, Plan, Step
from proofmark.plan.rank_cpus import ranges_of
from proofmark.plan.totals import longest_step_s, requested_s
from proofmark.runs.job_folder import JobSubmission, cut_before
from proofmark.runs.run import Run, site_of
from proofmark.runs.run_files import RunFiles, work_files
from proofmark.site.execution import Queue
from proofmark.site.inventory import Site
from proofmark.site.machines import machines_of


@dataclass(frozen=True)
class BatchQueue:
    """Where the jobs of a run are submitted."""

    scheduler: str
    queue: Queue = field(default_factory=Queue)


def batch_of(run: Run, scheduler: str = "") -> BatchQueue:
    """Return where the jobs of `run` are submitted; `scheduler` replaces that of the site."""
    partition = site_of(run).partition
    return BatchQueue(scheduler or partition.scheduler, partition.queue)


def request(job: Job, name: str, log: Path, batch: BatchQueue, *, was_cut: bool = False) -> Request:
    """Return the request of `job`.

    Its time limit is `proofmark.plan.totals.requested_s`. Its CPUs are those of the queue, or
    as many as the step uses that uses the most.

    Args:
        was_cut: whether its last attempt ended at its time limit. Then its time limit is at least
            that of its longest step.
    """
    queue, unlike = batch.queue, unlike_steps(job.steps)
    seconds = requested_s(job.steps, queue)
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
        return ceil(step.ranks / step.nodes_each) * step.threads
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
    numbers = [_ranks_of_nodes(step, nodes) for step in steps]
    counts = [[len(ranks) for ranks in of_step] for of_step in numbers]
    tasks = max(zip(map(sum, counts), numbers, strict=True), key=lambda each: each[0])[1]
    needed = [max(1, *of_node) for of_node in zip(*counts, strict=True)]
    further = count(sum(map(len, tasks)))
    return [
        [*ranks, *islice(further, each - len(ranks))] if each > len(ranks) else ranks
        for each, ranks in zip(needed, tasks, strict=True)
    ]


def _ranks_of_nodes(step: Step, nodes: int) -> list[Sequence[int]]:
    """Return the numbers of the ranks of `step` on each of `nodes` nodes, mostly as ranges."""
    if step.scope != "job":
        of_nodes = Counter[int]()
        for node, each in ranges_of(step.cpus):
            of_nodes[node] += len(each.cpus)
        alike = max(of_nodes.values(), default=step.ranks)
        return [range(node * alike, (node + 1) * alike) for node in range(nodes)]
    number = 0 if step.cpus else step.ranks
    ranks: list[Sequence[int]] = [range(node, number, nodes) for node in range(nodes)]
    parts = [(0, step.cpus)]
    if step.load:
        parts.append((nodes - len(step.load.step.nodes), step.load.step.cpus))
    for before, cpus in parts:
        for first, each in ranges_of(cpus):
            for node in range(before + first, before + first + each.nodes):
                more = range(number, number + len(each.cpus))
                ranks[node] = [*ranks[node], *more] if ranks[node] else more
                number += len(each.cpus)
    return ranks


def request_of(run: Path, job: Job, batch: BatchQueue) -> Request:
    """Return the request of `job` of the run in the folder `run`."""
    folder = run.resolve()
    name, log = f"{job_names(folder)}{job.id}", work_files(folder).job(job.id).messages
    return request(job, name, log, batch, was_cut=cut_before(RunFiles(folder).queued(job.id)))


def job_names(run: Path) -> str:
    """Return the beginning of the names of all jobs of a run.

    A name has 15 characters, the most in old versions of PBS.
    """
    return f"p{hashlib.sha256(str(run.resolve()).encode()).hexdigest()[:6]}-"


NOT_SELECTED = "not selected by -l"


@dataclass(frozen=True)
class Arrivals:
    """Which jobs of a run that nodes join are submitted: the jobs of which no node is down.

    Attributes:
        wait_s: how long the others are waited for after the last job has ended, in seconds.
        only: the nodes of this call; empty: all.
        reservation: that of the jobs; empty if they have none.
    """

    wait_s: float = 0.0
    only: Collection[str] = ()
    reservation: str = ""


@dataclass(frozen=True)
class JobSupply:
    """The jobs that can run: at first, and after others have ended.

    Attributes:
        first: jobs of the plan, or parts of them: fewer nodes or steps.
        follow: returns the jobs that can run after the end of a job; called after each end.
        excluded_nodes: the planned nodes that a job does not get and the reason, by id of the job.
            `follow` may add some.
        arrivals: which jobs are submitted; None: every job, also if it has to wait in the queue for
            a node that is down.
    """

    first: Iterable[Job]
    follow: Callable[[], Iterable[Job]] = tuple
    excluded_nodes: Mapping[str, str] = field(default_factory=dict)
    arrivals: Arrivals | None = None

    def held(self, jobs: Iterable[Job], nodes: NodeStates) -> dict[str, str]:
        """Return the jobs that are not submitted now, each with the nodes that it waits for.

        Args:
            nodes: the states of their nodes, as `Scheduler.nodes` returns them.
        """
        if self.arrivals is None:
            return {}
        only, own = self.arrivals.only, self.arrivals.reservation
        held: dict[str, str] = {}
        for job in jobs:
            waits = [
                f"{node}: {nodes.get(node) or NOT_SELECTED}"
                for node in job.nodes
                if is_closed(nodes.get(node, IDLE), own) or (only and node not in only)
            ]
            if waits:
                held[job.id] = "; ".join(waits)
        return held

    def rests(self, free: int, quiet_s: float) -> bool:
        """Return whether no further job is submitted: none is `free`, and the wait is over.

        `quiet_s` is the time since the last change of a job, in seconds.
        """
        return self.arrivals is not None and not free and quiet_s >= self.arrivals.wait_s


def divided(run: Run, job: Job, submission: JobSubmission) -> tuple[Job, Job | None]:
    """Return the part of a job that was submitted, and the rest of `job`; None if there is none.

    The rest are steps that became ready after the submission.
    """
    submitted = submission.steps.split()
    planned = {step.id: step for step in run.plan.steps()}
    part = [planned[name] for name in submitted if name in planned] or job.steps
    rest = [step for step in job.steps if step not in part]
    return (
        job.model_copy(update={"steps": part}),
        job.model_copy(update={"steps": rest}) if rest else None,
    )


def without_down_nodes(job: Job, nodes: NodeStates) -> tuple[Job, str]:
    """Return `job` without its nodes that are down, and these with the reasons as text.

    The text is empty if the job keeps all nodes: none is down, all are, or a step needs several. A
    reserved node stays: the job waits for it.
    """
    if len(job.nodes) < 2 or any(step.scope == "job" for step in job.steps):
        return job, ""
    down = {node: nodes[node] for node in job.nodes if is_down(nodes.get(node, IDLE))}
    if not 0 < len(down) < len(job.nodes):
        return job, ""
    available = [node for node in job.nodes if node not in down]
    why = f"{folded(down)}: {'; '.join(dict.fromkeys(down.values()))}"
    return job.model_copy(update={"nodes": available}), why


def order(job: Job, nodes: NodeStates) -> int:
    """Return the sort key of a pending job: 2 if a node is closed, 1 if one is busy, else 0."""
    states = [nodes.get(node, IDLE) for node in job.nodes]
    busy = any(state.use is NodeUse.BUSY for state in states)
    return 2 if any(map(is_closed, states)) else 1 if busy else 0


_NAME = "p000000-00-0001"
"""The form of a job's name."""


def job_mistakes(site: Site, plans: Sequence[Plan]) -> list[InputError]:
    """Return what keeps the jobs of `plans` from running on `site`.

    The keys are those of the partition's variables, without a file.
    """
    if site.partition.scheduler not in SCHEDULERS.names():
        return []  # that name is another mistake
    return [*site_mistakes(site, plans), *dict.fromkeys(_refused(site, plans))]


def site_mistakes(site: Site, plans: Sequence[Plan]) -> list[InputError]:
    """Return the mistakes of `job_mistakes` that do not depend on the number of nodes of a job."""
    of_mpi: list[Step] = []
    for plan in plans:
        of_mpi += (step for step in plan.steps() if step.launch == "mpi")
    return [
        *_operating_system(site),
        *_launcher(site, of_mpi),
        *_at_once(site, of_mpi),
        *_cpus(site),
    ]


def _operating_system(site: Site) -> Iterator[InputError]:
    system = site.partition.node.operating_system
    if system != "linux":
        found = (
            f"{system!r}: the step runner reads /proc and needs setsid and "
            "taskset, so that steps run on Linux only; plans can be made"
        )
        yield InputError("", "partition.node.operating_system", found, "linux")


def _launcher(site: Site, of_mpi: Sequence[Step]) -> Iterator[InputError]:
    """Yield a mistake if the ranks of a step of MPI would be one process."""
    partition = site.partition
    named = partition.launch.launcher
    own = scheduler(partition.scheduler).own_launcher
    if named != "plain" and (named or not own or partition.provision_from != "preinstalled"):
        return
    most = max(of_mpi, key=lambda step: step.ranks, default=None)
    if most and most.ranks > 1:
        why = "which starts one process" if named else "and the probe does not recognize its MPI"
        found = f"{named or 'nothing'!r}, {why}; {most.case} has {most.ranks} ranks"
        yield InputError("", "partition.launch.launcher", found, launchers_of_ranks())


def _at_once(site: Site, of_mpi: Sequence[Step]) -> Iterator[InputError]:
    """Yield a mistake if commands of a step of MPI that run at the same time would wait.

    The MPI is not known yet: without a named launcher it may be the one of the scheduler.
    """
    named = site.partition.launch.launcher
    names = [named] if named else scheduler(site.partition.scheduler).replaced_launchers.values()
    waiting = [
        name for name in names if name in LAUNCHERS.names() and LAUNCHERS.get(name).takes_a_core
    ]
    if not waiting:
        return
    most = max(unlike_steps(of_mpi), key=_commands_at_once, default=None)
    if most is None or _commands_at_once(most) == 1:
        return
    cores = _cores(site)
    if (commands := _commands_at_once(most)) > cores:
        found = (
            f"{waiting[0]!r}: {most.case} starts {commands} commands on a node at the same time, "
            f"and this launcher starts one on each of its {cores} cores"
        )
        accepted = ", ".join(
            name
            for name in LAUNCHERS.names()
            if name != "plain" and not LAUNCHERS.get(name).takes_a_core
        )
        yield InputError("", "partition.launch.launcher", found, accepted)


def _cores(site: Site) -> int:
    machines, _ = machines_of(site)
    return int(machines(site.partition.current_mode).symbols["cores"])


def _commands_at_once(step: Step) -> int:
    """Return the most commands of the launcher that `step` starts at the same time on a node."""
    of_node = Counter[int]()
    for copy in range(step.copies):
        of_node.update({rank.node for rank in step.cpus[copy :: step.copies]})
    load = step.load
    beside = load is not None and load.place == "same-nodes" and load.step.launch == "mpi"
    return max(of_node.values(), default=step.copies) + beside


def _cpus(site: Site) -> Iterator[InputError]:
    """Yield a mistake if a job could use fewer CPUs than a node has cores."""
    requested = site.partition.queue.cpus_per_node
    if requested is None or not scheduler(site.partition.scheduler).confines_to_cpus:
        return
    cores = _cores(site)
    if requested < cores:
        accepted = f"at least {cores}, the cores of a node, which the steps use"
        yield InputError("", "partition.queue.cpus_per_node", f"{requested}", accepted)


def extreme_requests(site: Site, plan: Plan) -> list[Request]:
    """Return the requests of the longest and of the largest job of `plan`; one may be both."""
    batch = BatchQueue(site.partition.scheduler, site.partition.queue)
    sizes = [(requested_s(job.steps, batch.queue), len(job.nodes), job) for job in plan.jobs()]
    longest = max(sizes, key=lambda each: each[:2])[2]
    largest = max(sizes, key=lambda each: (each[1], each[0]))[2]
    jobs = {longest.id: longest, largest.id: largest}.values()
    return [request(job, _NAME, Path("/jobs/messages"), batch) for job in jobs]


def _refused(site: Site, plans: Sequence[Plan]) -> Iterator[InputError]:
    """Yield what the scheduler refuses in the largest job of each plan.

    A site without a scheduler has no jobs of several nodes yet: such a job is refused later.
    """
    if site.partition.scheduler == "none":
        return
    chosen = scheduler(site.partition.scheduler)
    for plan in plans:
        *_, requested = extreme_requests(site, plan)  # the largest
        try:
            chosen.header(requested)
            chosen.host_list(requested)
        except BadInput as error:
            for mistake in error.mistakes:
                key = f"{mistake.file}.{mistake.key}"
                yield InputError("", key, mistake.found, mistake.accepted)

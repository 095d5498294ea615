"""Finds what keeps the jobs of a site from running, without access to its nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from proofmark.common.errors import BadInput, InputError
from proofmark.jobs.job_request import BatchQueue, request, unlike_steps
from proofmark.jobs.launcher import LAUNCHERS
from proofmark.machine.scheduler import SCHEDULERS, scheduler
from proofmark.plan.plan import Job, Plan, Step
from proofmark.site.inventory import Site
from proofmark.site.machines import machines_of

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
    jobs: list[Job] = []
    for plan in plans:
        jobs += plan.jobs()
    return [
        *_operating_system(site),
        *_launcher(site, jobs),
        *_at_once(site, jobs),
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


def _launcher(site: Site, jobs: Sequence[Job]) -> Iterator[InputError]:
    """Yield a mistake if the ranks of a step would be one process."""
    partition = site.partition
    named = partition.launch.launcher
    own = scheduler(partition.scheduler).own_launcher
    if named != "plain" and (named or not own or partition.provision_from != "preinstalled"):
        return
    steps = []
    for job in jobs:
        steps += [step for step in job.steps if step.launch == "mpi" and step.ranks > 1]
    if steps:
        most = max(steps, key=lambda step: step.ranks)
        why = "which starts one process" if named else "and the probe does not recognize its MPI"
        found = f"{named or 'nothing'!r}, {why}; {most.case} has {most.ranks} ranks"
        accepted = ", ".join(name for name in LAUNCHERS.names() if name != "plain")
        yield InputError("", "partition.launch.launcher", found, accepted)


def _at_once(site: Site, jobs: Sequence[Job]) -> Iterator[InputError]:
    """Yield a mistake if commands of a step that run at the same time would wait for each other.

    The MPI is not known yet: without a named launcher it may be the one of the scheduler.
    """
    named = site.partition.launch.launcher
    names = [named] if named else scheduler(site.partition.scheduler).replaced_launchers.values()
    waiting = [
        name for name in names if name in LAUNCHERS.names() and LAUNCHERS.get(name).takes_a_core
    ]
    if not waiting:
        return
    collected = []
    for job in jobs:
        collected += [step for step in job.steps if step.launch == "mpi"]
    unlike = unlike_steps(collected)
    most = max(unlike, key=_commands_at_once, default=None)
    if most is None or _commands_at_once(most) == 1:
        return
    machines, _ = machines_of(site)
    cores = machines(site.partition.current_mode).symbols["cores"]
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


def _commands_at_once(step: Step) -> int:
    """Return the most commands of the launcher that `step` starts at the same time on a node."""
    of_node = Counter[int]()
    for copy in range(step.copies):
        of_node.update({rank.node for rank in step.cpus[copy :: step.copies]})
    load = step.load
    beside = load is not None and load.place == "same-nodes" and load.step.launch == "mpi"
    return max(of_node.values(), default=step.copies) + beside


def _cpus(site: Site) -> Iterator[InputError]:
    """Yield a mistake if a job would request fewer CPUs than a node has cores."""
    requested = site.partition.queue.cpus_per_node
    if requested is None:
        return
    machines, _ = machines_of(site)
    cores = machines(site.partition.current_mode).symbols["cores"]
    if requested < cores:
        accepted = f"at least {cores}, the cores of a node, which the steps use"
        yield InputError("", "partition.queue.cpus_per_node", f"{requested}", accepted)


def _refused(site: Site, plans: Sequence[Plan]) -> Iterator[InputError]:
    """Yield what the scheduler refuses in the largest job of each plan.

    A site without a scheduler has no jobs of several nodes yet: such a job is refused later.
    """
    if site.partition.scheduler == "none":
        return
    chosen = scheduler(site.partition.scheduler)
    batch = BatchQueue(site.partition.scheduler, site.partition.queue)
    for plan in plans:
        largest = max(plan.jobs(), key=lambda job: len(job.nodes))
        requested = request(largest, _NAME, Path("/jobs/messages"), batch)
        try:
            chosen.header(requested)
            chosen.host_list(requested)
        except BadInput as error:
            for mistake in error.mistakes:
                key = f"{mistake.file}.{mistake.key}"
                yield InputError("", key, mistake.found, mistake.accepted)

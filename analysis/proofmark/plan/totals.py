"""The cost of a plan, the facts that it assumes, the time that its jobs request, and its resets.

Steps are put into jobs that fit the queue, or are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from math import ceil

from proofmark.common.errors import InputError
from proofmark.common.printed_command import setting
from proofmark.common.text import Counted, counted, duration
from proofmark.plan.plan import Group, Job, Plan, Totals
from proofmark.plan.rank_cpus import ranges_of
from proofmark.plan.step import Step
from proofmark.site.execution import Queue
from proofmark.site.fabric import UNKNOWN_LINK
from proofmark.site.firmware import Firmware, abstract, wanted
from proofmark.site.inventory import Site
from proofmark.site.machines import Machine
from proofmark.site.partition import Partition


def nodes_to_reset(plan: Plan) -> list[int]:
    """Return the number of nodes of each mode but the current one."""
    return [len(group.nodes()) for group in plan.groups if group.mode != plan.current_mode]


def resets_s(nodes: Sequence[int], firmware: Firmware | None) -> float:
    """Return the seconds of all resets: into each mode but the current one, and back."""
    if firmware is None:
        return 0.0
    batches = [-(-number // firmware.batch_size) for number in nodes]
    return (sum(batches) + max(batches, default=0)) * firmware.boot_s


def mode_lines(plan: Plan, partition: Partition) -> list[str]:
    """Return a line for each mode that a run enters, and one with the number of resets.

    The settings of a mode are those that differ from the mode before it.
    """
    firmware, nodes = partition.firmware, nodes_to_reset(plan)
    others = [group for group in plan.groups if group.mode != plan.current_mode]
    if not others:
        return [f"modes: only {plan.current_mode}, the current one; no reset, no BIOS change"]
    lines, before = [], plan.current_mode
    for group, count in zip(others, nodes, strict=True):
        not_run = f"{Counted(len([*group.steps()])):step is|steps are} NOT RUN"
        need = f"resets of {counted(count, 'node')}, else {not_run} ({setting('confirm_reboot')})"
        if firmware is None:
            need = f"{not_run}: partition.firmware is missing"
        lines.append(f"mode {group.mode}: {_changes(partition, before, group.mode)}; {need}")
        before = group.mode
    if firmware:
        back = len(set[str]().union(*(group.nodes() for group in others)))
        lines.append(
            f"resets of nodes: {sum(nodes) + back}, of which {back} back to {plan.current_mode}: "
            f"about {duration(resets_s(nodes, firmware))}"
        )
    return lines


def _changes(partition: Partition, before: str, mode: str) -> str:
    """Return the BIOS settings of `mode` that differ from those of the mode `before`."""
    old, firmware = partition.modes[before].settings, partition.firmware
    settings = partition.modes[mode].settings
    new = {name: value for name, value in settings.items() if old.get(name) != value}
    shown = {**wanted(firmware, new), **abstract(firmware, new)} if firmware else new
    return ", ".join(f"{name}={value}" for name, value in shown.items()) or "no BIOS change"


def totals(groups: Sequence[Group]) -> Totals:
    """Return the cost of `groups`.

    The files of a step that another step reads are in scratch until that step ended. So all files
    that are kept count at the same time.
    """
    jobs: list[Job] = []
    steps: list[Step] = []
    for group in groups:
        jobs += group.jobs
        steps += group.steps()
    sizes = {step.id: step.bytes * step.measurements for step in steps}
    kept = sum(sizes[step.id] for step in steps if step.kept)
    return Totals(
        jobs=len(jobs),
        steps=len(steps),
        node_hours=round(sum(len(job.nodes) * job.wall_s for job in jobs) / 3600, 4),
        bytes=sum(sizes.values()),
        scratch_peak_bytes=kept
        + max((sizes[step.id] for step in steps if not step.kept), default=0),
        wall_s=round(sum(step.wall_s for step in steps), 1),
    )


def assumed(site: Site, groups: Sequence[Group]) -> dict[str, str]:
    """Return the facts that the plan assumes, by key, each with the reason."""
    partition = site.partition
    facts = dict(partition.node.assumed)
    together = any(any(step.nodes_each > 1 for step in group.steps()) for group in groups)
    if together and partition.fabric.rate is None:
        facts["fabric.rate"] = (
            f"not declared; run times are estimated with {UNKNOWN_LINK / 1e6:g} MB/s for each node"
        )
    return facts


def idle_cores(plan: Plan, machines: Callable[[str], Machine]) -> Iterable[str]:
    """Return a line for each case that leaves cores of a node idle, with the reason.

    A case that never uses more than half of the cores, such as one of two ranks, leaves the others
    idle on purpose. Ranks that are fitted to NUMA domains are meant to use all cores.
    """
    lines = {}
    most: dict[tuple[str, str], int] = {}
    for group in plan.groups:
        topology = machines(group.mode).topology
        sizes = " + ".join(str(len(each.cores)) for each in topology.numa_domains if each.cores)
        for step in group.steps():
            on_node: list[tuple[int, ...]] = []
            for node, of_nodes in ranges_of(step.cpus):
                on_node += of_nodes.cpus if node == 0 else ()
            busy = len({topology.core_of[cpu] for cpu in chain.from_iterable(on_node)})
            start = f"{step.case}, mode {group.mode}: the ranks use"
            of = f"{busy} of {len(topology.cores)} cores of a node"
            if step.placement != "fitted":
                key = group.mode, step.case
                if busy > most.get(key, len(topology.cores) // 2):
                    most[key] = busy
                    ranks = f"{counted(len(on_node), 'rank')} × {counted(step.threads, 'thread')}"
                    lines[*key, 0] = f"{start} at most {of}: the case plans {ranks}"
                if busy == len(topology.cores):
                    lines.pop((*key, 0), None)
            elif busy < len(topology.cores):
                lines[group.mode, step.case, busy] = (
                    f"{start} {of}; each rank is inside one NUMA domain, and the domains have "
                    f"{sizes} cores"
                )
    return lines.values()


MARGIN = 2.0
"""Requested ÷ expected time, unless the longest job of the queue is shorter."""
LEAST_S = 600
"""The shortest time limit of a job, in seconds. It covers the start and the probes of nodes."""


@dataclass(frozen=True)
class JobTime:
    """The time of a job of a plan.

    Attributes:
        job: the job.
        expected_s: the expected time of its steps in seconds.
    """

    mode: str
    job: Job
    expected_s: float
    requested_s: int


def requested_s(steps: Iterable[Step], queue: Queue) -> int:
    """Return the time that a job of `steps` requests, in seconds.

    It is `MARGIN` times the expected time and at least `LEAST_S`, but at most the longest job of
    the queue. Repeats of disturbed steps are in the margin. Steps that do not finish within it run
    in the next attempt.
    """
    wanted = max(ceil(MARGIN * sum(step.wall_s for step in steps)), LEAST_S)
    return min(wanted, queue.max_walltime_s or wanted)


def longest_step_s(steps: Iterable[Step], queue: Queue) -> int:
    """Return the time limit of the longest of `steps`, as far as the queue allows it."""
    limit = max(step.timeout + step.stagger for step in steps)
    return min(limit, queue.max_walltime_s or limit)


def within_limit(steps: Sequence[Step], queue: Queue) -> Iterator[list[Step]]:
    """Yield `steps` in their order in parts; each is a job that the queue accepts."""
    part: list[Step] = []
    longest, expected = queue.max_walltime_s, 0.0
    for step in steps:
        expected += step.wall_s
        if part and longest and MARGIN * expected > longest:
            yield part
            part, expected = [], step.wall_s
        part.append(step)
    if part:
        yield part


def job_times(plan: Plan, queue: Queue) -> list[JobTime]:
    """Return the expected and the requested time of each job of `plan`, in its order."""
    times = []
    for group in plan.groups:
        for job in group.jobs:
            times.append(JobTime(group.mode, job, job.wall_s, requested_s(job.steps, queue)))
    return times


def endless_steps(file: str, steps: Iterable[Step], queue: Queue) -> Iterator[InputError]:
    """Yield a mistake for each step that is estimated longer than its time limit.

    The limit is that of the step, or the longest job of the queue, if that is shorter. A step of
    several repeats has one mistake.
    """
    for step in steps:
        key, limit, change = "timeout", step.timeout, "timeout"
        longest = queue.max_walltime_s
        if longest is not None and longest - step.stagger < limit:
            key, limit = "cost.seconds", longest - step.stagger
            change = "partition.queue.max_walltime_s"
        if step.seconds > limit:
            found = f"step {step.id}: estimated {duration(step.seconds)}, limit {duration(limit)}"
            accepted = (
                f"an estimate within the limit: fewer iterations, sizes or nodes, a larger {change}"
            )
            if len(step.nodes) > 1:
                accepted += ", or the rate of the link in partition.fabric.rate"
            yield InputError(file, key, found, accepted)

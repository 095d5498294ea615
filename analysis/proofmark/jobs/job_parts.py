"""The jobs that can run, and the part of a job that is submitted: fewer nodes or steps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from proofmark.common.nodesets import folded
from proofmark.machine.scheduler import IDLE, NodeState, NodeUse, is_closed, is_down
from proofmark.plan.plan import Job
from proofmark.runs.job_folder import JobSubmission
from proofmark.runs.run import Run

NOT_SELECTED = "not selected by -l"


@dataclass(frozen=True)
class Rolling:
    """Which jobs of a rolling run are submitted: those of which no node is down.

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
        rolling: which jobs of a rolling run are submitted; None: every job, also if it has to wait
            in the queue for a node that is down.
    """

    first: Iterable[Job]
    follow: Callable[[], Iterable[Job]] = tuple
    excluded_nodes: Mapping[str, str] = field(default_factory=dict)
    rolling: Rolling | None = None

    def held(self, jobs: Iterable[Job], nodes: Mapping[str, NodeState]) -> dict[str, str]:
        """Return the jobs that are not submitted now, each with the nodes that it waits for.

        Args:
            jobs: the jobs that are left.
            nodes: the states of their nodes, as `Scheduler.nodes` returns them.
        """
        if self.rolling is None:
            return {}
        only, own = self.rolling.only, self.rolling.reservation
        held: dict[str, str] = {}
        for job in jobs:
            waits: list[str] = []
            for node in job.nodes:
                if is_closed(nodes.get(node, IDLE), own) or (only and node not in only):
                    waits.append(f"{node}: {nodes.get(node) or NOT_SELECTED}")
            if waits:
                held[job.id] = "; ".join(waits)
        return held

    def rests(self, free: int, quiet_s: float) -> bool:
        """Return whether no further job is submitted: none is `free`, and the wait is over.

        `quiet_s` is the time since the last change of a job, in seconds.
        """
        return self.rolling is not None and not free and quiet_s >= self.rolling.wait_s


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


def without_down_nodes(job: Job, nodes: Mapping[str, NodeState]) -> tuple[Job, str]:
    """Return `job` without its nodes that are down, and these with the reasons as text.

    The text is empty if the job keeps all nodes: none is down, all are, or a step needs several. A
    reserved node stays: the job waits for it.

    Args:
        job: the job.
        nodes: the states of nodes, as `Scheduler.nodes` returns them.
    """
    if len(job.nodes) < 2 or any(step.scope == "job" for step in job.steps):
        return job, ""
    down = {node: nodes[node] for node in job.nodes if is_down(nodes.get(node, IDLE))}
    if not 0 < len(down) < len(job.nodes):
        return job, ""
    available = [node for node in job.nodes if node not in down]
    why = f"{folded(down)}: {'; '.join(dict.fromkeys(down.values()))}"
    return job.model_copy(update={"nodes": available}), why


def order(job: Job, nodes: Mapping[str, NodeState]) -> int:
    """Return the sort key of a pending job: 2 if a node is closed, 1 if one is busy, else 0."""
    states = [nodes.get(node, IDLE) for node in job.nodes]
    busy = any(state.use is NodeUse.BUSY for state in states)
    return 2 if any(map(is_closed, states)) else 1 if busy else 0

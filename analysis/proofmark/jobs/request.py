"""What a job requests of its scheduler."""

from __future__ import annotations

import hashlib
from pathlib import Path

from proofmark.machine.scheduler import Request
from proofmark.plan.plan import Job
from proofmark.runs.files import RunFiles
from proofmark.site.execution import Queue


def request(job: Job, name: str, log: Path, queue: Queue) -> Request:
    """Return what `job` asks for.

    Its time is twice what its steps should take, and never less than its longest step may: what
    does not fit runs in the next attempt.
    """
    seconds = sum(2 * step.seconds + 30 for step in job.steps)
    longest = max(step.timeout + step.stagger for step in job.steps)
    wanted = 600 + max(int(seconds), longest)
    return Request(
        name=name,
        nodes=job.nodes,
        seconds=min(wanted, queue.max_walltime_s or wanted),
        log=log,
        queue=queue,
        independent=all(step.scope != "job" for step in job.steps),
    )


def request_of(run: Path, job: Job, queue: Queue) -> Request:
    """Return what `job` of the run in the folder `run` asks the scheduler for."""
    digest = hashlib.sha256(str(run.resolve()).encode()).hexdigest()
    name = f"p{digest[:6]}-{job.id}"  # as long a name as old PBS takes
    return request(job, name, RunFiles(run.resolve()).job(job.id).messages, queue)

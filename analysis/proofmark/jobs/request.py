"""Makes the request of a job to its scheduler."""

from __future__ import annotations

import hashlib
from pathlib import Path

from proofmark.machine.scheduler import Request
from proofmark.plan.plan import Job
from proofmark.runs.files import RunFiles
from proofmark.site.execution import Queue

EXECUTIONS = 3
"""The largest number of executions of a step by a job: the first one and two repeats of it."""


def request(job: Job, name: str, log: Path, queue: Queue) -> Request:
    """Return the request of `job`.

    Its time limit is twice the expected time of its steps with the repeats of disturbed steps, and
    at least the time limit of its longest step. Steps that do not finish within it run in the next
    attempt.

    Args:
        job: the job.
        name: its name in the queue.
        log: the file for its messages.
        queue: the settings of the queue.
    """
    seconds = EXECUTIONS * sum(2 * step.seconds + 30 for step in job.steps)
    longest = max(step.timeout + step.stagger for step in job.steps)
    limit = 600 + max(int(seconds), longest)
    return Request(
        name=name,
        nodes=job.nodes,
        seconds=min(limit, queue.max_walltime_s or limit),
        log=log,
        queue=queue,
        independent=all(step.scope != "job" for step in job.steps),
    )


def request_of(run: Path, job: Job, queue: Queue) -> Request:
    """Return the request of `job` of the run in the folder `run`."""
    digest = hashlib.sha256(str(run.resolve()).encode()).hexdigest()
    name = (
        f"p{digest[:6]}-{job.id}"  # 15 characters, the longest name of a job in old versions of PBS
    )
    return request(job, name, RunFiles(run.resolve()).job(job.id).messages, queue)

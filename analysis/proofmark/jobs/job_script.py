"""The script of a job: it runs the steps of the job one after the other."""

from __future__ import annotations

import shlex
from pathlib import Path

from proofmark.common.files import write_whole
from proofmark.jobs.request import EXECUTIONS, request_of
from proofmark.jobs.step_script import GRACE_S, shell_parts
from proofmark.machine.scheduler import Request, scheduler
from proofmark.plan.plan import Job, Step
from proofmark.runs.files import RunFiles
from proofmark.site.execution import Queue


def write_job(
    run: Path, job: Job, scheduler_name: str, queue: Queue, *, repeat: bool = False
) -> Request:
    """Write ``jobs/<id>/job.sh``, which runs the steps of `job` one after the other.

    Some schedulers read the nodes from ``jobs/<id>/hosts`` beside it.

    Args:
        run: the folder of the run.
        job: the job; a pair is not measured if one of its nodes is not in the job.
        scheduler_name: name of the scheduler.
        queue: the settings of the queue.
        repeat: whether to run steps again that have a result.

    Returns:
        The request of the job to the scheduler.

    Raises:
        BadInput: the scheduler cannot run such a job.
    """
    script = RunFiles(run).job(job.id).script
    script.parent.mkdir(parents=True, exist_ok=True)
    request = request_of(run, job, queue)
    chosen = scheduler(scheduler_name)
    if hosts := chosen.host_list(request):
        write_whole(request.host_file, hosts)
    head = [
        "#!/bin/sh",
        *chosen.header(request),
        f"RUN={shlex.quote(str(run.resolve()))}",
        f"JOB={shlex.quote(job.id)}",
        f"NODES={len(job.nodes)}",
        f"AGAIN={'yes' if repeat else ''}",
        f"EXECUTIONS={EXECUTIONS} # of a disturbed step, at most",
        f"WITHOUT={shlex.quote(','.join(_absent(job))) if not repeat else ''}",
        *(chosen.fan_out(request) if len(job.nodes) > 1 else ()),
        "COUNTED='",
        *(step.id for step in job.steps if step.network_bytes),
        "'",
        "STEPS='",
        *(step.id + _seconds_on_all(step) for step in job.steps),
        "'",
        "",
    ]
    write_whole(script, "\n".join(head) + shell_parts("repeats.sh", "job.sh"))
    return request


def _absent(job: Job) -> list[str]:
    """Return the planned nodes of the pairs of `job` that are not in the job."""
    planned = {node for step in job.steps if step.scope == "each-pair" for node in step.nodes}
    return sorted(planned - set(job.nodes))


def _seconds_on_all(step: Step) -> str:
    """Return a colon and the time limit in seconds of a per-node step; else an empty string."""
    return "" if step.scope == "job" else f":{step.timeout + step.stagger + GRACE_S}"

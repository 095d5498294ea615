"""The script of a job: it runs the steps of the job one after the other."""

from __future__ import annotations

import shlex
from enum import Enum
from pathlib import Path

from proofmark.jobs.job_request import BatchQueue, request_of
from proofmark.jobs.step_script import GRACE_S, shell_parts
from proofmark.machine.scheduler import Request, scheduler
from proofmark.plan.plan import Job, Step
from proofmark.runs.disturbed_steps import EXECUTIONS, LOST_S, LOST_STEPS
from proofmark.runs.run_files import WorkFiles
from proofmark.runs.work_folder import work_files, write_scripts_of


class Manner(Enum):
    """Which steps a job runs, and when it stops."""

    UNFINISHED = 1
    """Steps without a result, and steps that were disturbed in all executions."""
    AGAIN = 2
    """All steps, also those that have a result."""
    FAIL_FAST = 3
    """As `UNFINISHED`, until the first step that failed or stays disturbed."""


def write_job(
    run: Path, job: Job, batch: BatchQueue, manner: Manner = Manner.UNFINISHED
) -> Request:
    """Write the script ``jobs/<id>/job.sh``, which runs the steps of `job` one after the other.

    Some schedulers read the nodes from ``jobs/<id>/hosts`` beside it.

    Args:
        run: the folder of the run.
        job: the job; a pair is not measured if one of its nodes is not in the job.
        batch: where it is submitted.
        manner: which steps it runs, and when it stops.

    Returns:
        The request of the job to the scheduler.

    Raises:
        BadInput: the scheduler cannot run such a job.
    """
    request, work = request_of(run, job, batch), work_files(run)
    write_scripts_of(run, job_texts(work.folder, job, request, batch.scheduler, manner))
    return request


def job_texts(
    work: Path,
    job: Job,
    request: Request,
    scheduler_name: str,
    manner: Manner = Manner.UNFINISHED,
) -> dict[str, str]:
    """Return the texts of the files of `job` with its `request`, by path in the work folder."""
    chosen = scheduler(scheduler_name)
    hosts = chosen.host_list(request)
    head = [
        "#!/bin/sh",
        *chosen.header(request),
        f"RUN={shlex.quote(str(work))}",
        f"JOB={shlex.quote(job.id)}",
        f"NODES={len(job.nodes)}",
        f"AGAIN={'yes' if manner is Manner.AGAIN else ''}",
        f"FAIL_FAST={'yes' if manner is Manner.FAIL_FAST else ''}",
        f"STAY={'yes' if len(job.nodes) > 1 and not chosen.starts_when_stopped else ''}",
        f"EXECUTIONS={EXECUTIONS} # of a disturbed step, at most",
        f"LOST_STEPS={LOST_STEPS} LOST_S={LOST_S} # after so many disturbed steps the job ends",
        f"WITHOUT={shlex.quote(','.join(_absent(job))) if manner is not Manner.AGAIN else ''}",
        *(chosen.fan_out(request) if len(job.nodes) > 1 else ()),
        "COUNTED='",
        *(step.id for step in job.steps if step.network_bytes),
        "'",
        "STEPS='",
        *(step.id + _seconds_on_all(step) for step in job.steps),
        "'",
        "",
    ]
    text = "\n".join(head) + shell_parts("repeats.sh", "job.sh")
    texts = {request.host_file: hosts} if hosts else {}
    texts[WorkFiles(work).job(job.id).script] = text
    return {f"{path.relative_to(work)}": each for path, each in texts.items()}


def _absent(job: Job) -> list[str]:
    """Return the planned nodes of the pairs of `job` that are not in the job."""
    planned = set()
    for step in job.steps:
        if step.scope == "each-pair":
            planned.update(step.nodes)
    return sorted(planned - set(job.nodes))


def _seconds_on_all(step: Step) -> str:
    """Return a colon and the time limit in seconds of a per-node step; else an empty string."""
    return "" if step.scope == "job" else f":{step.timeout + step.stagger + GRACE_S}"

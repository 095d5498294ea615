"""The script of a job: it runs the steps of the job one after the other."""

from __future__ import annotations

import shlex
from pathlib import Path

from proofmark.common.files import write_whole
from proofmark.jobs.request import request_of
from proofmark.jobs.step_script import (
    GRACE_S,
    SHELL,
)
from proofmark.machine.scheduler import Request
from proofmark.machine.scheduler import scheduler as scheduler_called
from proofmark.plan.plan import Job, Step
from proofmark.runs.files import RunFiles
from proofmark.site.execution import Queue


def write_job(run: Path, job: Job, scheduler: str, queue: Queue, *, again: bool = False) -> Request:
    """Write ``jobs/<id>/job.sh``, which runs the steps of `job` one after the other.

    A pair that has a node which `job` does not is not measured. With `again` it runs those that
    have a result once more.
    """
    script = RunFiles(run).job(job.id).script
    script.parent.mkdir(parents=True, exist_ok=True)
    asked = request_of(run, job, queue)
    chosen = scheduler_called(scheduler)
    head = [
        "#!/bin/sh",
        *chosen.header(asked),
        f"RUN={shlex.quote(str(run.resolve()))}",
        f"JOB={job.id}",
        f"NODES={len(job.nodes)}",
        f"AGAIN={'yes' if again else ''}",
        f"WITHOUT={','.join(_absent(job)) if not again else ''}",
        *(chosen.fan_out(asked) if len(job.nodes) > 1 else ()),
        "STEPS='",
        *(step.id + _seconds_on_all(step) for step in job.steps),
        "'",
        "",
    ]
    write_whole(script, "\n".join(head) + (SHELL / "job.sh").read_text())
    return asked


def _absent(job: Job) -> list[str]:
    """Return the nodes that pairs of `job` are planned for and that it has not."""
    planned = {node for step in job.steps if step.scope == "each-pair" for node in step.nodes}
    return sorted(planned - set(job.nodes))


def _seconds_on_all(step: Step) -> str:
    """Return how long a step may take that all nodes of the job run, behind a colon."""
    return "" if step.scope == "job" else f":{step.timeout + step.stagger + GRACE_S}"

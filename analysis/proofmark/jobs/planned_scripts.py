"""The scripts, launch lines and inputs of a plan before its programs are installed.

They are made by the functions that write those of a run. ``$PREFIX`` and ``$RUN_ID`` stand for what
is not known yet: folders of programs, and the name of the run. A run has six digits of a digest in
the name of a job, where a preview has ``$RUN_ID``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path

from proofmark.common.errors import BadInput
from proofmark.common.files import write_whole
from proofmark.jobs.job_request import job_names, request
from proofmark.jobs.job_script import job_texts
from proofmark.jobs.scripts import Scripts
from proofmark.machine.scheduler import Request
from proofmark.plan.plan import Job, Plan, Step
from proofmark.runs.run_files import WorkFiles
from proofmark.software.planned_programs import PREFIX

RUN_ID = "@RUN_ID@"
"""The name of the folder of a run that does not exist yet."""


@dataclass(frozen=True)
class Preview:
    """What a run of `plan` writes; its work folder would be `work`."""

    plan: Plan
    scripts: Scripts
    work: Path

    @property
    def jobs(self) -> list[Job]:
        """All jobs in the order of execution."""
        return list(self.plan.jobs())

    @cached_property
    def requests(self) -> dict[str, Request]:
        """The request of each job to the scheduler, by id of the job."""
        batch, begin, files = self.scripts.batch, job_names(self.work), WorkFiles(self.work)
        return {
            job.id: request(job, f"{begin}{job.id}", files.job(job.id).messages, batch)
            for job in self.jobs
        }

    @cached_property
    def refused(self) -> dict[str, str]:
        """Why the scheduler refuses jobs, by id of the job."""
        found = {}
        for job in self.jobs:
            try:
                self._job_texts(job)
            except BadInput as error:
                found[job.id] = f"{error}"
        return found

    def _job_texts(self, job: Job) -> dict[str, str]:
        name = self.scripts.batch.scheduler
        return job_texts(self.work, job, self.requests[job.id], name)

    def job(self, job: Job) -> dict[str, str]:
        """Return the texts of the script of `job`, and of its list of hosts.

        The key of each is its path in the work folder.

        A refused job has none.
        """
        return {} if job.id in self.refused else self._shown(self._job_texts(job))

    def step(self, step: Step) -> dict[str, str]:
        """Return the texts of the scripts and inputs of `step`, by path in the work folder."""
        return self._shown(self.scripts.of_step(RUN_ID, step))

    def write(self, folder: Path) -> None:
        """Write scripts and inputs into `folder`, as a run does; a refused job has no script."""
        steps = (self.step(step) for step in self.plan.steps())
        parts = chain([self._shown(self.scripts.of_run())], map(self.job, self.jobs), steps)
        for name, text in chain.from_iterable(part.items() for part in parts):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, text)

    def _shown(self, texts: Mapping[str, str]) -> dict[str, str]:
        begin = job_names(self.work)
        return {path: shown(text.replace(begin, f"p{RUN_ID}-")) for path, text in texts.items()}


def shown(text: str) -> str:
    """Return a text with the placeholders of a preview as a reader sees them."""
    return text.replace(PREFIX, "$PREFIX").replace(RUN_ID, "$RUN_ID")

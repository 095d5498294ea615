"""The queue of a BMC that applies changed settings by a job at the next boot."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from proofmark.machine.bmc.client import RedfishConnection
from proofmark.machine.bmc.json_body import Part
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.site.bmc_vendors.model import JobQueue


@dataclass(frozen=True)
class Job:
    """A job of the queue that sets the BIOS."""

    name: str
    state: str
    message: str


@dataclass(frozen=True)
class ConfigJobs:
    """The jobs of BMCs with one queue description.

    Attributes:
        queue: of the vendor.
        poll_s: seconds between two looks at a job.
        limit_s: seconds in which a job must reach a state.
    """

    queue: JobQueue
    poll_s: float
    limit_s: float

    def active(self, bmc: RedfishConnection) -> list[Job]:
        """Return the jobs that set the BIOS and have not ended."""
        members = bmc.get(self.queue.collection + self.queue.expand).body.items("Members")
        jobs = [_job(each) for each in members if each.text("JobType") == self.queue.kind]
        return [job for job in jobs if job.state in (*self.queue.waiting, *self.queue.running)]

    def is_waiting(self, job: Job) -> bool:
        """Return whether the job has not begun."""
        return job.state in self.queue.waiting

    def delete(self, bmc: RedfishConnection, names: Iterable[str]) -> None:
        """Delete jobs that have not begun; their settings are no longer pending."""
        for name in names:
            path = f"{self.queue.collection}/{name}"
            bmc.request("DELETE", path, accept=(200, 202, 204, 404))

    def await_ready(self, bmc: RedfishConnection, location: str) -> str:
        """Wait until the next boot executes the job of a change; return its name.

        Args:
            bmc: the connection.
            location: the path of the job in the response; empty if the response had none.

        Raises:
            NodeError: NOT_APPLIED: there is no job, it failed, or it is not ready in time.
        """
        name = location.rpartition("/")[2]
        if not name:
            name = next((job.name for job in self.active(bmc) if self.is_waiting(job)), "")
        if not name:
            raise NodeError(Outcome.NOT_APPLIED, "the BMC has no job for the changed settings")
        begun = (*self.queue.ready, *self.queue.running, *self.queue.done)
        job = self._await(lambda: self._read(bmc, name), begun)
        if job.state not in begun:
            raise NodeError(Outcome.NOT_APPLIED, _text(job))
        return name

    def await_end(self, bmc: RedfishConnection, name: str) -> None:
        """Wait for the end of the job `name`; without a name, for the end of all jobs.

        The values in effect are not final before that.

        Raises:
            NodeError: NOT_APPLIED: a job failed, or it did not end in time.
        """
        if not name:
            none = Job("", "", "")
            job = self._await(lambda: next(iter(self.active(bmc)), none), ("",))
            if job.state:
                raise NodeError(Outcome.NOT_APPLIED, _text(job))
            return
        job = self._await(lambda: self._read(bmc, name), self.queue.done)
        if job.state not in self.queue.done:
            raise NodeError(Outcome.NOT_APPLIED, _text(job))

    def _read(self, bmc: RedfishConnection, name: str) -> Job:
        return _job(bmc.get(f"{self.queue.collection}/{name}").body)

    def _await(self, read: Callable[[], Job], states: tuple[str, ...] | list[str]) -> Job:
        """Return the job when it is in one of `states`, when it failed, or after the limit."""
        end = time.monotonic() + self.limit_s
        open_states = (*self.queue.waiting, *self.queue.running)
        while True:
            job = read()
            if job.state in states or job.state not in open_states or time.monotonic() > end:
                return job
            time.sleep(self.poll_s)


def _job(part: Part) -> Job:
    return Job(part.text("Id"), part.text("JobState"), part.text("Message"))


def _text(job: Job) -> str:
    return f"job {job.name} is {job.state}: {job.message or 'no message'}"

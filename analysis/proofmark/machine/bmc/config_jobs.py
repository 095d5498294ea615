"""The queue of a BMC that applies changed settings by a job at the next boot."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from proofmark.machine.bmc.client import RedfishConnection
from proofmark.machine.bmc.collection import path_of_member, read_members
from proofmark.machine.bmc.json_body import BodyPart, described
from proofmark.machine.bmc.tasks import Waits, await_task, monitor_of
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.site.bmc_vendors.vendor_model import JobQueue

NAME = re.compile(r"(?!\.)[\w.-]{1,100}", re.ASCII)
"""The name of a job, which becomes a part of a path."""


@dataclass(frozen=True)
class ConfigJob:
    """A job of the queue.

    Attributes:
        kind: its ``JobType``.
        sets_bios: whether it sets the BIOS.
        running: whether it has begun.
    """

    name: str
    kind: str
    state: str
    message: str
    sets_bios: bool
    running: bool


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

    def active(self, bmc: RedfishConnection) -> list[ConfigJob]:
        """Return the jobs that a boot executes and that have not ended.

        Raises:
            NodeError: a request failed; UNEXPECTED: the BMC does not show all of its jobs.
        """
        path = self.queue.collection + self.queue.expand
        members = read_members(bmc, path, counted=True)
        whole = [
            each if "JobType" in each.content else bmc.get(path_of_member(each)).body
            for each in members
        ]
        kinds = (self.queue.kind, *self.queue.boot_kinds)
        jobs = [self._job(each) for each in whole if each.text("JobType") in kinds]
        return [job for job in jobs if job.state in (*self.queue.waiting, *self.queue.running)]

    def delete(self, bmc: RedfishConnection, names: Iterable[str]) -> None:
        """Delete jobs that have not begun; their settings are no longer pending."""
        for name in names:
            path = f"{self.queue.collection}/{name}"
            response = bmc.request("DELETE", path, accept=(200, 202, 204, 404))
            if monitor := monitor_of(response):
                await_task(bmc, monitor, Waits(self.poll_s, self.limit_s), lambda: False)

    def await_ready(self, bmc: RedfishConnection, location: str) -> str:
        """Wait until the next boot executes the job of a change; return its name.

        Args:
            bmc: the connection.
            location: the path of the job in the response; empty if the response had none.

        Raises:
            NodeError: NOT_APPLIED: there is no job, it failed, or it is not ready in time.
        """
        name = location.partition("?")[0].rstrip("/").rpartition("/")[2]
        if not name:  # the change joined a job
            jobs = self.active(bmc)
            name = next((job.name for job in jobs if job.sets_bios and not job.running), "")
        if not name:
            raise NodeError(Outcome.NOT_APPLIED, "the BMC has no job for the changed settings")
        _checked(name)
        begun = (*self.queue.ready, *self.queue.running, *self.queue.done)
        job = self._await(lambda: self._read(bmc, name), begun)
        if job.state not in begun:
            raise NodeError(Outcome.NOT_APPLIED, _text(job))
        return name

    def await_end(self, bmc: RedfishConnection, name: str) -> None:
        """Wait for the end of the job `name`; without a name, for the end of all jobs of the BIOS.

        The values in effect are not final before that.

        Raises:
            NodeError: NOT_APPLIED: a job failed, or it did not end in time.
        """
        if not name:
            job = self._await(lambda: self._any(bmc), ("",))
            if job.state:
                raise NodeError(Outcome.NOT_APPLIED, _text(job))
            return
        job = self._await(lambda: self._read(bmc, name), self.queue.done)
        if job.state not in self.queue.done:
            raise NodeError(Outcome.NOT_APPLIED, _text(job))

    def _any(self, bmc: RedfishConnection) -> ConfigJob:
        """Return a job that sets the BIOS and has not ended, or a job without a state."""
        none = ConfigJob("", self.queue.kind, "", "", sets_bios=True, running=False)
        return next((job for job in self.active(bmc) if job.sets_bios), none)

    def _read(self, bmc: RedfishConnection, name: str) -> ConfigJob:
        return self._job(bmc.get(f"{self.queue.collection}/{name}").body)

    def _job(self, part: BodyPart) -> ConfigJob:
        kind, state = part.text("JobType"), part.text("JobState")
        sets_bios, running = kind == self.queue.kind, state in self.queue.running
        name = _checked(part.text("Id"))
        return ConfigJob(
            name, kind, state, part.text("Message"), sets_bios=sets_bios, running=running
        )

    def _await(
        self, read: Callable[[], ConfigJob], states: tuple[str, ...] | list[str]
    ) -> ConfigJob:
        """Return the job when it is in one of `states`, when it failed, or after the limit."""
        end = time.monotonic() + self.limit_s
        open_states = (*self.queue.waiting, *self.queue.running)
        while True:
            job = read()
            if job.state in states or job.state not in open_states or time.monotonic() > end:
                return job
            time.sleep(self.poll_s)


def _checked(name: str) -> str:
    if not NAME.fullmatch(name):
        accepted = "letters, digits, '_', '.' and '-'"
        text = f"the name of a job: found {described(name)}; accepted: {accepted}"
        raise NodeError(Outcome.UNEXPECTED, text)
    return name


def _text(job: ConfigJob) -> str:
    return f"job {job.name} is {job.state}: {job.message or 'no message'}"

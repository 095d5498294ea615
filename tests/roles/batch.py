"""Runs of one job on the nodes of a virtual cluster, through a real scheduler, in this process."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from tests.emulators.vcluster import GridEngine, OpenPbs
from tests.fixtures.kit import Kit, make_kit, steps_of, until

from proofmark.jobs.job_request import BatchQueue, JobSupply
from proofmark.jobs.watch import JobMonitor
from proofmark.judge.judging import judge_run
from proofmark.plan.plan import Job
from proofmark.runs.run import Run, site_of
from proofmark.site.execution import Queue

OPENPBS = os.environ.get("PROOFMARK_OPENPBS", "")
"""The folder in which an OpenPBS is installed."""
NEEDS_OPENPBS = [
    pytest.mark.root,
    pytest.mark.soak,
    pytest.mark.skipif(not OPENPBS, reason="PROOFMARK_OPENPBS is not set: no OpenPBS was built"),
]
WAITS = 'echo "size $1"; while [ ! -e "$GO" ]; do sleep 0.05; done; echo "rate 100"; echo END'


@dataclass
class Batch:
    """A kit whose jobs go through `engine`; its program waits for `go`.

    Attributes:
        scheduler: the name of its back end.
        queue: settings of the queue that each run has.
        said: the lines that the monitor printed.
    """

    scheduler: str
    engine: GridEngine | OpenPbs
    kit: Kit
    queue: dict[str, Any] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)

    def stage(self, **queue: Any) -> Run:
        """Write a run with a step that each of all nodes measures, in one job."""
        self.kit.case(
            suites={"quick": {"scope": "each-node", "sweep": {"size": 1}}},
            environment={"GO": str(self.kit.folder / "go")},
        )
        site = self.kit.site(hosts=self.engine.cluster.names)
        settings = Queue(**{"stall_timeout_s": 20, **self.queue, **queue})
        changes = {"scheduler": self.scheduler, "queue": settings}
        partition = site.partition.model_copy(update=changes)
        return self.kit.run(site=site.model_copy(update={"partition": partition}))

    def go(self) -> None:
        """Let the programs end."""
        (self.kit.folder / "go").touch()

    def watch(self, run: Run) -> None:
        """Submit the job of `run` and follow it to its end."""
        jobs: list[Job] = [job for group in run.plan.groups for job in group.jobs]
        batch = BatchQueue(self.scheduler, site_of(run).partition.queue)
        monitor = JobMonitor(run, JobSupply(jobs), batch, self.said.append)
        while monitor.poll():
            time.sleep(1)  # each look starts commands of the scheduler

    @contextmanager
    def watched(self, run: Run, seconds: float = 120) -> Iterator[Thread]:
        """Follow `run` during the context, and until its job has ended after the context.

        Raises:
            AssertionError: the job has not ended so many seconds after the context.
        """
        thread = Thread(target=self.watch, args=(run,), daemon=True)
        thread.start()
        yield thread
        thread.join(seconds)
        assert not thread.is_alive()


def make_batch(scheduler: str, engine: GridEngine | OpenPbs, name: str, **queue: Any) -> Batch:
    """Return a kit in the folder `name` beside that of the cluster, which all nodes see."""
    kit = make_kit(engine.cluster.folder.parent / name)
    kit.program(WAITS)
    return Batch(scheduler, engine, kit, queue)


def ticket_of(run: Run) -> dict[str, Any]:
    """Return the ticket of the job of `run`, when the job has an id."""
    found: list[dict[str, Any]] = []

    def submitted() -> bool:
        tickets: list[Path] = list((run.folder / "queue").rglob("ticket.json"))
        found[:] = [ticket for path in tickets if (ticket := json.loads(path.read_text()))["id"]]
        return bool(found)

    until(submitted)
    (ticket,) = found
    return ticket


def runs_on_all(run: Run) -> None:
    """Wait until the step of `run` has started on all nodes."""
    (step,) = steps_of(run)
    nodes = len(site_of(run).hosts)
    until(lambda: len(list(step.glob("*/*/started"))) == nodes)


def is_whole(run: Run) -> bool:
    """Return whether each of all nodes measured, and no job was stopped."""
    coverage = judge_run(run).coverage
    nodes = len(site_of(run).hosts)
    return (coverage.measured, coverage.expected, coverage.stopped) == (nodes, nodes, ())

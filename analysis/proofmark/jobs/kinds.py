"""How the jobs of a kind of runs are executed, when each job does not run once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from proofmark.common.plugins import Plugins
from proofmark.jobs.scripts import Manner
from proofmark.runs.run import Run


@dataclass(frozen=True)
class Execution:
    """One call that executes the jobs of a run.

    Attributes:
        say: called with one line when the state of a job, or a count, changed.
        manner: which steps run, and when the jobs stop.
    """

    run: Run
    scheduler: str
    say: Callable[[str], None]
    prepare: Callable[[Run], object]
    manner: Manner = Manner.UNFINISHED


class KindJobs(ABC):
    """Executes the jobs of a kind of runs."""

    @abstractmethod
    def execute(self, asked: Execution) -> str:
        """Run the jobs; continue the run if it was interrupted.

        Returns, raises: see `proofmark.jobs.execute.execute`.
        """


KIND_JOBS = Plugins(KindJobs, "proofmark.jobs.kinds", "plan.json", "kind")


def jobs_of(kind: str) -> KindJobs | None:
    """Return what executes the runs of `kind`; None: each of their jobs runs once."""
    return KIND_JOBS.get(kind)() if kind in KIND_JOBS.names() else None

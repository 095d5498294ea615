"""The jobs of a twin: a child of this process simulates all nodes of a job on this machine."""

from __future__ import annotations

from proofmark.machine.scheduler import Request
from proofmark.machine.schedulers.none import ChildJobs


class SimulatedNodes(ChildJobs):
    """The jobs of a twin: a child of this process simulates all nodes of a job."""

    isolates_jobs = True

    def header(self, request: Request) -> list[str]:
        """Return no lines: a simulation can have any number of nodes."""
        return []

    def fan_out(self, request: Request) -> list[str]:
        """Return a function that runs a script once: on the machine that simulates the nodes."""
        return ["on_all() {", '\tsh "$@"', "}"]

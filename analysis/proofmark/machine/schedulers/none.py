"""No scheduler: a job is a child of this process and starts at once."""

from __future__ import annotations

from collections.abc import Sequence

from proofmark.common.errors import bad_input
from proofmark.machine.child_jobs import ChildJobs
from proofmark.machine.scheduler import DrainingScheduler, NodeStatus, Request


class NoScheduler(ChildJobs, DrainingScheduler):
    """No scheduler: a job is a child of this process and starts at once."""

    keeps_reasons = False

    def header(self, request: Request) -> list[str]:
        """Return no lines.

        Raises:
            BadInput: the job requests more than one node.
        """
        if len(request.nodes) != 1:
            found = f"'none', with a job of {len(request.nodes)} nodes"
            raise bad_input("partition", "scheduler", found, "'none' with jobs of 1 node")
        return []

    def fan_out(self, request: Request) -> list[str]:
        """Return no lines: a job of one node runs its steps itself."""
        return []

    def node_status(self, nodes: Sequence[str]) -> dict[str, NodeStatus]:
        """Return that every node is in service and idle."""
        return {node: NodeStatus(out=False, idle=True) for node in nodes}

    def drain(self, nodes: Sequence[str], reason: str) -> None:
        """Do nothing; the journal records it."""

    def resume(self, nodes: Sequence[str]) -> None:
        """Do nothing; the journal records it."""

    def reservations(self) -> dict[str, list[str]]:
        """Return no reservation: nobody can reserve a node."""
        return {}

    def missing_permission(self, node: str) -> str:
        """Return an empty text: no permission is needed."""
        return ""

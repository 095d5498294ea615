"""Asks a scheduler. An answer that cannot be read counts as no answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ParamSpec, TypeVar

from proofmark.common.errors import BadInput
from proofmark.machine.child_jobs import ChildJobs
from proofmark.machine.scheduler import (
    IDLE,
    NodeState,
    Request,
    Scheduler,
    SchedulerError,
    SchedulerUnavailable,
    is_closed,
    is_down,
)
from proofmark.runs.job_state import JobStatus, State

Given = ParamSpec("Given")
Answer = TypeVar("Answer")


class AskedScheduler:
    """A scheduler that refuses or does not answer, whatever goes wrong.

    Args:
        chosen: the scheduler.
        in_queue: whether jobs of this run are in its queue.
        reservation: that of the jobs; empty if they have none.
    """

    def __init__(
        self, chosen: Scheduler, in_queue: Callable[[], bool], reservation: str = ""
    ) -> None:
        self.chosen, self._in_queue, self._reservation = chosen, in_queue, reservation

    @property
    def ends_with_process(self) -> bool:
        """Whether its jobs end with this process."""
        return isinstance(self.chosen, ChildJobs)

    def _ask(
        self, call: Callable[Given, Answer], *given: Given.args, **named: Given.kwargs
    ) -> Answer:
        """Return the answer of `call`, a method of the scheduler.

        Raises:
            BadInput: its commands are missing, and no job of this run is in its queue.
            SchedulerError: it refuses.
            SchedulerUnavailable: it does not answer, or by something that cannot be read, or its
                commands are missing while jobs of this run are in its queue.
        """
        try:
            return call(*given, **named)
        except (SchedulerError, SchedulerUnavailable):
            raise
        except BadInput as error:
            if not self._in_queue():
                raise
            raise SchedulerUnavailable(str(error)) from None
        except Exception as error:
            if self.ends_with_process:
                raise  # nothing was read: a job could not be started
            raise SchedulerUnavailable(f"{type(error).__name__}: {error}") from error

    def states(self, ids: Sequence[str]) -> Mapping[str, JobStatus]:
        """Return the states of the jobs that it lists; no job is asked for if `ids` are empty."""
        return self._ask(self.chosen.states, ids) if ids else {}

    def find(self, name: str) -> str:
        """Return the id of the job `name` that has not ended; empty if there is none."""
        return self._ask(self.chosen.find, name)

    def submit(self, script: Path, request: Request) -> str:
        """Submit `script` and return the id of the job."""
        return self._ask(self.chosen.submit, script, request)

    def cancel(self, ids: Sequence[str]) -> None:
        """End the jobs."""
        self._ask(self.chosen.cancel, ids)

    def node_states(self, nodes: Sequence[str]) -> Mapping[str, NodeState]:
        """Return the known states of `nodes`; none if it does not answer.

        A reserved node is idle for the jobs of a reservation: no other function decides that.
        """
        try:
            states = self._ask(self.chosen.nodes, nodes)
        except (SchedulerUnavailable, SchedulerError):
            return {}
        own = self._reservation
        closed = {node for node, state in states.items() if is_closed(state)}
        opened = {node for node in closed if not is_closed(states[node], own)}
        return {node: IDLE if node in opened else state for node, state in states.items()}

    def by_id(self, job: str) -> JobStatus:
        """Return the state of a job that a listing does not show.

        A job is not VANISHED because a listing lacks it: the scheduler must say so of its id.
        """
        try:
            known = self._ask(self.chosen.ended, job)
        except (SchedulerUnavailable, SchedulerError) as error:
            return JobStatus(State.UNREACHABLE, str(error))
        return known or JobStatus(State.UNREACHABLE, "it does not say whether it has the job")

    def down_nodes(self, nodes: Sequence[str]) -> str:
        """Return those of `nodes` that are down as text, each with the reason."""
        states = self.node_states(nodes)
        return "; ".join(f"{node}: {state}" for node, state in states.items() if is_down(state))

"""Drains the nodes of a mode change, and resumes those that the run itself has drained.

A failure affects its own node. The scheduler keeps the complete reason of each drain. From before
the first change until the restore the name of the run is also on the node: a node between the two
is in service, and another controller has no other way to see whose mode it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import monotonic

from proofmark.common.errors import BadInput
from proofmark.common.nodesets import folded, nodes_by
from proofmark.common.text import counted
from proofmark.machine.bmc.back_end import Host
from proofmark.machine.modes.transition import ModeTransition
from proofmark.machine.node_commands import HOLDER
from proofmark.machine.outcome import NodeError, NodeErrors, Outcome, call_for_nodes, fan_out, split
from proofmark.machine.scheduler import (
    DrainingScheduler,
    NodeStatus,
    NodeStatuses,
    kept_for_others,
    without_reservation,
)
from proofmark.runs.journal import Journal, NodeHistory
from proofmark.runs.node_locks import NodeLocks


@dataclass(frozen=True)
class ModeResult:
    """The outcome of one node, and whether the node or its journal was changed."""

    outcome: Outcome
    text: str = ""
    changed: bool = False


ModeResults = dict[str, ModeResult]
"""The outcomes of nodes, by their names."""


def results_of(failed: Mapping[str, NodeError], *, changed: bool) -> ModeResults:
    """Return the results of nodes that failed; `changed` as in `Result`."""
    return {node: ModeResult(error.outcome, error.text, changed) for node, error in failed.items()}


def failures(results: Mapping[str, ModeResult]) -> list[str]:
    """Return one line for all nodes that failed with the same outcome and text."""
    failed = {
        node: f"{result.outcome}: {result.text}"
        for node, result in results.items()
        if result.outcome is not Outcome.OK
    }
    return [f"{folded(nodes)}: {text}" for text, nodes in nodes_by(failed).items()]


def summary(results: Mapping[str, ModeResult]) -> dict[Outcome, str]:
    """Return a line per outcome: the number of nodes, the nodes, and the text of the first."""
    by_outcome = nodes_by({node: result.outcome for node, result in results.items()})
    return {
        outcome: f"{outcome}: {counted(len(nodes), 'node')} ({folded(nodes)})"
        + (f": {results[nodes[0]].text}" if outcome is not Outcome.OK else "")
        for outcome, nodes in by_outcome.items()
    }


HELD_HINT = (
    "Restore that run on its controller first. If that is not possible: take_over=true "
    "(--take-over)"
)


@dataclass(frozen=True)
class Drains:
    """The drains of one run.

    Attributes:
        run: the folder of the run's state, with the journals.
        reservation: that of the site's own jobs; empty if there is none.
    """

    run: Path
    locks: NodeLocks
    transition: ModeTransition
    scheduler: DrainingScheduler
    hosts: Mapping[str, Host]
    reservation: str = ""

    @property
    def marks_nodes(self) -> bool:
        """Whether the run is named on the node: it is if the back end sets modes."""
        return self.transition.back_end.sets

    def mark(self, verb: str, node: str) -> str:
        """Look at, write or remove the name of the run on the node (``holder.sh``).

        Returns:
            The name of the other run from which the node was taken over, or an empty text.

        Raises:
            NodeError: HELD if the node names another run, or it cannot be reached or written.
        """
        now = datetime.now(UTC).isoformat(timespec="seconds")
        over = ("over",) if self.locks.take_over else ()
        found = self.transition.shell(node, HOLDER, (verb, self.locks.mark, now, *over)).strip()
        if found and not self.locks.take_over:
            raise NodeError(Outcome.HELD, f"the node names another run: {found}. {HELD_HINT}")
        return found

    def claim(self, node: str) -> None:
        """Hold `node` for the run, by a record of this controller and its name on the node.

        Raises:
            NodeError: HELD: another run holds it; or as of `mark`.
        """
        known = self.locks.holds(node)
        if other := self.locks.claim(node):
            raise NodeError(Outcome.HELD, other)
        try:
            if self.marks_nodes:
                self.mark("claim", node)
        except NodeError as error:
            # After another failure the name may be on the node: the restore removes it.
            if error.outcome is Outcome.HELD and not known:
                self.locks.release(node)
            raise

    def release(self, node: str) -> None:
        """End the claim of the run on `node`, first on the node.

        Raises:
            NodeError: as of `mark`; the run holds the node still.
        """
        if self.marks_nodes:
            self.mark("release", node)
        self.locks.release(node)

    def statuses(self, nodes: Sequence[str]) -> tuple[NodeStatuses, NodeErrors]:
        """Return the status of each node, and the nodes whose status is unknown."""
        statuses: NodeStatuses = {}
        unknown = call_for_nodes(
            lambda names: statuses.update(self.scheduler.node_status(names)), nodes
        )
        return without_reservation(statuses) if self.reservation else statuses, unknown

    def kept_for_others(self, nodes: Sequence[str]) -> NodeErrors:
        """Return the nodes that must not be changed now, because others have reserved them."""
        return kept_for_others(self.scheduler, nodes, self.reservation)

    def drain(self, batch: Mapping[str, NodeHistory], mode: str) -> ModeResults:
        """Drain the nodes of `batch` and wait for the end of their jobs.

        Returns:
            The nodes that others have drained or reserved since the check, and those that failed.
        """
        failed = self.kept_for_others(list(batch))
        statuses, unknown = self.statuses(list(batch))
        failed |= unknown
        for node, status in statuses.items():
            if held := held_by(status, batch[node]):
                failed[node] = NodeError(Outcome.HELD, f"drained since the check: {held}")
        results = results_of(failed, changed=False)
        nodes = [node for node in batch if node not in failed]
        reason = self.locks.reason(f"to {mode}")
        new = [
            node for node in nodes if not batch[node].drained or reason not in batch[node].reasons
        ]

        def note(add: Callable[..., None], node: str) -> None:
            address = self.hosts[node].address
            add(Journal(self.run, node), "drain", address=address, reasons=[reason])

        failed = split(fan_out(new, partial(note, Journal.intent), 1))[1]
        # Journaled drains are repeated: an interrupted command may not have done them.
        left = [node for node in nodes if node not in failed]
        failed |= call_for_nodes(lambda names: self.scheduler.drain(names, reason), left)
        done = [node for node in new if node not in failed]
        failed |= split(fan_out(done, partial(note, Journal.result), 1))[1]
        failed |= self._await_idle([node for node in nodes if node not in failed])
        return results | results_of(failed, changed=True)

    def give_reasons(self, reasons: Mapping[str, str]) -> NodeErrors:
        """Replace the reasons of the drains of nodes; return the nodes where that failed.

        A node that another user or program has drained meanwhile keeps its reason.
        """
        statuses, failed = self.statuses(list(reasons))
        own: dict[str, str] = {}
        for node, status in statuses.items():
            try:
                if not held_by(status, history_of(self.run, node)):
                    own[node] = reasons[node]
            except NodeError as error:
                failed[node] = error
        for reason, nodes in nodes_by(own).items():
            failed |= call_for_nodes(partial(self.scheduler.drain, reason=reason), nodes)
        return failed

    def resume(self, nodes: Iterable[str], final_state: str) -> ModeResults:
        """Resume nodes, except those that another user or program has drained meanwhile.

        After a restore (`final_state` is ``resume``) the run holds the nodes no longer.
        """
        names = list(nodes)
        failed: NodeErrors = {}
        held: NodeErrors = {}

        def left() -> list[str]:
            return [node for node in names if node not in failed]

        def begin(node: str) -> None:
            if self.marks_nodes and final_state == "resume":
                self.mark("release", node)
            Journal(self.run, node).intent(final_state)

        def end(node: str) -> None:
            Journal(self.run, node).result(final_state)
            if final_state == "resume":
                self.locks.release(node)
            elif node in held:
                Journal(self.run, node).result("fail", outcome=Outcome.HELD, text=held[node].text)

        failed |= split(fan_out(names, begin, self.transition.firmware.max_parallel))[1]
        statuses, unknown = self.statuses(left())
        failed |= unknown
        statuses = without_reservation(statuses)
        out = {node: status for node, status in statuses.items() if status.out}
        for node, status in out.items():
            if reason := held_by(status, history_of(self.run, node)):
                text = f"not resumed, drained by others: {reason}"
                held[node] = NodeError(Outcome.HELD, text)
        ours = [node for node in out if node not in held]
        failed |= call_for_nodes(self.scheduler.resume, ours)
        failed |= split(fan_out(left(), end, 1))[1]
        resumed = dict.fromkeys(names, ModeResult(Outcome.OK, changed=True))
        return resumed | results_of(held | failed, changed=True)

    def _await_idle(self, nodes: Sequence[str]) -> NodeErrors:
        """Wait for the end of the jobs on drained nodes; return the nodes that failed."""
        firmware = self.transition.firmware
        limit = monotonic() + firmware.drain_limit_s
        while True:
            statuses, failed = self.statuses(nodes)
            busy = [node for node, status in statuses.items() if not status.idle]
            if not busy or monotonic() > limit:
                break
            if self.transition.stop.wait(min(firmware.poll_s, 5)):
                break
        text = f"jobs still run after {firmware.drain_limit_s:.0f} s"
        failed |= {node: NodeError(Outcome.NOT_DRAINED, text) for node in busy}

        def note(node: str) -> None:
            outcome, text = failed[node].outcome, failed[node].text
            Journal(self.run, node).result("fail", outcome=outcome, text=text)

        return failed | split(fan_out(failed, note, 1))[1]


def held_by(status: NodeStatus, history: NodeHistory) -> str:
    """Return the reason of a drain that is not of this run; empty if there is none.

    Each step of a mode change, from the check to the resume, decides by this function.
    """
    if not status.out_by_others(history.reasons):
        return ""
    # A drain of this run has a reason, which a reset can remove. A node that this run did not drain
    # was drained by an administrator, or is in a state in which the scheduler starts no job.
    return status.reason or ("" if history.drained else status.why or "no reason is given")


def history_of(run: Path, node: str) -> NodeHistory:
    """Return the history of a node from its journal in the state folder `run`.

    Raises:
        NodeError: BAD_JOURNAL: its journal is damaged.
    """
    try:
        return Journal(run, node).history()
    except BadInput as error:
        raise NodeError(Outcome.BAD_JOURNAL, str(error)) from None

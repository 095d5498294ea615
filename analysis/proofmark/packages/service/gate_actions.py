"""Holds nodes by a reservation while they are measured, then resumes or drains each of them.

A drained node starts no job. A reserved node starts only jobs of the reservation. Therefore the
nodes are reserved first, and only then those that were drained are resumed. Until the decision no
job of another user starts on them, also if this program ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Event
from time import monotonic

from proofmark.common.nodesets import folded
from proofmark.common.text import duration
from proofmark.machine.outcome import NodeError, Outcome, call_for_nodes
from proofmark.machine.scheduler import (
    DOWN,
    NodeState,
    NodeStatus,
    ReservingScheduler,
    is_down,
    kept_for_others,
)
from proofmark.packages.service.gates import GateState, State
from proofmark.runs.checks import GateCheck, append_checks

ANSWER_S = 120.0
"""The time in which the daemon of the scheduler on a node without jobs must answer."""
NO_REASON = "no reason is given"
"""The reason that a node gets again that was drained without one. Slurm requires a reason."""
NOT_RESUMED = "not resumed, drained by others:"


@dataclass(frozen=True)
class NodeGate:
    """The actions of one gate on the nodes of its scheduler.

    Attributes:
        state: the state of the gate, with the journals of its nodes.
        say: gets each line of progress.
        stop: ends a wait.
        poll_s: the pause between two polls, in seconds.
    """

    state: GateState
    scheduler: ReservingScheduler
    say: Callable[[str], None]
    stop: Event
    poll_s: float = 5.0

    def check(
        self, nodes: Sequence[str], drained: Mapping[str, str], *, take_over: bool
    ) -> tuple[dict[str, NodeStatus], dict[str, NodeError]]:
        """Return the status of the nodes that the gate may hold, and why it may not hold others.

        Args:
            drained: the complete reasons with which earlier gates drained nodes.
            take_over: accept nodes that others have drained.

        Raises:
            NodeError: the scheduler does not tell the state of any node, or its reservations.
        """
        statuses, refused = self._statuses(nodes)
        if refused and not statuses:
            raise next(iter(refused.values()))
        kept = kept_for_others(self.scheduler, list(statuses), self.state.reservation)
        for error in kept.values():
            if error.outcome is not Outcome.HELD:
                raise error
        for node, status in statuses.items():
            if other := self.state.claims.other(node):
                refused[node] = NodeError(Outcome.HELD, other)
            elif node in kept:
                refused[node] = kept[node]
            elif why := _not_free(status, drained.get(node), take_over=take_over):
                refused[node] = NodeError(Outcome.HELD, why)
        free = {node: status for node, status in statuses.items() if node not in refused}
        return free, refused

    def hold(
        self, nodes: Sequence[str], drained: Mapping[str, str], *, take_over: bool, wait_s: float
    ) -> dict[str, NodeError]:
        """Hold `nodes` and wait until no job runs on them; return those that are not held.

        A node that is not held is as before. Nodes that the gate holds already stay held.

        Args:
            drained: as for `check`.
            take_over: as for `check`.
            wait_s: the time limit for the jobs that run on the nodes, in seconds.

        Raises:
            NodeError: as `check`; nothing was changed.
        """
        already = self.state.held()
        fresh = [node for node in nodes if node not in already]
        before, failed = self.check(fresh, drained, take_over=take_over)
        for node, status in before.items():
            if other := self.state.claims.claim(node):
                failed[node] = NodeError(Outcome.HELD, other)
                continue
            self.state.journal(node).intent("held", out=status.out, reason=status.reason)
        held = [node for node in nodes if node not in failed]
        lost = call_for_nodes(self._add_to_reservation, held)
        held = [node for node in held if node not in lost]
        statuses, unknown = self._statuses(held)
        out = [node for node, status in statuses.items() if status.out]
        lost |= unknown | call_for_nodes(self.scheduler.resume, out)
        lost |= self._await_idle([node for node in held if node not in lost], wait_s)
        reasons = {node: f"{error}" for node, error in lost.items()}
        lost |= self._give_back(reasons, "left")
        return failed | lost

    def release(self) -> dict[str, NodeError]:
        """Give back all nodes that the gate holds; return those for which that failed.

        Each node is as before the gate: in service, or drained with the reason of that time.
        """
        return self._give_back(dict.fromkeys(self.state.held(), "released"), "released")

    def conclude(self, checks: Sequence[GateCheck]) -> dict[str, NodeError]:
        """Carry out decisions about nodes that the gate holds; return those for which that failed.

        A node that another person has drained meanwhile keeps the reason of that person.
        """
        held = self.state.held()
        decided = {check.node: check for check in checks if check.node in held}
        statuses, failed = self._statuses(list(decided))
        append_checks(self.state.site, list(decided.values()))
        drains: dict[str, list[str]] = {}
        resumes: list[str] = []
        for node, status in statuses.items():
            check = decided[node]
            others = status.out_by_others(held[node].reasons)
            if others and check.action == "resume":
                text = f"{NOT_RESUMED} {status.why or NO_REASON}"
                failed[node] = NodeError(Outcome.HELD, text)
            elif check.action == "keep" and not others:
                drains.setdefault(check.drain, []).append(node)
            elif status.out and not others:
                resumes.append(node)
        for reason, nodes in drains.items():
            for node in nodes:
                self.state.journal(node).intent("kept", reasons=[reason])
            failed |= call_for_nodes(partial(self.scheduler.drain, reason=reason), nodes)
        failed |= call_for_nodes(self.scheduler.resume, resumes)
        states: dict[str, State] = {"resume": "resumed", "keep": "kept"}
        done = [n for n in decided if n not in failed or failed[n].outcome is Outcome.HELD]
        lost = call_for_nodes(self._remove_from_reservation, done)
        for node in (node for node in done if node not in lost):
            if node in failed:
                self._end(node, "left", failed[node].text)
            else:
                self._end(node, states[decided[node].action], decided[node].reason)
        return failed | lost

    def _statuses(self, nodes: Sequence[str]) -> tuple[dict[str, NodeStatus], dict[str, NodeError]]:
        """Return the status of each node, and the nodes whose status is unknown."""
        found: dict[str, NodeStatus] = {}
        unknown = call_for_nodes(
            lambda names: found.update(self.scheduler.node_status(names)), nodes
        )
        return found, unknown

    def _await_idle(self, nodes: Sequence[str], wait_s: float) -> dict[str, NodeError]:
        """Wait until the nodes are ready for a job; return those that do not get ready."""
        begin = monotonic()
        left = list(nodes)
        printed: set[str] = set()
        while True:
            statuses, failed = self._statuses(left)
            answers: dict[str, NodeState] = {}
            mute = call_for_nodes(partial(self._take_answers, answers), left)
            busy = [node for node, status in statuses.items() if not status.idle]
            silent = [
                node
                for node, status in statuses.items()
                if status.idle and (status.out or is_down(answers.get(node, DOWN)))
            ]
            waited = monotonic() - begin
            if not busy and not silent:
                return failed
            if waited > max(wait_s, ANSWER_S if silent else 0) or self.stop.is_set():
                break
            if busy and set(busy) != printed:
                printed = set(busy)
                self.say(f"{folded(busy)}: waits for the end of the jobs, {duration(waited)}")
            self.stop.wait(self.poll_s)
        outcome = Outcome.STOPPED if self.stop.is_set() else Outcome.NOT_DRAINED
        text = f"jobs still run after {duration(wait_s)}"
        failed |= {node: NodeError(outcome, text) for node in busy}
        return failed | {
            node: mute.get(node)
            or NodeError(Outcome.NO_ANSWER, answers.get(node, "the scheduler lists no state"))
            for node in silent
        }

    def _take_answers(self, answers: dict[str, NodeState], nodes: Sequence[str]) -> None:
        answers.update(self.scheduler.nodes(nodes))

    def _give_back(self, reasons: Mapping[str, str], to: State) -> dict[str, NodeError]:
        """Make nodes as before the gate and end their hold; return those for which that failed."""
        held = {node: state for node, state in self.state.held().items() if node in reasons}
        statuses, failed = self._statuses(list(held))
        drains: dict[str, list[str]] = {}
        resumes: list[str] = []
        for node, status in statuses.items():
            before = held[node]
            if status.out_by_others(before.reasons):
                continue  # it is as before the gate, or another person has drained it
            if before.out:
                drains.setdefault(before.reason or NO_REASON, []).append(node)
            elif status.out:
                resumes.append(node)
        for reason, nodes in drains.items():
            for node in nodes:
                self.state.journal(node).intent("drain", reasons=[reason])
            failed |= call_for_nodes(partial(self.scheduler.drain, reason=reason), nodes)
        failed |= call_for_nodes(self.scheduler.resume, resumes)
        failed |= call_for_nodes(
            self._remove_from_reservation, [node for node in held if node not in failed]
        )
        for node in held:
            if node not in failed:
                self._end(node, to, reasons[node])
        return failed

    def _end(self, node: str, state: State, text: str) -> None:
        self.state.journal(node).result(state, text=text)
        self.state.claims.release(node)

    def _add_to_reservation(self, nodes: Sequence[str]) -> None:
        members = self._members()
        if wanted := [node for node in nodes if node not in members]:
            self._reserve([*members, *wanted])

    def _remove_from_reservation(self, nodes: Iterable[str]) -> None:
        members, leaving = self._members(), set(nodes)
        rest = [node for node in members if node not in leaving]
        if rest and len(rest) < len(members):
            self._reserve(rest)
        elif members and not rest:
            self.scheduler.delete_reservation(self.state.reservation)

    def _members(self) -> list[str]:
        return self.scheduler.reservations().get(self.state.reservation, [])

    def _reserve(self, nodes: Sequence[str]) -> None:
        self.scheduler.reserve(self.state.reservation, nodes, self.state.gate.user)


def _not_free(status: NodeStatus, drained: str | None, *, take_over: bool) -> str:
    """Return why a gate may not hold a node with this status; empty if it may.

    `drained` is the reason with which an earlier gate drained the node, if one did.
    """
    if not status.listed:
        return status.reason
    by_person = bool(status.reason) or "drain" in status.states
    if status.out and (status.reserved or not by_person):
        return status.why  # the gate could not give this state back
    if status.out and not take_over and status.reason != drained:
        reason = status.reason or NO_REASON
        return f"drained by others: {reason}; take_over=true accepts the node"
    return ""

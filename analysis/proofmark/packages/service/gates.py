"""The state of a gate, and how it holds nodes, resumes them or drains them.

``gates/<gate>/`` in the state of a site has the identity of the gate and one journal per node. Each
action is in the journal before it begins. An interrupted gate is continued or released from the
journals alone. The gate holds its nodes by the same records as a run (`proofmark.runs.node_locks`).

A drained node starts no job. A reserved node starts only jobs of the reservation. Therefore the
nodes are reserved first, and only then those that were drained are resumed. Until the decision no
job of another user starts on them, also if this program ends.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any, Literal

from proofmark.common.errors import bad_input
from proofmark.common.files import read_json, write_atomic
from proofmark.common.nodesets import Nodes, folded
from proofmark.common.shared_models import StrictModel
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
from proofmark.packages.service.gate_checks import GateCheck, append_checks
from proofmark.runs.journal import RESULT, Journal, journals
from proofmark.runs.node_locks import NODES, NodeLocks, Reservation
from proofmark.runs.run_files import RunFiles
from proofmark.runs.state import made, site_folder, state_lock, word

PREFIX = "gate-"
_SLUG = re.compile(r"[^A-Za-z0-9._-]+")
_SLUG_LENGTH = 40

State = Literal["", "held", "left", "released", "kept", "resumed"]


class Gate(StrictModel):
    """The identity of a gate.

    Attributes:
        id: its name, which is that of its run.
        partition: the partition of its nodes.
        run: the folder of its run, which need not exist.
        user: the user of its jobs.
        nodes: the nodes that it was asked for.
        since: the time of its begin, in ISO 8601.
        controller: the host that began it.
    """

    id: str
    partition: str
    run: str
    user: str
    nodes: Nodes
    since: str
    controller: str


@dataclass(frozen=True)
class GateNode:
    """The state of a node, from its journal.

    Attributes:
        state: ``held``: the gate holds it, or began to; ``left``: it was given back without a
            measurement; ``released``: as ``left``, by ``proofmark gate release``; ``kept`` and
            ``resumed``: it was measured; empty: nothing was begun.
        out: whether it was out of service before.
        reason: the reason in the scheduler before.
        reasons: the reasons with which the gate drained it, or was about to.
        text: why it is in this state.
    """

    state: State = ""
    out: bool = False
    reason: str = ""
    reasons: tuple[str, ...] = ()
    text: str = ""


@dataclass(frozen=True)
class GateState:
    """The state of one gate.

    Attributes:
        folder: ``gates/<gate>/``.
        site: the folder of the state of the site.
    """

    folder: Path
    site: Path
    gate: Gate

    @property
    def id(self) -> str:
        """The name of the gate."""
        return self.gate.id

    @property
    def reservation(self) -> str:
        """The name of its reservation in the scheduler."""
        return f"proofmark-{self.id}"

    @property
    def claims(self) -> NodeLocks:
        """The nodes that the gate holds."""
        return NodeLocks(self.site / NODES, self.id, Path(self.gate.run), self.gate.controller)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of the gate for the block.

        Raises:
            BadInput: another process holds it.
        """
        with state_lock(RunFiles(self.folder).lock, self.id):
            yield

    def journal(self, node: str) -> Journal:
        """Return the journal of a node."""
        return Journal(self.folder, node)

    def nodes(self) -> dict[str, GateNode]:
        """Return the state of each node with a journal.

        Raises:
            BadInput: a journal is damaged.
        """
        return {each.node: self.node(each.node) for each in journals(self.folder)}

    def node(self, name: str) -> GateNode:
        """Return the state of one node.

        Raises:
            BadInput: its journal is damaged.
        """
        journal = self.journal(name)
        try:
            return gate_node(journal.lines())
        except (AttributeError, KeyError, TypeError) as error:
            found = f"a damaged line ({error!r})"
            raise bad_input(journal.path, "", found, "its own lines") from None

    def held(self) -> dict[str, GateNode]:
        """Return the nodes that the gate holds."""
        return {node: state for node, state in self.nodes().items() if state.state == "held"}


def gate_node(lines: Iterable[Mapping[str, Any]]) -> GateNode:
    """Return the state of a node after the lines of its journal."""
    facts: dict[str, Any] = {}
    reasons: list[str] = []
    for line in lines:
        reasons += line.get("reasons", [])
        state, done = line["state"], line["event"] == RESULT
        if state == "held" and not done:
            facts |= {"state": "held", "out": line["out"], "reason": line["reason"]}
        elif state in ("left", "released", "kept", "resumed") and done:
            facts |= {"state": state, "text": line["text"]}
    return GateNode(reasons=tuple(dict.fromkeys(reasons)), **facts)


def begin_gate(
    site: str, partition: str, runs: Path, user: str, limit: str, nodes: Iterable[str]
) -> GateState:
    """Create and return a gate of `nodes`; `limit` is a part of its name.

    Args:
        limit: the host pattern that selected the nodes.
    """
    folder = made(site_folder(site) / "gates")
    now = datetime.now(UTC)
    slug = _SLUG.sub("_", limit).strip("_")[:_SLUG_LENGTH]
    first = f"{PREFIX}{now:%Y%m%dT%H%M%SZ}-{slug}"
    names = (first, *(f"{first}-{number}" for number in range(2, 100)))
    for name in names:
        try:
            (folder / name).mkdir(mode=0o755)
        except FileExistsError:
            continue  # another gate of the same second
        break
    else:
        raise bad_input(folder, first, "a hundred gates of this second", "one gate after another")
    gate = Gate(
        id=name,
        partition=partition,
        run=f"{runs / name}",
        user=user,
        nodes=list(nodes),
        since=now.isoformat(timespec="seconds"),
        controller=platform.node(),
    )
    state = GateState(folder / name, folder.parent, gate)
    reserve_for(site, Path(gate.run), state.reservation)
    made(RunFiles(folder / name).journal)
    write_atomic(RunFiles(folder / name).identity, gate.model_dump_json() + "\n")
    return state


def unnamed_gate(site: str, partition: str, user: str) -> GateState:
    """Return a gate that does not exist, for checks that change nothing."""
    base = site_folder(site)
    unnamed = Gate(
        id="none", partition=partition, run="/", user=user, nodes=[], since="", controller=""
    )
    return GateState(base / "gates" / unnamed.id, base, unnamed)


def open_gate(site: str, name: str) -> GateState:
    """Return the gate `name` of a site.

    Raises:
        BadInput: there is no such gate, or its file is damaged.
    """
    base = site_folder(site)
    folder = base / "gates" / word(name, "the gate")
    if not RunFiles(folder).identity.exists():
        known = ", ".join(each.id for each in gates(site) if each.held()) or "none"
        raise bad_input("gate", "", f"no gate {name!r}", f"a gate that holds nodes: {known}")
    return GateState(folder, base, read_json(RunFiles(folder).identity, Gate))


def gates(site: str) -> list[GateState]:
    """Return all gates of a site, the oldest first. A gate without its file did not begin."""
    base = site_folder(site)
    return [
        GateState(path, base, read_json(RunFiles(path).identity, Gate))
        for path in sorted((base / "gates").glob(f"{PREFIX}*"))
        if RunFiles(path).identity.exists()
    ]


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


def reserve_for(site: str, run: Path, name: str) -> None:
    """Note in the state of `site` that the reservation `name` is for the run in the folder `run`.

    The folder need not exist.
    """
    folder = made(site_folder(site) / "reservations")
    text = Reservation(name=name, run=f"{run}").model_dump_json()
    write_atomic(folder / f"{word(run.name, 'the run')}.json", text + "\n")

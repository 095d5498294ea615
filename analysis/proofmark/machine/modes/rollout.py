"""Mode changes of many nodes: all nodes are checked first, then changed batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from proofmark.common.errors import BadInput, InputError
from proofmark.common.nodesets import folded
from proofmark.machine.bmc.model import FirmwareState, Host, refused_settings, to_change
from proofmark.machine.fanout import fan_out, split
from proofmark.machine.modes.transition import ModeTransition, TargetMode, original_state
from proofmark.machine.modes.verification import Observation
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.machine.remote_shell import HOLDER
from proofmark.machine.scheduler import DrainingScheduler, NodeStatus
from proofmark.runs.claims import Claims
from proofmark.runs.journal import History, Journal, journals

TargetOf = Callable[[History], TargetMode]
"""Returns the target of a node from the history of the node."""


@dataclass(frozen=True)
class Result:
    """The outcome of one node, and whether the node or its journal was changed."""

    outcome: Outcome
    text: str = ""
    changed: bool = False


@dataclass(frozen=True)
class CheckedNode:
    """The state of one node before the first change."""

    history: History
    target: TargetMode
    state: FirmwareState
    observation: Observation | None


@dataclass(frozen=True)
class ModeRollout:
    """Changes the modes of the nodes of one run.

    Attributes:
        run: the folder of the run's state, with the journals.
        claims: the nodes that the run holds. Only nodes that were drained with a reason of its
            journals are resumed.
        hosts: the nodes that may be changed.
        say: gets each line of progress.
    """

    run: Path
    claims: Claims
    transition: ModeTransition
    scheduler: DrainingScheduler
    hosts: Mapping[str, Host]
    say: Callable[[str], None]

    def enter(self, nodes: Sequence[str], target: TargetMode) -> dict[str, Result]:
        """Bring `nodes` into `target`; return the result of each node.

        Raises:
            BadInput: the firmware does not offer a setting of the mode; no node was changed.
        """
        good, results = self.check(nodes, lambda _: target)
        self.check_settings(good)
        budget = self.transition.firmware.max_failures
        if len(results) > budget:
            text = f"not changed: {len(results)} of {len(nodes)} nodes cannot be reset"
            return results | dict.fromkeys(good, Result(Outcome.STOPPED, text))
        for node in list(good):
            if other := self.claims.claim(node):
                del good[node]
                results[node] = Result(Outcome.HELD, other)
        return self._change(nodes, good, results, "open", budget)

    def restore(self) -> dict[str, Result]:
        """Restore every node that the run has changed or drained, by the journals.

        A node that cannot be restored does not stop the others.
        """
        nodes = self.to_restore()
        for node in set(self.claims.nodes()) - set(nodes):
            self.claims.release(node)  # it was not changed, or its restore ended before this line
        good, results = self.check(nodes, original_state)
        for node, checked in list(good.items()):
            if texts := list(refused_settings(checked.target.attributes, checked.state.offers)):
                del good[node]
                results[node] = Result(Outcome.REFUSED, "; ".join(texts))
        return self._change(nodes, good, results, "resume", len(nodes))

    def to_restore(self) -> list[str]:
        """Return the nodes that the run has changed, and those with a damaged journal."""
        nodes = []
        for journal in journals(self.run):
            try:
                if journal.history().to_restore:
                    nodes.append(journal.node)
            except BadInput:
                nodes.append(journal.node)
        return nodes

    def check(
        self, nodes: Sequence[str], target_of: TargetOf
    ) -> tuple[dict[str, CheckedNode], dict[str, Result]]:
        """Check every node and its firmware; change nothing.

        Returns:
            The nodes that can be reached, and the results of the others.
        """
        known = [node for node in nodes if node in self.hosts]
        statuses = self.scheduler.node_status(known) if known and self._drains else {}

        def check_node(node: str) -> CheckedNode:
            if node not in self.hosts:
                text = "no host of the partition that -i and -l select"
                raise NodeError(Outcome.UNREACHABLE, text)
            history = self._history(node)
            target = target_of(history)
            if other := self.claims.other(node):
                raise NodeError(Outcome.HELD, other)
            if node in statuses and (reason := _held_by(statuses[node], history)):
                raise NodeError(Outcome.HELD, f"already drained: {reason}")
            if self._marks_nodes and not history.in_flight:
                self._mark("look", node)
            state, observation = self.transition.check(self.hosts[node], history, target)
            return CheckedNode(history, target, state, observation)

        firmware = self.transition.firmware
        good, bad = split(fan_out(nodes, check_node, firmware.max_parallel, self.transition.stop))
        return good, {node: Result(error.outcome, error.text) for node, error in bad.items()}

    def check_settings(self, nodes: Mapping[str, CheckedNode]) -> None:
        """Refuse settings of the mode that the firmware does not offer.

        Raises:
            BadInput: it names each setting and its nodes.
        """
        nodes_of: dict[str, list[str]] = {}
        for node, checked in nodes.items():
            for text in refused_settings(checked.target.attributes, checked.state.offers):
                nodes_of.setdefault(text, []).append(node)
        if nodes_of:
            accepted = "the attributes and values of its registry"
            raise BadInput(
                *(
                    InputError("firmware", f"on {folded(names)}", text, accepted)
                    for text, names in nodes_of.items()
                )
            )

    def arrived(self, checked: CheckedNode) -> bool:
        """Return whether the firmware of a node needs no change."""
        return self.transition.arrived(
            checked.history, checked.state, checked.observation, checked.target
        )

    def forecast(self, nodes: Mapping[str, CheckedNode]) -> tuple[list[str], float]:
        """Return the changes, one line for all nodes with the same changes, and their seconds."""
        nodes_of: dict[str, list[str]] = {}
        to_reset = 0
        for node, checked in nodes.items():
            text = f"nothing, in mode {checked.target.mode} already"
            if not self.arrived(checked):
                to_reset += 1
                current = checked.state.current
                changes = [
                    f"{name}: {current.get(name, 'unknown')} → {value}"
                    for name, value in to_change(checked.state, checked.target.attributes).items()
                ]
                text = ", ".join([*changes, "drain, reset, resume"])
            nodes_of.setdefault(text, []).append(node)
        firmware = self.transition.firmware
        lines = [f"{folded(names)}: {text}" for text, names in nodes_of.items()]
        return lines, -(-to_reset // firmware.batch_size) * firmware.boot_s

    @property
    def _drains(self) -> bool:
        return self.transition.back_end.drains

    @property
    def _marks_nodes(self) -> bool:
        """Whether the run must be named on the node, because no scheduler keeps a reason."""
        named = self._drains and self.scheduler.keeps_reasons
        return self.transition.back_end.sets and not named

    def _history(self, node: str) -> History:
        try:
            return Journal(self.run, node).history()
        except BadInput as error:
            raise NodeError(Outcome.UNEXPECTED, str(error)) from None

    def _mark(self, verb: str, node: str) -> None:
        """Look at, write or remove the name of the run on the node.

        Raises:
            NodeError: HELD if the node names another run, or it cannot be reached or written.
        """
        found = self.transition.shell(node, HOLDER, (verb, self.claims.name)).strip()
        if found:
            raise NodeError(Outcome.HELD, f"the node names another run: {found}")

    def _change(
        self,
        nodes: Sequence[str],
        good: Mapping[str, CheckedNode],
        results: dict[str, Result],
        final_state: str,
        budget: int,
    ) -> dict[str, Result]:
        """Change the nodes of `good`; stop after a batch with more than `budget` failures."""
        arrived = {node: checked for node, checked in good.items() if self.arrived(checked)}
        results |= self._already_there(arrived, final_state)
        to_reset = [node for node in good if node not in arrived]
        size = self.transition.firmware.batch_size
        for batch in (to_reset[at : at + size] for at in range(0, len(to_reset), size)):
            batch_results = self._batch({node: good[node] for node in batch}, final_state)
            results |= batch_results
            failed = sum(result.outcome is not Outcome.OK for result in batch_results.values())
            self.say(f"{len(results)}/{len(nodes)} nodes, {failed} of this batch failed")
            if failed > budget:
                break
        stopped = Result(Outcome.STOPPED, "not changed: an earlier batch had too many failures")
        return {node: results.get(node, stopped) for node in nodes}

    def _already_there(
        self, nodes: Mapping[str, CheckedNode], final_state: str
    ) -> dict[str, Result]:
        """Journal the nodes that need no reset, and resume those that this run has drained."""
        results = {}
        for node, checked in nodes.items():
            history, mode = checked.history, checked.target.mode
            new = history.mode != mode or bool(history.failed)
            if new and checked.observation:
                journal = Journal(self.run, node)
                seen = checked.observation.as_json()
                if history.original is None:
                    attributes, address = dict(checked.state.current), self.hosts[node].address
                    journal.result("original", address=address, attributes=attributes, seen=seen)
                journal.result("verified", mode=mode, seen=seen)
            results[node] = Result(Outcome.OK, f"in mode {mode} already", new)
        drained = [node for node, checked in nodes.items() if checked.history.drained]
        results |= dict.fromkeys(drained, Result(Outcome.OK, changed=True))
        results |= self._resume(drained, final_state)
        if final_state == "resume":
            for node in nodes.keys() - drained:
                self.claims.release(node)
        return results

    def _batch(self, batch: Mapping[str, CheckedNode], final_state: str) -> dict[str, Result]:
        mode = next(iter(batch.values())).target.mode
        self.say(f"{folded(batch)}: {len(batch)} nodes to {mode}")
        results = self._drain(batch, mode)

        def change_node(node: str) -> Observation:
            journal = Journal(self.run, node)
            try:
                if self._marks_nodes and not batch[node].history.in_flight:
                    self._mark("claim", node)
                observation = self.transition.run(self.hosts[node], batch[node].target, journal)
                if self._marks_nodes:
                    self._mark("claim", node)  # a node without a disk loses it at each boot
            except NodeError as error:
                reason = self.claims.reason(error.outcome)
                journal.result("fail", outcome=error.outcome, text=error.text, reasons=[reason])
                raise
            return observation

        drained = [node for node in batch if node not in results]
        good, bad = split(fan_out(drained, change_node, len(batch), self.transition.stop))
        for node, error in bad.items():
            self.say(f"{node}: {error}")
            results[node] = Result(error.outcome, error.text, changed=True)
            if error.outcome is not Outcome.STOPPED and self._drains:
                status = self.scheduler.node_status([node])[node]
                if not _held_by(status, self._history(node)):
                    self.scheduler.drain([node], self.claims.reason(error.outcome))
        results |= dict.fromkeys(good, Result(Outcome.OK, changed=True))
        return results | self._resume(good, final_state)

    def _drain(self, batch: Mapping[str, CheckedNode], mode: str) -> dict[str, Result]:
        """Drain the nodes and wait for the end of their jobs.

        Returns:
            The nodes that others have drained since the check, and those that are busy.
        """
        results: dict[str, Result] = {}
        if self._drains:
            statuses = self.scheduler.node_status(list(batch))
            for node, checked in batch.items():
                if reason := _held_by(statuses[node], checked.history):
                    results[node] = Result(Outcome.HELD, f"drained since the check: {reason}")
        nodes = [node for node in batch if node not in results]
        reason = self.claims.reason(f"to {mode}")
        new = [
            node
            for node in nodes
            if not batch[node].history.drained or reason not in batch[node].history.reasons
        ]
        for node in new:
            address = self.hosts[node].address
            Journal(self.run, node).intent("drain", address=address, reasons=[reason])
        if not self._drains or not nodes:
            return results
        # All nodes: an interrupted command may have journaled a drain without doing it.
        self.scheduler.drain(nodes, reason)
        for node in new:
            address = self.hosts[node].address
            Journal(self.run, node).result("drain", address=address, reasons=[reason])
        firmware = self.transition.firmware
        end = monotonic() + firmware.drain_limit_s
        while busy := [
            node for node, status in self.scheduler.node_status(nodes).items() if not status.idle
        ]:
            if monotonic() > end or self.transition.stop.wait(min(firmware.poll_s, 5)):
                break
        text = f"jobs still run after {firmware.drain_limit_s:.0f} s"
        for node in busy:
            Journal(self.run, node).result("fail", outcome=Outcome.NOT_DRAINED, text=text)
        return results | {node: Result(Outcome.NOT_DRAINED, text, changed=True) for node in busy}

    def _resume(self, nodes: Iterable[str], final_state: str) -> dict[str, Result]:
        """Resume nodes, except those that another user or program has drained meanwhile.

        Returns:
            The nodes that were not resumed. After a restore the run holds them no longer.
        """
        names = list(nodes)
        held: dict[str, Result] = {}
        if self._marks_nodes and final_state == "resume":
            unmarked = fan_out(
                names,
                lambda node: self._mark("release", node),
                self.transition.firmware.max_parallel,
            )
            failed = split(unmarked)[1]
            held |= {node: Result(each.outcome, each.text, True) for node, each in failed.items()}
            names = [node for node in names if node not in held]
        for node in names:
            Journal(self.run, node).intent(final_state)
        if names and self._drains:
            statuses = self.scheduler.node_status(names)
            out = [node for node in names if statuses[node].out]
            ours = [node for node in out if statuses[node].reason in self._history(node).reasons]
            if ours:
                self.scheduler.resume(ours)
            for node in set(out) - set(ours):
                text = f"not resumed, drained by others: {statuses[node].reason or 'no reason'}"
                held[node] = Result(Outcome.HELD, text, changed=True)
        for node in names:
            Journal(self.run, node).result(final_state)
            if final_state == "resume":
                self.claims.release(node)
            elif node in held:
                Journal(self.run, node).result("fail", outcome=Outcome.HELD, text=held[node].text)
        return held


def _held_by(status: NodeStatus, history: History) -> str:
    """Return the reason of a drain that is not of this run; empty if there is none."""
    if not status.out or status.reason in history.reasons:
        return ""
    # A drain of this run has a reason. Without a reason an administrator drained the node,
    # or a reset removed the reason.
    return status.reason or ("" if history.drained else "no reason is given")


def summary(results: Mapping[str, Result]) -> list[str]:
    """Return one line per outcome: the number of nodes, the nodes, and the text of the first."""
    by_outcome: dict[Outcome, list[str]] = {}
    for node, result in results.items():
        by_outcome.setdefault(result.outcome, []).append(node)
    return [
        f"{outcome}: {len(nodes)} nodes ({folded(nodes)})"
        + (f": {results[nodes[0]].text}" if outcome is not Outcome.OK else "")
        for outcome, nodes in by_outcome.items()
    ]

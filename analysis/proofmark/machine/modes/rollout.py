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
from proofmark.machine.scheduler import DrainingScheduler, NodeStatus
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
        run: the folder of the run.
        tag: the first word of the reason of each drain of this run. Only nodes that were drained
            with it are resumed.
        say: gets each line of progress.
    """

    run: Path
    tag: str
    transition: ModeTransition
    scheduler: DrainingScheduler
    hosts: Mapping[str, Host]
    say: Callable[[str], None]

    def enter(self, nodes: Sequence[str], target: TargetMode) -> dict[str, Result]:
        """Bring `nodes` into `target`; return the result of each node.

        Raises:
            BadInput: the firmware does not offer a setting of the mode; no node was changed.
        """
        return self._change(nodes, lambda _: target, "open")

    def restore(self) -> dict[str, Result]:
        """Restore every node that the run has changed or drained, by the journals."""
        histories = {journal.node: journal.history() for journal in journals(self.run)}
        nodes = [node for node, history in histories.items() if history.to_restore]
        return self._change(nodes, original_state, "resume")

    def check(
        self, nodes: Sequence[str], target_of: TargetOf
    ) -> tuple[dict[str, CheckedNode], dict[str, Result]]:
        """Check every node and its firmware; change nothing.

        Returns:
            The nodes that can be changed, and the results of the others.

        Raises:
            BadInput: the firmware does not offer a setting of the mode.
        """
        if not nodes:
            return {}, {}
        statuses = self.scheduler.node_status(nodes) if self._drains else {}

        def check_node(node: str) -> CheckedNode:
            history = Journal(self.run, node).history()
            target = target_of(history)
            if node in statuses and (reason := self._held_by(statuses[node], history)):
                raise NodeError(Outcome.HELD, f"already drained: {reason}")
            state, observation = self.transition.check(self.hosts[node], history, target)
            return CheckedNode(history, target, state, observation)

        firmware = self.transition.firmware
        good, bad = split(fan_out(nodes, check_node, firmware.max_parallel, self.transition.stop))
        refused: dict[str, list[str]] = {}
        for node, checked in good.items():
            for text in refused_settings(checked.target.attributes, checked.state.offers):
                refused.setdefault(text, []).append(node)
        if refused:
            accepted = "the attributes and values of its registry"
            raise BadInput(
                *(
                    InputError("firmware", f"on {folded(names)}", text, accepted)
                    for text, names in refused.items()
                )
            )
        return good, {node: Result(error.outcome, error.text) for node, error in bad.items()}

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

    def _held_by(self, status: NodeStatus, history: History) -> str:
        """Return the reason of a drain that is not of this run; empty if there is none."""
        if not status.out or status.reason.startswith(self.tag):
            return ""
        # A drain of this run has a reason. Without a reason an administrator drained the node,
        # or a reset removed the reason.
        return status.reason or ("" if history.drained else "no reason is given")

    def _change(
        self, nodes: Sequence[str], target_of: TargetOf, final_state: str
    ) -> dict[str, Result]:
        good, results = self.check(nodes, target_of)
        max_failures = self.transition.firmware.max_failures
        if len(results) > max_failures:
            text = f"not changed: {len(results)} of {len(nodes)} nodes cannot be reset"
            return results | dict.fromkeys(good, Result(Outcome.STOPPED, text))
        arrived = {node: checked for node, checked in good.items() if self.arrived(checked)}
        results |= self._already_there(arrived, final_state)
        to_reset = [node for node in good if node not in arrived]
        size = self.transition.firmware.batch_size
        for batch in (to_reset[at : at + size] for at in range(0, len(to_reset), size)):
            batch_results = self._batch({node: good[node] for node in batch}, final_state)
            results |= batch_results
            failed = sum(result.outcome is not Outcome.OK for result in batch_results.values())
            self.say(f"{len(results)}/{len(nodes)} nodes, {failed} of this batch failed")
            if failed > max_failures:
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
        self._resume(drained, final_state)
        return results | {node: Result(Outcome.OK, changed=True) for node in drained}

    def _batch(self, batch: Mapping[str, CheckedNode], final_state: str) -> dict[str, Result]:
        mode = next(iter(batch.values())).target.mode
        self.say(f"{folded(batch)}: {len(batch)} nodes to {mode}")
        results = self._drain(batch, mode)

        def change_node(node: str) -> Observation:
            journal = Journal(self.run, node)
            try:
                return self.transition.run(self.hosts[node], batch[node].target, journal)
            except NodeError as error:
                journal.result("fail", outcome=error.outcome, text=error.text)
                raise

        drained = [node for node in batch if node not in results]
        good, bad = split(fan_out(drained, change_node, len(batch), self.transition.stop))
        for node, error in bad.items():
            self.say(f"{node}: {error}")
            results[node] = Result(error.outcome, error.text, changed=True)
            if error.outcome is not Outcome.STOPPED and self._drains:
                self.scheduler.drain([node], f"{self.tag} {error.outcome}")
        self._resume(good, final_state)
        return results | {node: Result(Outcome.OK, changed=True) for node in good}

    def _drain(self, batch: Mapping[str, CheckedNode], mode: str) -> dict[str, Result]:
        """Drain the nodes and wait for the end of their jobs; return the nodes that are busy."""
        nodes = [node for node, checked in batch.items() if not checked.history.drained]
        for node in nodes:
            address = self.hosts[node].address
            Journal(self.run, node).intent("drain", address=address, tag=self.tag)
        if not self._drains:
            return {}
        # The whole batch: an interrupted command may have journaled a drain without doing it.
        self.scheduler.drain(list(batch), f"{self.tag} to {mode}")
        for node in nodes:
            address = self.hosts[node].address
            Journal(self.run, node).result("drain", address=address, tag=self.tag)
        firmware = self.transition.firmware
        end = monotonic() + firmware.drain_limit_s
        while busy := [
            node
            for node, status in self.scheduler.node_status(list(batch)).items()
            if not status.idle
        ]:
            if monotonic() > end or self.transition.stop.wait(min(firmware.poll_s, 5)):
                break
        text = f"jobs still run after {firmware.drain_limit_s:.0f} s"
        for node in busy:
            Journal(self.run, node).result("fail", outcome=Outcome.NOT_DRAINED, text=text)
        return {node: Result(Outcome.NOT_DRAINED, text, changed=True) for node in busy}

    def _resume(self, nodes: Iterable[str], final_state: str) -> None:
        """Resume nodes, except those that another user or program has drained meanwhile."""
        names = list(nodes)
        for node in names:
            Journal(self.run, node).intent(final_state)
        if names and self._drains:
            statuses = self.scheduler.node_status(names)
            drained = [node for node in names if statuses[node].reason.startswith(self.tag)]
            if drained:
                self.scheduler.resume(drained)
        for node in names:
            Journal(self.run, node).result(final_state)


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

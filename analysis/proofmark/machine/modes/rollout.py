"""Mode changes of many nodes: all nodes are checked first, then changed batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import monotonic

from proofmark.common.errors import BadInput, InputError
from proofmark.common.nodesets import folded
from proofmark.machine.bmc.model import FirmwareState, Host, refused_settings, to_change
from proofmark.machine.fanout import STOP_SIGNALS, fan_out, node_error, split
from proofmark.machine.modes.transition import ModeTransition, TargetMode, original_state
from proofmark.machine.modes.verification import Observation
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.machine.scheduler import DrainingScheduler, NodeStatus
from proofmark.runs.journal import RESTORED, History, Journal, journals

NOT_REPEATED = (
    Outcome.DENIED,  # BMCs lock accounts
    Outcome.BAD_CERTIFICATE,
    Outcome.HELD,
    Outcome.CANNOT_SET,
    Outcome.REPLACED,
    Outcome.BAD_JOURNAL,
    Outcome.NOT_DRAINED,  # these two have waited for long
    Outcome.NO_RETURN,
    Outcome.STOPPED,
)
"""Failures after which a restore is not repeated in the same command."""
PAUSE_POLLS = 6
"""The pause before a restore is repeated, in units of ``firmware.poll_s``."""
ONE_BY_ONE_S = 600.0
"""The time limit for calls of the scheduler for one node each, after it refused all together."""

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
        good, failed = self.check(nodes, lambda _: target)
        return self._change(good, failed, "open", self.transition.firmware.max_failures)

    def restore(self) -> dict[str, Result]:
        """Restore every node that the run has changed or drained, by the journals.

        A failure affects its own node. The nodes that failed are tried once more after a pause,
        except those with an outcome in `NOT_REPEATED`.
        """
        nodes, results = self.to_restore()
        results |= self._restore(nodes)
        done = (Outcome.OK, *NOT_REPEATED)
        again = [node for node, result in results.items() if result.outcome not in done]
        pause_s = PAUSE_POLLS * self.transition.firmware.poll_s
        if again and not self.transition.stop.wait(pause_s):
            self.say(f"{folded(again)}: {len(again)} nodes are tried again")
            for node, result in self._restore(again).items():
                changed = result.changed or results[node].changed
                results[node] = replace(result, changed=changed)
        return results

    def to_restore(self) -> tuple[list[str], dict[str, Result]]:
        """Return the nodes to restore, and the results of the nodes with a damaged journal."""
        nodes: list[str] = []
        damaged: dict[str, Result] = {}
        for journal in journals(self.run):
            try:
                if _history(journal).to_restore:
                    nodes.append(journal.node)
            except NodeError as error:
                damaged[journal.node] = Result(error.outcome, error.text)
        return nodes, damaged

    def check(
        self, nodes: Sequence[str], target_of: TargetOf
    ) -> tuple[dict[str, CheckedNode], dict[str, Result]]:
        """Check every node and its firmware; change nothing.

        Returns:
            The nodes that can be changed, and the results of the others.

        Raises:
            BadInput: no node offers a setting of the mode; the inventory is wrong.
            NodeError: the scheduler reports the state of no node; not raised for a restore.
        """
        if not nodes:
            return {}, {}
        statuses, unknown = self._statuses(nodes) if self._drains else ({}, {})
        if len(unknown) == len(nodes) and target_of is not original_state:
            raise next(iter(unknown.values()))

        def check_node(node: str) -> CheckedNode:
            if node in unknown:
                raise unknown[node]
            if node not in self.hosts:
                raise NodeError(Outcome.UNEXPECTED, "no node of the inventory: its BMC is unknown")
            history = _history(Journal(self.run, node))
            target = target_of(history)
            if node in statuses and (reason := self._held_by(statuses[node], history)):
                raise NodeError(Outcome.HELD, f"already drained: {reason}")
            state, observation = self.transition.check(self.hosts[node], history, target)
            return CheckedNode(history, target, state, observation)

        firmware = self.transition.firmware
        good, bad = split(fan_out(nodes, check_node, firmware.max_parallel, self.transition.stop))
        refused: dict[str, list[str]] = {}
        for node, checked in good.items():
            try:
                self._refuse(checked)
            except NodeError as error:
                bad[node] = error
                if error.outcome is Outcome.REFUSED and checked.target.mode != RESTORED:
                    refused.setdefault(error.text, []).append(node)
        if good and sum(map(len, refused.values())) == len(good):
            accepted = "the attributes and values of its registry"
            raise BadInput(
                *(
                    InputError("firmware", f"on {folded(names)}", text, accepted)
                    for text, names in refused.items()
                )
            )
        good = {node: checked for node, checked in good.items() if node not in bad}
        return good, {node: Result(error.outcome, error.text) for node, error in bad.items()}

    def _refuse(self, checked: CheckedNode) -> None:
        """Accept a node whose firmware offers the settings, and whose original can be restored.

        Raises:
            NodeError: REFUSED or CANNOT_RESTORE.
        """
        if refused := list(refused_settings(checked.target.attributes, checked.state.offers)):
            raise NodeError(Outcome.REFUSED, "; ".join(refused))
        self.transition.refuse_unrestorable(checked.history, checked.state, checked.target)

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

    def _restore(self, nodes: Sequence[str]) -> dict[str, Result]:
        good, results = self.check(nodes, original_state)
        return self._change(good, results, "resume", max_failures=len(nodes))

    def _change(
        self,
        good: Mapping[str, CheckedNode],
        failed: Mapping[str, Result],
        final_state: str,
        max_failures: int,
    ) -> dict[str, Result]:
        """Change the nodes that can be changed, batch by batch; return the results of all.

        Args:
            good: the nodes that can be changed.
            failed: the results of the others.
            final_state: ``open`` or ``resume``.
            max_failures: the number of failures in the check or in a batch that stops the change.
        """
        count = len(good) + len(failed)
        if len(failed) > max_failures:
            text = f"not changed: {len(failed)} of {count} nodes cannot be reset"
            return dict(failed) | dict.fromkeys(good, Result(Outcome.STOPPED, text))
        arrived = {node: checked for node, checked in good.items() if self.arrived(checked)}
        results = dict(failed) | self._already_there(arrived, final_state)
        to_reset = [node for node in good if node not in arrived]
        size = self.transition.firmware.batch_size
        for batch in (to_reset[at : at + size] for at in range(0, len(to_reset), size)):
            batch_results = self._batch({node: good[node] for node in batch}, final_state)
            results |= batch_results
            bad = sum(result.outcome is not Outcome.OK for result in batch_results.values())
            self.say(f"{len(results)}/{count} nodes, {bad} of this batch failed")
            if bad > max_failures:
                break
        stopped = Result(Outcome.STOPPED, "not changed: an earlier batch had too many failures")
        return {node: results.get(node, stopped) for node in [*failed, *good]}

    def _already_there(
        self, nodes: Mapping[str, CheckedNode], final_state: str
    ) -> dict[str, Result]:
        """Journal the nodes that need no reset, and resume those that this run has drained."""

        def note(node: str) -> bool:
            history, mode = nodes[node].history, nodes[node].target.mode
            observation, state = nodes[node].observation, nodes[node].state
            if observation is None:
                return False
            proven = (history.mode, history.boot_id, history.failed)
            if proven == (mode, observation.boot_id, ""):
                return False
            journal = Journal(self.run, node)
            seen = observation.as_json()
            if history.original is None:
                attributes, address = self.transition.original(state), self.hosts[node].address
                journal.result("original", address=address, attributes=attributes, seen=seen)
            journal.result("verified", mode=mode, seen=seen)
            return True

        noted, failed = split(fan_out(nodes, note, 1))
        results = {node: Result(error.outcome, error.text) for node, error in failed.items()}
        for node, new in noted.items():
            results[node] = Result(Outcome.OK, f"in mode {nodes[node].target.mode} already", new)
        drained = [node for node in noted if nodes[node].history.drained]
        return results | self._resume(drained, final_state)

    def _batch(self, batch: Mapping[str, CheckedNode], final_state: str) -> dict[str, Result]:
        mode = next(iter(batch.values())).target.mode
        self.say(f"{folded(batch)}: {len(batch)} nodes to {mode}")
        results = self._drain(batch, mode)

        def change_node(node: str) -> Observation:
            journal, begin = Journal(self.run, node), monotonic()
            checked = batch[node]
            try:
                host = self.hosts[node]
                return self.transition.run(host, checked.target, journal, checked.state)
            except STOP_SIGNALS:
                raise
            except BaseException as error:
                failure = node_error(error, node, begin)
                journal.result("fail", outcome=failure.outcome, text=failure.text)
                raise failure from None

        drained = [node for node in batch if node not in results]
        good, bad = split(fan_out(drained, change_node, len(batch), self.transition.stop))
        results |= self._resume(good, final_state)
        for node, error in bad.items():
            self.say(f"{node}: {error}")
            results[node] = Result(error.outcome, error.text, changed=True)
            if error.outcome is not Outcome.STOPPED and self._drains:
                drain = partial(self.scheduler.drain, reason=f"{self.tag} {error.outcome}")
                for failure in self._ask(drain, [node]).values():
                    self.say(f"{node}: the reason of its drain is not updated: {failure}")
        return results

    def _drain(self, batch: Mapping[str, CheckedNode], mode: str) -> dict[str, Result]:
        """Drain the nodes and wait for the end of their jobs; return those that failed."""

        def begin(node: str) -> None:
            address = self.hosts[node].address
            Journal(self.run, node).intent("drain", address=address, tag=self.tag)

        def end(node: str) -> None:
            address = self.hosts[node].address
            Journal(self.run, node).result("drain", address=address, tag=self.tag)

        nodes = [node for node, checked in batch.items() if not checked.history.drained]
        failed = split(fan_out(nodes, begin, 1))[1]
        if not self._drains:
            return _results(failed)
        # The whole batch: an interrupted command may have journaled a drain without doing it.
        left = [node for node in batch if node not in failed]
        failed |= self._ask(
            lambda names: self.scheduler.drain(names, f"{self.tag} to {mode}"), left
        )
        failed |= split(fan_out([node for node in nodes if node not in failed], end, 1))[1]
        failed |= self._await_idle([node for node in batch if node not in failed])
        return _results(failed)

    def _await_idle(self, nodes: Sequence[str]) -> dict[str, NodeError]:
        """Wait for the end of the jobs on drained nodes; return the nodes that failed."""
        firmware = self.transition.firmware
        limit = monotonic() + firmware.drain_limit_s
        while True:
            statuses, failed = self._statuses(nodes)
            busy = [node for node, status in statuses.items() if not status.idle]
            if not busy or monotonic() > limit:
                break
            if self.transition.stop.wait(min(firmware.poll_s, 5)):
                break
        text = f"jobs still run after {firmware.drain_limit_s:.0f} s"
        failed |= {node: NodeError(Outcome.NOT_DRAINED, text) for node in busy}

        def note(node: str) -> None:
            Journal(self.run, node).result(
                "fail", outcome=failed[node].outcome, text=failed[node].text
            )

        return failed | split(fan_out(failed, note, 1))[1]

    def _resume(self, nodes: Iterable[str], final_state: str) -> dict[str, Result]:
        """Resume nodes, except those that another user or program has drained meanwhile."""
        names = list(nodes)
        failed = split(fan_out(names, lambda node: Journal(self.run, node).intent(final_state), 1))[
            1
        ]
        left = [node for node in names if node not in failed]
        if self._drains:
            statuses, unknown = self._statuses(left)
            drained = [
                node for node, status in statuses.items() if status.reason.startswith(self.tag)
            ]
            failed |= unknown | self._ask(self.scheduler.resume, drained)
        left = [node for node in names if node not in failed]
        failed |= split(fan_out(left, lambda node: Journal(self.run, node).result(final_state), 1))[
            1
        ]
        resumed = dict.fromkeys(names, Result(Outcome.OK, changed=True))
        return resumed | _results(failed)

    def _statuses(self, nodes: Sequence[str]) -> tuple[dict[str, NodeStatus], dict[str, NodeError]]:
        """Return the status of each node, and the nodes whose status is unknown."""
        statuses: dict[str, NodeStatus] = {}
        unknown = self._ask(lambda names: statuses.update(self.scheduler.node_status(names)), nodes)
        return statuses, unknown

    def _ask(
        self, call: Callable[[Sequence[str]], object], nodes: Sequence[str]
    ) -> dict[str, NodeError]:
        """Call the scheduler for all nodes; return the nodes for which it failed.

        A node that the scheduler does not have makes its command fail for all. Therefore a refused
        command is repeated for each node.
        """
        begin = monotonic()
        try:
            if nodes:
                call(nodes)
            return {}
        except STOP_SIGNALS:
            raise
        except Exception as error:
            failure = node_error(error, folded(nodes), begin)
        if len(nodes) == 1 or failure.outcome is not Outcome.UNEXPECTED:
            return dict.fromkeys(nodes, failure)
        failed: dict[str, NodeError] = {}
        for node in nodes:
            in_time = monotonic() < begin + ONE_BY_ONE_S
            failed |= self._ask(call, [node]) if in_time else {node: failure}
        return failed


def _history(journal: Journal) -> History:
    """Return the history of a node.

    Raises:
        NodeError: BAD_JOURNAL: its journal is damaged.
    """
    try:
        return journal.history()
    except BadInput as error:
        raise NodeError(Outcome.BAD_JOURNAL, str(error)) from None
    except (LookupError, TypeError, ValueError, AttributeError, OSError) as error:
        problem = f"{type(error).__name__}: {error}"
        raise NodeError(Outcome.BAD_JOURNAL, f"{journal.path}: {problem}") from None


def _results(failed: Mapping[str, NodeError]) -> dict[str, Result]:
    return {node: Result(error.outcome, error.text, changed=True) for node, error in failed.items()}


def failures(results: Mapping[str, Result]) -> list[str]:
    """Return one line for all nodes that failed with the same outcome and text."""
    nodes_of: dict[tuple[str, str], list[str]] = {}
    for node, result in results.items():
        if result.outcome is not Outcome.OK:
            nodes_of.setdefault((result.outcome, result.text), []).append(node)
    return [f"{folded(nodes)}: {outcome}: {text}" for (outcome, text), nodes in nodes_of.items()]


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

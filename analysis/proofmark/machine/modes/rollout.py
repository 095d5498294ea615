"""Many nodes into a mode, and back: all checked before any is touched, then batch by batch."""

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

Goals = Callable[[History], TargetMode]


@dataclass(frozen=True)
class Result:
    """How one node fared."""

    outcome: Outcome
    text: str = ""
    changed: bool = False


@dataclass(frozen=True)
class Checked:
    """One node before anything was touched."""

    past: History
    goal: TargetMode
    reading: FirmwareState
    seen: Observation | None


@dataclass(frozen=True)
class ModeRollout:
    """What moves the nodes of one run.

    `tag` begins the reason of every drain of ours: by it we know what we may resume.
    """

    run: Path
    tag: str
    transition: ModeTransition
    drain: DrainingScheduler
    hosts: Mapping[str, Host]
    say: Callable[[str], None]

    def enter(self, nodes: Sequence[str], goal: TargetMode) -> dict[str, Result]:
        """Bring `nodes` into `goal`; return how each fared.

        Raises:
            BadInput: the firmware does not offer what the mode needs; nothing has been touched.
        """
        return self._move(nodes, lambda _: goal, "open")

    def restore(self) -> dict[str, Result]:
        """Put back every node that the journals say we moved or drained."""
        found = {each.node: each.history() for each in journals(self.run)}
        nodes = [node for node, past in found.items() if past.to_restore]
        return self._move(nodes, original_state, "resume")

    def check(
        self, nodes: Sequence[str], goals: Goals
    ) -> tuple[dict[str, Checked], dict[str, Result]]:
        """Look at every node and its firmware; touch nothing.

        Raises:
            BadInput: the firmware does not offer what the mode needs.
        """
        if not nodes:
            return {}, {}
        standing = self.drain.node_status(nodes) if self._drains else {}

        def one(node: str) -> Checked:
            past = Journal(self.run, node).history()
            goal = goals(past)
            if node in standing and (held := self._held_by(standing[node], past)):
                raise NodeError(Outcome.HELD, f"out of service already: {held}")
            reading, seen = self.transition.check(self.hosts[node], past, goal)
            return Checked(past, goal, reading, seen)

        firmware = self.transition.firmware
        good, bad = split(fan_out(nodes, one, firmware.max_parallel, self.transition.stop))
        wrong: dict[str, list[str]] = {}
        for node, checked in good.items():
            for text in refused_settings(checked.goal.attributes, checked.reading.offers):
                wrong.setdefault(text, []).append(node)
        if wrong:
            raise BadInput(
                *(
                    InputError("firmware", f"on {folded(those)}", text, "what its registry offers")
                    for text, those in wrong.items()
                )
            )
        return good, {node: Result(each.outcome, each.text) for node, each in bad.items()}

    def arrived(self, checked: Checked) -> bool:
        """Return whether nothing has to be done to the firmware of a node."""
        return self.transition.arrived(checked.past, checked.reading, checked.seen, checked.goal)

    def forecast(self, checked: Mapping[str, Checked]) -> tuple[list[str], float]:
        """Return what would change, one line for nodes of which it is the same, and the seconds."""
        found: dict[str, list[str]] = {}
        moved = 0
        for node, each in checked.items():
            words = f"nothing, in mode {each.goal.mode} already"
            if not self.arrived(each):
                moved += 1
                now = each.reading.current
                changes = [
                    f"{name}: {now.get(name, 'unknown')} → {value}"
                    for name, value in to_change(each.reading, each.goal.attributes).items()
                ]
                words = ", ".join([*changes, "drain, reset, resume"])
            found.setdefault(words, []).append(node)
        firmware = self.transition.firmware
        lines = [f"{folded(those)}: {words}" for words, those in found.items()]
        return lines, -(-moved // firmware.batch_size) * firmware.boot_s

    @property
    def _drains(self) -> bool:
        return self.transition.back_end.drains

    def _held_by(self, standing: NodeStatus, past: History) -> str:
        """Return who else has taken a node out of service, if anybody."""
        if not standing.out or standing.reason.startswith(self.tag):
            return ""
        # Ours has a reason; without one it is an administrator's, or a mark that a reset took.
        return standing.reason or ("" if past.drained else "no reason is told")

    def _move(self, nodes: Sequence[str], goals: Goals, last: str) -> dict[str, Result]:
        good, results = self.check(nodes, goals)
        budget = self.transition.firmware.max_failures
        if len(results) > budget:
            text = f"not touched: {len(results)} of {len(nodes)} nodes cannot be reset"
            return results | dict.fromkeys(good, Result(Outcome.STOPPED, text))
        there = {node: each for node, each in good.items() if self.arrived(each)}
        results |= self._already_there(there, last)
        away = [node for node in good if node not in there]
        size = self.transition.firmware.batch_size
        for batch in (away[at : at + size] for at in range(0, len(away), size)):
            done = self._batch({node: good[node] for node in batch}, last)
            results |= done
            failed = sum(each.outcome is not Outcome.OK for each in done.values())
            self.say(f"{len(results)}/{len(nodes)} nodes, {failed} of this batch failed")
            if failed > budget:
                break
        stopped = Result(Outcome.STOPPED, "not touched: an earlier batch had too many failures")
        return {node: results.get(node, stopped) for node in nodes}

    def _already_there(self, there: Mapping[str, Checked], last: str) -> dict[str, Result]:
        """Note the nodes that need no reset, and give back those that we hold."""
        results = {}
        for node, each in there.items():
            new = each.past.mode != each.goal.mode or bool(each.past.failed)
            if new and each.seen:
                log = Journal(self.run, node)
                if each.past.original is None:
                    now = dict(each.reading.current)
                    address, seen = self.hosts[node].address, each.seen.as_json()
                    log.result("original", address=address, attributes=now, seen=seen)
                log.result("verified", mode=each.goal.mode, seen=each.seen.as_json())
            results[node] = Result(Outcome.OK, f"in mode {each.goal.mode} already", new)
        held = [node for node, each in there.items() if each.past.drained]
        self._resume(held, last)
        return results | {node: Result(Outcome.OK, changed=True) for node in held}

    def _batch(self, batch: Mapping[str, Checked], last: str) -> dict[str, Result]:
        mode = next(iter(batch.values())).goal.mode
        self.say(f"{folded(batch)}: {len(batch)} nodes to {mode}")
        results = self._drain(batch, mode)

        def go(node: str) -> Observation:
            log = Journal(self.run, node)
            try:
                return self.transition.run(self.hosts[node], batch[node].goal, log)
            except NodeError as failed:
                log.result("fail", outcome=failed.outcome, text=failed.text)
                raise

        taken = [node for node in batch if node not in results]
        good, bad = split(fan_out(taken, go, len(batch), self.transition.stop))
        for node, failed in bad.items():
            self.say(f"{node}: {failed}")
            results[node] = Result(failed.outcome, failed.text, changed=True)
            if failed.outcome is not Outcome.STOPPED and self._drains:
                self.drain.drain([node], f"{self.tag} {failed.outcome}")
        self._resume(good, last)
        return results | {node: Result(Outcome.OK, changed=True) for node in good}

    def _drain(self, batch: Mapping[str, Checked], mode: str) -> dict[str, Result]:
        """Take the nodes out of service, and wait until their jobs have ended."""
        nodes = [node for node, each in batch.items() if not each.past.drained]
        for node in nodes:
            address = self.hosts[node].address
            Journal(self.run, node).intent("drain", address=address, tag=self.tag)
        if not self._drains:
            return {}
        # All of the batch: an interrupted drain of ours may have been noted and never done.
        self.drain.drain(list(batch), f"{self.tag} to {mode}")
        for node in nodes:
            address = self.hosts[node].address
            Journal(self.run, node).result("drain", address=address, tag=self.tag)
        firmware = self.transition.firmware
        until = monotonic() + firmware.drain_limit_s
        while busy := [
            n for n, each in self.drain.node_status(list(batch)).items() if not each.idle
        ]:
            if monotonic() > until or self.transition.stop.wait(min(firmware.poll_s, 5)):
                break
        text = f"jobs still run after {firmware.drain_limit_s:.0f} s"
        for node in busy:
            Journal(self.run, node).result("fail", outcome=Outcome.NOT_DRAINED, text=text)
        return {node: Result(Outcome.NOT_DRAINED, text, changed=True) for node in busy}

    def _resume(self, nodes: Iterable[str], last: str) -> None:
        """Return nodes to service, but those that somebody else has taken meanwhile."""
        every = list(nodes)
        for node in every:
            Journal(self.run, node).intent(last)
        if every and self._drains:
            standing = self.drain.node_status(every)
            ours = [node for node in every if standing[node].reason.startswith(self.tag)]
            if ours:
                self.drain.resume(ours)
        for node in every:
            Journal(self.run, node).result(last)


def summary(results: Mapping[str, Result]) -> list[str]:
    """Return one line an outcome: how many nodes, which ones, and why the first of them."""
    by_outcome: dict[Outcome, list[str]] = {}
    for node, each in results.items():
        by_outcome.setdefault(each.outcome, []).append(node)
    return [
        f"{outcome}: {len(nodes)} nodes ({folded(nodes)})"
        + (f": {results[nodes[0]].text}" if outcome is not Outcome.OK else "")
        for outcome, nodes in by_outcome.items()
    ]

"""State machine for one node's mode change.

Every action is journaled before and after, so that an interrupted change can be resumed. A resumed
change does not replay the journal: it reads the state of the machine and does what is missing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from proofmark.common.errors import BadInput
from proofmark.machine.bmc.back_end import BackEnd, Shell
from proofmark.machine.bmc.model import FirmwareState, Host, foreign_pending, to_change
from proofmark.machine.modes.verification import Observation, read_observation
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.machine.remote_shell import PROBE
from proofmark.runs.journal import RESTORED, History, Journal
from proofmark.site.firmware import Firmware, Settings


@dataclass(frozen=True)
class TargetMode:
    """Where a node shall go.

    Attributes:
        mode: its name; ``RESTORED`` for what the node was before.
        attributes: the firmware's, that make it.
        judge: raises `NodeError` where what the node shows is not it.
    """

    mode: str
    attributes: Settings
    judge: Callable[[Observation], None]

    def shown_by(self, seen: Observation) -> bool:
        """Return whether `seen` is proof of it."""
        try:
            self.judge(seen)
        except NodeError:
            return False
        return True


@dataclass(frozen=True)
class ModeTransition:
    """What takes nodes of one partition into modes, one node a call, from any thread.

    `every` names all attributes that some mode sets: those that have to be put back.
    """

    firmware: Firmware
    back_end: BackEnd
    shell: Shell
    every: Settings
    stop: threading.Event

    def look(self, node: str) -> Observation:
        """Ask the node's operating system what it shows.

        Raises:
            NodeError: it cannot be asked, or answers nonsense.
        """
        try:
            return read_observation(self.shell(node, PROBE), node, self.firmware.smbios)
        except BadInput as error:
            raise NodeError(Outcome.UNEXPECTED, str(error)) from None

    def check(
        self, host: Host, past: History, goal: TargetMode
    ) -> tuple[FirmwareState, Observation | None]:
        """Look at everything before anything is touched.

        Raises:
            NodeError: this node cannot go; the outcome says why.
        """
        reading = self.back_end.read(host, {**self.every, **goal.attributes})
        if others := foreign_pending(reading, past.staged):
            raise NodeError(Outcome.FOREIGN_PENDING, f"waits for the next boot: {_told(others)}")
        try:
            seen = self.look(host.node)
        except NodeError:
            if not past.in_flight:
                raise
            return reading, None
        if not self.back_end.sets and not goal.shown_by(seen):
            self.back_end.stage(host, reading, goal.attributes)
        return reading, seen

    def arrived(
        self, past: History, reading: FirmwareState, seen: Observation | None, goal: TargetMode
    ) -> bool:
        """Return whether a node is where it shall be, with nothing waiting."""
        if seen is None or past.in_flight or reading.pending:
            return False
        set_so = not self.back_end.reads_current_values or not to_change(reading, goal.attributes)
        return set_so and goal.shown_by(seen)

    def run(self, host: Host, goal: TargetMode, log: Journal) -> Observation:
        """Take one node that is out of service into `goal`; return what it shows there.

        Raises:
            NodeError: with the outcome; the journal has it.
        """
        past = log.history()
        if past.in_flight:
            self._await_pending_reset(host, log, past.in_flight)
        seen = self.look(host.node)
        reading = self.back_end.read(host, {**self.every, **goal.attributes})
        if past.original is None:
            now = {name: reading.current[name] for name in self.every if name in reading.current}
            log.result("original", address=host.address, attributes=now, seen=seen.as_json())
        if others := foreign_pending(reading, past.staged):
            raise NodeError(Outcome.FOREIGN_PENDING, f"waits for the next boot: {_told(others)}")
        before = dict(reading.current)
        changes = to_change(reading, goal.attributes)
        if changes or reading.pending:
            log.intent("stage", attributes=dict(goal.attributes), before=before)
            self.back_end.stage(host, reading, goal.attributes)
            log.result("stage")
        if changes or not (self.back_end.reads_current_values or goal.shown_by(seen)):
            earlier, seen = seen, self._restart(host, reading, goal, log, seen.boot_id)
            self._verify(host, goal, seen, before, earlier)
        else:
            goal.judge(seen)
        log.result("verified", mode=goal.mode, seen=seen.as_json())
        return seen

    def _restart(
        self, host: Host, reading: FirmwareState, goal: TargetMode, log: Journal, boot_id: str
    ) -> Observation:
        log.intent("reset", boot_id=boot_id)
        try:
            self.back_end.reset(host, reading, goal.attributes)
        except NodeError as failed:
            # No answer does not mean that it was not heard: whether the node goes down tells.
            if failed.outcome not in (Outcome.NO_ANSWER, Outcome.UNREACHABLE):
                log.result("reset", void=True)
                raise
        else:
            log.result("reset")
        return self._await_boot(host, log, boot_id)

    def _await_pending_reset(self, host: Host, log: Journal, boot_id: str) -> None:
        """See the end of a reset that was, or was about to be, asked for when we were stopped."""
        try:
            self._await_boot(host, log, boot_id)
        except NodeError as failed:
            if failed.outcome is not Outcome.NOT_RESET:
                raise
            log.result("reset", void=True)

    def _await_boot(self, host: Host, log: Journal, boot_id: str) -> Observation:
        """Wait until the node answers with another boot id; the only proof of a reset."""
        start = time.monotonic()
        down = False
        while True:
            try:
                seen = self.look(host.node)
            except NodeError as failed:
                if not down:
                    log.result("down", said=failed.text)
                down = True
            else:
                if seen.boot_id != boot_id:
                    log.result("up", boot_id=seen.boot_id, seconds=round(time.monotonic() - start))
                    return seen
            spent = time.monotonic() - start
            if not down and spent > self.firmware.reset_timeout_s:
                text = f"still up after {spent:.0f} s, with boot id {boot_id}"
                raise NodeError(Outcome.NOT_RESET, text)
            if spent > self.firmware.boot_timeout_s:
                raise NodeError(Outcome.NO_RETURN, f"not back {spent:.0f} s after its reset")
            if self.stop.wait(self.firmware.poll_s):
                raise NodeError(Outcome.STOPPED, "told to stop while it boots")

    def _verify(
        self,
        host: Host,
        goal: TargetMode,
        seen: Observation,
        before: Settings,
        earlier: Observation,
    ) -> None:
        """Accept the mode by what acts after the boot, in the firmware and in the system."""
        now = self.back_end.verify(host, goal.attributes)
        if now is not None:
            wrong = {
                name: now.get(name)
                for name, value in goal.attributes.items()
                if now.get(name) != value
            }
            if wrong:
                stayed = all(before.get(name) == value for name, value in wrong.items())
                outcome = Outcome.NOT_APPLIED if stayed else Outcome.OTHER_MODE
                raise NodeError(outcome, f"after the boot the firmware has {_told(wrong)}")
        try:
            goal.judge(seen)
        except NodeError as failed:
            same = (seen.layout, seen.settings) == (earlier.layout, earlier.settings)
            if failed.outcome is Outcome.OTHER_MODE and same:
                raise NodeError(Outcome.NOT_APPLIED, failed.text) from None
            raise


def original_state(past: History) -> TargetMode:
    """Return the way back: the attributes of before, and a system that shows what it showed."""
    original, shown = dict(past.original or {}), dict(past.original_seen)

    def judge(seen: Observation) -> None:
        if past.original is None:
            return  # stopped before anything was asked: as it is, it was
        now = seen.as_json()
        kept = ("numa", "smbios")
        if any(now[key] != shown.get(key) for key in kept):
            text = ", ".join(f"{key} {now[key]}, before {shown.get(key)}" for key in kept)
            raise NodeError(Outcome.OTHER_MODE, text)

    return TargetMode(RESTORED, original, judge)


def _told(settings: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items())

"""Runs a builder as a child, keeps what it prints, and says how far it is."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from proofmark.jobs.execute import Stopped
from proofmark.runs.progress import duration
from proofmark.software.spack.lock import Spec

SAY_EVERY_S = 30.0
GRACE_S = 60.0
HASH = re.compile(r"-([a-z0-9]{32})\b")

Say = Callable[[str], None]


def run(
    command: Sequence[str],
    environment: Mapping[str, str],
    log: Path,
    line_read: Say,
    idle: Callable[[], None] = lambda: None,
) -> int:
    """Run `command`, append all that it prints to `log`, and return its exit code.

    `line_read` gets each line, `idle` is called when there was none for half a minute.

    Raises:
        Stopped: SIGINT or SIGTERM came; the command and its children have been ended.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as kept, _stop_on_signal():
        started = subprocess.Popen(
            command,
            env={**environment, "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        with started as process:
            assert process.stdout is not None
            try:
                for line in _lines(process.stdout.fileno(), idle):
                    kept.write(line + b"\n")
                    kept.flush()
                    line_read(line.decode(errors="replace"))
                return process.wait()
            except BaseException:
                _end(process)
                raise


def _lines(pipe: int, idle: Callable[[], None]) -> Iterator[bytes]:
    rest = b""
    while True:
        if not select.select([pipe], [], [], SAY_EVERY_S)[0]:
            idle()
            continue
        read = os.read(pipe, 65536)
        if not read:
            break
        *whole, rest = (rest + read).split(b"\n")
        yield from whole
    if rest:
        yield rest


def _end(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(GRACE_S)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue


@contextmanager
def _stop_on_signal() -> Iterator[None]:
    def stop(number: int, _frame: FrameType | None) -> None:
        raise Stopped(signal.Signals(number).name)

    previous = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@dataclass
class Follower:
    """Turns what Spack prints into progress: n of m, what builds now, the time left.

    `times` are the seconds that earlier builds on this machine took, by package.
    """

    todo: Sequence[Spec]
    say: Say
    times: dict[str, float]
    now: Callable[[], float] = time.monotonic
    errors: list[str] = field(default_factory=list)
    _done: dict[str, float] = field(default_factory=dict)
    _current: Spec | None = None
    _since: float = 0.0

    def read(self, line: str) -> None:
        """Take one line of Spack's output."""
        if "Error:" in line or "error:" in line:
            self.errors.append(line.strip())
        found = HASH.search(line)
        spec = next((each for each in self.todo if found and each.hash == found[1]), None)
        if spec is None:
            return
        if spec.hash in self._done:
            return  # of what comes from a cache, Spack says last that it installs it
        if line.startswith(("==> Installing ", "==> Extracting ")):
            self._current, self._since = spec, self.now()
            self.tell()
        elif "Successfully installed" in line or line.startswith("[+]"):
            took = self.now() - self._since if spec == self._current else 0.0
            self._done[spec.hash] = took
            self.times[spec.name] = took

    def tell(self) -> None:
        """Say how far it is."""
        if self._current is not None:
            spent = self.now() - self._since
            self.say(
                f"{len(self._done) + 1} of {len(self.todo)}: {self._current.label}, "
                f"for {duration(spent)}; {self._left(spent)}"
            )

    def _left(self, spent: float) -> str:
        known = [*self._done.values(), *self.times.values()]
        if not known:
            return "time left: not known yet"
        usual = sum(known) / len(known)
        left = sum(self.times.get(s.name, usual) for s in self.todo if s.hash not in self._done)
        return f"about {duration(max(0.0, left - spent))} left"


def read_times(path: Path) -> dict[str, float]:
    """Return the seconds that earlier builds took; a file that cannot be read tells nothing."""
    try:
        return {str(name): float(took) for name, took in json.loads(path.read_text()).items()}
    except (OSError, ValueError, AttributeError):
        return {}

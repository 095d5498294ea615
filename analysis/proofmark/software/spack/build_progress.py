"""The progress of an installation by Spack, read from its output."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from proofmark.common.text import duration
from proofmark.software.build_process import Say
from proofmark.software.spack.lock import Spec

HASH = re.compile(r"-([a-z0-9]{32})\b")
"""The hash of a spec in a line of Spack's output."""


@dataclass
class BuildProgress:
    """Turns output of Spack into lines of progress: n of m, the current spec, the time left.

    Attributes:
        missing: the specs to install.
        say: gets each line of progress.
        times: seconds of earlier builds on this machine, by package; `read` updates it.
        now: the clock, in seconds.
        errors: the error lines of Spack.
    """

    missing: Sequence[Spec]
    say: Say
    times: dict[str, float]
    now: Callable[[], float] = time.monotonic
    errors: list[str] = field(default_factory=list)
    _done: dict[str, float] = field(default_factory=dict)
    _current: Spec | None = None
    _started: float = 0.0

    def read(self, line: str) -> None:
        """Read one line of Spack's output."""
        if "Error:" in line or "error:" in line:
            self.errors.append(line.strip())
        match = HASH.search(line)
        spec = next((each for each in self.missing if match and each.hash == match[1]), None)
        if spec is None:
            return
        if spec.hash in self._done:
            return  # for a spec from a build cache, Spack prints "Installing" last
        if line.startswith(("==> Installing ", "==> Extracting ")):
            self._current, self._started = spec, self.now()
            self.report()
        elif "Successfully installed" in line or line.startswith("[+]"):
            seconds = self.now() - self._started if spec == self._current else 0.0
            self._done[spec.hash] = seconds
            self.times[spec.name] = seconds

    def report(self) -> None:
        """Print a line of progress, if a spec is being installed."""
        if self._current is not None:
            spent = self.now() - self._started
            self.say(
                f"{len(self._done) + 1} of {len(self.missing)}: {self._current.label}, "
                f"for {duration(spent)}; {self._left(spent)}"
            )

    def _left(self, spent: float) -> str:
        known = [*self._done.values(), *self.times.values()]
        if not known:
            return "time left: not known yet"
        mean = sum(known) / len(known)
        left = sum(self.times.get(s.name, mean) for s in self.missing if s.hash not in self._done)
        return f"about {duration(max(0.0, left - spent))} left"


def read_times(path: Path) -> dict[str, float]:
    """Return the seconds of earlier builds by package; empty if the file cannot be read."""
    try:
        return {str(name): float(seconds) for name, seconds in json.loads(path.read_text()).items()}
    except (OSError, ValueError, AttributeError):
        return {}

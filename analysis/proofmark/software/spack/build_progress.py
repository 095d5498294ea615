"""How far an installation by Spack is, from what it prints."""

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


@dataclass
class BuildProgress:
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

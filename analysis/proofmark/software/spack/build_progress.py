"""The progress of an installation by Spack, its expected time, and its first failure."""

from __future__ import annotations

import json
import math
import re
import textwrap
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import Field

from proofmark.common.shared_models import StrictModel
from proofmark.common.text import duration
from proofmark.common.yaml_models import shipped_data
from proofmark.software.build_failure import BuildCause, BuildFailure
from proofmark.software.build_process import Say
from proofmark.software.spack.lock_file import Spec


class MeasuredTime(StrictModel):
    """Seconds of one core: those that more cores do not shorten, and those that they share."""

    serial: float = Field(ge=0)
    parallel: float = Field(ge=0)

    def on(self, cores: int) -> float:
        """Return the expected seconds on `cores` cores."""
        return self.serial + self.parallel / cores


class _Table(StrictModel):
    """The content of ``data/build_times.yml``, which explains it."""

    packages: dict[str, MeasuredTime]


@dataclass(frozen=True)
class ExpectedTimes:
    """The expected seconds of some specs, and the specs that have no known time."""

    seconds: float
    unknown: tuple[Spec, ...]


def measured_times() -> dict[str, MeasuredTime]:
    """Return the measured times of the kit, by package."""
    return shipped_data("proofmark.software", "build_times.yml", _Table).packages


def known_times(
    own: Mapping[str, float], measured: Mapping[str, MeasuredTime], cores: int
) -> dict[str, float]:
    """Return the expected seconds by package: of this machine if it built the package before.

    Args:
        own: the seconds of earlier builds on this machine.
    """
    return {**{name: time.on(cores) for name, time in measured.items()}, **own}


def expected(
    specs: Iterable[Spec], times: Mapping[str, float], cached: Collection[str] = ()
) -> ExpectedTimes:
    """Return the expected time of `specs`.

    Args:
        cached: the hashes of the specs in a build cache, whose time is short and is not counted.
    """
    built = [spec for spec in specs if spec.hash not in cached]
    known = [times[spec.name] for spec in built if spec.name in times]
    return ExpectedTimes(sum(known), tuple(spec for spec in built if spec.name not in times))


def read_times(path: Path) -> dict[str, float]:
    """Return the seconds of earlier builds by package; empty if the file cannot be read."""
    try:
        times = {str(name): float(value) for name, value in json.loads(path.read_text()).items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}
    return {name: seconds for name, seconds in times.items() if math.isfinite(seconds)}


HASH = re.compile(r"-([a-z0-9]{32})\b")
"""The hash of a spec in a line of Spack's output."""
WIDTH = 96
"""Characters of a line that lists packages."""


@dataclass
class BuildProgress:
    """Turns output of Spack into lines of progress: n of m, the current spec, the time left.

    Attributes:
        times: the expected seconds, by package.
        cached: the hashes of the specs that are in a build cache.
        built: the seconds of each package that was built; `read` writes it.
        lines: the lines of Spack's output.
    """

    missing: Sequence[Spec]
    say: Say
    times: Mapping[str, float]
    cores: int
    cached: Collection[str] = frozenset()
    now: Callable[[], float] = time.monotonic
    built: dict[str, float] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    _done: set[str] = field(default_factory=set)
    _failed: set[str] = field(default_factory=set)
    _current: Spec | None = None
    _extracted: bool = False
    _started: float = 0.0

    def begin(self) -> None:
        """Print what will be installed, and the expected time. Call it before Spack starts."""
        self._started = self.now()
        cached = sum(spec.hash in self.cached for spec in self.missing)
        source = f"{cached} of them from the build cache" if cached else "all from their sources"
        self.say(f"{len(self.missing)} packages to install, {source}:")
        for line in textwrap.wrap(", ".join(spec.label for spec in self.missing), WIDTH):
            self.say(f"  {line}")
        whole = expected(self.missing, self.times, self.cached)
        self.say(f"expected on {_cores(self.cores)}: {_text(whole, whole.seconds)}")
        if whole.unknown and len(whole.unknown) < len(self.missing):
            names = ", ".join(spec.name for spec in whole.unknown)
            for line in textwrap.wrap(f"no known time: {names}", WIDTH):
                self.say(f"  {line}")

    def read(self, line: str) -> None:
        """Read one line of Spack's output."""
        self.lines.append(line.rstrip())
        match = HASH.search(line)
        spec = next((each for each in self.missing if match and each.hash == match[1]), None)
        if line.startswith("==> Error: "):
            self._fail(spec or self._current)
        if spec is None:
            return
        if spec.hash in self._done:
            return  # for a spec from a build cache, Spack prints "Installing" last
        if line.startswith(("==> Installing ", "==> Extracting ")):
            self._current, self._started = spec, self.now()
            self._extracted = line.startswith("==> Extracting ")
            self.report()
        elif "Successfully installed" in line or line.startswith("[+]"):
            if spec == self._current and not self._extracted:
                self.built[spec.name] = self.now() - self._started
            self._done.add(spec.hash)

    def _fail(self, spec: Spec | None) -> None:
        """Print once that a package failed. At its end Spack repeats the error of each package."""
        if spec is None or spec.hash in self._done | self._failed:
            return
        self._failed.add(spec.hash)
        spent = f" after {duration(self.now() - self._started)}" if spec == self._current else ""
        self.say(f"{spec.label} failed{spent}")

    def report(self) -> None:
        """Print a line of progress."""
        spent = self.now() - self._started
        if self._current is None:
            self.say(f"Spack reads its recipes before the first package, for {duration(spent)}")
            return
        times = {**self.times, **self.built}
        ended = self._done | self._failed
        left = [spec for spec in self.missing if spec.hash not in ended]
        rest = expected(left, times, self.cached)
        current = [] if self._current.hash in ended else [self._current]
        estimate = expected(current, times, self.cached).seconds
        number = min(len(ended) + 1, len(self.missing))
        late = f", late by {duration(spent - estimate)}" if 0 < estimate < spent else ""
        self.say(
            f"{number} of {len(self.missing)}: {self._current.label}, for {duration(spent)}{late}; "
            f"left{' after it' if late else ''}: {_text(rest, rest.seconds - min(spent, estimate))}"
        )


def _cores(count: int) -> str:
    return f"{count} core{'' if count == 1 else 's'}"


def _text(time_left: ExpectedTimes, seconds: float) -> str:
    """Return the time in words, with the number of the packages that it does not contain."""
    count = len(time_left.unknown)
    packages = f"{count} package{'' if count == 1 else 's'}"
    if not count:
        return f"about {duration(max(0.0, seconds))}"
    if seconds <= 0:
        return f"not known for {packages}"
    return f"about {duration(seconds)}, and {packages} without a known time"


_BEGUN = re.compile(r"==> Installing (?P<package>\S+)-[a-z0-9]{32}\b")
_PHASE = re.compile(r"==> \S+: Executing phase: '(?P<phase>[^']+)'")
_ERROR = re.compile(r"==> (?:\S+: )?Error: (?P<text>.*)")
_LOG = re.compile(r"\s+(?P<path>/\S+/spack-build-out\.txt)$")
_ADDRESS = re.compile(r"\s+(?P<address>[a-z0-9+]+://\S+?): ")
_CHECKSUMS = re.compile(r"\s+(Expected [0-9a-f]+ but got [0-9a-f]+)")
_CAUSES = (
    (BuildCause.CHECKSUM, re.compile("ChecksumError|.*checksum (?:verification )?failed")),
    (BuildCause.SOURCE, re.compile("FetchError|NoCacheError|.*All fetchers failed")),
    (BuildCause.BUILD, re.compile("ProcessError|InstallError|ChildError")),
)


def read_failure(lines: Iterable[str]) -> BuildFailure | None:
    """Return the first failure in the output of Spack; None if it has no error."""
    sections: list[list[str]] = [[]]
    for line in lines:
        if _BEGUN.match(line):
            sections.append([])
        sections[-1].append(line)
    failed = [each for each in sections if any(_ERROR.match(line) for line in each)]
    begun = [each for each in failed if _BEGUN.match(each[0])]
    if not failed:
        return None
    return _failure((begun or failed)[0], others=max(0, len(begun) - 1))


def _failure(section: Sequence[str], others: int) -> BuildFailure:
    number = next(number for number, line in enumerate(section) if _ERROR.match(line))
    text, rest = _only(_ERROR, section[number : number + 1]), section[number + 1 :]
    cause = next((cause for cause, rule in _CAUSES if rule.match(text)), BuildCause.RECIPE)
    if cause is BuildCause.CHECKSUM:
        text = f"{text}: {_only(_CHECKSUMS, rest)}"
    log = _only(_LOG, rest)
    return BuildFailure(
        cause=cause,
        package=_only(_BEGUN, section[:1]),
        phase=_only(_PHASE, reversed(section[:number])),
        message=" ".join(text.split()),
        log=Path(log) if log else None,
        addresses=tuple(match["address"] for line in rest if (match := _ADDRESS.match(line))),
        others=others,
    )


def _only(rule: re.Pattern[str], lines: Iterable[str]) -> str:
    """Return the group of the first line that matches; empty if none does."""
    return next((match[1] for line in lines if (match := rule.match(line))), "")

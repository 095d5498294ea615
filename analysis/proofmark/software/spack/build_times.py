"""The expected time of an installation, from measured times of the packages."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from proofmark.common.strict_model import StrictModel
from proofmark.common.yaml_models import shipped_data
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
        times: the seconds by package.
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

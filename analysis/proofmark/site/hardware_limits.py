"""The tables of the limits of processors and links: data files with a source for each entry."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Annotated, TypeVar

import yaml
from pydantic import AfterValidator, Field, TypeAdapter

from proofmark.common.strict_model import StrictModel


def _pattern(text: str) -> str:
    re.compile(text)
    return text


Pattern = Annotated[str, AfterValidator(_pattern)]
Positive = Annotated[float, Field(gt=0)]


class ProcessorLimits(StrictModel):
    """The limits of one socket: frequency in Hz, DDR in MT/s, MCDRAM in bytes/s."""

    name: Pattern
    avx_hz: Positive | None = None
    flop_per_cycle: Annotated[int, Field(gt=0)] | None = None
    turbo_hz: Positive | None = None
    turbo_source: str = ""
    channels: Annotated[int, Field(gt=0)] | None = None
    ddr: Annotated[int, Field(gt=0)] | None = None
    mcdram_bytes_per_s: Positive | None = None
    source: Annotated[str, Field(min_length=1)]


class LaneLimit(StrictModel):
    """The limits of one lane of a port: one direction in bytes/s, and the latency of a message.

    The name of the speed is empty for Omni-Path; `shown_gbit` is the number of sysfs for a lane.
    """

    speed: str
    shown_gbit: Positive
    lane_bytes_per_s: Positive
    source: Annotated[str, Field(min_length=1)]
    latency_s: Positive
    latency_source: Annotated[str, Field(min_length=1)]


@dataclass(frozen=True)
class LinkLimit:
    """The limits of a port: one direction in bytes/s, and the latency of a small message in s."""

    bytes_per_s: float
    source: str
    latency_s: float
    latency_source: str


LANES = (1, 2, 4, 8, 12)
KNOWN_RATES = "the text of sysfs for 1 to 12 lanes, SDR to XDR, as '200 Gb/sec (4X HDR)'"
_RATE = re.compile(r"(\d+(?:\.\d)?) Gb/sec \((\d{1,2})X(?: ([A-Z]+\d*))?\)", re.ASCII)
Row = TypeVar("Row")


def load_table(name: str, row: type[Row]) -> tuple[Row, ...]:
    """Return the rows of a file of ``site/data``."""
    text = (files("proofmark.site") / "data" / name).read_text(encoding="utf-8")
    return TypeAdapter(tuple[row, ...]).validate_python(yaml.safe_load(text))  # type: ignore[valid-type]


@lru_cache(maxsize=1)
def processors() -> tuple[ProcessorLimits, ...]:
    """Return the table of processors."""
    return load_table("processors.yml", ProcessorLimits)


@lru_cache(maxsize=1)
def lanes() -> tuple[LaneLimit, ...]:
    """Return the table of the lanes of links."""
    return load_table("links.yml", LaneLimit)


@lru_cache(maxsize=256)
def processor(model: str) -> ProcessorLimits | None:
    """Return the limits of a processor by its name in ``/proc/cpuinfo``; None if unknown."""
    name = " ".join(model.split())
    return next((row for row in processors() if re.fullmatch(row.name, name)), None)


@lru_cache(maxsize=256)
def link(rate: str) -> LinkLimit | None:
    """Return the limit of a port by the text of its rate in sysfs; None if no table has it."""
    match = _RATE.fullmatch(" ".join(rate.split()))
    if match is None or int(match[2]) not in LANES:
        return None
    shown, count = float(match[1]), int(match[2])
    for row in lanes():
        if row.speed == (match[3] or "") and row.shown_gbit * count == shown:
            source = f"{row.source}, {count} lanes"
            bytes_per_s = count * row.lane_bytes_per_s
            return LinkLimit(bytes_per_s, source, row.latency_s, row.latency_source)
    return None

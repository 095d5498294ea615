"""What processors and links can do at most: data files with a source for each line."""

from __future__ import annotations

import re
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
    """One socket of a model; frequencies in Hz, memory in MT/s and bytes/s."""

    name: Pattern
    avx_hz: Positive | None = None
    flop_per_cycle: Annotated[int, Field(gt=0)] | None = None
    channels: Annotated[int, Field(gt=0)] | None = None
    ddr: Annotated[int, Field(gt=0)] | None = None
    mcdram_bytes_per_s: Positive | None = None
    source: Annotated[str, Field(min_length=1)]


class LinkLimit(StrictModel):
    """One direction of a port, in bytes/s."""

    rate: Pattern
    bytes_per_s: Positive
    source: Annotated[str, Field(min_length=1)]


Row = TypeVar("Row")


def _load(name: str, row: type[Row]) -> tuple[Row, ...]:
    text = (files("proofmark.judge.references") / "data" / name).read_text(encoding="utf-8")
    return TypeAdapter(tuple[row, ...]).validate_python(yaml.safe_load(text))  # type: ignore[valid-type]


@lru_cache(maxsize=1)
def processors() -> tuple[ProcessorLimits, ...]:
    """Return the table of processors."""
    return _load("processors.yml", ProcessorLimits)


@lru_cache(maxsize=1)
def links() -> tuple[LinkLimit, ...]:
    """Return the table of links."""
    return _load("links.yml", LinkLimit)


def processor(model: str) -> ProcessorLimits | None:
    """Return what is known of a processor by its name in ``/proc/cpuinfo``."""
    name = " ".join(model.split())
    return next((each for each in processors() if re.fullmatch(each.name, name)), None)


def link(rate: str) -> LinkLimit | None:
    """Return what is known of a port by what it says of its rate."""
    return next((each for each in links() if re.fullmatch(each.rate, rate.strip())), None)

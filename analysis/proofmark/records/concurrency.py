"""Several copies of a program that measure at the same time: did they, and how far apart are they.

Each copy's start and end stand in ``copies.json``, by one clock. Starting an MPI program takes
longer than some measurements, so it is not enough that the commands overlap: what counts is the
time that the copy measured, which the case computes from what it printed, before its end.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from proofmark.cases.models import Concurrent
from proofmark.cases.reader.engine import Reading
from proofmark.common.expressions import render
from proofmark.plan.plan import Step

FILE = "copies.json"
LEAST = 0.5
"""Share of the longest measurement in which all copies have to measure."""


def concurrency_error(
    step: Step, together: Concurrent, folder: Path, readings: Sequence[Reading], file: str
) -> str:
    """Return why the copies of `step` did not measure at the same time, or an empty string.

    Raises:
        BadInput: the case's expression for the seconds cannot be computed.
    """
    try:
        entries = json.loads((folder / FILE).read_text())
        ends = {int(each["copy"]): float(each["end"]) for each in entries}
        starts = {int(each["copy"]): float(each["start"]) for each in entries}
    except (OSError, ValueError, KeyError, TypeError):
        return f"{FILE}, when each copy ran, is missing or damaged"
    if sorted(ends) != list(range(1, step.copies + 1)):
        return f"{len(ends)} of {step.copies} copies said when they ran"
    seconds = dict.fromkeys(ends, 0.0)
    for reading in readings:
        copy = reading.parameters.get(together.copy_)
        if not isinstance(copy, int) or copy not in seconds or not reading.value:
            return f"a figure of no copy: {together.copy_} {copy}"
        names: Mapping[str, object] = {
            **step.derived,
            **reading.parameters,
            reading.metric: reading.value,
        }
        seconds[copy] += float(render(together.seconds, names, file=file, key="concurrent.seconds"))
    begins = {copy: max(starts[copy], ends[copy] - seconds[copy]) for copy in ends}
    common = min(ends.values()) - max(begins.values())
    longest = max(ends[copy] - begins[copy] for copy in ends)
    if common < LEAST * longest:
        return (
            f"the {step.copies} copies measured at the same time for {max(0.0, common):.2f} s "
            f"of {longest:.2f} s, less than {LEAST:.0%}"
        )
    return ""


def spread(together: Concurrent, readings: Sequence[Reading]) -> list[Reading]:
    """Return, for each metric and size, how far the copies are apart, in percent of their median.

    It is one more figure, ``<metric>_spread``, without the number of the copy.
    """
    groups: dict[tuple[object, ...], list[Reading]] = {}
    for reading in readings:
        others = {key: value for key, value in reading.parameters.items() if key != together.copy_}
        key = (reading.benchmark, reading.metric, *sorted(others.items()))
        groups.setdefault(key, []).append(reading)
    made: list[Reading] = []
    for alike in groups.values():
        values = [reading.value for reading in alike if reading.value is not None]
        first = alike[0]
        if f"{first.metric}_spread" not in together.spread or len(values) < 2:
            continue
        invalid = next((reading.reason for reading in alike if not reading.valid), "")
        made.append(
            Reading(
                case=first.case,
                benchmark=first.benchmark,
                metric=f"{first.metric}_spread",
                value=100 * (max(values) - min(values)) / median(values),
                unit="%",
                parameters={
                    key: value for key, value in first.parameters.items() if key != together.copy_
                },
                valid=not invalid,
                reason=invalid,
                node=first.node,
            )
        )
    return made

"""Checks whether the copies of a program measured at the same time, and computes their spread.

``copies.json`` has the start and the end of each copy, by one clock. The start of an MPI program
takes longer than some measurements. So not the commands have to overlap, but the measurements: the
case computes the seconds of a measurement from the output, and it ends with the command.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from statistics import median

from proofmark.cases.reader.engine import Reading
from proofmark.common.expressions import render
from proofmark.common.files import read_bytes
from proofmark.common.json_text import parse_json
from proofmark.common.message import NOTHING, Message
from proofmark.plan.plan import Step
from proofmark.runs.binding_file import UNREADABLE
from proofmark.runs.run_files import StepFiles

COPY = "pair"
"""The parameter that numbers the copies: the script prints it before the output of each."""
MIN_OVERLAP = 0.5
"""The least share of the longest measurement during which all copies must measure."""


def concurrency_error(
    step: Step, measured_s: str, folder: Path, readings: Sequence[Reading], file: str
) -> Message:
    """Return why the copies of `step` did not measure at the same time, or `NOTHING`.

    Args:
        step: the step.
        measured_s: the expression of the case for the seconds that a copy measured.
        folder: that of the execution.
        readings: of all copies.
        file: that of the case, for messages.

    Raises:
        BadInput: the case's expression for the seconds cannot be computed.
    """
    try:
        entries = parse_json(read_bytes(StepFiles(folder).copies))
        ends = {int(each["copy"]): float(each["end"]) for each in entries}
        starts = {int(each["copy"]): float(each["start"]) for each in entries}
    except (OSError, *UNREADABLE):
        return Message("copies-unknown", file=StepFiles.copies.path)
    if not all(map(math.isfinite, [*starts.values(), *ends.values()])):
        return Message(
            "file-damaged", file=StepFiles.copies.path, problem="a time that is not finite"
        )
    if sorted(ends) != list(range(1, step.copies + 1)):
        return Message("copies-silent", reported=len(ends), copies=step.copies)
    seconds = dict.fromkeys(ends, 0.0)
    for reading in readings:
        copy = reading.parameters.get(COPY)
        if not isinstance(copy, int) or copy not in seconds or not reading.value:
            return Message("copies-other", axis=COPY, copy=f"{copy}")
        names: Mapping[str, object] = {
            **step.derived,
            **reading.parameters,
            reading.metric: reading.value,
        }
        seconds[copy] += float(render(measured_s, names, file=file, key="concurrent"))
    begins = {copy: max(starts[copy], ends[copy] - seconds[copy]) for copy in ends}
    overlap = min(ends.values()) - max(begins.values())
    longest = max(ends[copy] - begins[copy] for copy in ends)
    if overlap < MIN_OVERLAP * longest:
        return Message(
            "copies-apart",
            copies=step.copies,
            overlap=f"{max(0.0, overlap):.2f}",
            longest=f"{longest:.2f}",
            share=f"{MIN_OVERLAP:.0%}",
        )
    return NOTHING


def spread(readings: Sequence[Reading], metrics: Container[str]) -> list[Reading]:
    """Return the spread of the copies, (largest - smallest) ÷ median in percent, as readings.

    There is one reading, ``<metric>_spread``, for each metric and size; it has no number of a copy.

    Args:
        readings: of all copies.
        metrics: those of the case. A spread that it does not have is left out.
    """
    groups: dict[tuple[object, ...], list[Reading]] = {}
    for reading in readings:
        without_copy = {key: value for key, value in reading.parameters.items() if key != COPY}
        key = (reading.benchmark, reading.metric, *sorted(without_copy.items()))
        groups.setdefault(key, []).append(reading)
    spreads: list[Reading] = []
    for group in groups.values():
        values = [reading.value for reading in group if reading.value is not None]
        first = group[0]
        if f"{first.metric}_spread" not in metrics or len(values) < 2:
            continue
        invalid = next((reading.reason for reading in group if not reading.valid), NOTHING)
        spreads.append(
            Reading(
                case=first.case,
                benchmark=first.benchmark,
                metric=f"{first.metric}_spread",
                value=100 * (max(values) - min(values)) / median(values),
                unit="%",
                parameters={key: value for key, value in first.parameters.items() if key != COPY},
                valid=not invalid,
                reason=invalid,
                node=first.node,
            )
        )
    return spreads

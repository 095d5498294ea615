"""Readings out of a program's raw output, by the rules of its case.

The rules are data (`spec`); nothing here knows a program's name. Reading is pure, never raises
on any text, and gives no number that does not stand in the output, in an intact line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from proofmark.cases.reader.builder import ProgramRun, ReadingBuilder
from proofmark.cases.reader.json_output import find_document, read_documents
from proofmark.cases.reader.spec import ReadSpec
from proofmark.cases.reader.text import read_text
from proofmark.cases.reader.values import Parameter

_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")  # ECMA-48 control sequences: colours, cursor


class Reading(NamedTuple):
    """One number that a program printed, or the reason why there is none.

    Attributes:
        case: id of the case.
        benchmark: the benchmark within the program, as the program calls it.
        metric: what was measured.
        value: as printed, in `unit`; None where no intact number stands.
        unit: as printed.
        parameters: what it was measured with, as far as the output says.
        valid: whether the output vouches for the value.
        reason: why it is not valid; empty where it is.
        node: host name that the output prints (of rank 0, where there are several), if any.
    """

    case: str
    benchmark: str
    metric: str
    value: float | None
    unit: str
    parameters: Mapping[str, Parameter]
    valid: bool
    reason: str
    node: str | None


def read_output(spec: ReadSpec, case: str, text: str) -> list[Reading]:
    """Read all that `text`, an output of `case`, says.

    Args:
        spec: the rules.
        case: id of the case, for the readings.
        text: the output as it was captured; any text will do.

    Returns:
        The readings in the order of the output; never none: a run without a result gives one
        invalid reading that says so.
    """
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    start = find_document(text) if spec.document else None
    if spec.document and start is not None:
        runs = read_documents(spec, spec.document, text, start)
    elif spec.text:
        runs = read_text(spec, spec.text, text)
    else:
        runs = [ProgramRun(problems=["no JSON document"])]
    if not text.strip():
        runs = [ProgramRun(problems=["the output is empty"])]
    return [reading for run in runs for reading in _readings(spec, case, run)]


def _readings(spec: ReadSpec, case: str, run: ProgramRun) -> list[Reading]:
    drafts = run.drafts
    if not drafts:
        first = next(iter(spec.metrics))
        drafts = [ReadingBuilder(first, None, {}, [f"no {spec.finds} found"])]
    return [_reading(spec, case, run, draft) for draft in drafts]


def _reading(spec: ReadSpec, case: str, run: ProgramRun, draft: ReadingBuilder) -> Reading:
    known = {**run.facts, **draft.parameters} if run.facts else draft.parameters
    problems: Iterable[str] = ()
    if draft.problems or run.problems:
        problems = dict.fromkeys([*draft.problems, *run.problems])
    return Reading(
        case,
        draft.benchmark or spec.benchmark or case,
        draft.metric,
        draft.value,
        spec.metrics[draft.metric],
        {name: known[name] for name in spec.parameters if name in known},
        not problems,
        "; ".join(problems),
        run.node,
    )

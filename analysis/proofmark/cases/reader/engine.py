"""Readings from the raw output of a program, by the reader of its case.

It is a pure function. It raises no error for any text, and every number that it returns is
in an intact line of the output.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from proofmark.cases.reader.agreement import check, refuse_zeros
from proofmark.cases.reader.builder import ProgramRun, ReadingBuilder
from proofmark.cases.reader.documents import first_document, read_documents
from proofmark.cases.reader.reader import Reader, read_text
from proofmark.cases.reader.settings import StartedCommand
from proofmark.cases.vocabulary import ParameterValues
from proofmark.common.grouping import flat
from proofmark.common.message import NOTHING, Message, joined

_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")  # ECMA-48 control sequences: colours, cursor


class Reading(NamedTuple):
    """One number that a program printed, or the reason why there is no number.

    Attributes:
        benchmark: the benchmark within the program, by the program's name for it.
        metric: the measured quantity.
        value: as printed, in `unit`; None if there is no intact number.
        parameters: of the measurement, as printed.
        valid: whether the output confirms the value.
        reason: why it is not valid; `NOTHING` if it is valid.
        node: the host name in the output (of rank 0, if there are several), or None.
        settings: what the output says besides of how it was measured.
    """

    case: str
    benchmark: str
    metric: str
    value: float | None
    unit: str
    parameters: ParameterValues
    valid: bool
    reason: Message
    node: str | None
    settings: ParameterValues = {}


def read_output(
    reader: Reader, case: str, text: str, request: StartedCommand | None = None
) -> list[Reading]:
    """Return the readings in `text`, an output of `case`.

    Args:
        case: id of the case, for the readings.
        text: the output as it was captured; any text is accepted.
        request: what was started, if it is known. Otherwise the command line in the output counts.

    Returns:
        The readings in the order of the output, at least one: a run without a result gives one
        invalid reading with the reason.
    """
    return readings_of(reader, case, program_runs(reader, text, request))


def readings_of(reader: Reader, case: str, runs: Iterable[ProgramRun]) -> list[Reading]:
    """Return the readings of `runs`."""
    return flat(_readings(reader, case, run) for run in runs)


def without_colours(text: str) -> str:
    """Return `text` without control sequences of a terminal."""
    return _ANSI.sub("", text) if "\x1b" in text else text


def program_runs(
    reader: Reader, text: str, request: StartedCommand | None = None
) -> Sequence[ProgramRun]:
    """Return the runs of the program in `text`; see `read_output`."""
    text = without_colours(text)
    runs: Sequence[ProgramRun]
    start = first_document(reader.documents, text) if reader.documents else None
    if reader.documents and start is not None and not _begins_before(reader, text, start):
        runs = read_documents(reader, reader.documents, text, start)
    elif reader.read:
        runs = read_text(reader, text, request)
    else:
        runs = [ProgramRun(problems=[Message("reader-no-document")])]
    if not text.strip():
        runs = [ProgramRun(problems=[Message("reader-empty")])]
    for run in runs:
        check(reader.agree, run.builders, run.facts)
        # The copy of a case in an old run can lack a metric that the program prints.
        run.builders = [each for each in run.builders if each.metric in reader.units]
        refuse_zeros(reader.units, reader.short, run.builders)
    return runs


def _begins_before(reader: Reader, text: str, start: int) -> bool:
    """Return whether a banner begins the output, before a document or inside of one of Ansible."""
    if reader.starts is None:
        return False
    line = re.compile(rf"^(?:{reader.starts.pattern})[ \t\r]*$", re.ASCII | re.MULTILINE)
    banner = line.search(text)
    return banner is not None and (
        banner.start() < start or "stdout" in text[start : banner.start()]
    )


def _readings(reader: Reader, case: str, run: ProgramRun) -> list[Reading]:
    builders = run.builders
    if not builders:
        nothing = Message("reader-nothing", finds=reader.finds)
        foreign = any(problem.code == "reader-foreign" for problem in run.problems)
        builders = [ReadingBuilder(reader.metric, None, {}, [] if foreign else [nothing])]
    return [_reading(reader, case, run, builder) for builder in builders]


def _reading(reader: Reader, case: str, run: ProgramRun, builder: ReadingBuilder) -> Reading:
    known = {**run.facts, **builder.parameters} if run.facts else builder.parameters
    reason = NOTHING
    if builder.problems or run.problems:
        reason = joined((*builder.problems, *run.problems))
    return Reading(
        case,
        builder.benchmark or reader.benchmark or case,
        builder.metric,
        builder.value,
        reader.units[builder.metric],
        {name: known[name] for name in reader.parameters if name in known},
        not reason,
        reason,
        run.node,
        builder.settings,
    )

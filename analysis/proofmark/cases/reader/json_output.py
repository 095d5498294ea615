"""The engine for documents of JSON: the measurements that a program finds in them."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator

from proofmark.cases.reader.aborted import messages_in
from proofmark.cases.reader.builder import ProgramRun, ReadingBuilder, set_aside
from proofmark.cases.reader.settings import of_mapping
from proofmark.cases.reader.spec import Item, Program, ReadSpec
from proofmark.cases.reader.values import Parameter, measured, parameter, shorten
from proofmark.common.message import Message

_START = re.compile(r"^\{", re.MULTILINE)
# NaN and Infinity are kept as words, so that they are refused as in printed text.
_DECODER = json.JSONDecoder(parse_constant=str)


def find_document(text: str, start: int = 0) -> int | None:
    """Return the position of the next line that opens a JSON object, or None.

    Programs print warnings before it.
    """
    match = _START.search(text, start)
    return match.start() if match else None


def read_documents(spec: ReadSpec, text: str, start: int | None) -> list[ProgramRun]:
    """Return one run for each JSON document of `text` from `start` on."""
    program = spec.of_program
    runs: list[ProgramRun] = []
    end = 0
    partial = False
    while start is not None:
        before = text[end:start]
        if runs:
            runs[-1].problems += messages_in(before)
        if partial:
            runs.pop()  # a later document of the same run has the whole run
        try:
            document, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError) as error:
            # The end of the document is unknown, so the rest of the text is not read.
            runs.append(
                ProgramRun(problems=[Message("reader-broken-document", problem=str(error))])
            )
            return runs
        run = _read_document(spec, document)
        partial = program.is_partial(document)
        if partial:
            run.problems.append(Message("reader-partial"))
        run.problems += _refused(program, before)
        runs.append(run)
        start = find_document(text, end)
    if runs:
        runs[-1].problems += [*_refused(program, text[end:]), *messages_in(text[end:])]
    return runs


def _refused(program: Program, text: str) -> list[Message]:
    """Return a problem for each pattern of `refused` that a line of `text` matches."""
    lines = [line.rstrip() for line in text.split("\n")]
    first = (next(filter(pattern.fullmatch, lines), None) for pattern in program.refused)
    found = (shorten(line) for line in first if line is not None)
    return [Message("reader-contains", words=words) for words in found]


def _read_document(spec: ReadSpec, document: object) -> ProgramRun:
    program, run = spec.of_program, ProgramRun()
    if not program.is_own(document):
        return ProgramRun(problems=[Message("reader-no-banner")])
    run.problems += (Message("reader-rule", problem=each) for each in program.problems(document))
    numbers: Counter[tuple[object, ...]] = Counter()
    for item in program.items(document):
        for builder in _builders(spec, item):
            if program.numbered:
                same = (builder.metric, *sorted(builder.parameters.items()))
                builder.parameters = {**builder.parameters, program.numbered: numbers[same]}
                numbers[same] += 1
            run.builders.append(builder)
    return run


def _builders(spec: ReadSpec, item: Item) -> Iterator[ReadingBuilder]:
    """Yield the readings of one item."""
    problems = [Message("reader-rule", problem=reason) for reason in item.problems]
    parameters: dict[str, Parameter] = {}
    for name, found in item.parameters.items():
        lacks = (found is None or found is False) and name not in spec.of_program.stated
        if lacks or name not in spec.types:  # 0 is a value
            continue
        try:
            parameters[name] = parameter(spec.types[name], _printed(name, found))
        except ValueError as error:
            problems.append(Message("reader-parameter", name=name, problem=error.args[0]))
    settings = of_mapping(item.settings, spec.no_setting)
    for metric, (place, found) in item.values.items():
        try:
            value, problem = measured(_printed(place, found))
        except ValueError as error:
            value, problem = None, error.args[0]
        builder = ReadingBuilder(metric, value, parameters, [*problems, *filter(None, [problem])])
        set_aside(builder, spec.aside)
        builder.settings = settings
        yield builder


def _printed(place: str, value: object) -> str:
    """Return the number or word at a place, as text.

    Raises:
        ValueError: the value is neither a number nor a word, or there is none.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(Message("reader-no-value-at", place=place))
    return str(value)

"""The engine for documents of JSON: the measurements that a program finds in them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping

from proofmark.cases.reader.builder import ProgramRun, ReadingBuilder, messages_in, set_aside
from proofmark.cases.reader.reader import Documents, Item, Reader
from proofmark.cases.reader.settings import of_mapping
from proofmark.cases.reader.values import measured, parameter, shorten
from proofmark.common.message import Message

# NaN and Infinity are kept as words, so that they are refused as in printed text.
_DECODER = json.JSONDecoder(parse_constant=str)


def at(value: object, *keys: str) -> object:
    """Return the value below `keys` in a document; None if it has none."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def truth(value: object) -> bool:
    """Return whether a document has a value: 0 is one; null, false and an empty value are none."""
    return value is not None and value is not False and value not in ("", [], {})


def first_of(*values: object) -> object:
    """Return the first of `values` that is not empty, else the last one."""
    return next((value for value in values if truth(value)), values[-1])


def words_of(value: object) -> str:
    """Return a text of a document; an empty text for another value."""
    return value if isinstance(value, str) else ""


def find_document(text: str, start: int = 0) -> int | None:
    """Return the position of the next line that opens a JSON object, or None.

    Programs print warnings before it.
    """
    if not start and text.startswith("{"):
        return 0
    return text.find("\n{", max(0, start - 1)) + 1 or None


def first_document(documents: Documents, text: str) -> int | None:
    """Return the position of the first document, or None; one around it of Ansible is none."""
    first = start = find_document(text)
    while start is not None:
        around = first is not None and "stdout" in text[first:start]
        try:
            document, _ = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            document = None
        if all(truth(at(document, key)) for key in documents.keys):
            return start if around else first
        start = find_document(text, start + 1)
    return first


def read_documents(
    reader: Reader, documents: Documents, text: str, start: int | None
) -> list[ProgramRun]:
    """Return one run for each JSON document of `text` from `start` on."""
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
        run = _read_document(reader, documents, document)
        partial = documents.is_partial(document)
        if partial:
            run.problems.append(Message("reader-partial"))
        run.problems += _refused(documents, before)
        runs.append(run)
        start = find_document(text, end)
    if runs:
        runs[-1].problems += [*_refused(documents, text[end:]), *messages_in(text[end:])]
    return runs


def _refused(documents: Documents, text: str) -> list[Message]:
    """Return a problem for each pattern of `refused` that a line of `text` matches."""
    lines = [line.rstrip() for line in text.split("\n")]
    first = (next(filter(pattern.fullmatch, lines), None) for pattern in documents.refused)
    found = (shorten(line) for line in first if line is not None)
    return [Message("reader-contains", words=words) for words in found]


def _read_document(reader: Reader, documents: Documents, document: object) -> ProgramRun:
    run = ProgramRun()
    if not all(truth(at(document, key)) for key in documents.keys):
        return ProgramRun(problems=[Message("reader-no-banner")])
    run.problems += (Message("reader-rule", problem=each) for each in documents.problems(document))
    numbers: Counter[tuple[object, ...]] = Counter()
    for item in documents.items(document):
        for builder in _builders(reader, documents, item):
            if documents.numbered:
                same = (builder.metric, *sorted(builder.parameters.items()))
                builder.parameters = {**builder.parameters, documents.numbered: numbers[same]}
                numbers[same] += 1
            run.builders.append(builder)
    return run


def _builders(reader: Reader, documents: Documents, item: Item) -> Iterator[ReadingBuilder]:
    """Yield the readings of one item."""
    problems = [Message("reader-rule", problem=reason) for reason in item.problems]
    parameters = {}
    for name, found in item.parameters.items():
        lacks = (found is None or found is False) and name not in documents.stated
        if lacks or name not in reader.types:  # 0 is a value
            continue
        try:
            parameters[name] = parameter(reader.types[name], _printed(name, found))
        except ValueError as error:
            problems.append(Message("reader-parameter", name=name, problem=error.args[0]))
    settings = of_mapping(item.settings, reader.no_setting)
    for metric, (place, found) in item.values.items():
        try:
            value, problem = measured(_printed(place, found))
        except ValueError as error:
            value, problem = None, error.args[0]
        builder = ReadingBuilder(metric, value, parameters, [*problems, *filter(None, [problem])])
        set_aside(builder, reader.aside)
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

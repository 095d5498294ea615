"""The engine of a `json:` block: values at given places of a JSON document."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from jmespath.exceptions import JMESPathError

from proofmark.cases.reader.aborted import messages_in
from proofmark.cases.reader.builder import ProgramRun, ReadingBuilder, set_aside
from proofmark.cases.reader.settings import of_mapping
from proofmark.cases.reader.spec import JsonSpec, ReadSpec
from proofmark.cases.reader.values import Parameter, measured, parameter, shorten
from proofmark.common.message import Message

_START = re.compile(r"^\{", re.MULTILINE)
# NaN and Infinity are kept as words, so that they are refused as in printed text.
_DECODER = json.JSONDecoder(parse_constant=str)

# Some functions of the library do not check their arguments and raise errors of Python.
_EVALUATION_ERRORS = (
    JMESPathError,
    ArithmeticError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)

_Scope = dict[str, Any]


def find_document(text: str, start: int = 0) -> int | None:
    """Return the position of the next line that opens a JSON object, or None.

    Programs print warnings before it.
    """
    match = _START.search(text, start)
    return match.start() if match else None


def read_documents(
    spec: ReadSpec, rules: JsonSpec, text: str, start: int | None
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
        run = _read_document(spec, rules, document)
        partial = bool(
            rules.partial and _holds(rules.partial, {"output": document}, otherwise=True)
        )
        if partial:
            run.problems.append(Message("reader-partial"))
        run.problems += _refused(rules, before)
        runs.append(run)
        start = find_document(text, end)
    if runs:
        runs[-1].problems += [*_refused(rules, text[end:]), *messages_in(text[end:])]
    return runs


def _refused(rules: JsonSpec, text: str) -> list[Message]:
    """Return a problem for each pattern of `refuse` that a line of `text` matches."""
    lines = [line.rstrip() for line in text.split("\n")]
    first = (next(filter(pattern.fullmatch, lines), None) for pattern in rules.refuse)
    found = (shorten(line) for line in first if line is not None)
    return [Message("reader-contains", words=words) for words in found]


def _read_document(spec: ReadSpec, rules: JsonSpec, document: object) -> ProgramRun:
    scope = {"output": document}
    run = ProgramRun()
    if rules.banner and not _holds(rules.banner, scope, otherwise=False):
        return ProgramRun(problems=[Message("reader-no-banner")])
    for reason, condition in rules.require.items():
        if not _holds(condition, scope, otherwise=False):
            run.problems.append(Message("reader-rule", problem=reason))
    numbers: Counter[tuple[object, ...]] = Counter()
    for item in _items(list(rules.each.items()), scope):
        for builder in _builders(spec, rules, item):
            if rules.numbered:
                same = (builder.metric, *sorted(builder.parameters.items()))
                builder.parameters = {**builder.parameters, rules.numbered: numbers[same]}
                numbers[same] += 1
            run.builders.append(builder)
    return run


def _items(each: list[tuple[str, Any]], scope: _Scope) -> Iterator[_Scope]:
    """Yield the scope of each innermost item."""
    if not each:
        yield scope
        return
    (name, expression), *inner = each
    items = _search(expression, scope)
    for item in items if isinstance(items, list) else []:
        yield from _items(inner, {**scope, name: item})


def _builders(spec: ReadSpec, rules: JsonSpec, scope: _Scope) -> Iterator[ReadingBuilder]:
    """Yield the readings of one item."""
    problems = [
        Message("reader-rule", problem=reason)
        for reason, condition in rules.reject.items()
        if _holds(condition, scope, otherwise=True)
    ]
    parameters: dict[str, Parameter] = {}
    for name, expression in rules.parameters.items():
        found = _search(expression, scope)
        if name in rules.optional and (found is None or found is False):  # 0 is a value
            continue
        try:
            parameters[name] = parameter(spec.types[name], _printed(expression, scope))
        except ValueError as error:
            problems.append(Message("reader-parameter", name=name, problem=error.args[0]))
    options = _search(rules.settings, scope) if rules.settings else None
    settings = of_mapping(options, spec.no_setting) if isinstance(options, dict) else {}
    for metric, rule in rules.values.items():
        if rule.when and not _holds(rule.when, scope, otherwise=True):
            continue
        try:
            value, problem = measured(_printed(rule.value, scope))
        except ValueError as error:
            value, problem = None, error.args[0]
        builder = ReadingBuilder(metric, value, parameters, [*problems, *filter(None, [problem])])
        set_aside(builder, spec.aside)
        builder.settings = settings
        yield builder


def _search(expression: Any, scope: _Scope, otherwise: object = None) -> object:
    """Return the value of an expression; `otherwise` if a function refused its argument."""
    try:
        value: object = expression.search(scope)
    except _EVALUATION_ERRORS:
        value = otherwise
    return value


def _holds(expression: Any, scope: _Scope, otherwise: bool) -> bool:
    """Return whether an expression is true in JMESPath; `otherwise` if it has no value."""
    value = _search(expression, scope, otherwise)
    return value is not None and value is not False and value not in ("", [], {})


def _printed(expression: Any, scope: _Scope) -> str:
    """Return the number or word at a place, as text.

    Raises:
        ValueError: the value is neither a number nor a word, or there is none.
    """
    value = _search(expression, scope)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(Message("reader-no-value-at", place=expression.expression))
    return str(value)

"""The engine of a `json:` block: values at named places of a JSON document."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from jmespath.exceptions import JMESPathError

from proofmark.cases.reader.builder import ProgramRun, ReadingBuilder
from proofmark.cases.reader.spec import JsonSpec, ReadSpec
from proofmark.cases.reader.values import Parameter, measured, parameter, shorten

_START = re.compile(r"^\{", re.MULTILINE)
# NaN and Infinity stay words, so that they are refused by name like in any text.
_DECODER = json.JSONDecoder(parse_constant=str)

# Some functions of the library do not check their arguments, and fail as Python does.
_UNSUITED = (JMESPathError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)

_Scope = dict[str, Any]


def find_document(text: str, start: int = 0) -> int | None:
    """Return where the next line that opens a JSON object begins: programs print warnings first."""
    found = _START.search(text, start)
    return found.start() if found else None


def read_documents(
    spec: ReadSpec, rules: JsonSpec, text: str, start: int | None
) -> list[ProgramRun]:
    """Read each JSON document of `text` from `start` on as a run of its own."""
    runs, end = [], 0
    while start is not None:
        before = [line.rstrip() for line in text[end:start].split("\n")]
        try:
            document, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError) as error:
            # The rest of the text is in doubt with it.
            runs.append(ProgramRun(problems=[f"the JSON document is cut or broken: {error}"]))
            break
        run = _read_document(spec, rules, document)
        for pattern in rules.refuse:
            said = [line for line in before if pattern.fullmatch(line)]
            run.problems += [f"the output says {shorten(line)}" for line in said[:1]]
        runs.append(run)
        start = find_document(text, end)
    return runs


def _read_document(spec: ReadSpec, rules: JsonSpec, document: object) -> ProgramRun:
    scope = {"output": document}
    run = ProgramRun()
    for reason, condition in rules.require.items():
        if not _holds(condition, scope, otherwise=False):
            run.problems.append(reason)
    numbers: Counter[tuple[object, ...]] = Counter()
    for item in _items(list(rules.each.items()), scope):
        for draft in _drafts(spec, rules, item):
            if rules.numbered:
                same = (draft.metric, *sorted(draft.parameters.items()))
                draft.parameters = {**draft.parameters, rules.numbered: numbers[same]}
                numbers[same] += 1
            run.drafts.append(draft)
    return run


def _items(each: list[tuple[str, Any]], scope: _Scope) -> Iterator[_Scope]:
    """Give the scope of every innermost item."""
    if not each:
        yield scope
        return
    (name, expression), *inner = each
    found = _search(expression, scope)
    for item in found if isinstance(found, list) else []:
        yield from _items(inner, {**scope, name: item})


def _drafts(spec: ReadSpec, rules: JsonSpec, scope: _Scope) -> Iterator[ReadingBuilder]:
    """Read one item."""
    problems = [
        reason
        for reason, condition in rules.reject.items()
        if _holds(condition, scope, otherwise=True)
    ]
    parameters: dict[str, Parameter] = {}
    for name, expression in rules.parameters.items():
        try:
            parameters[name] = parameter(spec.parameters[name], _printed(expression, scope))
        except ValueError as error:
            problems.append(f"{name}: {error}")
    for metric, rule in rules.values.items():
        if rule.when and not _holds(rule.when, scope, otherwise=True):
            continue
        value, problem = None, ""
        try:
            value, problem = measured(_printed(rule.value, scope))
        except ValueError as error:
            problem = str(error)
        yield ReadingBuilder(metric, value, parameters, [*problems, *filter(None, [problem])])


def _search(expression: Any, scope: _Scope, otherwise: object = None) -> object:
    """Evaluate an expression; `otherwise` where a function met what it cannot take."""
    try:
        found: object = expression.search(scope)
    except _UNSUITED:
        found = otherwise
    return found


def _holds(expression: Any, scope: _Scope, otherwise: bool) -> bool:
    """Return whether an expression is true as JMESPath defines it; `otherwise` if it cannot be."""
    found = _search(expression, scope, otherwise)
    return found is not None and found is not False and found not in ("", [], {})


def _printed(expression: Any, scope: _Scope) -> str:
    """Return the number or word at a place, as text.

    Raises:
        ValueError: neither stands there.
    """
    found = _search(expression, scope)
    if isinstance(found, bool) or not isinstance(found, str | int | float):
        raise ValueError(f"neither a number nor a word at {expression.expression}")
    return str(found)

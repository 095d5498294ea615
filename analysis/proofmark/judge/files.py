"""The files that keep a verdict: ``verdict.json`` and ``junit.xml``, one line a result.

A run of thousands of nodes has some hundred thousand results that differ in node and numbers alone.
Their lines are made from the line of one of them; every other result is written as it is.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TextIO
from xml.sax.saxutils import escape

from proofmark.judge.claims.model import Answer
from proofmark.judge.intervals import interval
from proofmark.judge.verdict import Result, Results, Verdict, result_json

_ELEMENTS = {"FAIL": "failure", "INVALID": "error", "UNJUDGED": "skipped"}
_MARK = f"@{secrets.token_hex(8)}@"  # stands in no name and in no output
_MARKED = re.compile(rf'"{_MARK}(\w+)"')
_DIFFERENT = (
    *("step", "attempt", "node", "value", "repeat", "values", "interval", "confidence"),
    "reason",
)
"""Keys of like results whose values differ."""
_CONTROL = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_verdict(file: TextIO, verdict: Verdict, claims: Sequence[Answer]) -> None:
    """Write ``verdict.json``; under ``claims`` stands what the figures say to the papers'."""
    head = {**verdict.head(), "claims": [each.as_json() for each in claims]}
    file.write(json.dumps(head, indent=1, default=str).removesuffix("\n}") + ',\n "results": [')
    between = "\n"
    for line in _json_lines(verdict.results):
        file.write(f"{between}  {line}")
        between = ",\n"
    file.write("\n ]\n}\n")


def _json_lines(results: Results) -> Iterator[str]:
    made = VerdictLineTemplate(results)
    for figure, plain in enumerate(results.passed_by_peers_only.tolist()):
        yield made.line(figure) if plain else json.dumps(result_json(results[figure]))


class VerdictLineTemplate:
    """Lines of ``verdict.json`` of results that their fellows alone judge, and well."""

    def __init__(self, results: Results) -> None:
        standing = results.standing
        records = standing.records
        self._results, self._fleet = results, results.fleet
        self._nodes = [json.dumps(node) for node in records.nodes]
        self._steps = [json.dumps(each.step) for each in records.executions]
        self._executions = records.executions
        self._execution = records.execution[standing.order].tolist()
        self._value = records.value[standing.order].tolist()
        self._first, self._count = standing.first.tolist(), standing.count.tolist()
        self._median, self._node = standing.median.tolist(), standing.node.tolist()
        self._measurand, self._of = standing.measurand.tolist(), results.fleet.of.tolist()
        self._patterns: dict[tuple[int, int], tuple[list[str], float, str]] = {}

    def line(self, figure: int) -> str:
        """Return the line of one result."""
        key = (self._measurand[figure], self._of[figure])
        if key not in self._patterns:
            self._patterns[key] = self._pattern(figure)
        pieces, centre, name = self._patterns[key]
        first = self._first[figure]
        execution = self._execution[first]
        values = self._value[first : first + self._count[figure]]
        sure = interval(values)
        ratio = self._median[figure] / centre
        reason = f'"{ratio:.3g}{name}"'
        found = {
            "step": self._steps[execution],
            "attempt": self._executions[execution].attempt,
            "node": self._nodes[self._node[figure]],
            "value": self._median[figure],
            "repeat": self._executions[execution].repeat,
            "values": values,
            "interval": [sure.low, sure.high] if sure else "null",
            "confidence": sure.confidence if sure else "null",
            "reason": reason,
            "ratio": ratio,
        }
        return "".join(
            [str(found[piece]) if place % 2 else piece for place, piece in enumerate(pieces)]
        )

    def _pattern(self, figure: int) -> tuple[list[str], float, str]:
        """Return a result's line, cut where nodes differ, and what its value is held against."""
        told = result_json(self._results[figure])
        judged = self._fleet.figures[self._of[figure]]
        for name in _DIFFERENT:
            told[name] = f"{_MARK}{name}"
        (answer,) = told["references"]
        answer |= {"ratio": f"{_MARK}ratio", "reason": f"{_MARK}reason"}
        _, name, _ = judged.told
        against = json.dumps(f" × {name}")[1:-1]
        return _MARKED.split(json.dumps(told)), judged.fleet_limit.centre, against


def write_junit(file: TextIO, verdict: Verdict) -> None:
    """Write the verdict as JUnit XML: FAIL is a failure, INVALID an error, UNJUDGED skipped."""
    counts = verdict.counts
    named = {
        "name": verdict.run,
        "tests": len(verdict.results),
        "failures": counts["FAIL"],
        "errors": counts["INVALID"],
        "skipped": counts["UNJUDGED"],
    }
    file.write('<?xml version="1.0" encoding="utf-8"?>\n')
    file.write(f"<testsuite{_attributes(named.items())}>\n")
    file.writelines(_junit_lines(verdict.results))
    file.write("</testsuite>\n")


def _junit_lines(results: Results) -> Iterator[str]:
    standing = results.standing
    nodes = [_text(node) for node in standing.records.nodes]
    heads: dict[int, tuple[str, str]] = {}
    for figure, (plain, what, node) in enumerate(
        zip(
            results.passed_by_peers_only.tolist(),
            standing.measurand.tolist(),
            standing.node.tolist(),
            strict=True,
        )
    ):
        if not plain:
            yield _testcase(results[figure])
            continue
        if what not in heads:
            marked = replace(results[figure].record, node=_MARK)
            head, _, tail = _testcase(replace(results[figure], record=marked)).partition(_MARK)
            heads[what] = head, tail
        head, tail = heads[what]
        yield f"{head}{nodes[node]}{tail}"


def _testcase(result: Result) -> str:
    named = {"classname": result.record.case, "name": figure_name(result)}
    head = f"<testcase{_attributes(named.items())}"
    element = _ELEMENTS.get(result.verdict)
    if element is None:
        return f"{head}/>\n"
    said = _attributes([("message", result.reason)])
    return f"{head}><{element}{said}/></testcase>\n"


def _attributes(named: Iterable[tuple[str, Any]]) -> str:
    return "".join(f' {name}="{_text(str(value))}"' for name, value in named)


def _text(value: str) -> str:
    """Return a foreign text as it may stand in an attribute; XML has no place for some letters."""
    return escape(_CONTROL.sub("\ufffd", value), {'"': "&quot;", "\n": "&#10;", "\t": "&#9;"})


def figure_name(result: Result) -> str:
    """Return what tells a figure from its fellows of the same case."""
    record = result.record
    parameters = (f"{key}={value}" for key, value in record.parameters.items())
    words = (record.node, record.mode, record.placement, record.benchmark, record.metric)
    return " ".join([*filter(None, words), *parameters])

"""The files of a verdict: ``verdict.json`` and ``junit.xml``, one line for each result.

A run of thousands of nodes has some hundred thousand results that differ only in node and numbers.
Their lines are made from a template, the line of one of them. Other results are written one by one.
"""

from __future__ import annotations

import json
import re
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TextIO
from xml.sax.saxutils import escape

from proofmark.common.message import Message, fields_json
from proofmark.common.text import one_line
from proofmark.judge.claim_source import Answer
from proofmark.judge.intervals import interval
from proofmark.judge.limit_outcomes import LimitOutcome
from proofmark.judge.verdict import NodeFault, Result, Results, Verdict, result_json

SINGLE_RUN = "single run"
"""Label of a figure that was measured once."""
_ELEMENTS = {"FAIL": "failure", "INVALID": "error", "UNJUDGED": "skipped"}
_MARK = f"@{secrets.token_hex(8)}@"  # random: in no name and in no output
_MARKED = re.compile(rf'"{_MARK}(\w+)"')
_DIFFERENT = (
    *("step", "attempt", "node", "value", "repeat", "values", "interval", "confidence"),
    *("reason", "reason_fields", "single_run"),
)
"""Keys whose values differ between like results."""
_CONTROL = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_verdict(file: TextIO, verdict: Verdict, claims: Sequence[Answer]) -> None:
    """Write ``verdict.json``; its key ``claims`` has the answers to the claims of the papers."""
    head = {**verdict.head(), "claims": [each.as_json() for each in claims]}
    file.write(json.dumps(head, indent=1, default=str).removesuffix("\n}") + ',\n "results": [')
    between = "\n"
    for line in _json_lines(verdict.results):
        file.write(f"{between}  {line}")
        between = ",\n"
    file.write("\n ]\n}\n")


def _json_lines(results: Results) -> Iterator[str]:
    template = VerdictLineTemplate(results)
    for figure, simple in enumerate(results.like_peers_only.tolist()):
        yield template.line(figure) if simple else json.dumps(result_json(results[figure]))


class VerdictLineTemplate:
    """Lines of ``verdict.json`` for results that only their peers judge, and that are like them."""

    def __init__(self, results: Results) -> None:
        aggregates = results.aggregates
        records = aggregates.records
        self._results, self._fleet = results, results.fleet
        self._nodes = [json.dumps(node) for node in records.nodes]
        self._steps = [json.dumps(execution.step) for execution in records.executions]
        self._executions = records.executions
        self._execution = records.execution[aggregates.order].tolist()
        self._value = records.value[aggregates.order].tolist()
        self._first, self._count = aggregates.first.tolist(), aggregates.count.tolist()
        self._median, self._node = aggregates.median.tolist(), aggregates.node.tolist()
        self._measurand = aggregates.measurand.tolist()
        self._of = results.fleet.of.tolist()
        self._patterns: dict[tuple[int, int], tuple[list[str], float]] = {}

    def line(self, figure: int) -> str:
        """Return the line of one result."""
        key = (self._measurand[figure], self._of[figure])
        if key not in self._patterns:
            self._patterns[key] = self._pattern(figure)
        pieces, centre = self._patterns[key]
        first = self._first[figure]
        execution = self._execution[first]
        values = self._value[first : first + self._count[figure]]
        bounds = interval(values)
        ratio = self._median[figure] / centre
        reason = self._fleet.reason_alike(figure)
        differing = {
            "step": self._steps[execution],
            "attempt": self._executions[execution].attempt,
            "node": self._nodes[self._node[figure]],
            "value": self._median[figure],
            "repeat": self._executions[execution].repeat,
            "values": values,
            "single_run": json.dumps(len(values) == 1),
            "interval": [bounds.low, bounds.high] if bounds else "null",
            "confidence": bounds.confidence if bounds else "null",
            "reason": json.dumps(reason),
            "reason_fields": json.dumps(fields_json(reason)),
            "ratio": ratio,
        }
        return "".join(
            [str(differing[piece]) if place % 2 else piece for place, piece in enumerate(pieces)]
        )

    def _pattern(self, figure: int) -> tuple[list[str], float]:
        """Return the pieces of a line, and the median of the fleet.

        Every second piece is the name of a value that differs between nodes.
        """
        fields = result_json(self._results[figure])
        compared = self._fleet.figures[self._of[figure]]
        for name in _DIFFERENT:
            fields[name] = f"{_MARK}{name}"
        (answer,) = fields["references"]
        answer |= {"ratio": f"{_MARK}ratio", "reason": f"{_MARK}reason"}
        return _MARKED.split(json.dumps(fields)), compared.fleet_limit.centre


def write_junit(file: TextIO, verdict: Verdict) -> None:
    """Write ``junit.xml``.

    A FAIL and a fault of a node are failures. INVALID is an error. UNJUDGED is skipped, and so is
    an item of the contract that is missed and is waived or minor.
    """
    counts = verdict.counts
    items = Counter(_word(each) for each in verdict.contract if each.item)
    attributes = {
        "name": verdict.run,
        "tests": len(verdict.results) + len(verdict.faults) + items.total(),
        "failures": counts["FAIL"] + len(verdict.faults) + items["FAIL"],
        "errors": counts["INVALID"] + items["INVALID"],
        "skipped": counts["UNJUDGED"] + items["UNJUDGED"],
    }
    file.write('<?xml version="1.0" encoding="utf-8"?>\n')
    file.write(f"<testsuite{_attributes(attributes.items())}>\n")
    if verdict.degraded:
        file.write(f"{_property(verdict.degraded.label)}\n")
    file.writelines(map(_faulty, verdict.faults))
    file.writelines(_item(each) for each in verdict.contract if each.item)
    file.writelines(_junit_lines(verdict.results))
    file.write("</testsuite>\n")


def _junit_lines(results: Results) -> Iterator[str]:
    aggregates = results.aggregates
    nodes = [_text(node) for node in aggregates.records.nodes]
    pieces: dict[tuple[int, bool], list[str]] = {}
    for figure, (simple, measurand, single, node) in enumerate(
        zip(
            results.like_peers_only.tolist(),
            aggregates.measurand.tolist(),
            aggregates.single_run.tolist(),
            aggregates.node.tolist(),
            strict=True,
        )
    ):
        if not simple:
            yield _testcase(results[figure])
            continue
        if (measurand, single) not in pieces:
            marked = replace(results[figure].record, node=_MARK)
            pieces[measurand, single] = _testcase(
                replace(results[figure], record=marked, reason=Message("output", problem=_MARK))
            ).split(_MARK)
        head, middle, tail = pieces[measurand, single]
        yield f"{head}{nodes[node]}{middle}{_text(results.fleet.reason_alike(figure))}{tail}"


def _word(of: LimitOutcome) -> str:
    return of.outcome if of.binding or of.outcome == "PASS" else "UNJUDGED"


def _item(of: LimitOutcome) -> str:
    """Return the test case of an item of the contract."""
    head = f"<testcase{_attributes([('classname', 'contract'), ('name', of.name)])}"
    element = _ELEMENTS.get(_word(of))
    if element is None:
        return f"{head}/>\n"
    waiver = of.waiver
    why = [f"waived by {waiver.by} on {waiver.date}: {waiver.reason}"] if waiver else []
    message = "; ".join([of.outcome, *why, *map(str, of.not_evaluated)])
    return f"{head}><{element}{_attributes([('message', message)])}/></testcase>\n"


def _faulty(fault: NodeFault) -> str:
    head = f"<testcase{_attributes([('classname', 'node'), ('name', fault.node)])}>"
    return f"{head}<failure{_attributes([('message', fault.reason)])}/></testcase>\n"


def _testcase(result: Result) -> str:
    attributes = {"classname": result.record.case, "name": figure_name(result)}
    head = f"<testcase{_attributes(attributes.items())}"
    element = _ELEMENTS.get(result.verdict)
    content = f"<system-out>{SINGLE_RUN}</system-out>" if result.single_run else ""
    labelled = _property(result.degraded) if result.degraded else ""
    if element is not None:
        content = f"<{element}{_attributes([('message', result.reason)])}/>{content}"
    content = f"{labelled}{content}"
    return f"{head}>{content}</testcase>\n" if content else f"{head}/>\n"


def _property(label: str) -> str:
    """Return the properties of a test case or suite with the label of a degraded run."""
    named = _attributes([("name", "degraded"), ("value", label)])
    return f"<properties><property{named}/></properties>"


def _attributes(attributes: Iterable[tuple[str, Any]]) -> str:
    return "".join(f' {name}="{_text(str(value))}"' for name, value in attributes)


def _text(value: str) -> str:
    """Return `value` in one line and escaped for an attribute.

    Characters that XML does not allow become U+FFFD.
    """
    return escape(one_line(_CONTROL.sub("\ufffd", value)), {'"': "&quot;"})


def figure_name(result: Result) -> str:
    """Return the name of a figure, unique within its case."""
    record = result.record
    parameters = (f"{key}={value}" for key, value in record.parameters.items())
    words = (record.node, record.mode, record.placement, record.benchmark, record.metric)
    return " ".join([*filter(None, words), *parameters])

"""The files of a verdict: ``verdict.json`` and ``junit.xml``, one line for each result.

A run of thousands of nodes has some hundred thousand results that differ only in node and numbers.
Their lines are made from a template, the line of one of them. Other results are written one by one.
"""

from __future__ import annotations

import json
import math
import re
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from json.encoder import encode_basestring_ascii as quoted
from typing import Any, TextIO
from xml.sax.saxutils import escape

import numpy as np

from proofmark.common.message import SEVERAL, Message, fields_json
from proofmark.common.text import one_line
from proofmark.judge.confidence import interval
from proofmark.judge.contract_items import ItemOutcome
from proofmark.judge.references.judgement import Judgement
from proofmark.judge.results import WORDS, judgement_json, reason_of
from proofmark.judge.verdict import Result, Results, Verdict, result_json

SINGLE_RUN = "single run"
"""Label of a figure that was measured once."""
_ELEMENTS = {"FAIL": "failure", "INVALID": "error", "UNJUDGED": "skipped"}
_MARK = f"@{secrets.token_hex(8)}@"  # random: in no name and in no output
_OF_RESULT = (
    *("step", "attempt", "node", "value", "repeat", "reason", "values", "single_run", "degraded"),
    *("interval", "confidence", "verdict", "reason_code", "reason_fields", "references"),
)
"""The keys of `result_json` that differ between plain results of one measurand, in order."""
_OF_JUDGEMENT = ("reason", "value", "ratio", "ratios", "visible")
"""The keys of `judgement_json` that differ between nodes, in order."""
_CONTROL = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_verdict(file: TextIO, verdict: Verdict, *, all_figures: bool = True) -> None:
    """Write ``verdict.json``.

    Args:
        all_figures: whether figures without a finding are listed if this kit did not execute the
            run. Else ``unlisted`` has their number: ``records.parquet`` has them.
    """
    results, left = verdict.results, np.zeros(len(verdict.results), dtype=bool)
    if not (verdict.conditions.executed or all_figures):
        left = results.without_finding
    head = verdict.head(unlisted=int(left.sum()))
    file.write(json.dumps(head, indent=1, default=str).removesuffix("\n}") + ',\n "results": [')
    between = "\n  "
    lines, plain = PlainLines(results), results.plain
    further: dict[int, dict[str, Any]] = {}
    for finding in verdict.added.values():
        for figure, keys in finding.of_results().items():
            further.setdefault(figure, {}).update(keys)
    for figure in np.flatnonzero(~left).tolist():
        line = (plain[figure] and figure not in further and lines.line(figure)) or json.dumps(
            {**result_json(results[figure]), **further.get(figure, {})}
        )
        file.write(f"{between}{line}")
        between = ",\n  "
    file.write("\n ]\n}\n")


class PlainLines:
    """The lines of plain results (`Results.plain`), from patterns that like results share."""

    def __init__(self, results: Results) -> None:
        aggregates = results.aggregates
        self._results, self._records = results, aggregates.records
        self._nodes = [quoted(node) for node in aggregates.records.nodes]
        # An item of a memoryview is a Python number. A list of all of them takes more memory.
        self._values = aggregates.records.value[aggregates.order].data
        self._executions = aggregates.records.execution[aggregates.order[aggregates.first]].data
        self._places, self._counts = aggregates.first.data, aggregates.count.data
        self._node, self._measurand = aggregates.node.data, aggregates.measurand.data
        self._medians, self._verdicts = aggregates.median.data, results.verdict.data
        self._patterns: dict[object, str] = {}

    def line(self, figure: int) -> str:
        """Return the line of a result; "" if it has a value that is not finite."""
        results, first, median = self._results, self._places[figure], self._medians[figure]
        values = self._values[first : first + self._counts[figure]].tolist()
        if not math.isfinite(median + sum(values)):
            return ""
        measurand = self._measurand[figure]
        if measurand not in self._patterns:
            self._patterns[measurand] = _pattern(result_json(results[figure]), _OF_RESULT)
        execution = self._records.executions[self._executions[figure]]
        verdict, judgements = WORDS[self._verdicts[figure]], results.references(figure)
        bounds, reason = interval(values), reason_of(verdict, judgements)
        return self._patterns[measurand] % (
            quoted(execution.step),
            execution.attempt,
            self._nodes[self._node[figure]],
            median,
            execution.repeat,
            quoted(reason),
            values,
            "true" if len(values) == 1 else "false",
            quoted(results.degraded.get(execution.step, "")),
            f"[{bounds.low}, {bounds.high}]" if bounds else "null",
            bounds.confidence if bounds else "null",
            quoted(verdict),
            quoted(reason.main_code),
            _fields(reason),
            f"[{', '.join(map(self._judgement, judgements))}]",
        )

    def _judgement(self, of: Judgement) -> str:
        key = of.kind, of.source, of.outcome, of.reason.main_code, of.at_least, of.at_most
        if key not in self._patterns:
            self._patterns[key] = _pattern(judgement_json(of), _OF_JUDGEMENT)
        return self._patterns[key] % (
            quoted(of.reason),
            _number(of.value),
            _number(of.ratio),
            json.dumps(of.ratios) if of.ratios else "[]",
            _number(of.visible),
        )


def _pattern(fields: dict[str, Any], differing: Sequence[str]) -> str:
    """Return `fields` as JSON. The value of each key in `differing` is ``%s``."""
    assert [name for name in fields if name in differing] == list(differing)
    marked = json.dumps({**fields, **dict.fromkeys(differing, _MARK)})
    return marked.replace("%", "%%").replace(f'"{_MARK}"', "%s")


def _number(value: float | None) -> str:
    if value is None:
        return "null"
    return f"{value}" if math.isfinite(value) else json.dumps(value)


def _fields(message: Message) -> str:
    """Return the fields of a message as JSON."""
    if message.code != SEVERAL:
        return json.dumps(fields_json(message))
    return f'{{"parts": [{", ".join(_stored(part.code, part) for part in message.parts)}]}}'


@lru_cache(maxsize=4096)
def _stored(code: str, message: Message) -> str:
    """Return a message with the code `code` as JSON. Equal messages differ at most in the code."""
    return json.dumps(message.stored())


def write_junit(file: TextIO, verdict: Verdict) -> None:
    """Write ``junit.xml``.

    A FAIL and a fault of a node are failures. INVALID is an error. UNJUDGED is skipped, and so are
    a stage that failed, and an item of the contract that is missed and minor.
    """
    counts = verdict.counts
    items = Counter(map(_word, verdict.agreed))
    stages = verdict.conditions.open_stages
    attributes = {
        "name": verdict.run,
        "tests": len(verdict.results) + len(verdict.faults) + len(stages) + items.total(),
        "failures": counts["FAIL"] + len(verdict.faults) + items["FAIL"],
        "errors": counts["INVALID"] + items["INVALID"],
        "skipped": counts["UNJUDGED"] + len(stages) + items["UNJUDGED"],
    }
    file.write('<?xml version="1.0" encoding="utf-8"?>\n')
    file.write(f"<testsuite{_attributes(attributes.items())}>\n")
    if verdict.degraded:
        file.write(f"{_property(verdict.degraded.label)}\n")
    file.writelines(_case("node", each.node, each.reason) for each in verdict.faults)
    file.writelines(_case("stage", each.nodes, each.reason, "skipped") for each in stages)
    file.writelines(map(_item, verdict.agreed))
    file.writelines(_junit_lines(verdict.results))
    file.write("</testsuite>\n")


def _junit_lines(results: Results) -> Iterator[str]:
    aggregates = results.aggregates
    nodes = [_text(node) for node in aggregates.records.nodes]
    patterns: dict[object, list[str]] = {}
    columns = (results.verdict, aggregates.node, aggregates.measurand, aggregates.single_run)
    for figure, plain in enumerate(results.plain.tolist()):
        if not plain:
            yield _testcase(results[figure])
            continue
        verdict, node, *like = (int(column[figure]) for column in columns)
        step = aggregates.executions(figure)[0].step if results.degraded else ""
        key = (verdict, *like, results.degraded.get(step))
        if key not in patterns:
            made = results[figure]
            output = Message("output", problem=_MARK)
            marked = replace(made, record=replace(made.record, node=_MARK), reason=output)
            patterns[key] = _testcase(marked).split(_MARK)
        head, *middle, tail = patterns[key]
        reason = reason_of(WORDS[verdict], results.references(figure)) if middle else ""
        yield f"{head}{nodes[node]}{middle[0] if middle else ''}{_text(reason)}{tail}"


def _word(of: ItemOutcome) -> str:
    return of.outcome if of.binding or of.outcome == "PASS" else "UNJUDGED"


def _item(of: ItemOutcome) -> str:
    """Return the test case of an item of the contract."""
    head = f"<testcase{_attributes([('classname', 'contract'), ('name', of.name)])}"
    element = _ELEMENTS.get(_word(of))
    named = "".join(f"{_text(each)}\n" for each in of.excuses)
    printed = f"<system-out>{named}</system-out>" if named else ""
    if element is None:
        return f"{head}>{printed}</testcase>\n" if printed else f"{head}/>\n"
    missed = [f"{node}: {text}" for node, text in of.missed.items()]
    message = "; ".join([of.outcome, *missed, *map(str, of.not_evaluated)])
    return f"{head}><{element}{_attributes([('message', message)])}/>{printed}</testcase>\n"


def _case(kind: str, nodes: str, why: Message, element: str = "failure") -> str:
    """Return the test case of a fault that no figure has."""
    head = f"<testcase{_attributes([('classname', kind), ('name', nodes)])}>"
    return f"{head}<{element}{_attributes([('message', why)])}/></testcase>\n"


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
    if not value.isprintable():  # a printable character is allowed
        value = _CONTROL.sub("\ufffd", value)
    return escape(one_line(value), {'"': "&quot;"})


def figure_name(result: Result) -> str:
    """Return the name of a figure, unique within its case."""
    record = result.record
    parameters = (f"{key}={value}" for key, value in record.parameters.items())
    words = (record.node, record.mode, record.placement, record.benchmark, record.metric)
    return " ".join([*filter(None, words), *parameters])

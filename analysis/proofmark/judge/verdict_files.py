"""Writes ``verdict.json``, with one line for each result.

A run of thousands of nodes has some hundred thousand results that differ only in node and numbers.
Their lines are made from a template, the line of one of them. Other results are written one by one.
"""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Sequence
from functools import lru_cache
from json.encoder import encode_basestring_ascii as quoted
from typing import Any, TextIO

import numpy as np

from proofmark.common.message import SEVERAL, Message, fields_json
from proofmark.judge.confidence import interval
from proofmark.judge.references.judgement import Judgement
from proofmark.judge.results import WORDS, judgement_json, reason_of
from proofmark.judge.verdict import Result, Results, Verdict, result_json

SINGLE_RUN = "single run"
"""Label of a figure that was measured once."""
_MARK = f"@{secrets.token_hex(8)}@"  # random: in no name and in no output
_OF_RESULT = (
    *("step", "attempt", "node", "value", "repeat", "reason", "values", "single_run", "degraded"),
    *("interval", "confidence", "verdict", "reason_code", "reason_fields", "references"),
)
"""The keys of `result_json` that differ between plain results of one measurand, in order."""
_OF_JUDGEMENT = ("reason", "value", "ratio", "ratios", "visible")
"""The keys of `judgement_json` that differ between nodes, in order."""


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
    for figure in np.flatnonzero(~left).tolist():
        line = (plain[figure] and lines.line(figure)) or json.dumps(result_json(results[figure]))
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
    if message.code != SEVERAL:
        return json.dumps(fields_json(message))
    return f'{{"parts": [{", ".join(_stored(part.code, part) for part in message.parts)}]}}'


@lru_cache(maxsize=4096)
def _stored(code: str, message: Message) -> str:
    """Return a message with the code `code` as JSON. Equal messages differ at most in the code."""
    return json.dumps(message.stored())


def figure_name(result: Result) -> str:
    """Return the name of a figure, unique within its case."""
    record = result.record
    parameters = (f"{key}={value}" for key, value in record.parameters.items())
    words = (record.node, record.mode, record.placement, record.benchmark, record.metric)
    return " ".join([*filter(None, words), *parameters])

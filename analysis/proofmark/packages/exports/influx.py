"""Exports the records of a run in the line protocol of InfluxDB (versions 1 to 3).

Source of the syntax: "Line protocol reference" of the documentation of InfluxDB OSS 2.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from proofmark.common.errors import bad_input
from proofmark.common.files import replacing
from proofmark.common.text import one_line
from proofmark.judge.results import WORDS, Results
from proofmark.judge.verdict import Verdict
from proofmark.packages.exports.times import ends
from proofmark.records.columns import Measurand, Numbers, Records
from proofmark.report.export import Export
from proofmark.runs.run import Run

Field = str | bool | int | float
_TAGS = {",": "\\,", "=": "\\=", " ": "\\ ", "\\": "/"}
"""A backslash cannot be escaped in a tag. A tag that ends with one would join the next tag."""
_TEXTS = {'"': '\\"', "\\": "\\\\"}


class InfluxDb(Export):
    """Writes all records in the line protocol of InfluxDB."""

    content = "all records in the line protocol of InfluxDB"

    def write(self, run: Run, records: Records, verdict: Verdict, folder: Path) -> list[Path]:
        """Write ``records.lp``: one line for each record, and one for the run.

        There is no file if there are no records.

        Raises:
            BadInput: no step of the run has a known time.
        """
        if not len(records):
            return []
        path = folder / "records.lp"
        with replacing(path) as file:
            file.writelines(f"{line}\n" for line in _lines(run, records, verdict))
        return [path]


def _lines(run: Run, records: Records, verdict: Verdict) -> Iterator[str]:
    times = _nanoseconds(run, records)
    later = _occurrences(records)
    quantities = [_tags(each) for each in records.measurands]
    nodes = [tags({"node": name}) for name in records.nodes]
    steps = [tags({"step": each.step, "attempt": each.attempt}) for each in records.executions]
    verdicts = _verdicts(verdict.results, len(records))
    for number in range(len(records)):
        execution, reason = int(records.execution[number]), int(records.reason[number])
        value, word = float(records.value[number]), int(verdicts[number])
        named = {"value": value} if math.isfinite(value) else {}
        about: dict[str, Field] = {
            **named,
            "valid": reason < 0,
            "repeat": records.executions[execution].repeat,
            "run": run.id,
        }
        if word >= 0:
            about["verdict"] = WORDS[word]
        if reason >= 0:
            about["reason"] = records.reasons[reason]
        series = quantities[int(records.measurand[number])] + nodes[int(records.node[number])]
        # Two points with equal tags and time overwrite each other.
        time = times[execution] + int(later[number])
        yield f"proofmark{series}{steps[execution]} {fields(about)} {time}"
    plan = run.plan
    where = tags({"site": plan.site, "partition": plan.partition, "suite": plan.suite})
    counts = {word.lower(): verdict.counts[word] for word in WORDS}
    ending = fields({"run": run.id, "exit_code": verdict.exit_code(), **counts})
    yield f"proofmark_run{where} {ending} {max(times)}"


def _tags(about: Measurand) -> str:
    named = {name: value for name, value in about._asdict().items() if name != "parameters"}
    parameters = json.loads(about.parameters)
    return tags({**named, **{f"parameter_{key}": value for key, value in parameters.items()}})


def tags(values: Mapping[str, str | int | float]) -> str:
    """Return ``,key=value`` for each tag; a tag with an empty value is left out.

    White space and control characters become single blanks, a backslash becomes a slash.
    """
    texts = {key: one_line(f"{value}") for key, value in values.items()}
    return "".join(f",{_tag(key)}={_tag(text)}" for key, text in texts.items() if text)


def _tag(text: str) -> str:
    return "".join(_TAGS.get(letter, letter) for letter in text)


def fields(values: Mapping[str, Field]) -> str:
    """Return ``key=value`` for each field, separated by commas; the keys have only letters."""
    return ",".join(f"{key}={_field(value)}" for key, value in values.items())


def _field(value: Field) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value}i"
    if isinstance(value, float):
        return repr(value)
    return '"' + "".join(_TEXTS.get(letter, letter) for letter in one_line(value)) + '"'


def _nanoseconds(run: Run, records: Records) -> list[int]:
    """Return the end of each execution in nanoseconds since 1970.

    An execution without a known end has the end of the last one: it has no value.

    Raises:
        BadInput: no execution has a known end.
    """
    seconds = ends(records)
    if np.isnan(seconds).all():
        found = "no step with a start and a duration"
        raise bad_input(run.folder, "when.json", found, "the files that the steps wrote")
    known = np.where(np.isnan(seconds), np.nanmax(seconds), seconds)
    return [round(each * 1e9) for each in known.tolist()]


def _occurrences(records: Records) -> Numbers:
    """Return for each record how many earlier records of its execution measured the same."""
    keys = records.execution * len(records.measurands) + records.measurand
    _, group = np.unique(keys * len(records.nodes) + records.node, return_inverse=True)
    order = np.argsort(group, kind="stable")
    ordered = group[order]
    first = np.searchsorted(ordered, ordered)
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order)) - first
    return places


def _verdicts(results: Results, count: int) -> Numbers:
    """Return the verdict of the figure of each record, as its number in `WORDS`.

    It is -1 for a record that does not count.
    """
    aggregates = results.aggregates
    verdicts = np.full(count, -1, dtype=np.int64)
    verdicts[aggregates.order] = np.repeat(results.verdict, aggregates.count)
    return verdicts

"""The result of a step so far: its executions, its figures, their verdicts, how to repeat it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from proofmark.common.errors import BadInput
from proofmark.common.files import read_bytes, read_json
from proofmark.common.input_limits import MAX_OUTPUT_BYTES
from proofmark.common.printed_command import SCRIPT, STEP, Part, PrintedCommand, of_run
from proofmark.common.text import duration
from proofmark.judge.results import WORDS
from proofmark.packages.tools.planned_step import Context, ExplainedRow
from proofmark.records.columns import Record
from proofmark.records.read import read_run
from proofmark.records.run_facts import RunParts
from proofmark.report.words import number
from proofmark.runs.attempts import Attempt, attempts
from proofmark.runs.nodes import nodes_of
from proofmark.runs.run import Run
from proofmark.runs.state import is_locked
from proofmark.runs.step_state import state_of
from proofmark.software.software import Software

MOST_ROWS = 40
"""The largest number of figures, executions or nodes that are listed."""
_WORST = ("INVALID", "FAIL", "UNJUDGED", "PASS")


class StoredResult(BaseModel):
    """A result in ``verdict.json``: what identifies its figure, and its verdict."""

    node: str
    benchmark: str
    metric: str
    mode: str
    placement: str
    case: str
    parameters: dict[str, str | int | float]
    verdict: str
    reason: str


class _Written(BaseModel):
    results: list[Any]
    unlisted: int = 0


_JUDGED = TypeAdapter(list[StoredResult])


@dataclass
class _Group:
    """The records of one figure on all nodes and in all executions of the step."""

    records: list[Record] = field(default_factory=list)
    verdicts: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, str] = field(default_factory=dict)


def result_rows(context: Context) -> list[ExplainedRow]:
    """Return the state of the step, its executions, and its figures with their verdicts."""
    run, step = context.run, context.step
    state = state_of(run.files.step(str(context.instance)), step, active=is_locked(run.folder))
    rows = [ExplainedRow("state", state.state, state.problem)]
    finished = list(_executions(context))
    rows += [_execution_row(folder, each) for folder, each in finished[:MOST_ROWS]]
    if len(finished) > MOST_ROWS:
        rows.append(
            ExplainedRow("executions", f"and {len(finished) - MOST_ROWS} more", "in steps/")
        )
    if not finished:
        return rows
    failed = sum(each.rc != 0 for _, each in finished)
    rows.append(ExplainedRow("exit codes", f"{len(finished) - failed} are 0, {failed} are not"))
    return [*rows, *_figure_rows(context)]


def _executions(context: Context) -> Iterator[tuple[str, Attempt]]:
    for name in context.step.folders_of(context.instance):
        for attempt in attempts(context.run.files.step(name).folder):
            yield name, attempt


def _execution_row(folder: str, each: Attempt) -> ExplainedRow:
    name = f"execution {each.number}"
    if each.damage:
        return ExplainedRow(name, each.damage, folder)
    late = ", stopped at its time limit" if each.timed_out else ""
    end = f"exit code {each.rc} after {duration(each.seconds)}{late}"
    return ExplainedRow(name, end, f"{each.start} on {each.host}; {folder}")


def _figure_rows(context: Context) -> list[ExplainedRow]:
    run, step = context.run, context.step
    try:
        software = read_json(run.files.software, Software)
        parts = RunParts(run, context.benchmarks, context.site, software, nodes_of(run))
        records = read_run(parts, [step.id])
    except BadInput as error:
        return [ExplainedRow("figures", "cannot be read", f"{error}")]
    wanted = set(step.folders_of(context.instance))
    chosen = [each for each in records if each.step in wanted]
    judged, unlisted, note = _judged(context)
    groups: dict[str, _Group] = {}
    for record in chosen:
        group = groups.setdefault(_figure(record, step.planned), _Group())
        group.records.append(record)
        result = judged.get(_identity(vars_of(record)))
        if unlisted and record.valid and result is None:
            group.verdicts["UNJUDGED"] += 1
        elif result:
            group.verdicts[result.verdict] += 1
            group.reasons.setdefault(result.verdict, result.reason)
    order = sorted(groups.items(), key=lambda item: _rank(item[1]))
    rows = [_figure_row(name, group) for name, group in order[:MOST_ROWS]]
    if len(order) > MOST_ROWS:
        more = f"and {len(order) - MOST_ROWS} more figures, which are not worse"
        rows.append(ExplainedRow("figures", more, "in records.parquet after `proofmark report`"))
    return [*rows, ExplainedRow("verdict", note)]


def vars_of(record: Record) -> dict[str, Any]:
    """Return the fields of `record` that identify its figure."""
    return {name: getattr(record, name) for name in _IDENTITY}


_IDENTITY = ("node", "benchmark", "metric", "mode", "placement", "parameters")


def _identity(fields: Mapping[str, Any]) -> str:
    known = {name: fields[name] for name in _IDENTITY}
    return json.dumps({**known, "parameters": dict(known["parameters"])}, sort_keys=True)


def _judged(context: Context) -> tuple[dict[str, StoredResult], int, str]:
    """Return the results of the written verdict by figure, and where they come from.

    Between both is the number of those that it does not list, which are UNJUDGED.
    """
    path = context.run.products.verdict
    report = PrintedCommand("proofmark", "report", _folder(context.run))
    try:
        content = read_bytes(path, MAX_OUTPUT_BYTES)
        verdict = _Written.model_validate_json(content)
        of_case = [
            each
            for each in verdict.results
            if isinstance(each, dict) and each.get("case") == context.step.case
        ]
        results = _JUDGED.validate_python(of_case)
    except FileNotFoundError:
        return {}, 0, f"not judged yet: {report}"
    except OSError as error:
        return {}, 0, f"{path.name} is not read here: {error.strerror}"
    except ValidationError:
        return {}, 0, f"{path.name} is damaged: {report} writes it again"
    newest = max((each.start_s for _, each in _executions(context)), default=0.0)
    old = newest > path.stat().st_mtime
    note = f"older than an execution: {report} judges again" if old else "of the last report"
    by_figure = {_identity(vars(each)): each for each in results}
    return by_figure, verdict.unlisted, f"{path.name}, {note}"


def _figure(record: Record, planned: Mapping[str, Any]) -> str:
    """Return the name of a figure: benchmark, metric, and the parameters that the output gave."""
    printed = [f"{key} {value}" for key, value in record.parameters.items() if key not in planned]
    same = record.benchmark.casefold() == record.case.casefold()
    return " ".join(filter(None, ("" if same else record.benchmark, record.metric, *printed)))


def _rank(group: _Group) -> int:
    """Return the place of a figure in the list: the worst verdict first."""
    if any(not record.valid for record in group.records):
        return 0
    return next((n for n, word in enumerate(_WORST) if group.verdicts[word]), len(_WORST))


def _figure_row(name: str, group: _Group) -> ExplainedRow:
    values = [record.value for record in group.records if record.valid and record.value is not None]
    invalid = [record for record in group.records if not record.valid]
    parts = [_values(values, group.records[0].unit)] if values else []
    if invalid:
        parts.append(f"{len(invalid)} INVALID")
    counts = group.verdicts
    words = [
        f"{counts[word]} {word}" if len(group.records) > 1 else word
        for word in WORDS
        if counts[word]
    ]
    worst = next((word for word in _WORST if counts[word]), "")
    reason = invalid[0].reason if invalid else group.reasons.get(worst, "")
    source = ": ".join(filter(None, (", ".join(words), reason)))
    return ExplainedRow(name, "; ".join(parts), source)


def _values(values: Sequence[float], unit: str) -> str:
    middle = f"{number(median(values))} {unit}".rstrip()
    if len(values) == 1:
        return middle
    return f"median {middle} of {len(values)}: {number(min(values))} to {number(max(values))}"


def again_rows(context: Context) -> list[ExplainedRow]:
    """Return the commands that run the step again."""
    run, step = context.run, context.step
    if not any(True for _ in _executions(context)):
        return [
            ExplainedRow(
                "run it", "the ansible-playbook command of the run", "it has no result yet"
            )
        ]
    if step.reads or step.kept:
        text = "the ansible-playbook command of the run with -e fresh=true"
        return [ExplainedRow("again", text, "it reads or writes the files of two steps")]
    script = f"runs/{run.id}/{context.files.script.relative_to(run.folder)}"
    by_hand = PrintedCommand("sh", of_run(script, SCRIPT, "SCRIPT"))
    again = PrintedCommand(
        "proofmark", "rerun", _folder(run), of_run(str(context.instance), STEP, "STEP")
    )
    return [
        ExplainedRow("rerun", again, "the scheduler runs it"),
        ExplainedRow(
            "then", PrintedCommand("proofmark", "report", _folder(run)), "judges all executions"
        ),
        ExplainedRow("by hand", by_hand, "on a node of the step, never as root"),
    ]


def _folder(run: Run) -> Part:
    return of_run(f"runs/{run.id}", SCRIPT, "RUN")

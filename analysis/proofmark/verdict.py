"""Verdicts: every figure held against every reference that applies; the worst stands.

PASS and FAIL are answers of a reference. INVALID: the number does not measure what it claims.
UNJUDGED: no reference applies. All four are counted; none is silent.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from proofmark.cases import Against, Benchmarks, Reference
from proofmark.expressions import render
from proofmark.nodesets import folded
from proofmark.plan import Plan
from proofmark.records import Record
from proofmark.site import Limit

WORDS = ("PASS", "FAIL", "INVALID", "UNJUDGED")
Scalar = str | int | float


@dataclass(frozen=True)
class Judgement:
    """One reference's answer: `ratio` is measured ÷ `value`; the limits are ratios too."""

    kind: str
    source: str
    outcome: str
    reason: str
    value: float | None
    ratio: float | None
    at_least: float | None
    at_most: float | None


@dataclass(frozen=True)
class Result:
    """One figure: the median of its repeats, and what was found about it."""

    record: Record
    values: tuple[float, ...]
    verdict: str
    reason: str
    references: tuple[Judgement, ...]


@dataclass(frozen=True)
class Coverage:
    """What the plan wants measured and what was, and figures that came twice.

    Counted are steps; a step that each node measures by itself counts once a node. `missing` names
    the steps, and of such a step the nodes. `not_run` are steps that the plan holds for another
    mode of the machine: nobody expects them of this run, and they are listed. `stopped` are jobs
    that ended before their steps had, each with the reason.
    """

    expected: int
    measured: int
    duplicate: int
    missing: tuple[str, ...]
    not_run: tuple[str, ...] = ()
    stopped: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """The answer of a run."""

    run: str
    counts: Mapping[str, int]
    coverage: Coverage
    results: tuple[Result, ...]

    def exit_code(self, *, strict: bool = False) -> int:
        """Return 2 for INVALID or a hole, 1 for FAIL, 4 for nothing judged, else 0 (contract)."""
        hole = self.coverage.measured < self.coverage.expected or self.coverage.duplicate
        if self.counts["INVALID"] or hole:
            return 2
        if self.counts["FAIL"]:
            return 1
        unjudged = self.counts["UNJUDGED"] or self.coverage.not_run
        if not self.counts["PASS"] or (strict and unjudged):
            return 4
        return 0

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
        return {
            "run": self.run,
            "counts": dict(self.counts),
            "coverage": vars(self.coverage),
            "results": [_result_json(result) for result in self.results],
        }


def _result_json(result: Result) -> dict[str, Any]:
    return {
        **vars(result.record),
        "parameters": dict(result.record.parameters),
        "values": list(result.values),
        "verdict": result.verdict,
        "reason": result.reason,
        "references": [vars(judgement) for judgement in result.references],
    }


def judge(
    run: str,
    plan: Plan,
    records: Sequence[Record],
    benchmarks: Benchmarks,
    limits: Sequence[Limit],
    stopped: Sequence[str] = (),
) -> Verdict:
    """Judge the records of the run called `run`; `stopped` goes into the coverage as it is.

    Like records (all but step, repeat and attempt equal) become one result with their median.
    """
    records = sorted(records, key=lambda record: (record.step, record.attempt))
    standing = _standing(records)
    figures = _Figures(standing)
    results = []
    for alike in figures.groups.values():
        references: list[Reference] = [
            *benchmarks.case(alike[0].case).references,
            *(limit for limit in limits if limit.case == alike[0].case),
        ]
        results.append(_judge_one(alike, references, figures))
    counted = Counter(result.verdict for result in results)
    counts = {word: counted[word] for word in WORDS}
    return Verdict(run, counts, _coverage(plan, records, stopped), tuple(results))


def _standing(records: Sequence[Record]) -> list[Record]:
    """Keep what counts of each step's executions.

    Executions without anything invalid all count, so that repeating until it fits is of no use;
    where there is none, the last one stands.
    """
    by_step: dict[str, dict[int, list[Record]]] = {}
    for record in records:
        by_step.setdefault(record.step, {}).setdefault(record.attempt, []).append(record)
    kept: list[Record] = []
    for executions in by_step.values():
        clean = [group for group in executions.values() if all(item.valid for item in group)]
        for group in clean or [executions[max(executions)]]:
            kept += group
    return kept


class _Figures:
    """The records of a run, grouped alike and found again by what they are."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.groups: dict[tuple[str, ...], list[Record]] = {}
        self._by_metric: dict[tuple[str, str, str, str], list[Record]] = {}
        for record in records:
            self.groups.setdefault(_identity(record), []).append(record)
            key = (record.case, record.metric, record.node, record.mode)
            if record.valid and record.value is not None:
                self._by_metric.setdefault(key, []).append(record)

    def counterpart(self, of: Record, against: Against) -> float | None:
        """Return the median of the figure that `against` names, for the node and mode of `of`.

        Within the same case everything but what ``where`` changes must be equal.
        """
        case = against.case or of.case
        found = self._by_metric.get((case, against.metric, of.node, of.mode), [])
        wanted: Mapping[str, Scalar] = against.where
        if case == of.case:
            wanted = {**_traits(of), **against.where}
        fitting = [record for record in found if _fits(_traits(record), wanted)]
        values = [record.value for record in fitting if record.value is not None]
        return median(values) if values else None


def _traits(record: Record) -> dict[str, Scalar]:
    """Return all that a reference's ``where`` may choose a figure by."""
    return {
        **record.parameters,
        "benchmark": record.benchmark,
        "placement": record.placement,
    }


def _fits(traits: Mapping[str, Scalar], wanted: Mapping[str, Scalar]) -> bool:
    """Tell whether the traits agree; one that only one side has does not part them."""
    return all(traits[key] == value for key, value in wanted.items() if key in traits)


def _identity(record: Record) -> tuple[str, ...]:
    return (
        record.case,
        record.benchmark,
        record.metric,
        record.node,
        record.origin,
        record.mode,
        record.placement,
        record.environment_hash,
        json.dumps(dict(record.parameters), sort_keys=True),
    )


def _judge_one(
    alike: Sequence[Record], references: Iterable[Reference], figures: _Figures
) -> Result:
    invalid = [record for record in alike if not record.valid]
    values = tuple(record.value for record in alike if record.valid and record.value is not None)
    if invalid:
        return Result(invalid[0], values, "INVALID", invalid[0].reason, ())
    figure = alike[0]
    middle = median(values)
    merged = Record(**{**vars(figure), "value": middle})
    answers = tuple(
        _hold(merged, middle, reference, figures)
        for reference in references
        if _applies(reference, figure)
    )
    outcomes = {answer.outcome for answer in answers}
    for word in ("FAIL", "PASS"):
        if word in outcomes:
            reason = "; ".join(answer.reason for answer in answers if answer.outcome == word)
            return Result(merged, values, word, reason, answers)
    reason = answers[0].reason if answers else "no reference applies"
    return Result(merged, values, "UNJUDGED", reason, answers)


def _applies(reference: Reference, record: Record) -> bool:
    if reference.metric != record.metric or reference.system not in (None, record.system):
        return False
    if reference.mode not in (None, record.mode):
        return False
    traits = _traits(record)
    return all(traits.get(key) == value for key, value in reference.where.items())


def _hold(record: Record, value: float, reference: Reference, figures: _Figures) -> Judgement:
    held, name = _reference_value(record, reference, figures)
    limits = (reference.at_least, reference.at_most)
    if not held:
        reason = f"{name} {'was not measured' if held is None else 'is 0'}"
        return Judgement(reference.kind, reference.source, "UNJUDGED", reason, held, None, *limits)
    ratio = value / held
    low = reference.at_least is not None and ratio < reference.at_least
    high = reference.at_most is not None and ratio > reference.at_most
    bounds = " and ".join(
        f"{word} {limit:g}"
        for word, limit in zip(("at least", "at most"), limits, strict=True)
        if limit is not None
    )
    outcome = "FAIL" if low or high else "PASS"
    verb = "is not" if low or high else "is"
    reason = f"{ratio:.3g} × {name} ({held:.6g} {record.unit}) {verb} {bounds}"
    return Judgement(reference.kind, reference.source, outcome, reason, held, ratio, *limits)


def _reference_value(
    record: Record, reference: Reference, figures: _Figures
) -> tuple[float | None, str]:
    """Return the reference in the metric's unit, and what to call it."""
    against = reference.against
    if against is None:
        return reference.value, f"the {reference.kind} figure"
    measured = figures.counterpart(record, against)
    where = "".join(f" at {key} {value}" for key, value in against.where.items())
    name = f"{against.metric}{where}"
    factor = render(against.times, _traits(record), file=record.case, key="references.times")
    if factor != 1:
        name = f"{name} × {factor:g}"
    return (measured * factor if measured is not None else None), name


def _coverage(plan: Plan, records: Sequence[Record], stopped: Sequence[str]) -> Coverage:
    """Count what was read, and the figures that one execution gave twice."""
    seen = {record.step for record in records}
    expected = measured = 0
    missing: list[str] = []
    for step in plan.steps_to_run():
        folders = step.folders()
        lacking = [folder for folder in folders if folder not in seen]
        expected += len(folders)
        measured += len(folders) - len(lacking)
        if lacking and step.scope == "job":
            missing.append(f"{step.id}: {folded(step.nodes)}" if len(step.nodes) > 1 else step.id)
        elif lacking:
            instances = step.instances()
            hosts = {host for folder in lacking for host in instances[folder.partition("/")[2]]}
            missing.append(f"{step.id}: {folded(hosts)}")
    not_run = tuple(
        f"{step.id}: NOT RUN: needs mode {group.mode}"
        for group in plan.groups
        if group.mode != plan.current_mode
        for job in group.jobs
        for step in job.steps
    )
    times = Counter((record.step, record.attempt, *_identity(record)) for record in records)
    duplicate = sum(count - 1 for count in times.values())
    return Coverage(expected, measured, duplicate, tuple(missing), not_run, tuple(stopped))

"""Verdicts: every figure held against every reference that applies; the worst stands.

PASS and FAIL are answers of a reference. INVALID: the number does not measure what it claims.
UNJUDGED: no reference applies. All four are counted; none is silent.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from proofmark.cases import Benchmarks, Reference
from proofmark.coverage import Coverage as Coverage
from proofmark.coverage import coverage
from proofmark.fleet.bad import BadNodes
from proofmark.fleet.figures import Fleet, Point, measure_fleet
from proofmark.fleet.outliers import FAMILY_LEVEL
from proofmark.plan import Plan
from proofmark.records import Record
from proofmark.references.hold import Figures, Nodes, applies, hold
from proofmark.references.hold import Judgement as Judgement
from proofmark.repeats import Interval, interval, noise
from proofmark.site import Limit

WORDS = ("PASS", "FAIL", "INVALID", "UNJUDGED")


@dataclass(frozen=True, slots=True)
class Result:
    """One figure: the median of its repeats, and what was found about it.

    Attributes:
        interval: in which the median lies with 95 % confidence; None of a single measurement.
        retest: it fails, but by less than its noise: it has to be measured again before it counts
            against a node.
        steps: where it was measured, as `proofmark rerun` takes them.
    """

    record: Record
    values: tuple[float, ...]
    verdict: str
    reason: str
    references: tuple[Judgement, ...]
    interval: Interval | None = None
    retest: bool = False
    steps: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """The answer of a run."""

    run: str
    counts: Mapping[str, int]
    coverage: Coverage
    results: tuple[Result, ...]
    fleet: Fleet = field(default_factory=Fleet)
    bad: BadNodes = field(default_factory=BadNodes)

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

    def retest(self) -> tuple[str, ...]:
        """Return the steps to run again before what fails within its noise is believed."""
        wanted = (step for result in self.results if result.retest for step in result.steps)
        return tuple(dict.fromkeys(wanted))

    def retest_command(self) -> str:
        """Return the one command that runs them again; empty if there are none."""
        steps = self.retest()
        return f"proofmark rerun runs/{self.run} {' '.join(steps)}" if steps else ""

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
        return {
            "run": self.run,
            "counts": dict(self.counts),
            "coverage": vars(self.coverage),
            "retest": {"steps": list(self.retest()), "command": self.retest_command()},
            "fleet": {**self.fleet.as_json(), **self.bad.as_json()},
            "results": [_result_json(result) for result in self.results],
        }


def _result_json(result: Result) -> dict[str, Any]:
    return {
        **{name: getattr(result.record, name) for name in Record.__slots__},
        "parameters": dict(result.record.parameters),
        "values": list(result.values),
        "interval": result.interval,
        "verdict": result.verdict,
        "reason": result.reason,
        "retest": result.retest,
        "references": [
            {name: getattr(judgement, name) for name in Judgement.__slots__}
            for judgement in result.references
        ],
    }


def judge(
    run: str,
    plan: Plan,
    records: Sequence[Record],
    benchmarks: Benchmarks,
    limits: Sequence[Limit],
    nodes: Nodes | None = None,
    family_level: float = FAMILY_LEVEL,
    stopped: Sequence[str] = (),
) -> Verdict:
    """Judge the records of the run called `run`.

    Like records (all but step, repeat and attempt equal) become one result with their median.

    Args:
        run: its id.
        plan: what was to be measured.
        records: what was read.
        benchmarks: the cases with their references.
        limits: the site's contract.
        nodes: the hardware of each node, as far as it is known.
        family_level: probability that anything is flagged as an outlier on a healthy machine.
        stopped: jobs that ended before their steps had, with the reason; listed in the coverage.
    """
    there = nodes or {}
    records = sorted(records, key=lambda record: (record.step, record.attempt))
    identities = _Identities()
    standing = _standing(records)
    groups: dict[tuple[str, ...], list[Record]] = {}
    for record in standing:
        groups.setdefault(identities.of(record), []).append(record)
    figures = Figures(standing)
    references = _references(benchmarks, limits)
    drafts = [
        _judge_one(alike, references.get((alike[0].case, alike[0].metric), ()), figures, there)
        for alike in groups.values()
    ]
    points = [
        Point(result.record, identity)
        for result, identity in zip(drafts, groups, strict=True)
        if result.verdict != "INVALID"
    ]
    fleet = measure_fleet(points, benchmarks, there, family_level)
    results = [_settled(result, fleet.judge(result.record)) for result in drafts]
    counted = Counter(result.verdict for result in results)
    counts = {word: counted[word] for word in WORDS}
    seen = ((record.step, record.attempt, identities.of(record)) for record in records)
    return Verdict(run, counts, coverage(plan, seen, stopped), tuple(results), fleet)


class _Identities:
    """What tells a figure from others; the parameters' text is made once for each of them."""

    def __init__(self) -> None:
        self._texts: dict[tuple[tuple[str, object], ...], str] = {}

    def of(self, record: Record) -> tuple[str, ...]:
        items = tuple(record.parameters.items())
        text = self._texts.get(items)
        if text is None:
            text = self._texts[items] = json.dumps(dict(items), sort_keys=True)
        return (
            record.case,
            record.benchmark,
            record.metric,
            record.node,
            record.origin,
            record.mode,
            record.placement,
            record.environment_hash,
            text,
        )


def _references(
    benchmarks: Benchmarks, limits: Sequence[Limit]
) -> dict[tuple[str, str], list[Reference]]:
    found: dict[tuple[str, str], list[Reference]] = {}
    for name, case in benchmarks.cases.items():
        for reference in case.references:
            found.setdefault((name, reference.metric), []).append(reference)
    for limit in limits:
        found.setdefault((limit.case, limit.metric), []).append(limit)
    return found


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


def _judge_one(
    alike: Sequence[Record], references: Sequence[Reference], figures: Figures, nodes: Nodes
) -> Result:
    """Judge one figure by everything but its fellows."""
    invalid = [record for record in alike if not record.valid]
    values = tuple(record.value for record in alike if record.valid and record.value is not None)
    steps = tuple(dict.fromkeys(record.step for record in alike))
    if invalid:
        return Result(invalid[0], values, "INVALID", invalid[0].reason, (), None, False, steps)
    middle = median(values)
    merged = alike[0] if alike[0].value == middle else replace(alike[0], value=middle)
    answers = tuple(
        hold(merged, middle, reference, figures, nodes)
        for reference in references
        if applies(reference, merged)
    )
    return Result(merged, values, "UNJUDGED", "", answers, interval(values), False, steps)


def _settled(result: Result, fleet: Judgement | None) -> Result:
    """Let the worst of all answers stand."""
    if result.verdict == "INVALID":
        return result
    answers = (*result.references, fleet) if fleet else result.references
    outcomes = {answer.outcome for answer in answers}
    verdict = next((word for word in ("FAIL", "PASS") if word in outcomes), "UNJUDGED")
    if verdict == "UNJUDGED":
        reason = answers[0].reason if answers else "no reference applies"
    else:
        reason = "; ".join(answer.reason for answer in answers if answer.outcome == verdict)
    retest = verdict == "FAIL" and _within_noise(result, answers)
    return replace(result, verdict=verdict, reason=reason, references=answers, retest=retest)


def _within_noise(result: Result, answers: Sequence[Judgement]) -> bool:
    """Tell whether every limit that is missed lies where the true median may be as well."""
    value = result.record.value
    assert value is not None  # a figure without a number is INVALID
    low, high = noise(result.values, value)
    missed = [limit for answer in answers if (limit := answer.failed_limit()) is not None]
    return all(low <= limit <= high for limit in missed)

"""Verdicts: every figure is compared with every reference that applies; the worst outcome counts.

PASS and FAIL are outcomes of a reference. INVALID: the number does not measure what it claims.
UNJUDGED: no reference applies. All four are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from proofmark.cases.models import Benchmarks, Reference
from proofmark.judge.aggregate import Aggregates, aggregate
from proofmark.judge.coverage import Coverage as Coverage
from proofmark.judge.coverage import coverage
from proofmark.judge.diagnosis.bad_nodes import BadNodes
from proofmark.judge.fleet.digits import judge_digits
from proofmark.judge.fleet.fleet import Fleet, measure_fleet
from proofmark.judge.fleet.thresholds import FAMILY_LEVEL
from proofmark.judge.references.compare import Figures, Nodes, applies, compare
from proofmark.judge.references.compare import Judgement as Judgement
from proofmark.judge.results import WORDS as WORDS
from proofmark.judge.results import Result as Result
from proofmark.judge.results import Results as Results
from proofmark.judge.results import result_json as result_json
from proofmark.plan.plan import Plan
from proofmark.records.columns import Numbers, Record, Records
from proofmark.site.partition import Limit


@dataclass(frozen=True)
class Verdict:
    """The verdict of a run.

    Attributes:
        run: the id of the run.
        counts: the number of results by verdict.
        coverage: the planned steps, and which were measured.
        results: the result of each figure.
        fleet: the comparison of like nodes.
        bad: the bad nodes.
    """

    run: str
    counts: Mapping[str, int]
    coverage: Coverage
    results: Results
    fleet: Fleet = field(default_factory=Fleet)
    bad: BadNodes = field(default_factory=BadNodes)

    def exit_code(self, *, strict: bool = False) -> int:
        """Return the exit code of ``proofmark verdict``: `exit_code`.

        With `strict`, it is 4 instead of 0 if not everything was judged.
        """
        code = exit_code(self.counts, self.coverage)
        unjudged = self.counts["UNJUDGED"] or self.coverage.not_run
        return 4 if strict and unjudged and not code else code

    def of(self, *words: str) -> Iterator[Result]:
        """Yield the results with these verdicts."""
        return self.results.of(words)

    def about(self, wanted: Callable[[Record], bool]) -> Iterator[Result]:
        """Yield the results for which `wanted` is true.

        `wanted` gets a record without node, execution and value.
        """
        return self.results.about(wanted)

    def measured(self) -> set[str]:
        """Return the nodes and pairs of nodes with a result, as records name them."""
        aggregates = self.results.aggregates
        return {aggregates.records.nodes[node] for node in set(aggregates.node.tolist())}

    def judgements(self) -> int:
        """Return the number of judgements of all figures."""
        return self.results.judgements()

    def sound_steps(self) -> set[str]:
        """Return the steps that gave a valid record on any node."""
        names = self.results.aggregates.sound_steps()
        return {name.partition("/")[0] for name in names}

    def retest(self) -> tuple[str, ...]:
        """Return the steps of the figures that fail within their noise: to be measured again."""
        wanted = (step for result in self.of("FAIL") if result.retest for step in result.steps)
        return tuple(dict.fromkeys(wanted))

    def retest_command(self) -> str:
        """Return the command that runs these steps again; empty if there are none."""
        steps = self.retest()
        return f"proofmark rerun runs/{self.run} {' '.join(steps)}" if steps else ""

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json`` without the claims."""
        return {**self.head(), "results": [result_json(result) for result in self.results]}

    def head(self) -> dict[str, Any]:
        """Return the part of ``verdict.json`` before the results."""
        return {
            "run": self.run,
            "counts": dict(self.counts),
            "coverage": vars(self.coverage),
            "retest": {"steps": list(self.retest()), "command": self.retest_command()},
            "fleet": {**self.fleet.as_json(), **self.bad.as_json()},
        }


class Measured(Protocol):
    """The part of a coverage that decides on a verdict."""

    @property
    def expected(self) -> int:
        """The number of planned steps."""

    @property
    def measured(self) -> int:
        """The number of steps with a record."""

    @property
    def duplicate(self) -> int:
        """The number of figures that one execution gave twice."""


def exit_code(counts: Mapping[str, int], coverage: Measured) -> int:
    """Return the exit code of a verdict.

    2: INVALID, or a step not measured once. 1: FAIL. 4: nothing judged. 0: PASS.

    Args:
        counts: the number of results by verdict.
        coverage: the planned and the measured steps.
    """
    if counts.get("INVALID") or coverage.measured < coverage.expected or coverage.duplicate:
        return 2
    if counts.get("FAIL"):
        return 1
    return 0 if counts.get("PASS") else 4


def judge(
    run: str,
    plan: Plan,
    records: Records,
    benchmarks: Benchmarks,
    limits: Sequence[Limit],
    nodes: Nodes | None = None,
    family_level: float = FAMILY_LEVEL,
    stopped: Sequence[str] = (),
) -> Verdict:
    """Return the verdict on the records of a run.

    Records that are equal in all but step, repeat and attempt become one result with their median.

    Args:
        run: the id of the run.
        plan: the planned steps.
        records: the records of the run.
        benchmarks: the cases with their references.
        limits: the limits of the site's contract.
        nodes: the hardware of each node, if known.
        family_level: probability that any node is flagged as an outlier on a healthy machine.
        stopped: jobs that ended before their last step, each with the reason.
    """
    hardware = nodes or {}
    figures = aggregate(records)
    answers = _judge_figures(figures, _references(benchmarks, limits), hardware)
    fleet = measure_fleet(figures, benchmarks, hardware, family_level)
    for figure, judgement in judge_digits(figures, benchmarks, hardware).items():
        answers[figure] = (*answers.get(figure, ()), judgement)
    verdicts = _verdicts(figures, answers, fleet)
    counts = {word: int((verdicts == number).sum()) for number, word in enumerate(WORDS)}
    seen = {execution.step for execution in records.executions}
    covered = coverage(plan, seen, figures.duplicates, stopped)
    return Verdict(run, counts, covered, Results(figures, verdicts, answers, fleet), fleet)


def _references(
    benchmarks: Benchmarks, limits: Sequence[Limit]
) -> dict[tuple[str, str], list[Reference]]:
    """Return the references and limits by case and metric."""
    by_metric: dict[tuple[str, str], list[Reference]] = {}
    for name, case in benchmarks.cases.items():
        for reference in case.references:
            by_metric.setdefault((name, reference.metric), []).append(reference)
    for limit in limits:
        by_metric.setdefault((limit.case, limit.metric), []).append(limit)
    return by_metric


def _judge_figures(
    figures: Aggregates, references: Mapping[tuple[str, str], Sequence[Reference]], nodes: Nodes
) -> dict[int, tuple[Judgement, ...]]:
    """Return the judgements of each valid figure to which a reference applies."""
    counterparts = Figures(figures)
    answers: dict[int, tuple[Judgement, ...]] = {}
    for number, measurand in enumerate(figures.records.measurands):
        applying: Sequence[Reference] | None = None
        candidates = references.get((measurand.case, measurand.metric))
        if candidates is None:
            continue
        for figure in np.flatnonzero((figures.measurand == number) & figures.valid).tolist():
            record = figures.record(figure)
            if applying is None:  # the same for all nodes
                applying = [reference for reference in candidates if applies(reference, record)]
            if not applying:
                break
            value = float(figures.median[figure])
            paired = any(reference.against for reference in applying)
            repeats = figures.repeats(figure) if paired else {}
            answers[figure] = tuple(
                compare(record, value, reference, counterparts, nodes, repeats)
                for reference in applying
            )
    return answers


def _verdicts(
    figures: Aggregates, answers: Mapping[int, Sequence[Judgement]], fleet: Fleet
) -> Numbers:
    """Return the worst outcome of each figure, as its number in `WORDS`."""
    passed, failed, invalid, unjudged = (WORDS.index(word) for word in WORDS)
    verdicts = np.full(len(figures), unjudged, dtype=np.int64)
    verdicts[fleet.passed] = passed
    for figure, judgements in answers.items():
        if any(judgement.outcome == "PASS" for judgement in judgements):
            verdicts[figure] = passed
    for figure, judgements in answers.items():
        if any(judgement.outcome == "FAIL" for judgement in judgements):
            verdicts[figure] = failed
    verdicts[fleet.failed] = failed
    verdicts[~figures.valid] = invalid
    return verdicts

"""Verdicts: every figure held against every reference that applies; the worst stands.

PASS and FAIL are answers of a reference. INVALID: the number does not measure what it claims.
UNJUDGED: no reference applies. All four are counted; none is silent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from proofmark.cases.models import Benchmarks, Reference
from proofmark.judge.aggregate import Aggregates, aggregate
from proofmark.judge.coverage import Coverage as Coverage
from proofmark.judge.coverage import coverage
from proofmark.judge.diagnosis.bad_nodes import BadNodes
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
    """The answer of a run."""

    run: str
    counts: Mapping[str, int]
    coverage: Coverage
    results: Results
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

    def of(self, *words: str) -> Iterator[Result]:
        """Yield the results with these verdicts; no others are made."""
        return self.results.of(words)

    def about(self, wanted: Callable[[Record], bool]) -> Iterator[Result]:
        """Yield the results that are wanted, by what they are: not by their node or value."""
        return self.results.about(wanted)

    def measured(self) -> set[str]:
        """Return the nodes and pairs of nodes that there are results of, as records have them."""
        aggregate = self.results.standing
        return {aggregate.records.nodes[node] for node in set(aggregate.node.tolist())}

    def judgements(self) -> int:
        """Return how many answers of references there are."""
        return self.results.judgements()

    def sound_steps(self) -> set[str]:
        """Return the steps that gave a valid figure, on whatever node."""
        names = self.results.standing.sound_steps()
        return {name.partition("/")[0] for name in names}

    def retest(self) -> tuple[str, ...]:
        """Return the steps to run again before what fails within its noise is believed."""
        wanted = (step for result in self.of("FAIL") if result.retest for step in result.steps)
        return tuple(dict.fromkeys(wanted))

    def retest_command(self) -> str:
        """Return the one command that runs them again; empty if there are none."""
        steps = self.retest()
        return f"proofmark rerun runs/{self.run} {' '.join(steps)}" if steps else ""

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``, but for the claims."""
        return {**self.head(), "results": [result_json(result) for result in self.results]}

    def head(self) -> dict[str, Any]:
        """Return what ``verdict.json`` says before the results."""
        return {
            "run": self.run,
            "counts": dict(self.counts),
            "coverage": vars(self.coverage),
            "retest": {"steps": list(self.retest()), "command": self.retest_command()},
            "fleet": {**self.fleet.as_json(), **self.bad.as_json()},
        }


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
    figures = aggregate(records)
    answers = _held(figures, _references(benchmarks, limits), there)
    fleet = measure_fleet(figures, benchmarks, there, family_level)
    words = _words(figures, answers, fleet)
    counts = {word: int((words == place).sum()) for place, word in enumerate(WORDS)}
    seen = {execution.step for execution in records.executions}
    covered = coverage(plan, seen, figures.duplicates, stopped)
    return Verdict(run, counts, covered, Results(figures, words, answers, fleet), fleet)


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


def _held(
    figures: Aggregates, references: Mapping[tuple[str, str], Sequence[Reference]], nodes: Nodes
) -> dict[int, tuple[Judgement, ...]]:
    """Hold each valid figure against every reference that applies to it."""
    counterparts = Figures(figures)
    answers: dict[int, tuple[Judgement, ...]] = {}
    for number, what in enumerate(figures.records.measurands):
        applying: Sequence[Reference] | None = None
        if (what.case, what.metric) not in references:
            continue
        for figure in np.flatnonzero((figures.measurand == number) & figures.valid).tolist():
            record = figures.record(figure)
            if applying is None:  # the same for all the nodes
                every = references[what.case, what.metric]
                applying = [each for each in every if applies(each, record)]
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


def _words(
    figures: Aggregates, answers: Mapping[int, Sequence[Judgement]], fleet: Fleet
) -> Numbers:
    """Return the worst of all answers on each figure, as its number in `WORDS`."""
    good, bad, invalid, unjudged = (WORDS.index(word) for word in WORDS)
    words = np.full(len(figures), unjudged, dtype=np.int64)
    words[fleet.passed] = good
    for figure, own in answers.items():
        if any(answer.outcome == "PASS" for answer in own):
            words[figure] = good
    for figure, own in answers.items():
        if any(answer.outcome == "FAIL" for answer in own):
            words[figure] = bad
    words[fleet.failed] = bad
    words[~figures.valid] = invalid
    return words

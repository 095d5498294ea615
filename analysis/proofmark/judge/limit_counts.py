"""The number of figures that each limit and each reference of a run judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from proofmark.cases.models import Benchmarks, Reference
from proofmark.judge.aggregate import Aggregates
from proofmark.judge.references.compare import applies, ordered_references, places_by_metric
from proofmark.judge.results import Results
from proofmark.plan.plan import Plan
from proofmark.plan.selection import selection
from proofmark.site.partition import Limit


@dataclass(frozen=True)
class LimitCount:
    """The figures of one limit or reference.

    Attributes:
        case: the case of the figures.
        reference: the limit or reference.
        steps: the number of planned steps whose figures it can select; 0 if it is not for the
            suite.
        outcomes: the number of valid figures by the outcome of their judgement.
        invalid: the number of INVALID figures that it would judge.
    """

    case: str
    reference: Reference
    steps: int
    outcomes: Mapping[str, int]
    invalid: int

    @property
    def judged(self) -> int:
        """The number of figures that are PASS or FAIL by this limit."""
        return self.outcomes.get("PASS", 0) + self.outcomes.get("FAIL", 0)


def limit_counts(
    results: Results, plan: Plan, benchmarks: Benchmarks, limits: Sequence[Limit]
) -> list[LimitCount]:
    """Return the counts of all contract limits, then of the references that are for the plan.

    Args:
        results: the judged figures of the run.
        plan: the plan of the run.
        benchmarks: its cases.
        limits: the contract limits of its site.
    """
    references = ordered_references(benchmarks, limits)
    invalid = _invalid(results.aggregates, references)
    counts = [
        LimitCount(
            case,
            reference,
            len(selection(reference, case, plan, benchmarks).steps),
            Counter(judgement.outcome for _, judgement in results.by_reference.get(place, ())),
            invalid[place],
        )
        for place, (case, reference) in enumerate(references)
    ]
    of_cases, of_site = counts[: len(counts) - len(limits)], counts[len(counts) - len(limits) :]
    return [*of_site, *(count for count in of_cases if count.steps)]


def _invalid(figures: Aggregates, references: Sequence[tuple[str, Reference]]) -> Counter[int]:
    """Return the number of INVALID figures for each reference, by its place."""
    invalid: Counter[int] = Counter()
    places = places_by_metric(references)
    for measurand, about in enumerate(figures.records.measurands):
        candidates = places.get((about.case, about.metric), ())
        of_measurand = np.flatnonzero((figures.measurand == measurand) & ~figures.valid).tolist()
        if candidates and of_measurand:
            record = figures.record(of_measurand[0])  # a limit is for all nodes
            for place in candidates:
                if applies(references[place][1], record):
                    invalid[place] += len(of_measurand)
    return invalid

"""The number of figures that each limit and each reference of a run judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from proofmark.cases.models import Benchmarks, Reference
from proofmark.judge.aggregate import Aggregates
from proofmark.judge.references.compare import applying_references, ordered_references
from proofmark.judge.results import Results
from proofmark.judge.worst_figures import WorstFigure, worst_figure
from proofmark.plan.plan import Plan
from proofmark.plan.selection import possible_steps
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
        worst: its worst figure; None if none was compared.
    """

    case: str
    reference: Reference
    steps: int
    outcomes: Mapping[str, int]
    invalid: int
    worst: WorstFigure | None

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
            len(possible_steps(reference, case, plan, benchmarks)),
            Counter(judgement.outcome for _, judgement in judgements),
            invalid[place],
            worst_figure(results.aggregates, judgements),
        )
        for place, (case, reference) in enumerate(references)
        for judgements in [results.by_reference.get(place, ())]
    ]
    # Limits of the contract come first. A reference of a case is listed if the suite has its steps.
    listed = [count for count in counts if count.steps or isinstance(count.reference, Limit)]
    return sorted(listed, key=lambda count: not isinstance(count.reference, Limit))


def _invalid(figures: Aggregates, references: Sequence[tuple[str, Reference]]) -> Counter[int]:
    """Return the number of INVALID figures to which each reference applies, by its place."""
    invalid: Counter[int] = Counter()
    of_measurand = Counter(figures.measurand[~figures.valid].tolist())
    for measurand, applying in applying_references(figures.records, references):
        for place in applying:
            invalid[place] += of_measurand[measurand]
    return invalid

"""The number of figures that each limit and each reference of a run judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from proofmark.cases.models import Benchmarks, Reference
from proofmark.judge.references.compare import Judgement, applies
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
    references = [
        (name, reference)
        for name, case in benchmarks.cases.items()
        for reference in case.references
    ]
    # In this order the references of a case and metric judge a figure.
    everything = [*references, *((limit.case, limit) for limit in limits)]
    outcomes: dict[int, Counter[str]] = {number: Counter() for number in range(len(everything))}
    invalid: Counter[int] = Counter()
    by_metric: dict[tuple[str, str], list[tuple[int, Reference]]] = {}
    for number, (case, reference) in enumerate(everything):
        by_metric.setdefault((case, reference.metric), []).append((number, reference))
    figures = results.aggregates
    for measurand, about in enumerate(figures.records.measurands):
        candidates = by_metric.get((about.case, about.metric), [])
        of_measurand = np.flatnonzero(figures.measurand == measurand).tolist() if candidates else []
        if not of_measurand:
            continue
        record = figures.record(of_measurand[0])
        applying = [(number, each) for number, each in candidates if applies(each, record)]
        for figure in of_measurand:
            if not figures.valid[figure]:
                invalid.update(number for number, _ in applying)  # it has no judgement
            for number, judgement in _judgements(applying, results.answers.get(figure, ())):
                outcomes[number][judgement.outcome] += 1
    counts = [
        LimitCount(
            case,
            reference,
            len(selection(reference, case, plan, benchmarks).steps),
            outcomes[number],
            invalid[number],
        )
        for number, (case, reference) in enumerate(everything)
    ]
    of_cases, of_site = counts[: len(references)], counts[len(references) :]
    return [*of_site, *(count for count in of_cases if count.steps)]


def _judgements(
    applying: Sequence[tuple[int, Reference]], answers: Sequence[Judgement]
) -> Iterator[tuple[int, Judgement]]:
    """Yield the judgement of each reference that applies to a figure.

    Both lists have the same order. References that look alike are paired by their order.
    """
    remaining = list(answers)
    for number, reference in applying:
        for judgement in remaining:
            if _is_of(judgement, reference):
                remaining.remove(judgement)
                yield number, judgement
                break


def _is_of(judgement: Judgement, reference: Reference) -> bool:
    source = judgement.source
    if reference.rule is not None and source.startswith(f"{reference.source}; "):
        source = reference.source  # a derived value adds the source of its inputs
    return (judgement.kind, source, judgement.at_least, judgement.at_most) == (
        reference.kind,
        reference.source,
        reference.at_least,
        reference.at_most,
    )

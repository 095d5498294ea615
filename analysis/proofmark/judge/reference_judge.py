"""The judge that compares each figure with the references and limits that apply to it.

An own run proves its conditions, else its figures are INVALID. A run that this kit did not
execute has no such proof, and the terms of its kind decide what that prevents.

The number of executions is part of the plan. Executions that a site adds afterwards count, but they
cannot remove a miss: a figure whose planned executions alone fail is FAIL. A figure whose median
meets a limit, and of which many executions miss it clearly, has two states. Its median describes
neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf, isinf
from statistics import median

import numpy as np

from proofmark.cases.reference import TYPICAL, Reference, Rule
from proofmark.common.grouping import gathered
from proofmark.common.message import Message
from proofmark.common.nodesets import hosts_of, hosts_of_nodes
from proofmark.common.text import percent
from proofmark.judge.aggregate import Aggregates, Measured, of_undisturbed
from proofmark.judge.baseline import BaselineComparison
from proofmark.judge.confidence import OneRepeat, material_of, noise_of, repeats_agree
from proofmark.judge.evidence import Doubt, Evidence
from proofmark.judge.fleet.fleet import Fleet
from proofmark.judge.limit_outcomes import (
    clear_miss,
    compared_with,
    excused,
    with_misses,
    with_repeats,
)
from proofmark.judge.references.derived import Nominal
from proofmark.judge.references.figure_comparison import Comparison, Figure, Figures
from proofmark.judge.references.judgement import (
    Bounds,
    CaseReference,
    Judgement,
    applying_references,
    uses_all_cores,
)
from proofmark.judge.results import BEYOND, CONFIRMING, PLANNED_ALONE
from proofmark.records.columns import VIRTUAL


@dataclass
class ReferenceJudgements:
    """The judgements by references."""

    of_figure: dict[int, tuple[Judgement, ...]] = field(default_factory=dict)
    by_reference: dict[CaseReference, list[tuple[int, Judgement]]] = field(default_factory=dict)

    def rules(self, figures: Aggregates) -> Iterator[tuple[Rule, list[str]]]:
        """Yield the rules of the limits that were computed, each with the nodes of its figures."""
        for each, judged in self.by_reference.items():
            if rule := each.reference.rule:
                places = {int(figures.node[at]) for at, one in judged if one.evaluated}
                yield rule, [*hosts_of_nodes(figures.records.nodes[at] for at in places)]


def judge_by_references(
    evidence: Evidence,
    stated: Mapping[str, Nominal],
    fleet: Fleet,
    baseline: BaselineComparison | None,
) -> ReferenceJudgements:
    """Return the judgements of each valid figure to which a reference applies.

    The repeats of figures without proofs are not paired: it is not known which ran together.

    Args:
        fleet: like nodes, whose spread is the noise of a figure that was measured once.
        baseline: the accepted runs, whose noise is that of a figure without like nodes; None: there
            are none.
    """
    figures, terms = evidence.figures, evidence.terms
    comparison = Comparison(
        figures=Figures(figures),
        nodes=evidence.facts,
        node=evidence.node,
        builds=evidence.builds,
        tolerance=evidence.judge_expected.tolerance,
        stated=stated,
        largest_ratio=terms.largest_ratio if terms else inf,
    )
    material_change, noise = material_of(evidence.benchmarks), noise_of(evidence.benchmarks)
    answers = ReferenceJudgements()
    for number, applying in applying_references(figures.records, evidence.references):
        about = figures.records.of_measurand(number)
        material, assumed = material_change(about), OneRepeat(noise(about))
        of_all_cores = any(each.reference.all_cores for each in applying)
        paired = any(each.reference.against for each in applying)
        for figure in np.flatnonzero((figures.measurand == number) & figures.valid).tolist():
            record = figures.record(figure)
            chosen = applying
            if of_all_cores and not uses_all_cores(record, evidence.facts):
                chosen = [each for each in applying if not each.reference.all_cores]
            values = figures.values(figure)
            compared_figure = Figure(
                record=record,
                value=float(figures.median[figure]),
                values=values,
                repeats=figures.repeats(figure) if paired and not terms else {},
                material=material,
                once=_once(figure, fleet, baseline) or assumed,
            )
            every = partial(figures.by_execution, figure)
            judged: dict[CaseReference, Judgement] = {}
            for each in chosen:
                of = comparison, compared_figure, each.reference
                clear = clear_miss(each, material)
                compared = partial(_judge_item, *of)
                judgement = terms.judge(record, each.reference, compared) if terms else compared()
                judgement = _shown(judgement, record.node, clear, every)
                again = figures.run_again[figure] or slow_ratios(judgement, values, clear)
                if again and not terms:
                    some = partial(_judge_some, *of, clear)
                    judgement = judge_executions(figures, figure, judgement, some, clear)
                if doubt := evidence.doubts.get((record.case, record.metric)):
                    judgement = _in_doubt(judgement, doubt, *of)
                # No source knows the hardware: there is nothing to compare with, nor to say.
                if judgement.value is not None or each.reference.rule not in TYPICAL:
                    judged[each] = judgement
            if judged:
                answers.of_figure[figure] = tuple(judged.values())
            for each, judgement in judged.items():
                answers.by_reference.setdefault(each, []).append((figure, judgement))
    with_misses(answers.by_reference, answers.of_figure, figures)
    for figure, missed, stated_only in excused(answers.by_reference, figures):
        of_figure = answers.of_figure[figure]
        answers.of_figure[figure] = tuple(
            stated_only if each is missed else each for each in of_figure
        )
    return answers


def _shown(
    judged: Judgement, node: str, clear: float, measured: Callable[[], Measured]
) -> Judgement:
    """Return `judged`; a miss that the undisturbed executions do not show is UNJUDGED.

    An item of the best or worst repeat is about one repeat (`clear` is infinite). One execution of
    several nodes is enough: a node of a pair has other pairs.
    """
    ratio, value, limit = judged.ratio, judged.value, judged.missed_limit()
    if isinf(clear) or not value or ratio is None or limit is None:
        return judged
    if not judged.bounds.missed_by(ratio):
        return judged  # the scatter of the repeats fails
    below = ratio < limit
    ratios = judged.ratios or [each / value for each in of_undisturbed(measured()).values()]
    if len(ratios) == 1 and len(hosts_of(node)) > 1:
        return judged
    return judged if repeats_agree(ratios, limit, limit, below=below) else judged.open()


def _once(figure: int, fleet: Fleet, baseline: BaselineComparison | None) -> OneRepeat | None:
    """Return the noise of one repeat that like nodes or accepted runs show; None if none do."""
    if shown := fleet.noise(figure) or (baseline.noise(figure) if baseline else None):
        return OneRepeat(*shown)
    return None


def _judge_item(comparison: Comparison, figure: Figure, reference: Reference) -> Judgement:
    judged = comparison.judge(compared_with(reference, figure), reference)
    return with_repeats(reference, figure.values, judged)


def _in_doubt(
    judged: Judgement,
    doubt: Doubt,
    comparison: Comparison,
    figure: Figure,
    reference: Reference,
) -> Judgement:
    """Return `judged`. It is UNJUDGED if the doubt about the figure can change its outcome."""
    if doubt.value is not None:
        other = figure._replace(value=doubt.value, values=(doubt.value,), repeats={})
        if _judge_item(comparison, other, reference).outcome == judged.outcome:
            return judged
    elif judged.outcome == "FAIL":
        return judged
    return replace(
        judged,
        outcome="UNJUDGED",
        reason=Message("figure-in-doubt", text=judged.reason, why=doubt.reason),
    )


def _judge_some(
    comparison: Comparison,
    figure: Figure,
    reference: Reference,
    clear: float,
    measured: Measured,
) -> Judgement:
    values = [value for _, value in measured]
    repeats = {about.repeat: value for about, value in measured} if figure.repeats else {}
    some = figure._replace(value=median(values), values=values, repeats=repeats)
    judged = _judge_item(comparison, some, reference)
    return _shown(judged, figure.record.node, clear, lambda: measured)


MIN_SHARE_OF_MISSES = 1 / 3
"""The least share of the executions that miss a limit clearly and make the figure miss it."""
_MET = frozenset({"limit-noisy", "floor-met"})
"""The codes of the reasons of UNJUDGED figures whose median does not miss the limit."""


def judge_executions(
    figures: Aggregates,
    figure: int,
    judged: Judgement,
    compare: Callable[[Measured], Judgement],
    material: float,
) -> Judgement:
    """Return the judgement of a figure by its median, or a FAIL by its executions.

    It is that of its median if no step was run again and the figure has no `slow_ratios`.

    Args:
        material: the least change of its metric that matters, as a part of its value.
    """
    measured = figures.by_execution(figure)
    if len(measured) < CONFIRMING or judged.outcome == "FAIL":
        return judged
    planned = planned_of(measured)
    if len(planned) < len(measured):
        alone = compare(planned)
        if alone.outcome == "FAIL" or alone.is_open:
            counts = {"planned": len(planned), "executions": len(measured)}
            return replace(alone, reason=Message(PLANNED_ALONE, text=alone.reason, **counts))
    virtual = figures.record(figure).origin in VIRTUAL
    if virtual or not judged.value or not (judged.outcome == "PASS" or judged.reason.code in _MET):
        return judged
    values = [value for _, value in measured]
    slow = slow_ratios(judged, values, material)
    repeats = len(judged.ratios or values)
    many = len(slow) >= CONFIRMING and len(slow) >= MIN_SHARE_OF_MISSES * repeats
    if not slow or not (many or judged.outcome == "PASS"):
        return judged
    reason = Message(
        BEYOND,
        slow=len(slow),
        repeats=repeats,
        material=percent(material),
        ratio=f"{median(slow):.3g}",
        text=judged.reason,
    )
    if not many:
        return replace(judged, reason=reason)
    return replace(judged, outcome="FAIL", reason=reason, ratio=median(slow), ratios=slow)


def planned_of(measured: Measured) -> Measured:
    """Return the first counting execution of each step."""
    attempts = gathered((about.step, about.attempt) for about, _ in measured)
    return [each for each in measured if each[0].attempt == min(attempts[each[0].step])]


def slow_ratios(judged: Judgement, values: Sequence[float], material: float) -> tuple[float, ...]:
    """Return the ratios of repeats that miss the limit of `judged` by more than `material`."""
    low, high = judged.bounds
    expected = judged.value
    ratios = judged.ratios or [value / expected for value in values if expected]
    clearly = Bounds(
        None if low is None else low * (1 - material),
        None if high is None else high * (1 + material),
    )
    return tuple(ratio for ratio in ratios if clearly.missed_by(ratio))

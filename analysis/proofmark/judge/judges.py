"""The judges of a run: each looks at the evidence, and the worst outcome of a figure counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import median
from typing import TypeVar

import numpy as np

from proofmark.cases.reference import TYPICAL, Reference, Rule
from proofmark.common.errors import bad_input
from proofmark.common.message import Message
from proofmark.common.nodesets import hosts_of_nodes
from proofmark.judge.aggregate import Aggregates
from proofmark.judge.contract_rules import clear_miss, compared_with, excused, with_repeats
from proofmark.judge.coverage import coverage
from proofmark.judge.crashes import crashes
from proofmark.judge.degraded import degraded
from proofmark.judge.diagnosis.bad_nodes import Suspects, bad_nodes
from proofmark.judge.diagnosis.disagreeing import disagreements
from proofmark.judge.diagnosis.file_system_faults import file_system_faults, of_servers
from proofmark.judge.diagnosis.hardware_errors import error_faults
from proofmark.judge.diagnosis.implausible import (
    above_nominal,
    copied_outputs,
    same_machines,
    too_good,
)
from proofmark.judge.diagnosis.over_time import over_time
from proofmark.judge.diagnosis.rail_faults import rail_faults
from proofmark.judge.diagnosis.slow_targets import of_target, slow_targets
from proofmark.judge.diagnosis.unlike_parts import unlike_parts
from proofmark.judge.disturbed_nodes import disturbed_nodes
from proofmark.judge.evidence import Doubt, Evidence
from proofmark.judge.fleet.digits import judge_digits
from proofmark.judge.fleet.fleet import measure_fleet
from proofmark.judge.fleet.like_figures import Kinds
from proofmark.judge.imported_rules import ImportedRules
from proofmark.judge.limit_outcomes import limit_outcomes
from proofmark.judge.links.links import link_fit
from proofmark.judge.power import material_of
from proofmark.judge.predictions import FigurePredictions
from proofmark.judge.references.derived import Nominal
from proofmark.judge.references.figure_comparison import Comparison, Figure
from proofmark.judge.references.judgement import (
    Judgement,
    OfCase,
    applying_references,
    uses_all_cores,
)
from proofmark.judge.references.measured_references import Figures
from proofmark.judge.repeats import Measured, added_executions, judge_executions, slow_ratios
from proofmark.judge.required import unjudged
from proofmark.judge.results import WORDS, Results, verdicts_of
from proofmark.judge.rounds import round_overlaps
from proofmark.judge.slowdown import slowdowns
from proofmark.judge.stated_parts import (
    nominal_parts,
    part_faults,
    shown_basis,
    statements,
    unread_parts,
)
from proofmark.judge.verdict import Verdict
from proofmark.records.columns import EMULATED
from proofmark.site.installed_parts import declared_parts
from proofmark.site.partition import PREDICTED

K = TypeVar("K")
V = TypeVar("V")
Faults = Mapping[str, tuple[Message, ...]]
"""The faults of each node that no figure has."""


def judge(evidence: Evidence) -> Verdict:
    """Return the verdict on a run.

    Records that are equal in all but step, repeat and attempt become one result with their median.

    Raises:
        BadInput: some of the records are predicted and some not. They are never judged together.
    """
    origins = sorted({measurand.origin for measurand in evidence.records.measurands})
    if PREDICTED in origins and len(origins) > 1:
        raise bad_input(evidence.run, "origin", ", ".join(origins), "records of one origin")
    figures, plan, benchmarks = evidence.figures, evidence.plan, evidence.benchmarks
    level, facts = evidence.family_level, evidence.facts
    accepted_of = evidence.baseline.parts() if evidence.baseline else {}
    declared = declared_parts(evidence.node)
    stated = statements(facts, declared, accepted_of)
    nominal = nominal_parts(facts, stated)
    referred = judge_by_references(evidence, nominal)
    fleet = measure_fleet(
        figures, benchmarks, facts, level, evidence.network.distance, evidence.network.places
    )
    links = (
        link_fit(figures, plan, benchmarks, evidence.network.paths, level)
        if evidence.network.paths
        else None
    )
    changes = over_time(figures, benchmarks, level)
    answers = _joined(
        referred.of_figure,
        {figure: (one,) for figure, one in judge_digits(figures, benchmarks, facts).items()},
        {figure: (one,) for figure, one in (links.judgements if links else {}).items()},
        {figure: (one,) for figure, one in changes.judgements().items()},
    )
    accepted = evidence.baseline.compare(figures, benchmarks, level) if evidence.baseline else None
    results = Results(
        figures,
        verdicts_of(len(figures), answers, fleet, accepted, ~figures.valid),
        answers,
        fleet,
        baseline=accepted,
        expected=FigurePredictions(evidence.expected, figures, evidence.network.distance)
        if evidence.expected
        else None,
    )
    seen = {execution.step for execution in evidence.records.executions}
    covered = coverage(plan, seen, figures.duplicates, evidence.stopped)
    suite = benchmarks.suites.get(plan.suite)
    required = suite.required_metrics if suite else ()
    sanity = bool(suite and suite.sanity)
    return _diagnosed(
        evidence,
        Verdict(
            evidence.run,
            {word: int((results.verdict == at).sum()) for at, word in enumerate(WORDS)},
            covered,
            results,
            fleet,
            links=links,
            limits=limit_outcomes(evidence, covered, referred.by_reference),
            required=(
                *unjudged(required, figures, results, Kinds(facts), sanity),
                *unread_parts(facts, stated),
            ),
            nominal=nominal,
            basis=shown_basis(referred.rules(figures), nominal, evidence.node),
            rehearsed=len(fleet.alike) if origins == [EMULATED] else 0,
            over_time=changes,
            slowdowns=slowdowns(figures, benchmarks, plan),
            rounds=round_overlaps(plan, evidence.records.executions),
            imported=plan.imported,
            fixed=frozenset(step.id for step in plan.steps() if step.reads or step.kept),
            sanity=sanity,
            crashes=tuple(crashes(evidence.records, evidence.decided.set_aside)),
            disturbed=() if plan.imported else disturbed_nodes(evidence.records),
            added=()
            if plan.imported
            else tuple(
                added_executions(evidence.records, evidence.decided.more, evidence.decided.refused)
            ),
            stage_faults=evidence.stage_faults,
            replaced=tuple(
                Message("option-replaced", option=name, found=value or "–", stated=stated or "–")
                for name, (stated, value) in evidence.replaced.items()
            ),
        ),
        _joined(
            part_faults(facts, stated),
            rail_faults(facts, declared),
            unlike_parts(figures, benchmarks),
            error_faults(evidence.probes),
            same_machines(facts, origins[0] if origins else ""),
            copied_outputs(evidence.records, benchmarks),
            too_good(figures, benchmarks, fleet, referred.by_reference),
            above_nominal(figures, referred.by_reference),
        ),
    )


def _diagnosed(evidence: Evidence, verdict: Verdict, faults: Faults) -> Verdict:
    """Return the verdict with the bad nodes, targets and file systems that explain it.

    Args:
        evidence: of the run.
        verdict: without them.
        faults: the faults of each node that no figure has.
    """
    failed = list(verdict.of("FAIL"))
    broken = file_system_faults(evidence, verdict.results)
    of_nodes = [
        result for result in failed if not of_target(result) and not of_servers(broken, result)
    ]
    measured = verdict.measured()
    suspects = Suspects(
        measured=measured,
        judged=verdict.judged(),
        slow_ends=verdict.links.hosts if verdict.links else {},
        faults=faults,
    )
    unmeasured = {each.step for each in verdict.coverage.missing}
    lacking = degraded(evidence.plan, evidence.hosts, measured, unmeasured)
    labels = lacking.steps if lacking else {}
    figures = verdict.results.aggregates
    return replace(
        verdict,
        bad=bad_nodes(of_nodes, evidence.probes, evidence.network.places, suspects),
        targets=slow_targets(verdict.results),
        disagreements=disagreements(figures, verdict.fleet.of, evidence.sources),
        file_systems=broken,
        degraded=lacking,
        results=replace(verdict.results, degraded=labels),
    )


@dataclass
class ByReferences:
    """The judgements by references.

    Attributes:
        of_figure: the judgements of each figure to which a reference applies.
        by_reference: the figures that a reference judged, each with its judgement.
    """

    of_figure: dict[int, tuple[Judgement, ...]] = field(default_factory=dict)
    by_reference: dict[OfCase, list[tuple[int, Judgement]]] = field(default_factory=dict)

    def rules(self, figures: Aggregates) -> Iterator[tuple[Rule, list[str]]]:
        """Yield the rules of the limits that were computed, each with the nodes of its figures."""
        for each, judged in self.by_reference.items():
            if rule := each.reference.rule:
                places = {int(figures.node[at]) for at, one in judged if one.evaluated}
                yield rule, [*hosts_of_nodes(figures.records.nodes[at] for at in places)]


def judge_by_references(
    evidence: Evidence, stated: Mapping[str, Nominal] | None = None
) -> ByReferences:
    """Return the judgements of each valid figure to which a reference applies.

    The repeats of imported figures are not paired: it is not known which ones ran together.

    Args:
        evidence: of the run.
        stated: the stated parts of each node.
    """
    figures = evidence.figures
    comparison = Comparison(
        Figures(figures),
        evidence.facts,
        evidence.node,
        evidence.builds,
        evidence.judge_expected.tolerance,
        stated or {},
    )
    imported = (
        ImportedRules(evidence.benchmarks, evidence.network.proven, comparison.tolerance)
        if evidence.plan.imported
        else None
    )
    references = evidence.references
    material_change = material_of(evidence.benchmarks)
    answers = ByReferences()
    for number, applying in applying_references(figures.records, references):
        material = material_change(figures.records.of_measurand(number))
        of_all_cores = any(each.reference.all_cores for each in applying)
        paired = any(each.reference.against for each in applying)
        for figure in np.flatnonzero((figures.measurand == number) & figures.valid).tolist():
            record = figures.record(figure)
            chosen = applying
            if of_all_cores and not uses_all_cores(record, evidence.facts):
                chosen = [each for each in applying if not each.reference.all_cores]
            values = figures.values(figure)
            compared_figure = Figure(
                record,
                float(figures.median[figure]),
                values,
                figures.repeats(figure) if paired and not imported else {},
                material,
            )
            judged: dict[OfCase, Judgement] = {}
            for each in chosen:
                of = comparison, compared_figure, each.reference
                clear = clear_miss(each, material)
                if imported:
                    compared: Callable[[], Judgement] = partial(_judge_item, *of)
                    judgement = imported.judge(record, each.reference, compared)
                else:
                    judgement = _judge_item(*of)
                    if figures.run_again[figure] or slow_ratios(judgement, values, clear):
                        again = partial(_judge_some, *of)
                        judgement = judge_executions(
                            figures, figure, judgement, again, clear, evidence.decided.more
                        )
                if doubt := evidence.doubts.get((record.case, record.metric)):
                    judgement = _in_doubt(judgement, doubt, *of)
                # No source knows the hardware: there is nothing to compare with, nor to say.
                if judgement.value is not None or each.reference.rule not in TYPICAL:
                    judged[each] = judgement
            if judged:
                answers.of_figure[figure] = tuple(judged.values())
            for each, judgement in judged.items():
                answers.by_reference.setdefault(each, []).append((figure, judgement))
    for figure, missed, stated_only in excused(answers.by_reference, figures, evidence.waivers):
        of_figure = answers.of_figure[figure]
        answers.of_figure[figure] = tuple(
            stated_only if each is missed else each for each in of_figure
        )
    return answers


def _judge_item(comparison: Comparison, figure: Figure, reference: Reference) -> Judgement:
    """Return the judgement of a figure by a reference, or by the rules of an item."""
    judged = comparison.judge(compared_with(reference, figure), reference)
    return with_repeats(reference, figure.values, judged)


def _in_doubt(
    judged: Judgement,
    doubt: Doubt,
    comparison: Comparison,
    figure: Figure,
    reference: Reference,
) -> Judgement:
    """Return a judgement, UNJUDGED if the figure may be one with another outcome."""
    if doubt.value is not None:
        other = replace(figure, value=doubt.value, values=(doubt.value,), repeats={})
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
    comparison: Comparison, figure: Figure, reference: Reference, measured: Measured
) -> Judgement:
    """Return the judgement of a figure by some of its executions."""
    values = [value for _, value in measured]
    repeats = {about.repeat: value for about, value in measured} if figure.repeats else {}
    some = replace(figure, value=median(values), values=values, repeats=repeats)
    return _judge_item(comparison, some, reference)


def _joined(*parts: Mapping[K, Sequence[V]]) -> dict[K, tuple[V, ...]]:
    """Return what all judges found, by figure or node."""
    joined: dict[K, tuple[V, ...]] = {}
    for part in parts:
        for key, found in part.items():
            joined[key] = (*joined.get(key, ()), *found)
    return joined

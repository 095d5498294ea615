"""The judge that compares each figure with the references and limits that apply to it.

An own run proves its conditions, else its figures are INVALID. Imported outputs have no such proof
(docs/design/imported-runs.md). Their values are read. A judgement that needs a missing proof is
UNJUDGED, and never PASS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import median

import numpy as np

from proofmark.cases.reference import TYPICAL, Reference, Rule
from proofmark.cases.suite import Benchmarks
from proofmark.common.expressions import variables_in
from proofmark.common.message import Message, joined
from proofmark.common.nodesets import hosts_of, hosts_of_nodes
from proofmark.judge.aggregate import Aggregates
from proofmark.judge.baseline import BaselineComparison
from proofmark.judge.confidence import OneRepeat, material_of, noise_of
from proofmark.judge.contract_items import clear_miss, compared_with, excused, with_repeats
from proofmark.judge.evidence import Doubt, Evidence
from proofmark.judge.fleet.fleet import Fleet
from proofmark.judge.references.derived import Nominal
from proofmark.judge.references.elsewhere import ElsewhereReference
from proofmark.judge.references.figure_comparison import Comparison, Figure, Figures
from proofmark.judge.references.judgement import (
    CaseReference,
    Judgement,
    applying_references,
    judging_bounds,
    traits,
    uses_all_cores,
)
from proofmark.judge.repeats import Measured, judge_executions, slow_ratios
from proofmark.records.columns import Record

MODE = "mode"
CORES = "cores"
SYSTEM = "system"
PARAMETER = "parameter"
FILE_SYSTEM = "file_system"
NETWORK = "network"
FACTS = "facts"
REASONS: Mapping[str, Message] = {
    MODE: Message("imported-mode"),
    CORES: Message("imported-cores"),
    SYSTEM: Message("imported-system"),
    PARAMETER: Message("imported-parameter"),
    FILE_SYSTEM: Message("imported-file-system"),
    NETWORK: Message("imported-network"),
    FACTS: Message("imported-facts"),
}
"""Why a figure stays UNJUDGED, by the proof that is missing."""


@dataclass(frozen=True)
class ImportedRules:
    """The rules for the judgements of one run.

    Attributes:
        network: whether own runs of the site must prove the network between nodes.
        tolerance: that of the site for expected values; None is that of each value.
    """

    benchmarks: Benchmarks
    network: bool
    tolerance: float | None = None

    def judge(
        self, record: Record, reference: Reference, compared: Callable[[], Judgement]
    ) -> Judgement:
        """Return the judgement of an imported figure.

        Args:
            reference: a reference that applies to it.
            compared: returns the judgement of an own figure with this value.
        """
        if missing := _to_compare(record, reference):
            bounds = judging_bounds(reference, self.tolerance)
            return Judgement(
                reference.kind, reference.source, "UNJUDGED", REASONS[missing], **bounds._asdict()
            )
        judgement = compared()
        missing = self._to_pass(record)
        if judgement.outcome != "PASS" or not missing:
            return judgement
        reason = joined((REASONS[missing], judgement.reason))
        without = replace(judgement, ratios=(), visible=None)
        return replace(without, outcome="UNJUDGED", reason=reason)

    def _to_pass(self, record: Record) -> str:
        """Return the proof that a PASS of a figure lacks, or an empty string.

        It is one without which an own figure of this case is INVALID. A FAIL does not need it: a
        value that misses its limit shows no acceptance on any file system or network.
        """
        case = self.benchmarks.case(record.case)
        if case.writes is not None:
            return FILE_SYSTEM
        several = len(hosts_of(record.node)) > 1
        return NETWORK if several and self.network and case.network_bytes else ""


def missing_proof(judgement: Judgement) -> str:
    """Return the key of `REASONS` of a judgement that a missing proof prevented, or ""."""
    if judgement.outcome != "UNJUDGED":
        return ""
    found = (proof for proof, why in REASONS.items() if judgement.reason.main_code == why.code)
    return next(found, "")


def _to_compare(record: Record, reference: Reference) -> str:
    """Return the proof without which it is not known whether the reference is for the figure."""
    if reference.mode is not None:
        return MODE
    if reference.system is not None:
        return SYSTEM
    if reference.rule is not None or isinstance(reference, ElsewhereReference):
        return FACTS
    if reference.all_cores:
        return CORES
    if reference.against is not None:
        used = variables_in(reference.against.times)
        return PARAMETER if used - traits(record).keys() else ""
    return ""


@dataclass
class ReferenceJudgements:
    """The judgements by references.

    Attributes:
        of_figure: the judgements of each figure to which a reference applies.
        by_reference: the figures that a reference judged, each with its judgement.
    """

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

    The repeats of imported figures are not paired: it is not known which ones ran together.

    Args:
        stated: the stated parts of each node.
        fleet: like nodes, whose spread is the noise of a figure that was measured once.
        baseline: the accepted runs, whose noise is that of a figure without like nodes; None: there
            are none.
    """
    figures = evidence.figures
    comparison = Comparison(
        figures=Figures(figures),
        nodes=evidence.facts,
        node=evidence.node,
        builds=evidence.builds,
        tolerance=evidence.judge_expected.tolerance,
        stated=stated,
        programs=evidence.elsewhere.programs,
        network=evidence.elsewhere.network,
    )
    imported = (
        ImportedRules(evidence.benchmarks, evidence.network.proven, comparison.tolerance)
        if evidence.plan.imported
        else None
    )
    references = evidence.references
    material_change, noise = material_of(evidence.benchmarks), noise_of(evidence.benchmarks)
    answers = ReferenceJudgements()
    for number, applying in applying_references(figures.records, references):
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
                repeats=figures.repeats(figure) if paired and not imported else {},
                material=material,
                once=_once(figure, fleet, baseline) or assumed,
            )
            judged: dict[CaseReference, Judgement] = {}
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
    for figure, missed, stated_only in excused(answers.by_reference, figures):
        of_figure = answers.of_figure[figure]
        answers.of_figure[figure] = tuple(
            stated_only if each is missed else each for each in of_figure
        )
    return answers


def _once(figure: int, fleet: Fleet, baseline: BaselineComparison | None) -> OneRepeat | None:
    """Return the noise of one repeat that like nodes or accepted runs show; None if none do."""
    if shown := fleet.noise(figure) or (baseline.noise(figure) if baseline else None):
        return OneRepeat(*shown)
    return None


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
    """Return `judged`. It is UNJUDGED if the doubt about the figure can change its outcome."""
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

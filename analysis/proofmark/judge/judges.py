"""The judges of a run: each looks at the evidence, and the worst outcome of a figure counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TypeVar

from proofmark.common.errors import bad_input
from proofmark.judge.additions import added_findings
from proofmark.judge.coverage import coverage, degraded
from proofmark.judge.diagnosis.bad_nodes import Suspects, bad_nodes
from proofmark.judge.diagnosis.node_faults import NodeFaults, narrow_slots, node_faults
from proofmark.judge.diagnosis.over_time import over_time
from proofmark.judge.diagnosis.storage_faults import storage_faults
from proofmark.judge.evidence import Evidence
from proofmark.judge.executions import judged_executions, run_conditions
from proofmark.judge.fleet.digits import judge_digits
from proofmark.judge.fleet.fleet import measure_fleet
from proofmark.judge.fleet.like_figures import Kinds
from proofmark.judge.fleet.measured_groups import kinds_of_groups, measured_groups, unlike_groups
from proofmark.judge.limit_outcomes import limit_outcomes
from proofmark.judge.node_checks import check_outcomes
from proofmark.judge.predictions import FigurePredictions
from proofmark.judge.reference_judge import judge_by_references
from proofmark.judge.required import unjudged
from proofmark.judge.results import WORDS, Results, verdicts_of
from proofmark.judge.slowdown import slowdowns
from proofmark.judge.stated_parts import (
    NominalHardware,
    empty_channels,
    nominal_parts,
    ordered_hardware,
    shown_basis,
    statements,
    unknown_orders,
    unread_parts,
)
from proofmark.judge.verdict import Verdict
from proofmark.plan.selection import required_metrics
from proofmark.site.contract_document import ContractItem
from proofmark.site.hardware import IMPORTED
from proofmark.site.installed_parts import declared_parts
from proofmark.site.partition import PREDICTED

K = TypeVar("K")
V = TypeVar("V")


def judge(evidence: Evidence) -> Verdict:
    """Return the verdict on a run.

    Records that are equal in all but step, repeat and attempt become one result with their median.

    Raises:
        BadInput: some of the records are predicted and some not. They are never judged together.
    """
    if PREDICTED in evidence.origins and len(evidence.origins) > 1:
        found = ", ".join(sorted(evidence.origins))
        raise bad_input(evidence.run, "origin", found, "records of one origin")
    figures, plan, benchmarks = evidence.figures, evidence.plan, evidence.benchmarks
    level, facts, network = evidence.family_level, evidence.facts, evidence.network
    accepted_of = evidence.baseline.parts() if evidence.baseline else {}
    stated = statements(facts, declared_parts(evidence.node), accepted_of)
    nominal = nominal_parts(facts, stated, network.ports)
    groups = measured_groups(figures.records.nodes) if plan.site == IMPORTED else []
    hardware, of_group = ordered_hardware(facts, stated), kinds_of_groups(groups)
    kinds = Kinds(hardware, groups=of_group)
    of_place = Kinds(hardware, network.distance, of_group)
    fleet = measure_fleet(figures, benchmarks, of_place, level, network.places)
    accepted = evidence.baseline.compare(figures, benchmarks, level) if evidence.baseline else None
    referred = judge_by_references(evidence, nominal, fleet, accepted)
    added = added_findings(evidence, fleet)
    changes = over_time(figures, benchmarks, level)
    answers = _joined(
        referred.of_figure,
        {figure: (one,) for figure, one in judge_digits(figures, benchmarks, kinds).items()},
        *({figure: (one,) for figure, one in each.of_figures().items()} for each in added.values()),
        {figure: (one,) for figure, one in changes.judgements().items()},
    )
    results = Results(
        figures,
        verdicts_of(len(figures), answers, fleet, accepted, ~figures.valid),
        answers,
        fleet,
        baseline=accepted,
        expected=FigurePredictions(evidence.expected, figures, network.distance)
        if evidence.expected
        else None,
    )
    seen = {execution.step for execution in evidence.records.executions}
    covered = coverage(plan, seen, figures.duplicates, evidence.stopped)
    conditions = run_conditions(evidence, fleet)
    items = [
        each.reference
        for each in evidence.references
        if isinstance(each.reference, ContractItem)
        and each.reference.number not in evidence.waivers
    ]
    required = required_metrics(plan, benchmarks, items)
    verdict = Verdict(
        evidence.run,
        {word: int((results.verdict == at).sum()) for at, word in enumerate(WORDS)},
        covered,
        results,
        added=added,
        limits=limit_outcomes(evidence, covered, referred.by_reference),
        checks=check_outcomes(
            evidence.checks, plan.nodes(), facts, evidence.waivers, evidence.looks
        ),
        required=(
            *unjudged(required, figures, results, kinds, conditions.sanity),
            *unread_parts(facts, stated),
            *unknown_orders(facts, stated),
            *unlike_groups(groups),
            *empty_channels(facts, stated),
            *(() if evidence.node.rails.rate else narrow_slots(facts)),
            *chain.from_iterable(each.unjudged() for each in added.values()),
        ),
        hardware=NominalHardware(
            nominal, shown_basis(referred.rules(figures), nominal, evidence.node)
        ),
        executions=judged_executions(evidence, fleet),
        conditions=conditions,
        over_time=changes,
        slowdowns=slowdowns(figures, benchmarks, plan),
    )
    faults = node_faults(evidence, stated, fleet, referred.by_reference)
    of_checks: list[NodeFaults] = []
    for check in verdict.checks:
        of_checks.append({node: (reason,) for node, reason in check.faults.items()})
    of_added = (each.of_nodes() for each in added.values())
    return _diagnosed(evidence, verdict, _joined(*faults, *of_checks, *of_added))


def _diagnosed(evidence: Evidence, verdict: Verdict, faults: NodeFaults) -> Verdict:
    """Return the verdict with the bad nodes and the faults of storage that explain it.

    Args:
        verdict: without them.
        faults: the faults of each node that no figure has.
    """
    slow_ends: dict[str, str] = {}
    for finding in verdict.added.values():
        slow_ends |= finding.slow_ends()
    storage = storage_faults(evidence, verdict.results)
    of_nodes = [each for each in verdict.of("FAIL") if not storage.is_of_storage(each)]
    measured = verdict.measured()
    suspects = Suspects(
        measured=measured,
        judged=verdict.judged(),
        slow_ends=slow_ends,
        faults=faults,
    )
    unmeasured = {each.step for each in verdict.coverage.missing}
    lacking = degraded(evidence.plan, evidence.hosts, measured, unmeasured)
    labels = lacking.steps if lacking else {}
    return replace(
        verdict,
        bad=bad_nodes(of_nodes, evidence.probes, evidence.network.places, suspects),
        storage=storage,
        degraded=lacking,
        results=replace(verdict.results, degraded=labels),
    )


def _joined(*parts: Mapping[K, Sequence[V]]) -> dict[K, tuple[V, ...]]:
    """Return what all judges found, by figure or node."""
    joined: dict[K, tuple[V, ...]] = {}
    for part in parts:
        for key, found in part.items():
            joined[key] = (*joined.get(key, ()), *found)
    return joined

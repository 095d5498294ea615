"""What a verdict shows about each node of a gate, and the entry of a bad node for the vendor."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from proofmark.cases.suite import Required
from proofmark.cases.telemetry import TELEMETRY
from proofmark.cases.vocabulary import RESOLVED_AXES, SENSOR
from proofmark.common.message import Message
from proofmark.common.nodesets import hosts_of, hosts_of_nodes
from proofmark.judge.confidence import noise_in
from proofmark.judge.diagnosis.bad_nodes import rma, serial_number
from proofmark.judge.ending import failed_nodes
from proofmark.judge.references.judgement import PEERS, traits
from proofmark.judge.results import WORDS, Result, Results
from proofmark.judge.verdict import Verdict
from proofmark.packages.service.gate_decisions import Failure, GateEvidence, NodeFigure
from proofmark.plan.plan import Plan
from proofmark.plan.step import StepInstance
from proofmark.records.columns import EMULATED
from proofmark.site.node.facts import NodeFacts

Mask = NDArray[np.bool_]

_MOST = 3
"""The largest number of figures in an entry for the vendor."""
ANY = NodeFigure("any figure", "")
"""The requirement on a node in a suite without required metrics."""


def evidence_of(verdict: Verdict, plan: Plan, required: Sequence[Required]) -> GateEvidence:
    """Return what the run of `verdict` shows about its nodes.

    Args:
        required: the required metrics of its suite.
    """
    failures = [*_failed_figures(verdict, plan), *_missing_steps(verdict, plan)]
    planned = _planned_cases(plan)
    judged, not_planned = _required(required, verdict.results, planned)
    return GateEvidence(
        failed=failed_nodes(verdict, plan) | _faults(verdict, planned),
        faulty=frozenset(_faulty(verdict, planned)),
        failures=failures,
        judged=judged,
        not_planned=not_planned,
        noise=_noise(required, verdict.results),
    )


def _failed_figures(verdict: Verdict, plan: Plan) -> Iterator[Failure]:
    places = {step.id: step.instances() for step in plan.steps_to_run()}
    for result in verdict.of("FAIL", "INVALID"):
        record = result.record
        instance = StepInstance.parse(record.step)
        # A record without output has no node. The plan has the nodes of its step.
        nodes = hosts_of(record.node) if record.node else places[instance.step][instance]
        reason = f"{result.verdict} {_figure(result)}: {result.reason}"
        yield Failure(tuple(nodes), reason, NodeFigure(record.case, record.metric))


def _missing_steps(verdict: Verdict, plan: Plan) -> Iterator[Failure]:
    """Yield the steps without a record. The reason has that of its job, if the job stopped."""
    executions = verdict.results.aggregates.records.executions
    seen = {execution.step for execution in executions}
    jobs: dict[str, str] = {}
    for job in plan.jobs():
        jobs |= {step.id: job.id for step in job.steps}
    reasons = {line.fields.get("job"): f"; {line}" for line in verdict.coverage.stopped}
    for step in plan.steps_to_run():
        stopped = reasons.get(jobs[step.id], "")
        for instance, nodes in step.instances().items():
            if str(instance) not in seen:
                yield Failure(tuple(nodes), f"not measured: {step.id}{stopped}", missing=True)


def _faults(verdict: Verdict, nodes: Collection[str]) -> dict[str, str]:
    """Return the faults of `nodes` that no figure has; several of a node in one text."""
    found: dict[str, list[str]] = {}
    for fault in verdict.faults:
        if fault.node in nodes:
            found.setdefault(fault.node, []).append(fault.reason)
    return {node: "; ".join(reasons) for node, reasons in found.items()}


def _faulty(verdict: Verdict, nodes: Collection[str]) -> Iterator[str]:
    yield from _faults(verdict, nodes)
    yield from (node.host for node in verdict.bad.nodes if not node.retest)
    for result in verdict.of("FAIL"):
        if not result.retest and len(hosts_of(result.record.node)) == 1:
            yield result.record.node


def _planned_cases(plan: Plan) -> dict[str, set[str]]:
    """Return the cases that each node of the plan measures."""
    cases: dict[str, set[str]] = {}
    for step in plan.steps_to_run():
        for nodes in step.instances().values():
            for node in nodes:
                cases.setdefault(node, set()).add(step.case)
    return cases


def _required(
    required: Sequence[Required], results: Results, planned: Mapping[str, set[str]]
) -> tuple[dict[str, dict[NodeFigure, bool]], dict[str, list[NodeFigure]]]:
    """Return whether each required metric of a node was judged, and those without a step.

    A metric on several memories or file systems of a node must be judged on each of them.
    """
    judged: dict[str, dict[NodeFigure, bool]] = {node: {} for node in planned}
    good = _judged_figures(results)
    for each in required:
        for metric in each.metrics:
            for figure, node, name in _figures_of(each, metric, results):
                if node in judged:
                    judged[node][name] = judged[node].get(name, False) or bool(good[figure])
    not_planned: dict[str, list[NodeFigure]] = {}
    for node, cases in planned.items():
        for each in required:
            for wanted in (NodeFigure(each.case, metric) for metric in each.metrics):
                if each.case not in cases:
                    not_planned.setdefault(node, []).append(wanted)
                elif not any(figure.is_of(wanted) for figure in judged[node]):
                    judged[node][wanted] = False  # no output has a matching row
    if not required:
        passed = set(hosts_of_nodes(_judged_nodes(results)))
        judged = {node: {ANY: node in passed} for node in planned}
    return judged, not_planned


def _judged_nodes(results: Results) -> set[str]:
    """Return the nodes, as records name them, with a figure that is PASS, or emulated and valid."""
    figures = results.aggregates
    of_good = figures.node[_judged_figures(results)]
    return {figures.records.nodes[node] for node in set(of_good.tolist())}


def _figures_of(
    required: Required, metric: str, results: Results
) -> Iterator[tuple[int, str, NodeFigure]]:
    """Yield the number of each required figure, its node, and its metric with the measured part."""
    figures = results.aggregates
    for number, measurand in enumerate(figures.records.measurands):
        if (measurand.case, measurand.metric) != (required.case, metric):
            continue
        known = traits(figures.records.of_measurand(number))
        if (SENSOR in known) != (metric in TELEMETRY):
            continue  # a job of several nodes has the sensors of each of them
        if any(known.get(key) != value for key, value in required.where.items()):
            continue
        part = tuple(f"{axis} {known[axis]}" for axis in RESOLVED_AXES if axis in known)
        name = NodeFigure(required.case, metric, part)
        for figure in np.flatnonzero(figures.measurand == number).tolist():
            for node in hosts_of(figures.records.nodes[int(figures.node[figure])]):
                yield figure, node, name


def _noise(required: Sequence[Required], results: Results) -> dict[str, dict[NodeFigure, Message]]:
    """Return why required figures do not pass although they keep their limits."""
    found: dict[str, dict[NodeFigure, Message]] = {}
    for each in required:
        for metric in each.metrics:
            for figure, node, name in _figures_of(each, metric, results):
                for answer in results[figure].references:
                    if answer.kind != PEERS and (noise := noise_in(answer.reason)):
                        found.setdefault(node, {})[name] = noise
    return found


def _judged_figures(results: Results) -> Mask:
    """Return the mask of the figures that are PASS, or emulated and valid.

    An emulated figure only has to be valid, because its speed is not that of a real machine.
    """
    figures = results.aggregates
    emulated = [measurand.origin == EMULATED for measurand in figures.records.measurands]
    of_emulated = np.array(emulated, dtype=bool)[figures.measurand]
    passed = results.verdict == WORDS.index("PASS")
    valid = of_emulated & (results.verdict == WORDS.index("UNJUDGED"))
    mask: Mask = passed | valid
    return mask


def vendor_entry(verdict: Verdict, node: str, facts: NodeFacts | None) -> tuple[str, str, str]:
    """Return serial number, slots and evidence of a bad node, for the list of the vendor."""
    known = {node: facts} if facts else {}
    bad = [each for each in verdict.bad.nodes if each.host == node]
    rows = rma(bad, known)
    slots = "; ".join(f"{slot} ({serial})" for _, serial, slot, _ in rows if slot)
    evidence = "; ".join(text for *_, text in rows)
    if not rows:  # a run of one node names no bad nodes
        own = [result for result in verdict.of("FAIL") if result.record.node == node]
        phrases = [f"{_figure(result)}: {result.reason}" for result in own[:_MOST]]
        evidence = "; ".join([*phrases, *(_faults(verdict, [node]).values())])
    return serial_number(facts), slots, evidence


def _figure(result: Result) -> str:
    record = result.record
    words = dict.fromkeys((record.case, record.benchmark, record.metric))
    return " ".join(filter(None, words))

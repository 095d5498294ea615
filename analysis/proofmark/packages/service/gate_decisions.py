"""What a verdict shows about each node, and the decision: resume the node, or keep it out. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proofmark.cases.case import TELEMETRY
from proofmark.cases.suite import Required
from proofmark.cases.vocabulary import RESOLVED_AXES, SENSOR
from proofmark.common.message import Message
from proofmark.common.nodesets import folded, hosts_of, hosts_of_nodes
from proofmark.common.text import one_line
from proofmark.judge.confidence import noise_in
from proofmark.judge.diagnosis.bad_nodes import rma, serial_number
from proofmark.judge.ending import failed_nodes
from proofmark.judge.references.judgement import PEERS, traits
from proofmark.judge.results import WORDS, Result, Results
from proofmark.judge.verdict import Verdict
from proofmark.plan.plan import Plan
from proofmark.plan.step import StepInstance
from proofmark.records.columns import EMULATED
from proofmark.site.node.facts import NodeFacts

Action = Literal["resume", "keep"]
Standing = Literal["accepted", "waiting", "failed", "unjudged"]
"""``waiting``: a step of the node has no result, and none failed. ``unjudged``: the node has all
results and no fault, but a required metric of it was not judged."""
LONGEST = 300
"""The limit of a reason in characters. A scheduler keeps it with the node."""
NOT_JUDGED = "not judged: no baseline and no limit for"
TOO_NOISY = "a required metric is too noisy to be judged"
OPEN: Standing = "unjudged"
NOT_MEASURED = "not measured: no step of the run is for this node"


class NodeFigure(NamedTuple):
    """A metric of a case on a node.

    Attributes:
        part: the memory or the file system of it, as ``axis value``; empty for the whole node.
    """

    case: str
    metric: str
    part: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return all names in one text."""
        return " ".join(filter(None, (self.case, self.metric, *self.part)))

    def is_of(self, metric: NodeFigure | None) -> bool:
        """Return whether this is `metric`, or a part of it."""
        return metric is not None and self[:2] == metric[:2]


@dataclass(frozen=True)
class Failure:
    """A figure or a step that is not as it must be.

    Attributes:
        nodes: the nodes that measured it together.
        reason: what is wrong.
        metric: that of a figure; None for a step.
        missing: whether it is a step that has no record yet.
    """

    nodes: tuple[str, ...]
    reason: str
    metric: NodeFigure | None = None
    missing: bool = False


@dataclass(frozen=True)
class GateEvidence:
    """What a run shows about its nodes.

    Attributes:
        failed: the nodes that the verdict names, each with its reason.
        faulty: the nodes among them with a fault that is more than noise. They are for the vendor.
        failures: the figures that are FAIL or INVALID, and the steps without a record.
        judged: whether each required metric was judged, by node and metric. A node without a
            planned step has no entry.
        not_planned: the required metrics that no step of the run measures on the node, by node.
        noise: why a material change of a required metric would not be seen, by node and metric.
    """

    failed: Mapping[str, str] = field(default_factory=dict)
    faulty: frozenset[str] = frozenset()
    failures: Sequence[Failure] = ()
    judged: Mapping[str, Mapping[NodeFigure, bool]] = field(default_factory=dict)
    not_planned: Mapping[str, Sequence[NodeFigure]] = field(default_factory=dict)
    noise: Mapping[str, Mapping[NodeFigure, Message]] = field(default_factory=dict)


@dataclass(frozen=True)
class Decision:
    """What happens to a node.

    Attributes:
        action: ``resume``: the node returns to service; ``keep``: it stays out of service.
        reason: the reason, at most `LONGEST` characters in one line.
        fault: whether the reason is a fault of the node, which the vendor has to repair.
        standing: of a node of a rolling run, which a gate does not use.
    """

    action: Action
    reason: str
    fault: bool = False
    standing: Standing = field(default="waiting", compare=False)


def decide(
    evidence: GateEvidence, nodes: Collection[str], *, accept_unjudged: bool = False
) -> dict[str, Decision]:
    """Return the decision about each of `nodes`.

    A node is resumed if the run measured it, if the verdict does not name it, if no figure and no
    step of it failed, and if each required metric of it was judged. A failure of several nodes
    counts against those of them that failed by themselves, else against all of them.

    Args:
        evidence: what the run shows.
        accept_unjudged: resume a node although a required metric was not judged.
    """
    reasons = _reasons(evidence)
    wrong = _reasons(replace(evidence, failures=[e for e in evidence.failures if not e.missing]))
    decisions = {}
    for node in nodes:
        judged = evidence.judged.get(node)
        if node in reasons:
            standing: Standing = "failed" if node in wrong else "waiting"
            reason = wrong.get(node, reasons[node])
            decisions[node] = _keep(reason, standing, fault=node in evidence.faulty)
        elif judged is None:
            decisions[node] = _keep(NOT_MEASURED)
        else:
            lacking = sorted(metric for metric, known in judged.items() if not known)
            decisions[node] = _of_judged(evidence, node, lacking, accept=accept_unjudged)
    return decisions


def _reasons(evidence: GateEvidence) -> dict[str, str]:
    """Return the reason of each node that failed."""
    reasons = dict(evidence.failed)
    for failure in evidence.failures:
        if len(failure.nodes) == 1:
            reasons.setdefault(failure.nodes[0], failure.reason)
    alone = set(reasons)
    for failure in evidence.failures:
        if alone.isdisjoint(failure.nodes):
            for node in failure.nodes:
                reasons.setdefault(node, failure.reason)
    return reasons


def _of_judged(
    evidence: GateEvidence, node: str, lacking: Sequence[NodeFigure], *, accept: bool
) -> Decision:
    """Return the decision about a node without a failure of its own.

    A required figure that it measured with a node that failed may have failed, too. It was judged.
    """
    for failure in evidence.failures:
        if node in failure.nodes and any(each.is_of(failure.metric) for each in lacking):
            others = folded([each for each in failure.nodes if each != node])
            return _keep(f"measured with {others}, which failed: {failure.reason}", OPEN)
    noise = evidence.noise.get(node, {})
    noisy = [f"{each}: {noise[each]}" for each in lacking if each in noise]
    if noisy and not accept:
        return _keep(f"{TOO_NOISY}: {'; '.join(noisy)}", OPEN)
    if lacking and not accept:
        return _keep(f"{NOT_JUDGED} {', '.join(map(str, lacking))}", OPEN)
    words = [f"passed: {len(evidence.judged[node]) - len(lacking)} required metrics judged"]
    words += [f"accepted although not judged: {', '.join(map(str, lacking))}"] if lacking else []
    missing = evidence.not_planned.get(node, ())
    words += [f"not measured: {', '.join(map(str, missing))}"] if missing else []
    return Decision("resume", _short("; ".join(words)), standing="accepted")


def _keep(reason: str, standing: Standing = "waiting", *, fault: bool = False) -> Decision:
    return Decision("keep", _short(reason), fault, standing)


def _short(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"


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
    for result in chain(verdict.of("FAIL", "INVALID"), verdict.again):
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
    reasons = {each.job: f"; {each.message}" for each in verdict.coverage.stopped_jobs}
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

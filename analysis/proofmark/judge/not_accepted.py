"""The nodes that a run does not accept, each with one reason."""

from __future__ import annotations

from proofmark.common.nodesets import hosts_of
from proofmark.common.text import one_line
from proofmark.judge.diagnosis.bad_nodes import BadNode
from proofmark.judge.verdict import Verdict
from proofmark.plan.plan import Plan
from proofmark.plan.step import StepInstance

LONGEST = 300
"""Characters of a reason; the report has the whole reason."""


def failed_nodes(verdict: Verdict, plan: Plan) -> dict[str, str]:
    """Return the reason of each node that failed.

    A node fails if it is bad, if one of its own figures is INVALID, or if a step that it measures
    alone has no record, or if a stage before its jobs failed. A result or step of several nodes is
    the failure of none of them. A node of a rolling run without a record waits.
    """
    reasons = {node.host: _of_bad(node) for node in verdict.bad.nodes}
    places = {step.id: step.instances() for step in plan.steps_to_run()}
    for result in verdict.of("INVALID"):
        instance = StepInstance.parse(result.record.step)
        # A record without output has no node. The plan has the nodes of its step.
        nodes = places[instance.step][instance]
        if len(nodes) == 1:
            figure = " ".join(dict.fromkeys((result.record.case, result.record.metric)))
            reasons.setdefault(nodes[0], f"INVALID {figure}: {result.reason}")
    for fault in verdict.storage.file_systems:
        for host in fault.nodes if fault.others else ():
            reasons[host] = fault.message
    for each in verdict.conditions.stage_faults:
        for host in hosts_of(each.nodes):
            reasons.setdefault(host, f"{each.reason}")
    for node in verdict.stability.lost if verdict.stability else ():
        reasons.setdefault(node, "it failed during the stability run")
    for missing in () if plan.rolling or plan.stability else verdict.coverage.missing:
        if all(len(nodes) == 1 for nodes in places[missing.step].values()):
            for node in missing.nodes:
                reasons.setdefault(node, f"{missing.step}: not measured")
    return {node: one_line(reason)[:LONGEST] for node, reason in reasons.items()}


def _of_bad(node: BadNode) -> str:
    figures = [f"{slow.name} {slow.deviation:+.1%}" for slow in node.slow[:1]]
    figures += [f"{result.record.case}: wrong digits" for result in node.digits[:1]]
    return "; ".join([*figures, node.likely])

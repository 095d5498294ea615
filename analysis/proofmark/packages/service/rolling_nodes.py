"""The state of a rolling run: the rules of the gate about each node, and the time of its peers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from proofmark.cases.suite import Benchmarks
from proofmark.cases.telemetry import metrics_of
from proofmark.judge.evidence import Evidence
from proofmark.judge.fleet.critical_values import LEAST_NODES, fleet_limit, level_of_one
from proofmark.judge.fleet.populations import LIKE_NODES
from proofmark.judge.headline import required_on_nodes
from proofmark.judge.judging import KindJudge
from proofmark.judge.verdict import Verdict
from proofmark.packages.service.gate_decisions import Decision, decide
from proofmark.packages.service.gate_evidence import evidence_of
from proofmark.packages.service.rolling_state import NO_RACK, NodeStanding, PeersSince, RollingState
from proofmark.plan.plan import Plan
from proofmark.runs.run import Run


def decisions_of(
    verdict: Verdict, plan: Plan, benchmarks: Benchmarks, *, accept_unjudged: bool = False
) -> dict[str, Decision]:
    """Return the decision about each node of a run, for a gate and for a rolling acceptance."""
    required = required_on_nodes(plan, benchmarks, verdict.limits)
    shown = evidence_of(verdict, plan, required)
    return decide(shown, plan.nodes(), accept_unjudged=accept_unjudged)


def with_rolling(verdict: Verdict, evidence: Evidence) -> Verdict:
    """Return the verdict of a rolling run with the state of its nodes."""
    nodes = tuple(
        NodeStanding(
            node, evidence.network.places[node].get("rack", NO_RACK), each.standing, each.reason
        )
        for node, each in decisions_of(verdict, evidence.plan, evidence.benchmarks).items()
    )
    return replace(verdict, of_kind=RollingState(nodes, tuple(_peers(verdict, evidence))))


def _peers(verdict: Verdict, evidence: Evidence) -> Iterator[PeersSince]:
    """Yield since when each figure of like nodes judges."""
    for place, figure in enumerate(verdict.fleet.figures):
        if figure.members == LIKE_NODES:
            record, nodes = figure.record, figure.fleet_limit.nodes
            setting = " ".join(f"{key}={each}" for key, each in record.parameters.items())
            name = " ".join(filter(None, (record.case, record.metric, record.placement, setting)))
            yield PeersSince(name, nodes, *_since(verdict, evidence, place))


def _since(verdict: Verdict, evidence: Evidence, place: int) -> tuple[int, float]:
    """Return with how many nodes a fleet figure got its limit, and when; 0 and NaN if it has none.

    4, 8, 16, … nodes are tried, in the order of time.
    """
    fleet, figures = verdict.fleet, verdict.results.aggregates
    figure = fleet.figures[place]
    if figure.fleet_limit.limit is None:
        return 0, float("nan")
    members = np.flatnonzero(fleet.of == place)
    ends = np.array(
        [
            max(each.start + each.seconds for each in figures.executions(at))
            for at in members.tolist()
        ]
    )
    order = np.argsort(ends, kind="stable")
    values = fleet.median[members][order]
    better = metrics_of(evidence.benchmarks.case(figure.record.case))[figure.record.metric].better
    level = level_of_one(fleet.level, len(fleet.figures))
    nodes = LEAST_NODES
    while nodes < len(values) and fleet_limit(values[:nodes], better, level).limit is None:
        nodes *= 2
    nodes = min(nodes, len(values))
    return nodes, float(ends[order][nodes - 1])


class RollingJudge(KindJudge):
    """Judges as usual, and adds the state of each node."""

    def judge(self, run: Run, evidence: Evidence) -> Verdict:
        """Return the verdict with its `RollingState`."""
        return with_rolling(super().judge(run, evidence), evidence)

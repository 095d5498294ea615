"""The state of a rolling run: the rules of the gate about each node, and the time of its peers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from proofmark.cases.case import metrics_of
from proofmark.cases.suite import Benchmarks, Required
from proofmark.common.message import Message
from proofmark.judge.additions import KindResult
from proofmark.judge.evidence import Evidence
from proofmark.judge.fleet.critical_values import LEAST_NODES, fleet_limit, level_of_one
from proofmark.judge.fleet.populations import LIKE_NODES
from proofmark.judge.judging import KindJudge
from proofmark.judge.limit_outcomes import LimitOutcome
from proofmark.judge.verdict import Verdict
from proofmark.packages.service.gate_decisions import Decision, Standing, decide, evidence_of
from proofmark.packages.service.rolling_plan import KIND
from proofmark.plan.plan import Plan
from proofmark.plan.selection import required_metrics
from proofmark.runs.run import Run

NO_RACK = "–"


@dataclass(frozen=True)
class NodeStanding:
    """The standing of a node, with its rack (`NO_RACK` if that is not known) and the reason."""

    node: str
    rack: str
    standing: Standing
    reason: str


@dataclass(frozen=True)
class PeersSince:
    """Since when like nodes judge a figure.

    Attributes:
        figure: the case, the metric and the setting.
        nodes: the number of like nodes that were measured.
        needed: with how many of them, of 4, 8, 16, …, it got its limit; 0: it has none.
        since: when the last of these had measured, in seconds since 1970; NaN: it has no limit.
    """

    figure: str
    nodes: int
    needed: int
    since: float

    @property
    def time(self) -> str:
        """`since` as ``2026-11-26 05:00 UTC``; empty if it is not known."""
        if math.isnan(self.since):
            return ""
        return f"{datetime.fromtimestamp(self.since, UTC):%Y-%m-%d %H:%M} UTC"


@dataclass(frozen=True)
class RollingState(KindResult):
    """The state of a rolling run."""

    kind = KIND
    nodes: tuple[NodeStanding, ...]
    peers: tuple[PeersSince, ...]

    @property
    def label(self) -> Message:
        """The number of nodes with each standing."""
        counts = Counter(each.standing for each in self.nodes)
        named = {"open": counts["unjudged"]}
        named |= {word: counts[word] for word in ("accepted", "waiting", "failed")}
        return Message("rolling-nodes", **named)

    def racks(self) -> Mapping[str, Mapping[str, list[str]]]:
        """Return the nodes by rack and standing."""
        found: dict[str, dict[str, list[str]]] = {}
        for each in self.nodes:
            found.setdefault(each.rack, {}).setdefault(each.standing, []).append(each.node)
        return found

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
        peers = [{**vars(each), "since": each.time} for each in self.peers]
        return {"nodes": [vars(each) for each in self.nodes], "peers": peers}


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


def required_on_nodes(
    plan: Plan, benchmarks: Benchmarks, limits: Sequence[LimitOutcome]
) -> Sequence[Required]:
    """Return the metrics that must be judged on a node: those of the items, or of the suite.

    Args:
        limits: what each limit judged.
    """
    items = [each.item for each in limits if each.item and each.binding and each.steps]
    if of_suite := required_metrics(plan, benchmarks, items):
        return of_suite
    return [Required(case=each.case, metrics=[each.metric], where=each.where) for each in items]

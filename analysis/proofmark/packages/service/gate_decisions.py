"""The decision about each node of a gate: resume it, or keep it out of service. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from proofmark.common.message import Message
from proofmark.common.nodesets import folded
from proofmark.common.text import one_line
from proofmark.packages.service.rolling_state import Standing

Action = Literal["resume", "keep"]
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

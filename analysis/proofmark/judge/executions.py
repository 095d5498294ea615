"""What the executions of a run show beside the values of their figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from proofmark.common.message import Message
from proofmark.common.nodesets import hosts_of
from proofmark.judge.aggregate import disturbed_records
from proofmark.judge.crashes import Crash, crashes
from proofmark.judge.diagnosis.disagreeing import Disagreement, disagreements
from proofmark.judge.evidence import Evidence
from proofmark.judge.fleet.fleet import Fleet
from proofmark.judge.repeats import Added, added_executions
from proofmark.judge.rounds import RoundOverlap, round_overlaps
from proofmark.records.columns import Records
from proofmark.runs.noise_file import Shares, disturbers, mean_shares

MOST = 0.5
"""A node is named if a larger share of its executions is disturbed."""
LEAST = 3
"""The least number of disturbed executions, and of other nodes with which a node is compared."""


@dataclass(frozen=True)
class DisturbedNode:
    """A node of which most executions are disturbed.

    Attributes:
        node: its name.
        disturbed, executions: the number of its disturbed executions, and of all.
        by: what took CPU time from its ranks, the largest share first.
        peers: the median share of disturbed executions of the other nodes; None if fewer than
            `LEAST` other nodes measured.
    """

    node: str
    disturbed: int
    executions: int
    by: Shares
    peers: float | None

    @property
    def is_fault(self) -> bool:
        """Whether the other nodes do not have this disturbance."""
        return self.peers is not None and self.peers <= MOST

    @property
    def message(self) -> Message:
        """What disturbs it, without the node."""
        return Message(
            "node-disturbed",
            disturbed=self.disturbed,
            executions=self.executions,
            names=disturbers(self.by),
        )

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
        return {
            "node": self.node,
            "disturbed": self.disturbed,
            "executions": self.executions,
            "by": dict(self.by),
            "peers": self.peers,
            **self.message.as_json("reason"),
        }


def disturbed_nodes(records: Records) -> tuple[DisturbedNode, ...]:
    """Return the nodes of which most executions are disturbed, by the records of single nodes."""
    marked = set(records.execution[disturbed_records(records)].tolist())
    found = dict(_by_node(records)) if marked else {}
    executions = records.executions
    bad = {node: [executions[n] for n in of if n in marked] for node, of in found.items()}
    shares = {node: len(bad[node]) / len(of) for node, of in found.items()}
    named = []
    for node, share in shares.items():
        if share <= MOST or len(bad[node]) < LEAST:
            continue
        others = [each for other, each in shares.items() if other != node]
        peers = median(others) if len(others) >= LEAST else None
        by = mean_shares([each.disturbers for each in bad[node]])
        named.append(DisturbedNode(node, len(bad[node]), len(found[node]), by, peers))
    return tuple(named)


def _by_node(records: Records) -> Iterator[tuple[str, list[int]]]:
    """Yield the numbers of the executions on each single node."""
    pairs = np.unique(np.stack([records.node, records.execution], axis=1), axis=0)
    by_node: dict[int, list[int]] = {}
    for node, execution in pairs.tolist():
        by_node.setdefault(node, []).append(execution)
    for node, numbers in by_node.items():
        if len(hosts_of(records.nodes[node])) == 1:
            yield records.nodes[node], numbers


@dataclass(frozen=True)
class JudgedExecutions:
    """What the executions of a run show.

    Attributes:
        crashes: executions that crashed, of steps that another execution measured.
        disturbed: the nodes that something disturbs in most executions.
        added: the steps that were run again although they had a sound execution.
        rounds: whether the pairs of each round measured at the same time.
        disagreements: the cases with figures whose repeats disagree.
    """

    crashes: tuple[Crash, ...] = ()
    disturbed: tuple[DisturbedNode, ...] = ()
    added: tuple[Added, ...] = ()
    rounds: tuple[RoundOverlap, ...] = ()
    disagreements: tuple[Disagreement, ...] = ()


def judged_executions(evidence: Evidence, fleet: Fleet) -> JudgedExecutions:
    """Return what the executions of a run show.

    Imported outputs have neither disturbed nodes nor added executions: they were not planned, and
    no node reported what else it ran.
    """
    records, decided = evidence.records, evidence.decided
    own = not evidence.plan.imported
    return JudgedExecutions(
        crashes=tuple(crashes(records, decided.set_aside)),
        disturbed=disturbed_nodes(records) if own else (),
        added=tuple(added_executions(records, decided.more, decided.refused)) if own else (),
        rounds=round_overlaps(evidence.plan, records.executions),
        disagreements=disagreements(evidence.figures, fleet.of, evidence.sources),
    )

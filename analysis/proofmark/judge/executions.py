"""What the executions of a run show beside the values of their figures."""

from __future__ import annotations

from dataclasses import dataclass

from proofmark.judge.crashes import Crash, crashes
from proofmark.judge.diagnosis.disagreeing import Disagreement, disagreements
from proofmark.judge.disturbed_nodes import DisturbedNode, disturbed_nodes
from proofmark.judge.evidence import Evidence
from proofmark.judge.fleet.fleet import Fleet
from proofmark.judge.repeats import Added, added_executions
from proofmark.judge.rounds import RoundOverlap, round_overlaps


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

    Imported outputs have neither disturbed nodes nor added executions: nobody planned them, and
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

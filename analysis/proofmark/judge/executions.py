"""Findings about executions: crashes, and disturbed nodes.

A repetition of a crashed execution measures the figure. It does not show that the node is sound:
the fault may come again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from proofmark.common.grouping import gathered
from proofmark.common.message import Message
from proofmark.common.message_table import OUTPUT_MESSAGES
from proofmark.common.nodesets import hosts_of
from proofmark.judge.aggregate import counting, disturbed_records
from proofmark.judge.evidence import Evidence
from proofmark.judge.fleet.fleet import Fleet
from proofmark.judge.references.derived import ANY_NODE
from proofmark.plan.kinds import kind_of
from proofmark.records.columns import EMULATED, Records
from proofmark.runs.run import SetAside
from proofmark.runs.samples import Shares, disturbers, mean_shares
from proofmark.runs.stage_faults import StageFault

CRASHES = frozenset(
    {"killed", "exit-code", "exit-code-said", "output", *OUTPUT_MESSAGES} - {"reader-no-space"}
    | {"file-changed", "digest-missing", "digests-missing", "digests-damaged"}
)
"""The codes of the reasons of such executions. Others are about the conditions of the run."""


@dataclass(frozen=True)
class Crash:
    """The crashed executions of one step on the same nodes, of which another one was sound.

    Attributes:
        step: the folder of the step, below ``steps/``.
        set_aside: why the site sets them aside; empty if it does not. They are a fault then.
    """

    node: str
    step: str
    crashed: int
    executions: int
    reason: Message
    set_aside: str = ""

    @property
    def message(self) -> Message:
        """The fault, without the node."""
        return Message(
            "crashed-before",
            crashed=self.crashed,
            executions=self.executions,
            step=self.step,
            text=self.reason,
        )

    @property
    def excused(self) -> Message:
        """The crash with its node, and why the site sets it aside."""
        return Message("crash-excused", node=self.node, text=self.message, why=self.set_aside)

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
        return {
            "node": self.node,
            "step": self.step,
            "crashed": self.crashed,
            "executions": self.executions,
            "set_aside": self.set_aside,
            **self.reason.as_json("reason"),
        }


def crashes(records: Records, set_aside: Mapping[str, SetAside]) -> Iterator[Crash]:
    """Yield the crashes of the executions that do not count because another one is sound.

    Args:
        set_aside: what the site sets aside, by the folder of a step.
    """
    bad = [place for place, why in enumerate(records.reasons) if why.main_code in CRASHES]
    if not bad:
        return
    left_out = ~counting(records)[records.execution]
    crashed: dict[tuple[str, bool], dict[int, int]] = {}
    for record in np.flatnonzero(np.isin(records.reason, bad) & left_out).tolist():
        execution = records.executions[records.execution[record]]
        known = set_aside.get(execution.step)
        excused = known is not None and execution.attempt <= known.attempts
        crashed.setdefault((execution.step, excused), {}).setdefault(execution.attempt, record)
    different = {(each.step, each.attempt) for each in records.executions}
    executions = Counter(step for step, _ in different)
    for (step, excused), found in crashed.items():
        first = min(found.values())
        yield Crash(
            node=records.nodes[records.node[first]],
            step=step,
            crashed=len(found),
            executions=executions[step],
            reason=records.reasons[records.reason[first]],
            set_aside=set_aside[step].reason if excused else "",
        )


MAX_DISTURBED_SHARE = 0.5
"""A node is named if a larger share of its executions is disturbed."""
LEAST_DISTURBED = 3
"""The least number of disturbed executions, and of other nodes with which a node is compared."""


@dataclass(frozen=True)
class DisturbedNode:
    """A node of which most executions are disturbed.

    Attributes:
        by: what took CPU time from its ranks, the largest share first.
        peers: the median share of disturbed executions of the other nodes; None if fewer than
            `LEAST_DISTURBED` other nodes measured.
    """

    node: str
    disturbed: int
    executions: int
    by: Shares
    peers: float | None

    @property
    def is_fault(self) -> bool:
        """Whether the other nodes do not have this disturbance."""
        return self.peers is not None and self.peers <= MAX_DISTURBED_SHARE

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
        if share <= MAX_DISTURBED_SHARE or len(bad[node]) < LEAST_DISTURBED:
            continue
        others = [each for other, each in shares.items() if other != node]
        peers = median(others) if len(others) >= LEAST_DISTURBED else None
        by = mean_shares([each.disturbers for each in bad[node]])
        named.append(DisturbedNode(node, len(bad[node]), len(found[node]), by, peers=peers))
    return tuple(named)


def _by_node(records: Records) -> Iterator[tuple[str, list[int]]]:
    pairs = np.unique(np.stack([records.node, records.execution], axis=1), axis=0)
    by_node = gathered(pairs.tolist())
    for node, numbers in by_node.items():
        if len(hosts_of(records.nodes[node])) == 1:
            yield records.nodes[node], numbers


@dataclass(frozen=True)
class Added:
    """A step that was run again although it had a sound execution.

    Attributes:
        step: its folder, below ``steps/``.
        planned: the number of its executions up to the first sound one.
    """

    step: str
    planned: int
    added: int


def added_executions(records: Records) -> Iterator[Added]:
    """Yield the steps with executions after their first sound one. No job makes such executions."""
    if len({each.step for each in records.executions}) == len(records.executions):
        return  # no step was run again
    dirty = set(np.unique(records.execution[~records.valid]).tolist())
    attempts: dict[str, dict[int, bool]] = {}
    for number, each in enumerate(records.executions):
        of_step = attempts.setdefault(each.step, {})
        of_step[each.attempt] = of_step.get(each.attempt, True) and number not in dirty
    for step, sound in attempts.items():
        first = min((attempt for attempt, good in sound.items() if good), default=None)
        if added := sum(first is not None and attempt > first for attempt in sound):
            yield Added(step, len(sound) - added, added)


@dataclass(frozen=True)
class JudgedExecutions:
    """What the executions of a run show.

    Attributes:
        crashes: executions that crashed, of steps that another execution measured.
        added: the steps that were run again although they had a sound execution.
    """

    crashes: tuple[Crash, ...] = ()
    disturbed: tuple[DisturbedNode, ...] = ()
    added: tuple[Added, ...] = ()


def judged_executions(evidence: Evidence) -> JudgedExecutions:
    """Return what the executions of a run show.

    Outputs of programs that the kit did not start have neither disturbed nodes nor added
    executions: they were not planned, and no node reported what else it ran.
    """
    records = evidence.records
    own = kind_of(evidence.plan).executed
    return JudgedExecutions(
        crashes=tuple(crashes(records, evidence.set_aside)),
        disturbed=disturbed_nodes(records) if own else (),
        added=tuple(added_executions(records)) if own else (),
    )


@dataclass(frozen=True)
class RunConditions:
    """How a run was made.

    Attributes:
        any_node: whether the site states nothing about its nodes, as a site of any machine.
        executed: whether the kit started the programs. If not, no step can run.
        fixed: the steps that cannot run again, because two steps use the same files in scratch.
        sanity: whether the suite only looks for faults, so that floors and peers suffice.
        rehearsed: the number of emulated figures that are like those of their peers. They stand for
            PASS in a run that only rehearses.
        stage_faults: what failed in stages that start no job, for example a mode or scratch. Steps
            that lack a record because of it are missing in the coverage.
    """

    any_node: bool = False
    executed: bool = True
    fixed: frozenset[str] = frozenset()
    sanity: bool = False
    rehearsed: int = 0
    replaced: tuple[Message, ...] = ()
    stage_faults: tuple[StageFault, ...] = ()

    @property
    def open_stages(self) -> tuple[StageFault, ...]:
        """The faults of stages that keep the run from being accepted."""
        return tuple(each for each in self.stage_faults if each.opens)


def run_conditions(evidence: Evidence, fleet: Fleet) -> RunConditions:
    """Return how the run was made."""
    plan = evidence.plan
    suite = evidence.benchmarks.suites.get(plan.suite)
    return RunConditions(
        any_node=evidence.node == ANY_NODE,
        executed=kind_of(plan).executed,
        fixed=frozenset(step.id for step in plan.steps() if step.reads or step.kept),
        sanity=bool(suite and suite.kind == "sanity"),
        rehearsed=len(fleet.alike) if evidence.origins == {EMULATED} else 0,
        replaced=tuple(
            Message("option-replaced", option=name, found=value or "–", stated=stated or "–")
            for name, (stated, value) in evidence.replaced.items()
        ),
        stage_faults=evidence.stage_faults,
    )

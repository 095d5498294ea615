"""Whether each limit of the contract was evaluated for every planned figure that it is for."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from proofmark.cases.models import Benchmarks
from proofmark.common.message import Message, joined
from proofmark.common.nodesets import folded, hosts_of
from proofmark.judge.aggregate import Aggregates
from proofmark.judge.coverage import Coverage
from proofmark.judge.references.compare import Judgement, applies
from proofmark.plan.plan import Plan, Step
from proofmark.plan.selection import possible_steps
from proofmark.site.partition import Limit


@dataclass(frozen=True)
class LimitCheck:
    """A limit of the contract for figures of the plan.

    Attributes:
        limit: the limit.
        judged: the number of figures that were compared with it.
        not_evaluated: why it was not compared with other planned figures, with their nodes.
    """

    limit: Limit
    judged: int
    not_evaluated: tuple[Message, ...]

    @property
    def name(self) -> str:
        """Case, metric, the other conditions of the limit, and its source."""
        limit = self.limit
        where = [f"{key}={value}" for key, value in limit.where.items()]
        where += [f"mode={limit.mode}"] if limit.mode else []
        return " ".join([limit.case, limit.metric, *where, f"({limit.source})"])

    @property
    def messages(self) -> tuple[Message, ...]:
        """Each reason with the name of the limit."""
        return tuple(Message("limit-open", limit=self.name, text=why) for why in self.not_evaluated)

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
        return {
            "limit": self.name,
            "judged": self.judged,
            "not_evaluated": list(self.not_evaluated),
        }


def check_limits(
    plan: Plan,
    benchmarks: Benchmarks,
    covered: Coverage,
    figures: Aggregates,
    limits: Sequence[Limit],
    judgements: Sequence[Sequence[tuple[int, Judgement]]],
) -> tuple[LimitCheck, ...]:
    """Return the check of each limit that a planned step can have figures for.

    Args:
        plan: the plan of the run.
        benchmarks: the cases of the run.
        covered: the coverage of the plan.
        figures: the figures of the run.
        limits: the limits of the contract.
        judgements: the figures that each limit applies to, with the judgement.
    """
    to_run = list(plan.steps_to_run())
    seen = {execution.step for execution in figures.records.executions}
    checks = []
    for limit, answers in zip(limits, judgements, strict=True):
        ids = possible_steps(limit, limit.case, plan, benchmarks)
        if not ids:
            continue
        judged = sum(answer.evaluated for _, answer in answers)
        hosts: dict[Message, set[str]] = {}
        for figure, answer in answers:
            if not answer.evaluated:
                node = figures.records.nodes[figures.node[figure]]
                reason = answer.reason.without_nodes([node])
                hosts.setdefault(reason, set()).update(hosts_of(node))
        running = [step for step in to_run if step.id in ids]
        if plan.imported:
            if without := _nodes_without_row(limit, figures, running):
                hosts.setdefault(Message("rows-missing"), set()).update(without)
        else:
            for folder, nodes in _without_row(limit, figures, running, seen):
                hosts.setdefault(Message("row-missing", step=folder), set()).update(nodes)
        reasons = [
            Message("limit-open-on", text=reason, nodes=folded(nodes))
            for reason, nodes in hosts.items()
        ]
        if not running and not judged:
            left_out = (*covered.not_run, *covered.not_needed)
            why = [each.message for each in left_out if each.step in ids]
            reasons.append(joined([Message("step-missing"), *why[:1]]))
        checks.append(LimitCheck(limit, judged, tuple(reasons)))
    return tuple(checks)


def _without_row(
    limit: Limit, figures: Aggregates, steps: Sequence[Step], seen: Collection[str]
) -> Iterator[tuple[str, list[str]]]:
    """Yield the measured steps that lack a row that `limit` is for, with their nodes.

    A row that one node printed is expected of all nodes of the step.
    """
    rows = _rows(limit, figures)
    for step in steps:
        instances = step.instances()
        measured = [folder for folder in step.folders() if folder in seen]
        expected = set().union(*(rows.get(folder, set()) for folder in measured))
        lacking = [
            folder
            for folder in measured
            if not rows.get(folder) or not expected <= rows.get(folder, set())
        ]
        if lacking:
            names = [folder.partition("/")[2] for folder in lacking]
            yield step.id, [host for name in names for host in instances.get(name, step.nodes)]


def _nodes_without_row(limit: Limit, figures: Aggregates, steps: Sequence[Step]) -> set[str]:
    """Return the nodes of imported outputs that have no row for `limit` in any of `steps`.

    A folder of others has outputs with other parameters too. One row of a node is enough.
    """
    rows = _rows(limit, figures)
    having: set[str] = set()
    every: set[str] = set()
    for step in steps:
        instances = step.instances() or {"": step.nodes}
        for name, nodes in instances.items():
            every.update(nodes)
            if (f"{step.id}/{name}" if name else step.id) in rows:
                having.update(nodes)
    return every - having


def _rows(limit: Limit, figures: Aggregates) -> dict[str, set[int]]:
    """Return the numbers of the measurands that `limit` is for, by the step that printed them."""
    records = figures.records
    chosen = [
        number
        for number in range(len(records.measurands))
        if applies(limit, records.of_measurand(number))
    ]
    places = np.flatnonzero(np.isin(records.measurand, chosen))
    rows: dict[str, set[int]] = {}
    for execution, measurand in zip(
        records.execution[places].tolist(), records.measurand[places].tolist(), strict=True
    ):
        rows.setdefault(records.executions[execution].step, set()).add(measurand)
    return rows

"""Prints plans: their steps as a table, and all of them as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from proofmark.cli.output import print_json, print_table
from proofmark.cli.plan_summary import plan_summary
from proofmark.common.call_settings import setting
from proofmark.common.nodesets import folded
from proofmark.common.progress_lines import say
from proofmark.common.text import duration
from proofmark.judge.foreseen import ACCEPT, Unjudged, refusing
from proofmark.plan.plan import Plan
from proofmark.plan.totals import JobTime, job_times
from proofmark.runs.cost_history import measured_cost
from proofmark.site.execution import Queue


class ShownPlan(NamedTuple):
    """A plan, the queue of its partition, further lines, and what will stay unjudged."""

    plan: Plan
    queue: Queue
    notes: Sequence[str]
    unjudged: Sequence[Unjudged]


def print_as_json(plans: Sequence[ShownPlan], runs: Path) -> None:
    """Print the plans, one for each partition, with their notes.

    stderr has the notes too, because a playbook prints stderr.

    Args:
        plans: the plans.
        runs: the runs from which durations are known.
    """
    texts = []
    for each in plans:
        cost = measured_cost(each.plan, runs)
        history = {key: value for key, value in asdict(cost).items() if key != "seconds"}
        texts.append(
            {
                **each.plan.model_dump(mode="json"),
                "summary": plan_summary(each.plan),
                "history": history,
                "jobs": [_job(job) for job in job_times(each.plan, each.queue, cost.seconds)],
                "unjudged": [one.as_json() for one in each.unjudged],
                "notes": each.notes,
            }
        )
        for line in (*each.notes, *unjudged_lines(each.unjudged)):
            say(line)
    print_json(texts[0] if len(texts) == 1 else {"partitions": texts})


def unjudged_lines(unjudged: Sequence[Unjudged]) -> Iterator[str]:
    """Yield a line for each figure that will stay unjudged, and whether a run is refused."""
    for each in unjudged:
        yield f"unjudged: {each.message}"
    if refusing(unjudged):
        yield f"refused without {setting(ACCEPT)}"


def _job(time: JobTime) -> dict[str, Any]:
    """Return a job for JSON: its mode, id, numbers of nodes and steps, and its times in seconds."""
    counts = {"nodes": len(time.job.nodes), "steps": len(time.job.steps)}
    times = {"expected_s": round(time.expected_s, 1), "requested_s": time.requested_s}
    return {"mode": time.mode, "job": time.job.id, **counts, **times}


def print_steps(made: Plan) -> None:
    """Print the steps of a plan as a table."""
    headers = ("mode", "job", "nodes", "step", "ranks", "threads", "placement", "duration", "limit")
    rows = []
    for group in made.groups:
        for job in group.jobs:
            nodes = folded(job.nodes)
            for step in job.steps:
                ranks = str(step.ranks) if step.cpus else "–"
                rows.append(
                    (
                        *(group.mode, job.id, nodes, step.id, ranks),
                        *(str(step.threads), step.placement or "–", duration(step.seconds)),
                        duration(step.timeout),
                    )
                )
    print_table(headers, rows)

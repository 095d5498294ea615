"""Prints plans and their cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from proofmark.cli.output import print_json, print_line, print_table
from proofmark.cli.plan_summary import cost_line, plan_summary
from proofmark.common.nodesets import folded
from proofmark.common.progress_lines import say
from proofmark.common.text import duration
from proofmark.judge.foreseen import ACCEPT, Unjudged, refusals
from proofmark.plan.plan import Plan
from proofmark.plan.rolling import steps_left
from proofmark.plan.time_limit import JobTime, job_times
from proofmark.runs.cost_history import measured_cost
from proofmark.site.execution import Queue


class ShownPlan(NamedTuple):
    """A plan, the queue of its partition, further lines, and what will stay unjudged."""

    plan: Plan
    queue: Queue
    notes: Sequence[str]
    unjudged: Sequence[Unjudged]


def print_plans(plans: Sequence[ShownPlan], runs: Path, *, as_json: bool) -> None:
    """Print the plans, one per partition, and their notes. Each plan is one run.

    With `as_json`, stderr has the notes too, because a playbook prints stderr.

    Args:
        plans: the plans.
        runs: the runs from which durations are known.
        as_json: whether JSON is printed.
    """
    earlier = [measured_cost(each.plan, runs) for each in plans]
    times = [
        job_times(each.plan, each.queue, cost.seconds)
        for each, cost in zip(plans, earlier, strict=True)
    ]
    if as_json:
        texts = [
            {
                **each.plan.model_dump(mode="json"),
                "summary": plan_summary(each.plan),
                "history": {key: each for key, each in asdict(cost).items() if key != "seconds"},
                "jobs": [_job(job) for job in jobs],
                "unjudged": [one.as_json() for one in each.unjudged],
                "notes": each.notes,
            }
            for each, cost, jobs in zip(plans, earlier, times, strict=True)
        ]
        for each in plans:
            lines = (*steps_left(each.plan), *each.notes, *unjudged_lines(each.unjudged))
            for line in lines:
                say(line)
        print_json(texts[0] if len(texts) == 1 else {"partitions": texts})
    else:
        for each, cost, jobs in zip(plans, earlier, times, strict=True):
            print_plan(each.plan, jobs, [*each.notes, *unjudged_lines(each.unjudged)])
            if cost.steps:
                print(
                    f"{cost.steps} of {each.plan.totals.steps} steps have durations from "
                    f"{cost.runs} earlier runs: with their medians {cost.node_hours:.2f} "
                    f"node-hours, about {duration(cost.wall_s)}"
                )
        if len(plans) > 1:
            totals = [each.plan.totals for each in plans]
            hours = sum(each.node_hours for each in totals)
            print(
                f"\n{len(plans)} partitions: {sum(each.jobs for each in totals)} jobs, "
                f"{sum(each.steps for each in totals)} steps, {hours:.2f} node-hours; "
                "one run per partition"
            )


def unjudged_lines(unjudged: Sequence[Unjudged]) -> Iterator[str]:
    """Yield a line for each figure that will stay unjudged, and whether a run is refused."""
    for each in unjudged:
        yield f"unjudged: {each.message}"
    if refusals(unjudged):
        yield f"refused without -e {ACCEPT}=true"


def _job(time: JobTime) -> dict[str, Any]:
    """Return a job for JSON: its mode, id, numbers of nodes and steps, and its times in seconds."""
    counts = {"nodes": len(time.job.nodes), "steps": len(time.job.steps)}
    times = {"expected_s": round(time.expected_s, 1), "requested_s": time.requested_s}
    return {"mode": time.mode, "job": time.job.id, **counts, **times}


def print_plan(made: Plan, jobs: Sequence[JobTime], notes: Sequence[str]) -> None:
    """Print the steps of a plan and its jobs, what it leaves out and assumes, and its cost."""
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
    print()
    print_table(
        ("mode", "job", "nodes", "steps", "expected", "requested wall time"),
        [
            (
                *(each.mode, each.job.id, f"{len(each.job.nodes)}", f"{len(each.job.steps)}"),
                *(duration(each.expected_s), duration(each.requested_s)),
            )
            for each in jobs
        ],
    )
    for why in made.left_out:
        print(f"left out: {why}")
    for case, intended in made.fewer_nodes.items():
        print(f"degraded: {case}: fewer than the {intended:,} nodes of the whole partition")
    for fact, why in made.assumed.items():
        print(f"assumed: {fact}: {why}")
    for line in notes:
        print_line(line)
    for group in made.groups:
        if group.mode != made.current_mode:
            steps = sum(len(job.steps) for job in group.jobs)
            print(f"{steps} steps need mode {group.mode}: a confirmed reboot, or NOT RUN")
    print(f"\n{cost_line(made)}; digest: {made.digest[:12]}")

"""Prints plans and their cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path

from proofmark.cli.output import print_json, print_line, print_table
from proofmark.cli.plan_summary import cost_line, plan_summary
from proofmark.common.nodesets import folded
from proofmark.common.progress_lines import say
from proofmark.common.text import duration
from proofmark.plan.plan import Plan
from proofmark.plan.rolling import steps_left
from proofmark.runs.cost_history import measured_cost


def print_plans(
    plans: Sequence[Plan], notes: Sequence[Sequence[str]], runs: Path, *, as_json: bool
) -> None:
    """Print the plans, one per partition, and their notes. Each plan is one run.

    With `as_json`, stderr has the notes too, because a playbook prints stderr.
    """
    earlier = [measured_cost(made, runs) for made in plans]
    if as_json:
        texts = [
            {
                **made.model_dump(mode="json"),
                "summary": plan_summary(made),
                "history": asdict(cost),
                "notes": lines,
            }
            for made, cost, lines in zip(plans, earlier, notes, strict=True)
        ]
        for line in chain.from_iterable([*map(steps_left, plans), *notes]):
            say(line)
        print_json(texts[0] if len(texts) == 1 else {"partitions": texts})
    else:
        for made, cost, lines in zip(plans, earlier, notes, strict=True):
            print_plan(made, lines)
            if cost.steps:
                print(
                    f"{cost.steps} of {made.totals.steps} steps have durations from "
                    f"{cost.runs} earlier runs: with their medians {cost.node_hours:.2f} "
                    f"node-hours, about {duration(cost.wall_s)}"
                )
        if len(plans) > 1:
            totals = [made.totals for made in plans]
            hours = sum(each.node_hours for each in totals)
            print(
                f"\n{len(plans)} partitions: {sum(each.jobs for each in totals)} jobs, "
                f"{sum(each.steps for each in totals)} steps, {hours:.2f} node-hours; "
                "one run per partition"
            )


def print_plan(made: Plan, notes: Sequence[str]) -> None:
    """Print the steps of a plan, what it leaves out and assumes, notes, and its cost."""
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

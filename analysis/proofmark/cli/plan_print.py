"""Prints plans: their steps as a table, and all of them as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path

from proofmark.cli.output import print_json, print_table
from proofmark.cli.plan_summary import plan_summary
from proofmark.common.nodesets import folded
from proofmark.common.progress_lines import say
from proofmark.common.text import duration
from proofmark.plan.plan import Plan
from proofmark.runs.cost_history import measured_cost


def print_as_json(plans: Sequence[Plan], notes: Sequence[Sequence[str]], runs: Path) -> None:
    """Print the plans, one for each partition, with their notes.

    stderr has the notes too, because a playbook prints stderr.
    """
    texts = [
        {
            **made.model_dump(mode="json"),
            "summary": plan_summary(made),
            "history": asdict(measured_cost(made, runs)),
            "notes": lines,
        }
        for made, lines in zip(plans, notes, strict=True)
    ]
    for line in chain.from_iterable(notes):
        say(line)
    print_json(texts[0] if len(texts) == 1 else {"partitions": texts})


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

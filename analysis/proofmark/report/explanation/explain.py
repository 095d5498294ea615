"""Makes the explanation of a step."""

from __future__ import annotations

from proofmark.common.errors import bad_input, nearest
from proofmark.plan.step_names import step_named
from proofmark.report.explanation.context import context_of
from proofmark.report.explanation.judging import condition_rows, metric_rows, reference_rows
from proofmark.report.explanation.planned import (
    command_rows,
    input_rows,
    need_rows,
    where_rows,
)
from proofmark.report.explanation.results import again_rows, result_rows
from proofmark.report.explanation.rows import Explanation, Section
from proofmark.report.explanation.sources import fact_rows
from proofmark.runs.run import Run


def explain(run: Run, name: str) -> Explanation:
    """Return what is known of the step `name`: from its plan, and from its results if it has any.

    Args:
        run: the run, finished or not.
        name: the id, the number or the beginning of the id of a step, or ``<step>/<node>``.

    Raises:
        BadInput: there is no such step or node, or an input of the run is damaged.
    """
    word, _, instance = name.partition("/")
    step = step_named(word, run.plan.steps(), run.id)
    instances = step.instances()
    if instance and instance not in instances:
        found = f"{name!r}{nearest(instance, instances)}"
        raise bad_input("STEP", "", found, "a node that measures this step alone, or a pair")
    context = context_of(run, step, instance)
    sections = (
        Section("command", "What it runs", command_rows(context)),
        Section("where", "Where", where_rows(context)),
        Section("inputs", "Inputs", input_rows(context)),
        Section("facts", "Facts in the expressions", fact_rows(context)),
        Section("needs", "What it needs", need_rows(context)),
        Section("outputs", "Metrics that it can give", metric_rows(context)),
        Section("references", "What judges the metrics", reference_rows(context)),
        Section("conditions", "INVALID unless", condition_rows(context)),
        Section("results", "Result so far", result_rows(context)),
        Section("again", "How to run it again", again_rows(context)),
    )
    return Explanation(run.id, step.id, instance, sections)

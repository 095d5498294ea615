"""The figures of finished steps, for a search that decides which steps run next."""

from __future__ import annotations

from collections.abc import Collection
from statistics import median

from proofmark.common.files import read_json
from proofmark.plan.search import Figures, Search
from proofmark.records.columns import Records
from proofmark.records.read import read_run
from proofmark.records.run_facts import RunParts
from proofmark.runs.nodes import probed_nodes
from proofmark.runs.run import Run, benchmarks_of, site_of
from proofmark.software.software import Software


def figures_of(run: Run, search: Search, steps: Collection[str]) -> Figures:
    """Return the figure of each of `steps`: of the newest execution without INVALID values.

    A job that still runs has no probe of its end yet.

    Args:
        run: the run.
        search: the search; its metric is read.
        steps: the ids of finished steps.

    Raises:
        BadInput: a file of the run is damaged.
    """
    if not steps:
        return {}
    software = read_json(run.files.software, Software)
    nodes = {host: node.while_running() for host, node in probed_nodes(run).items()}
    records = read_run(RunParts(run, benchmarks_of(run), site_of(run), software, nodes), steps)
    return {step: figure(records, step, search.rule.metric) for step in steps}


def figure(records: Records, step: str, metric: str) -> float | None:
    """Return the median of `metric` in the newest valid execution of `step`; None without one."""
    by_attempt: dict[int, list[float | None]] = {}
    for record in records:
        if record.step == step and record.metric == metric:
            value = record.value if record.valid else None
            by_attempt.setdefault(record.attempt, []).append(value)
    for _, found in sorted(by_attempt.items(), reverse=True):
        valid = [value for value in found if value is not None]
        if valid and len(valid) == len(found):
            return median(valid)
    return None

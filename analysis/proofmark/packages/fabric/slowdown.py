"""How much slower a figure is beside a load: the distribution over pairs and repeats.

A baseline and a loaded step measure the same on the same nodes (`proofmark.plan.suite_steps`). A
ratio is of one pair in one repeat. It is above 1 if the load makes the figure worse.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from proofmark.cases.suite import Benchmarks
from proofmark.cases.vocabulary import LOAD, Scalar
from proofmark.judge.aggregate import Aggregates
from proofmark.plan.plan import Plan
from proofmark.plan.step import Step
from proofmark.plan.suite_steps import NO_LOAD
from proofmark.records.columns import Record

PAIR = "pair"
"""The parameter that numbers the copies of a program: each copy is one pair of nodes."""


@dataclass(frozen=True)
class Slowdown:
    """The slowdown of one metric beside one load.

    Attributes:
        record: a loaded record of it, without the number of its pair.
        better: whether a higher or a lower value is better.
        ratios: one for each pair and repeat, ascending.
        pairs: the number of pairs.
        worst: the nodes of the pair with the greatest ratio.
    """

    record: Record
    better: Literal["higher", "lower"]
    ratios: tuple[float, ...]
    pairs: int
    worst: tuple[str, ...]

    def percentile(self, percent: float) -> float:
        """Return a percentile of the ratios, between neighbours linearly."""
        return float(np.percentile(self.ratios, percent))

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
        record = self.record
        return {
            "case": record.case,
            "benchmark": record.benchmark,
            "metric": record.metric,
            "mode": record.mode,
            "parameters": dict(record.parameters),
            "pairs": self.pairs,
            "samples": len(self.ratios),
            "median": self.percentile(50),
            "p90": self.percentile(90),
            "p99": self.percentile(99),
            "max": self.ratios[-1],
            "worst": list(self.worst),
        }


def slowdowns(figures: Aggregates, benchmarks: Benchmarks, plan: Plan) -> tuple[Slowdown, ...]:
    """Return the slowdown of each metric that was measured with and without a load.

    Args:
        figures: of a run; only valid ones count.
        benchmarks: the cases; their metrics state whether higher or lower is better.
        plan: the steps of the run, for the nodes of a pair.
    """
    loaded, baselines = _sides(figures, benchmarks)
    steps = {step.id: step for step in plan.steps()}
    grouped: dict[tuple[str, ...], list[tuple[float, int]]] = {}
    for figure, key in loaded.items():
        if (baseline := baselines.get((*key, int(figures.node[figure])))) is None:
            continue
        record = figures.record(figure)
        parameters = {key: each for key, each in record.parameters.items() if key != PAIR}
        group = (*key[:-1], json.dumps(parameters, sort_keys=True))
        better = benchmarks.cases[record.case].metrics[record.metric].better
        ratios = _ratios(figures.repeats(figure), figures.repeats(baseline), better)
        grouped.setdefault(group, []).extend((ratio, figure) for ratio in ratios)
    made = (
        _slowdown(figures, benchmarks, steps, members) for members in grouped.values() if members
    )
    return tuple(made)


def _sides(
    figures: Aggregates, benchmarks: Benchmarks
) -> tuple[dict[int, tuple[str, ...]], dict[tuple[str | int, ...], int]]:
    """Return the loaded figures with their key, and the baselines by key and node."""
    loaded: dict[int, tuple[str, ...]] = {}
    baselines: dict[tuple[str | int, ...], int] = {}
    for figure, key, load in _with_load(figures, benchmarks):
        if load == NO_LOAD:
            baselines[(*key, int(figures.node[figure]))] = figure
        else:
            loaded[figure] = key
    return loaded, baselines


def _with_load(
    figures: Aggregates, benchmarks: Benchmarks
) -> Iterator[tuple[int, tuple[str, ...], Scalar]]:
    """Yield the number, the key and the load of each valid figure that has the parameter `LOAD`."""
    known: dict[int, tuple[tuple[str, ...], Scalar]] = {}
    for number, each in enumerate(figures.records.measurands):
        parameters: Mapping[str, Scalar] = json.loads(each.parameters)
        case = benchmarks.cases.get(each.case)
        metric = case.metrics.get(each.metric) if case else None
        if LOAD not in parameters or metric is None or metric.same_digits:
            continue
        rest = {key: value for key, value in parameters.items() if key != LOAD}
        key = (each.case, each.benchmark, each.metric, each.mode, each.placement)
        known[number] = (*key, json.dumps(rest, sort_keys=True)), parameters[LOAD]
    for figure in np.flatnonzero(figures.valid).tolist():
        if found := known.get(int(figures.measurand[figure])):
            yield figure, *found


def _ratios(
    loaded: Mapping[int, float], baseline: Mapping[int, float], better: str
) -> Iterator[float]:
    """Yield the slowdown of each repeat that both have."""
    for repeat in sorted(loaded.keys() & baseline.keys()):
        worse, sound = loaded[repeat], baseline[repeat]
        if better == "higher":
            worse, sound = sound, worse
        if sound > 0 and worse > 0:
            yield worse / sound


def _slowdown(
    figures: Aggregates,
    benchmarks: Benchmarks,
    steps: Mapping[str, Step],
    members: list[tuple[float, int]],
) -> Slowdown:
    ratio_and_figure = sorted(members)
    worst = figures.record(ratio_and_figure[-1][1])
    metric = benchmarks.cases[worst.case].metrics[worst.metric]
    return Slowdown(
        record=worst,
        better=metric.better,
        ratios=tuple(ratio for ratio, _ in ratio_and_figure),
        pairs=len({figure for _, figure in members}),
        worst=_nodes(steps.get(worst.step), worst),
    )


def _nodes(step: Step | None, record: Record) -> tuple[str, ...]:
    """Return the nodes of the pair of `record`: of 2n ranks copy i has i and i + n."""
    if step is None:
        return (record.node,)
    pair = record.parameters.get(PAIR, 1)
    ranks = step.cpus[pair - 1 :: step.copies] if isinstance(pair, int) else []
    return tuple(dict.fromkeys(step.nodes[rank.node] for rank in ranks)) or (record.node,)

"""The figures of a real run, and the error of the model."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from math import exp, log
from pathlib import Path
from statistics import median
from typing import Any

from proofmark.common.errors import bad_input
from proofmark.common.files import exists, read_json
from proofmark.common.nodesets import unfold
from proofmark.judge.judging import judge_run
from proofmark.judge.verdict import Result
from proofmark.packages.twin.twin_files import (
    Distance,
    ErrorRow,
    MeasuredFigures,
    ModelError,
    Point,
    TwinFacts,
    TwinFigure,
    TwinFiles,
)
from proofmark.plan.plan import Step
from proofmark.plan.step import StepInstance
from proofmark.runs.attempts import has_result
from proofmark.runs.evidence import open_newest
from proofmark.runs.run import Run, site_of
from proofmark.site.inventory import Site
from proofmark.site.node.topology import Core, Topology
from proofmark.site.partition import PREDICTED

PAIR = 2
"""The ranks of a message."""


def model_error_of(run: Run, results: Iterable[Result]) -> ModelError | None:
    """Return the error of the model of a twin with these results; None without a real run.

    Raises:
        BadInput: an input of the run is damaged.
    """
    if not exists(TwinFiles(run.files.inputs).measured):
        return None
    measured = read_json(TwinFiles(run.files.inputs).measured, MeasuredFigures)
    fit = read_json(TwinFiles(run.files.inputs).facts, TwinFacts).fit
    return model_error(measured, figures_of(results), fit.points if fit else ())


def measured_by(folder: Path, site: Site, topology: Topology) -> MeasuredFigures:
    """Return the figures of the finished real run in `folder`.

    Args:
        site: the partition that a twin simulates.
        topology: of each of its nodes.

    Raises:
        BadInput: `folder` is not a run, or a run of another partition, a simulated one, or an
            unfinished one.
    """
    run = open_newest(folder)
    of_run = site_of(run)
    wanted = f"{site.partition_name} of the site {site.name}"
    if (of_run.name, of_run.partition_name) != (site.name, site.partition_name):
        found = f"{of_run.partition_name} of the site {of_run.name}"
        raise bad_input(run.files.site, "partition", found, f"a run of {wanted}")
    if of_run.partition.origin == PREDICTED:
        raise bad_input(run.files.site, "origin", PREDICTED, "a run on real nodes")
    steps = list(run.plan.steps_to_run())
    done = sum(has_result(run.files.step(step.id)) for step in steps)
    if done < len(steps) and run.executed:
        found = f"{done} of {len(steps)} steps have a result"
        raise bad_input(run.files.plan, "steps", found, "a finished run")
    places = {step.id: step for step in run.plan.steps()}
    figures = figures_of(judge_run(run).results, places, of_run, topology)
    return MeasuredFigures(run=run.id, figures=tuple(figures))


def figures_of(
    results: Iterable[Result],
    steps: Mapping[str, Step] | None = None,
    site: Site | None = None,
    topology: Topology | None = None,
) -> list[TwinFigure]:
    """Return the figures of valid results. A figure is the median of all nodes.

    Figures that are not positive are left out, because they have no ratio: IMB prints a bandwidth
    of 0 for messages of 0 bytes.

    Args:
        steps: its steps by id; None: the distances of figures are not needed.
        topology: of each node.
    """
    found: dict[object, tuple[TwinFigure, list[float]]] = {}
    for result in results:
        record, value = result.record, result.record.value
        if result.verdict == "INVALID" or value is None or value <= 0:
            continue
        distance: Distance = ""
        levels = 0
        step = (steps or {}).get(StepInstance.parse(record.step).step)
        if step is not None and topology is not None and site is not None:
            distance = _distance(step, topology)
            levels = _levels(site, record.node) if distance == "node" else 0
        names = ("case", "benchmark", "metric", "unit", "mode", "placement", "value")
        about: dict[str, Any] = {name: getattr(record, name) for name in names}
        about["parameters"] = dict(record.parameters)
        figure = TwinFigure(**about, distance=distance, levels=levels)
        found.setdefault(figure.key, (figure, []))[1].append(value)
    return [figure.model_copy(update={"value": median(of)}) for figure, of in found.values()]


def _distance(step: Step, topology: Topology) -> Distance:
    """Return the distance of the first two ranks of `step`, which are one pair or one of many."""
    if len(step.cpus) < PAIR:
        return ""
    one, other = step.cpus[0], step.cpus[len(step.cpus) // 2]
    if one.node != other.node:
        return "node"
    if len(step.cpus) != PAIR:
        return ""
    cores: dict[int, Core] = {}
    for core in topology.cores:
        cores |= {pu: core for pu in core.pus}
    first, second = (cores.get(rank.cpus[0]) for rank in (one, other))
    if first is None or second is None or first.index == second.index:
        return ""
    if first.socket == second.socket:
        return "socket"
    hops = topology.socket_hops.get((first.socket, second.socket), 1)
    return "other-socket" if hops == 1 and first.book == second.book else ""


def _levels(site: Site, nodes: str) -> int:
    """Return the number of fabric levels at which two nodes have different switches."""
    names = list(unfold([nodes]))
    if len(names) != PAIR or not set(names) <= set(site.hosts):
        return 0
    one, other = map(site.switches, names)
    return sum(a != b for a, b in zip(one, other, strict=True))


def model_error(
    measured: MeasuredFigures, predicted: Iterable[TwinFigure], fitted: Collection[Point] = ()
) -> ModelError:
    """Return the error of the model that predicted figures.

    Figures of the same case, parameters, metric and unit are compared.

    Args:
        measured: the figures of a real run.
        fitted: the points that the model was fitted to. No figure of them is compared.
    """
    known = {figure.key: figure.value for figure in measured.figures}
    without = set(fitted)
    ratios: dict[tuple[str, str], list[float]] = {}
    left_out = 0
    for figure in predicted:
        value = known.get(figure.key)
        if value is None:
            continue
        if figure.point in without:
            left_out += 1
        else:
            ratios.setdefault((figure.case, figure.metric), []).append(figure.value / value)
    rows = tuple(
        ErrorRow(
            case=case,
            metric=metric,
            figures=len(found),
            median=median(found),
            smallest=min(found),
            largest=max(found),
        )
        for (case, metric), found in sorted(ratios.items())
    )
    factors = []
    for found in ratios.values():
        factors += [exp(abs(log(ratio))) for ratio in found]
    typical = median(factors) if factors else None
    return ModelError(run=measured.run, rows=rows, typical=typical, fitted=left_out)

"""What a run must have judged, and whether that was judged on every class of nodes.

Items of the contract that the run measures replace the list of the suite: what the parties agreed
decides, and nothing else has to be judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from proofmark.cases.suite import Benchmarks, Required
from proofmark.cases.telemetry import TELEMETRY
from proofmark.cases.vocabulary import PART_AXES, RESOLVED_AXES, SENSOR
from proofmark.common.message import Message
from proofmark.judge.aggregate import Aggregates
from proofmark.judge.fleet.like_figures import Kinds
from proofmark.judge.headline import FLOOR
from proofmark.judge.limit_outcomes import LimitOutcome
from proofmark.judge.references.judgement import traits
from proofmark.judge.results import WORDS, Results
from proofmark.plan.plan import Plan
from proofmark.plan.selection import required_metrics
from proofmark.records.columns import VIRTUAL

NOT_MEASURED = Message("no-row")


@dataclass(frozen=True)
class NodeClass:
    """Nodes, pairs or sets of nodes of one kind of hardware in one mode.

    Attributes:
        hardware: the processor, sockets and cores; empty if they are not known.
        nodes: the number of nodes that measured together.
        part: the memory, the distance and the file system that were measured, if they were chosen.
    """

    hardware: str
    nodes: int
    mode: str
    part: tuple[str, ...]

    def __str__(self) -> str:
        several = f"{self.nodes} nodes of " if self.nodes > 1 else ""
        mode = () if self.mode == "current" else (f"mode {self.mode}",)
        return "; ".join([f"{several}{self.hardware or 'unknown hardware'}", *mode, *self.part])


@dataclass
class _Found:
    """The figures of one metric on one class of nodes."""

    figures: list[int] = field(default_factory=list)
    judged: bool = False


def required_on_nodes(
    plan: Plan, benchmarks: Benchmarks, limits: Sequence[LimitOutcome]
) -> Sequence[Required]:
    """Return the metrics that must be judged on a node: those of the items, or of the suite.

    Args:
        limits: what each limit judged.
    """
    items = [each.item for each in limits if each.item and each.binding and each.steps]
    if of_suite := required_metrics(plan, benchmarks, items):
        return of_suite
    return [Required(case=each.case, metrics=[each.metric], where=each.where) for each in items]


def unjudged(
    required: Sequence[Required],
    figures: Aggregates,
    results: Results,
    kinds: Kinds,
    sanity: bool = False,
) -> Iterator[Message]:
    """Yield each required metric that has neither PASS nor FAIL on a class of nodes, and why.

    A class is one on which the case was measured. An emulated figure only has to be valid, because
    its speed is not that of a real machine. With `sanity` it has to be compared with a floor.

    Args:
        required: the required metrics of the suite.
        sanity: whether the suite only looks for faults.
    """
    for each in required:
        for metric in each.metrics:
            for of, found in _classes(each, metric, figures, results, kinds).items():
                floor = sanity and any(_with_floor(each, results) for each in found.figures)
                if not (found.judged or floor):
                    what = {"case": each.case, "metric": metric, "hardware": f"{of}"}
                    yield Message("required-open", text=_reason(found.figures, results), **what)


def _with_floor(figure: int, results: Results) -> bool:
    answers = results.answers.get(figure, ())
    return any(answer.evaluated and answer.kind == FLOOR for answer in answers)


def _classes(
    required: Required, metric: str, figures: Aggregates, results: Results, kinds: Kinds
) -> dict[NodeClass, _Found]:
    records = figures.records
    kind, hardware = kinds.numbers(records.nodes)
    passed, failed, invalid = (WORDS.index(word) for word in ("PASS", "FAIL", "INVALID"))
    classes: dict[NodeClass, _Found] = {}
    for number, measurand in enumerate(records.measurands):
        if measurand.case != required.case:
            continue
        known = traits(records.of_measurand(number))
        if (SENSOR in known) != (metric in TELEMETRY):
            continue  # a job of several nodes has the sensors of each of them
        if not known.keys().isdisjoint(PART_AXES):
            continue  # a part of a node is compared with its other parts
        if any(known.get(key, value) != value for key, value in required.where.items()):
            continue
        part = tuple(f"{axis} {known[axis]}" for axis in RESOLVED_AXES if axis in known)
        wanted = measurand.metric == metric and required.where.keys() <= known.keys()
        of_measurand = np.flatnonzero(figures.measurand == number)
        of_kind = kind[figures.node[of_measurand]]
        for place in np.unique(of_kind).tolist():
            members = of_measurand[of_kind == place]
            name, count = hardware[place]
            of = NodeClass(name, count, measurand.mode, part)
            found = classes.setdefault(of, _Found())
            if not wanted:
                continue
            found.figures += members.tolist()
            verdicts = results.verdict[members]
            if measurand.origin in VIRTUAL:
                found.judged |= bool((verdicts != invalid).any())
            found.judged |= bool(np.isin(verdicts, (passed, failed)).any())
    return classes


def _reason(figures: Sequence[int], results: Results) -> Message:
    """Return the reason of the first figure with a reference, else of the first figure."""
    if not figures:
        return NOT_MEASURED
    with_reference = (figure for figure in figures if results.answers.get(figure))
    return results[next(with_reference, figures[0])].reason

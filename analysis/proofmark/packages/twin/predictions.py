"""The predictions of a twin beside the figures of a measured run: they judge nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from statistics import median
from typing import Any

import numpy as np

from proofmark.common.files import exists, read_json
from proofmark.common.message import localized
from proofmark.common.nodesets import hosts_of
from proofmark.common.translation import _
from proofmark.judge.additions import AddedJudge, Finding
from proofmark.judge.aggregate import Aggregates
from proofmark.judge.evidence import Evidence
from proofmark.judge.fleet.fleet import Fleet
from proofmark.judge.fleet.populations import Distance
from proofmark.judge.verdict import Result, Verdict
from proofmark.packages.twin.twin_files import Assumption, ErrorRow, Predictions, TwinFiles
from proofmark.records.columns import VIRTUAL, Record
from proofmark.report.additions import AddedSection, RunAddition
from proofmark.report.page import Block, Column, Fold, Section, Table, facts, numeric, table, titled
from proofmark.report.sections.figure_tables import median_text, name, settings
from proofmark.report.words import count, number

NODES = "nodes"
"""The parameter with the nodes of a step. The nodes of the figure itself are compared instead."""
Key = tuple[str, ...]
Nodes = tuple[int, str]
"""The number of nodes of a figure, and the distance of a pair."""


@dataclass(frozen=True)
class Prediction:
    """The prediction for one figure, in the unit of the figure.

    Attributes:
        ratio: measured ÷ `value`; None if `value` is 0.
        low, high: the range of the figure by the error of the model; None if that is not known.
    """

    value: float
    ratio: float | None
    low: float | None
    high: float | None


class PredictionsJudge(AddedJudge):
    """Finds the predictions for the figures of a run."""

    def judge(self, evidence: Evidence, fleet: Fleet) -> Finding | None:
        """Return the predictions that the run was started with."""
        run = evidence.read_from
        path = TwinFiles(run.files.inputs).expected if run else None
        if path is None or not exists(path):
            return None
        expected = read_json(path, Predictions)
        return FigurePredictions(expected, evidence.figures, evidence.network.distance)


@dataclass(frozen=True, eq=False)
class FigurePredictions(Finding):
    """The predictions for the valid figures of a run.

    A figure and its prediction have equal case, benchmark, metric, unit, mode, placement and
    parameters, and equally many nodes; pairs of nodes also have the same distance. The prediction
    is that of the same nodes, or the median of those of other nodes.

    Attributes:
        expected: all predictions of the run of the twin.
        distance: of two nodes; None if it is not known.
    """

    expected: Predictions
    figures: Aggregates
    distance: Distance | None = None

    def of(self, record: Record) -> Prediction | None:
        """Return the prediction for a figure; None if there is none."""
        if not record.valid or record.value is None or record.origin in VIRTUAL:
            return None
        like = self._known.get(_key(record, record.parameters), {})
        of_nodes = like.get(self._nodes(record.node), {}) if like else {}
        if not of_nodes:
            return None
        value = of_nodes.get(record.node, median(of_nodes.values()))
        error = self._errors.get((record.case, record.metric))
        low, high = error.range_of(value) if error else (None, None)
        return Prediction(value, record.value / value if value else None, low, high)

    @cached_property
    def by_figure(self) -> Mapping[int, Prediction]:
        """The prediction of each figure that has one, by figure."""
        valid = np.flatnonzero(self.figures.valid).tolist()
        found = ((figure, self.of(self.figures.record(figure))) for figure in valid)
        return {figure: each for figure, each in found if each}

    def of_results(self) -> Mapping[int, Mapping[str, Any]]:
        """Return the key ``expected`` of results."""
        return {figure: {"expected": asdict(each)} for figure, each in self.by_figure.items()}

    def as_json(self) -> Mapping[str, Any]:
        """Return the key ``expected``: the source of the predictions, and their number."""
        expected = self.expected
        about = {
            "run": expected.run,
            "selector": expected.selector,
            "figures": len(self.by_figure),
            "assumptions": [each.as_json() for each in expected.assumptions],
            "errors": [each.model_dump() for each in expected.errors],
        }
        return {"expected": about}

    @cached_property
    def _known(self) -> Mapping[Key, Mapping[Nodes, Mapping[str, float]]]:
        """The predictions of each measurand, by number of nodes and by node set."""
        known: dict[Key, dict[Nodes, dict[str, float]]] = {}
        for each in self.expected.figures:
            of_nodes = known.setdefault(_key(each, each.parameters), {})
            of_nodes.setdefault(self._nodes(each.nodes), {})[each.nodes] = each.value
        return known

    @cached_property
    def _nodes(self) -> Callable[[str], Nodes]:
        @cache
        def of(name: str) -> Nodes:
            hosts = hosts_of(name)
            return len(hosts), self.distance(hosts) if self.distance else ""

        return of

    @cached_property
    def _errors(self) -> Mapping[tuple[str, str], ErrorRow]:
        return {(each.case, each.metric): each for each in self.expected.errors}


def _key(about: object, parameters: Mapping[str, object]) -> Key:
    names = ("case", "benchmark", "metric", "unit", "mode", "placement")
    rest = {name: value for name, value in parameters.items() if name != NODES}
    return (*(getattr(about, name) for name in names), json.dumps(rest, sort_keys=True))


@dataclass(frozen=True)
class PredictionsPage(RunAddition):
    """What is added to the page of a measured run."""

    verdict: Verdict
    found: FigurePredictions

    def columns(self) -> tuple[Column, ...]:
        """Return the columns of the predictions."""
        return numeric(_("Expected")), numeric(_("Measured ÷ expected"))

    def cells(self, result: Result) -> tuple[str, ...]:
        """Return the prediction of a figure with its range, and measured ÷ predicted."""
        expected = self.found.of(result.record)
        if expected is None:
            return "–", "–"
        value = f"{number(expected.value)} {result.record.unit}"
        if expected.low is not None and expected.high is not None:
            value = f"{value} ({number(expected.low)} … {number(expected.high)})"
        return value, "–" if expected.ratio is None else number(expected.ratio, 3)

    def sections(self) -> Iterator[AddedSection]:
        """Yield the section of the expected figures."""
        note = _(
            "A twin predicts the expected figures on a model of the partition. They are "
            "information: no figure passes or fails because of them."
        )
        about = facts(_("Predictions"), tuple(self._notes()))
        assumptions = self.found.expected.assumptions
        fold = Fold(
            _("Show {figures}").format(figures=count(len(assumptions), "assumption")),
            Block(tables=(assumptions_table(assumptions),)),
        )
        figures = (self._figures(),) if self.found.by_figure else ()
        block = Block(paragraphs=(note,), tables=(about, *figures), folds=(fold,))
        section = Section("expected", _("Expected figures"), (block,))
        yield AddedSection(section, after="baseline")

    def _notes(self) -> Iterator[tuple[str, str]]:
        """Yield the source of the predictions, what was assumed and the error of the model."""
        known = self.found.expected
        yield _("Run of the twin"), known.run
        yield _("Algorithms of collectives, as in"), known.selector
        texts = _("{predicted} of {figures}")
        measured, every = len(self.found.by_figure), len(self.found.figures)
        figures = texts.format(predicted=f"{measured:,}", figures=f"{every:,}")
        yield _("Figures with an expected value"), figures
        assumed = [localized(each.what) for each in known.assumptions if not each.sourced]
        yield _("Assumed, without a source"), ", ".join(dict.fromkeys(assumed)) or "–"
        yield _("Error of the model (predicted ÷ measured)"), _error(known.errors)

    def _figures(self) -> Table:
        results, chosen = self.verdict.results, [*self.found.by_figure]
        rows = (
            (
                name(result),
                settings(result),
                result.record.node,
                median_text(result),
                *self.cells(result),
            )
            for result in map(results.__getitem__, chosen)
        )
        heads: tuple[Column | str, ...] = (
            *(_("Figure"), _("Setting"), _("Node")),
            numeric(_("Median")),
            *self.columns(),
        )
        rest = _("The complete list is in verdict.json.")
        return table(_("Measured and expected"), heads, rows, rest=rest, total=len(chosen))


def _error(errors: Sequence[ErrorRow]) -> str:
    text = _("{case} {metric}: median {median}, from {smallest} to {largest}")
    shown = (
        text.format(
            case=each.case,
            metric=each.metric,
            median=number(each.median, 3),
            smallest=number(each.smallest, 3),
            largest=number(each.largest, 3),
        )
        for each in errors
    )
    return "; ".join(shown) or _("not known")


def assumptions_table(assumptions: Iterable[Assumption]) -> Table:
    """Return a table with one row for each assumption."""
    rows = [
        (
            localized(each.what),
            localized(each.value),
            _("source") if each.sourced else _("assumed"),
            localized(each.why),
        )
        for each in assumptions
    ]
    heads = (_("Part of the model"), _("Value"), _("Kind"), _("Source or assumption"))
    return titled(_("Assumptions of the model"), heads, rows)

"""The model on the page of a simulated run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from proofmark.common.files import exists, read_json
from proofmark.common.message import localized
from proofmark.common.translation import _
from proofmark.judge.verdict import Result, Verdict
from proofmark.packages.twin.twin_error import model_error_of
from proofmark.packages.twin.twin_files import Assumption, ModelError, TwinFacts, TwinFiles
from proofmark.report.additions import AddedSection, Addition, RunAddition
from proofmark.report.page import Block, Column, Section, Table, facts, numeric, titled
from proofmark.report.words import number
from proofmark.runs.run import Run


class TwinOfPartition(Addition):
    """Shows the model of the run of a twin."""

    def of_run(self, run: Run, verdict: Verdict) -> RunAddition | None:
        """Return what is added to the page: of a simulated run.

        Raises:
            BadInput: a file of the run is damaged.
        """
        path = TwinFiles(run.files.inputs).facts
        if not exists(path):
            return None
        return TwinPage(read_json(path, TwinFacts), model_error_of(run, verdict.results))


@dataclass(frozen=True)
class TwinPage(RunAddition):
    """What is added to the page of a simulated run.

    Attributes:
        twin: the simulation.
        error: the error of its model; None if that is not known.
    """

    twin: TwinFacts
    error: ModelError | None

    def sections(self) -> Iterator[AddedSection]:
        """Yield the section about the simulation."""
        twin = self.twin
        others = ", ".join(name for name in twin.selectors if name != twin.selector)
        about = facts(
            _("Simulation"),
            (
                (_("Algorithms of collectives, as in"), twin.selector),
                (_("Other possible algorithms"), others or "–"),
                *twin.settings.items(),
            ),
        )
        note = _(
            "The programs are real, their communication is simulated. All figures are predicted: "
            "they are information, and none of them passes or fails."
        )
        block = Block(paragraphs=(note,), tables=(about, _assumptions(twin.assumptions)))
        notes = tuple(map(localized, twin.fit.notes)) if twin.fit else ()
        blocks = (block, _error(self.error, notes))
        yield AddedSection(Section("twin", _("Simulated nodes"), blocks))

    def columns(self) -> tuple[Column, ...]:
        """Return the column of the range of the real figure."""
        return (numeric(_("Range by the error of the model")),)

    def cells(self, result: Result) -> tuple[str, ...]:
        """Return the range of the real figure whose prediction is `result`."""
        record, rows = result.record, self.error.rows if self.error else ()
        about = (record.case, record.metric)
        row = next((row for row in rows if (row.case, row.metric) == about), None)
        if row is None or record.value is None:
            return (_("not known"),)
        low, high = row.range_of(record.value)
        return (f"{number(low)} … {number(high)} {record.unit}",)

    def note(self) -> str:
        """Return the typical error of the model in a few words."""
        if self.error is None or self.error.typical is None:
            return _("error not known")
        return _("half of the figures within a factor of {factor}").format(
            factor=f"{self.error.typical:.2f}"
        )


def _error(error: ModelError | None, notes: tuple[str, ...]) -> Block:
    """Return the error of the model, or that it is not known."""
    title = _("Error of the model")
    if error is None:
        unknown = _(
            "The error of this model is not known: no real run was given (--measured). Compare "
            "ratios, not times."
        )
        return Block(titles=(title,), paragraphs=(unknown,))
    if error.typical is None:
        nothing = _("The error of this model is not known: run {run} has none of its figures.")
        return Block(titles=(title,), paragraphs=(nothing.format(run=error.run), *notes))
    typical = _(
        "Half of the predicted figures differ from run {run} by a factor of less than {factor}. "
        "Figures to which the model was fitted are left out: {fitted}."
    ).format(run=error.run, factor=f"{error.typical:.2f}", fitted=f"{error.fitted:,}")
    rows = [
        (
            *(row.case, row.metric, f"{row.figures:,}"),
            *(f"{ratio:.3g}" for ratio in (row.median, row.smallest, row.largest)),
        )
        for row in error.rows
    ]
    columns = (
        _("Case"),
        _("Metric"),
        numeric(_("Figures")),
        numeric(_("Median of predicted ÷ measured")),
        numeric(_("Smallest")),
        numeric(_("Largest")),
    )
    compared = titled(title, columns, rows)
    return Block(titles=(title,), paragraphs=(typical, *notes), tables=(compared,))


def _assumptions(assumptions: Iterable[Assumption]) -> Table:
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

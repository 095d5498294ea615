"""The section of a simulated run: the settings of the simulation, and what its model assumes."""

from __future__ import annotations

from collections.abc import Iterator

from proofmark.common.sentences import localized
from proofmark.common.translation import _
from proofmark.report.page import Block, Section, facts, numeric, titled
from proofmark.report.predictions import assumptions_table
from proofmark.report.run_data import RunData
from proofmark.runs.twin_files import ModelError


def sections(run_data: RunData) -> Iterator[Section]:
    """Yield the section about the simulation; nothing for a measured run."""
    twin = run_data.twin
    if twin is None:
        return
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
    block = Block(paragraphs=(note,), tables=(about, assumptions_table(twin.assumptions)))
    notes = tuple(map(localized, twin.fit.notes)) if twin.fit else ()
    yield Section("twin", _("Simulated nodes"), (block, _error(run_data.model_error, notes)))


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

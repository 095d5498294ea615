"""Tables of the figures of a run: the judged figures, and all figures."""

from __future__ import annotations

from collections.abc import Iterator

from proofmark.cases.suite import Benchmarks
from proofmark.cases.telemetry import metrics_of
from proofmark.common.message import localized
from proofmark.common.translation import N_, _, translated
from proofmark.judge.baseline.comparison import KIND
from proofmark.judge.verdict import Judgement, Result
from proofmark.judge.verdict_files import SINGLE_RUN
from proofmark.report import predictions
from proofmark.report.page import (
    Block,
    Cell,
    Column,
    Fold,
    PageLink,
    Section,
    Table,
    numeric,
    table,
)
from proofmark.report.run_data import RunData
from proofmark.report.sections import limit_table as limits
from proofmark.report.words import accepted_text, count, number, pairs, sealing

REST = N_("The complete list is in records.parquet.")


def verdict_cell(verdict: str) -> Cell:
    """Return the cell of one of the four verdicts."""
    return Cell(translated(verdict), f"word {verdict}")


def name(result: Result) -> str:
    """Return the name of a figure: case, benchmark and metric."""
    record = result.record
    same = record.benchmark.casefold() == record.case.casefold()
    benchmark = "" if same else record.benchmark
    return " ".join(filter(None, (record.case, benchmark, record.metric)))


def settings(result: Result) -> str:
    """Return the settings of a figure: mode, placement, parameters, and the label of its nodes."""
    record = result.record
    mode = "" if record.mode == "current" else _("mode {mode}").format(mode=record.mode)
    words = (mode, record.placement, pairs(record.parameters), localized(result.degraded))
    return ", ".join(filter(None, words))


def figure_cell(result: Result, benchmarks: Benchmarks) -> Cell:
    """Return a cell with the name of a figure, the meaning of its metric, and its settings."""
    case = benchmarks.cases.get(result.record.case)
    metric = metrics_of(case).get(result.record.metric) if case else None
    details = (translated(metric.what) if metric else "", settings(result))
    return Cell(name(result), "strong", details=tuple(filter(None, details)))


def median_text(result: Result) -> str:
    """Return the median with its unit; – if there is no valid value."""
    value = result.record.value
    return "–" if value is None else f"{number(value)} {result.record.unit}"


def repeats_text(result: Result) -> str:
    """Return the number of measurements, and their range if there are several."""
    values = result.values
    if result.single_run:
        return translated(SINGLE_RUN)
    if len(values) < 2:
        return str(len(values))
    return f"{len(values)}: {number(min(values))} … {number(max(values))}"


def judged_section(run_data: RunData) -> Section:
    """Return the section of the figures that a reference applies to."""
    listed = _listed(run_data)
    if not listed:
        none = _("No reference applies to a figure of this run: all figures are UNJUDGED.")
        only = _("Only accepted runs judge this run. No figure is worse.")
        text = only if run_data.verdict.judgements() else none
        blocks = (Block(paragraphs=(text,)), *limits.blocks(run_data))
        return Section("judged", _("Judged figures"), blocks)
    explanation = _(
        "A ratio is the median divided by the reference, or the median of the ratios within the "
        "repeats if both were measured in the same repeats. If several references apply to a "
        "figure, each reference has a row, and the worst outcome is the verdict of the figure."
    )
    accepted = _("Figures that are not worse than accepted are in the comparison with these runs.")
    paragraphs = (explanation, accepted) if run_data.verdict.baseline else (explanation,)
    return Section(
        "judged",
        _("Judged figures"),
        (
            *limits.blocks(run_data),
            Block(paragraphs=paragraphs, tables=(_judged_table(run_data, listed),)),
        ),
    )


def _listed(run_data: RunData) -> int:
    """Return the number of judgements of the table: all but those of a baseline that are no FAIL.

    A baseline judges hundreds of figures, which would hide the others.
    """
    comparison = run_data.verdict.baseline
    left_out = comparison.judgements - comparison.failures if comparison else 0
    return run_data.verdict.judgements() - left_out


VERDICTS_WITH = {
    "FAIL": ("FAIL",),
    "PASS": ("FAIL", "PASS"),
    "UNJUDGED": ("FAIL", "PASS", "UNJUDGED"),
}
"""The verdicts of results that can contain a judgement with this outcome.

The verdict of a result is the worst outcome of its judgements.
"""


def _judged_table(run_data: RunData, total: int) -> Table:
    verdict = run_data.verdict
    rows: Iterator[tuple[Cell | str, ...]] = (
        (
            verdict_cell(judgement.outcome),
            figure_cell(result, run_data.benchmarks),
            result.record.node,
            median_text(result),
            *predictions.cells(result, run_data),
            repeats_text(result),
            _reference(result, judgement),
            number(judgement.ratio, 3),
            accepted_text(judgement.bounds),
            f"{translated(judgement.kind)}: {localized(judgement.source)}",
        )
        for outcome, verdicts in VERDICTS_WITH.items()
        for result in verdict.of(*verdicts)
        for judgement in result.references
        if judgement.outcome == outcome and (outcome == "FAIL" or judgement.kind != KIND)
    )
    columns: tuple[Column | str, ...] = (
        _("Verdict"),
        _("Figure"),
        _("Node"),
        numeric(_("Median")),
        *predictions.columns(run_data),
        numeric(_("Repeats")),
        numeric(_("Reference")),
        numeric(_("Ratio")),
        _("Limits"),
        _("Source"),
    )
    rest = _("The complete list is in verdict.json.")
    return table(_("Figures with a reference"), columns, rows, rest=rest, total=total)


def _reference(result: Result, judgement: Judgement) -> str:
    if judgement.value is None:
        return localized(judgement.reason)
    return f"{number(judgement.value)} {result.record.unit}"


def all_section(run_data: RunData) -> Section:
    """Return the section with every figure of the run, in a folded table."""
    results = run_data.verdict.results
    rows: Iterator[tuple[Cell | str, ...]] = (
        (
            verdict_cell(result.verdict),
            name(result),
            settings(result),
            result.record.node,
            median_text(result),
            *predictions.cells(result, run_data),
            repeats_text(result),
            Cell(localized(result.reason), "reason"),
        )
        for result in results
    )
    columns: tuple[Column | str, ...] = (
        _("Verdict"),
        _("Figure"),
        _("Setting"),
        _("Node"),
        numeric(_("Median")),
        *predictions.columns(run_data),
        numeric(_("Repeats")),
        _("Reason"),
    )
    every = table(
        _("All figures"), columns, rows, kind="dense", rest=translated(REST), total=len(results)
    )
    single = results.single_runs
    noise = _("{single} of {all} figures are from a single run: their noise is not known.").format(
        single=single, all=len(results)
    )
    fold = Fold(
        _("Show {figures}").format(figures=count(len(results), "figure")),
        Block(tables=(every,)),
        "long",
    )
    links = (
        PageLink("records.parquet", "records.parquet"),
        PageLink("verdict.json", "verdict.json"),
        PageLink("junit.xml", "junit.xml"),
    )
    sealed = run_data.run.seal
    evidence = _(
        "{archive} has all inputs and outputs of the run, {sealing}. Its SHA-256 is {digest}."
    )
    text = (
        evidence.format(archive=sealed.archive, sealing=sealing(sealed), digest=sealed.digest)
        if sealed
        else _("The run was not sealed: its folder was read.")
    )
    return Section(
        "all", _("All figures"), (Block(paragraphs=(noise, text), folds=(fold,), links=links),)
    )

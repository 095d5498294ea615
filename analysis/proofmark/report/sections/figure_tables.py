"""Tables of the figures of a run: the limits, the judged and all figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from proofmark.cases.case import metrics_of
from proofmark.cases.suite import Benchmarks
from proofmark.common.grouping import gathered
from proofmark.common.message import localized
from proofmark.common.nodesets import folded
from proofmark.common.translation import N_, _, translated
from proofmark.judge.acceptance import MOST_REASONS
from proofmark.judge.baseline import KIND
from proofmark.judge.limit_outcomes import LimitOutcome
from proofmark.judge.node_checks import CheckOutcome
from proofmark.judge.verdict import SINGLE_RUN, Judgement, Result, Verdict
from proofmark.report.page import (
    Block,
    Cell,
    Cells,
    Column,
    Fold,
    PageLink,
    Section,
    numeric,
    table,
    tabled,
)
from proofmark.report.run_data import RunData
from proofmark.report.words import (
    accepted_text,
    check_text,
    count,
    item_details,
    number,
    open_bounds_text,
    pairs,
    reference_text,
    sealing,
    visible,
)

NUMBER = "number"


def limit_blocks(run_data: RunData) -> Iterator[Block]:
    """Yield the table of the contract limits and of the references that are for the suite."""
    counts = run_data.verdict.limits
    if not counts:
        return
    caption = _("Figures judged by each limit")
    idle = sum(each.steps > 0 and not each.judged for each in counts)
    notes = [
        _(
            "A limit judges the figures that it selects and that are valid. A limit of another "
            "suite is not in this suite and has no effect."
        )
    ]
    if idle:
        notes.append(
            _("{limits} of this suite judged no figure.").format(limits=count(idle, "limit"))
        )
    if basis := run_data.verdict.hardware.basis:
        notes.append(f"{localized(basis)}.")
    columns = (
        _("Limit"),
        _("Accepted"),
        numeric(_("Judged")),
        numeric(_("PASS")),
        numeric(_("FAIL")),
        numeric(_("UNJUDGED")),
        numeric(_("INVALID")),
        _("Source"),
    )
    rows: list[Cells] = [
        (
            _name(each),
            accepted_of(each),
            _judged(each),
            *(str(each.outcomes.get(word, 0)) for word in ("PASS", "FAIL", "UNJUDGED")),
            str(len(each.invalid)),
            f"{translated(each.reference.kind)}: {each.reference.source}",
        )
        for each in counts
    ]
    yield tabled(caption, columns, rows, *notes)


def _name(each: LimitOutcome) -> Cell:
    reference = each.reference
    mode = _("mode {mode}").format(mode=reference.mode) if reference.mode else ""
    system = _("system {system}").format(system=reference.system) if reference.system else ""
    details = ", ".join(filter(None, (mode, system, pairs(reference.where))))
    return Cell(f"{each.case} {reference.metric}", "strong", tuple(filter(None, (details,))))


def accepted_of(each: LimitOutcome) -> str:
    """Return the figures that a limit accepted in words: ``at least 0.9 × 85 GB/s``.

    They are those of its judgements: nodes with other processors can have other tolerances.
    """
    of = reference_text(each.reference, each.case)
    if not each.accepted:
        return open_bounds_text(of)
    return "; ".join(dict.fromkeys(accepted_text(bounds, of) for bounds in each.accepted))


def _judged(each: LimitOutcome) -> Cell:
    """Return the number of judged figures; 0 looks like the verdict UNJUDGED."""
    if each.judged:
        return Cell(str(each.judged), NUMBER)
    if not each.steps:
        return Cell("0", NUMBER, details=(_("not in this suite"),))
    return Cell("0", "word UNJUDGED", details=(_("no figure was judged"),))


_PHASES = (N_("functionality"), N_("performance"), N_("stability"))  # for the catalogue


def contract_sections(run_data: RunData) -> tuple[Section, ...]:
    """Return the section; nothing for a site without a contract."""
    document = run_data.site.contract
    if document is None:
        return ()
    planned = [each for each in run_data.verdict.contract if each.item]
    checks = run_data.verdict.checks
    others = len(document.limits) + len(document.checks) - len(planned) - len(checks)
    columns = (_("Item"), _("Phase"), _("Limit"), _("Figure"), _("Outcome"), _("Evidence"))
    caption = _("Items of the contract")
    parties = "; ".join(f"{role}: {name}" for role, name in document.parties.items())
    notes = [visible(f"{document.title}. {parties}.")]
    if others:
        notes.append(_("{count} further items are for other suites.").format(count=others))
    rows = [*map(_checked, checks), *map(_row, planned)]
    return (Section("contract", _("Contract"), (tabled(caption, columns, rows, *notes),)),)


def _checked(each: CheckOutcome) -> Cells:
    """Return the row of a functional item."""
    item, (met, total) = each.item, each.nodes
    reasons = gathered(
        (localized(figure.reason), figure.node)
        for figure in each.figures
        if figure.outcome != "PASS"
    )
    lines = [f"{folded(nodes)}: {why}" for why, nodes in reasons.items()]
    return (
        Cell(item.number, "strong", details=item_details(item)),
        translated(item.phase),
        check_text(item),
        _("{met} of {total} nodes meet it").format(met=met, total=total),
        Cell(translated(each.outcome), f"word {each.outcome}", details=tuple(lines[:MOST_REASONS])),
        Cell(item.metric, "code"),
    )


def _row(each: LimitOutcome) -> Cells:
    item, worst = each.item, each.worst
    assert item is not None  # the caller takes items only
    if worst is None:
        accepted, measured, evidence = accepted_of(each), _("not compared"), "–"
    else:
        accepted = accepted_text(worst.accepted, unit=worst.unit)
        measured = f"{number(worst.value or 0.0)} {worst.unit}"
        evidence = f"{worst.steps[0]}, {worst.node}"
    details = []
    # The nodes of INVALID figures are not among them: their number would say too much.
    if each.nodes[1] > 1 and each.outcome in ("PASS", "FAIL"):
        met, total = each.nodes
        details.append(_("{met} of {total} nodes meet it").format(met=met, total=total))
    return (
        Cell(item.number, "strong", details=item_details(item)),
        translated(item.phase),
        accepted,
        Cell(measured, details=tuple(details)),
        verdict_cell(each.outcome),
        Cell(evidence, "code"),
    )


def added_columns(run_data: RunData) -> tuple[Column, ...]:
    """Return the columns that other packages add to tables of figures."""
    return tuple(chain.from_iterable(each.columns() for each in run_data.additions))


def added_cells(result: Result, run_data: RunData) -> tuple[str, ...]:
    """Return one text for each of the `added_columns`, about the figure in `result`."""
    return tuple(chain.from_iterable(each.cells(result) for each in run_data.additions))


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
    verdict, comparison = run_data.verdict, run_data.verdict.baseline
    left_out = comparison.judgements - comparison.failures if comparison else 0
    listed = verdict.judgements() - left_out
    if not listed:
        none = _("No reference applies to a figure of this run: all figures are UNJUDGED.")
        only = _("Only accepted runs judge this run. No figure is worse.")
        text = only if left_out else none
        blocks = (Block(paragraphs=(text,)), *limit_blocks(run_data))
        return Section("judged", _("Judged figures"), blocks)
    explanation = _(
        "A ratio is the median divided by the reference, or the median of the ratios within the "
        "repeats if both were measured in the same repeats. If several references apply to a "
        "figure, each reference has a row, and the worst outcome is the verdict of the figure."
    )
    accepted = _("Figures that are not worse than accepted are in the comparison with these runs.")
    paragraphs = (explanation, accepted) if comparison else (explanation,)
    rows: Iterator[Cells] = (
        (
            verdict_cell(judgement.outcome),
            figure_cell(result, run_data.benchmarks),
            result.record.node,
            median_text(result),
            *added_cells(result, run_data),
            repeats_text(result),
            _reference(result, judgement),
            number(judgement.ratio, 3),
            accepted_text(judgement.bounds),
            f"{translated(judgement.kind)}: {localized(judgement.source)}",
        )
        for outcome in ("FAIL", "PASS", "UNJUDGED")
        for result in _with(verdict, outcome)
        for judgement in result.references
        if judgement.outcome == outcome and (outcome == "FAIL" or judgement.kind != KIND)
    )
    columns: tuple[Column | str, ...] = (
        _("Verdict"),
        _("Figure"),
        _("Node"),
        numeric(_("Median")),
        *added_columns(run_data),
        numeric(_("Repeats")),
        numeric(_("Reference")),
        numeric(_("Ratio")),
        _("Limits"),
        _("Source"),
    )
    rest = _("The complete list is in verdict.json.")
    return Section(
        "judged",
        _("Judged figures"),
        (
            *limit_blocks(run_data),
            Block(
                paragraphs=paragraphs,
                tables=(
                    table(_("Figures with a reference"), columns, rows, rest=rest, total=listed),
                ),
            ),
        ),
    )


def _with(verdict: Verdict, outcome: str) -> Iterable[Result]:
    """Return the results that can contain a judgement with this outcome.

    The verdict of a result is the worst outcome of its judgements. A miss that the repeats do not
    show is worse than a PASS.
    """
    if outcome == "FAIL":
        return verdict.of("FAIL")
    if outcome == "PASS":
        return chain(verdict.of("FAIL", "PASS"), verdict.again)
    return verdict.of("FAIL", "PASS", "UNJUDGED")


def _reference(result: Result, judgement: Judgement) -> str:
    if judgement.value is None:
        return localized(judgement.reason)
    return f"{number(judgement.value)} {result.record.unit}"


def all_section(run_data: RunData) -> Section:
    """Return the section with every figure of the run, in a folded table."""
    results = run_data.verdict.results
    rows: Iterator[Cells] = (
        (
            verdict_cell(result.verdict),
            name(result),
            settings(result),
            result.record.node,
            median_text(result),
            *added_cells(result, run_data),
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
        *added_columns(run_data),
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

"""The figures of a run as tables: those that were judged, and all of them."""

from __future__ import annotations

from proofmark.cases.models import Benchmarks
from proofmark.judge.verdict import Judgement, Result
from proofmark.report.page import Block, Cell, Column, Fold, Link, Section, Table, table
from proofmark.report.run_data import RunData
from proofmark.report.text import count, number, pairs

NUMBER = "number"
REST = "All of them stand in records.parquet."


def word(verdict: str) -> Cell:
    """Return the cell of one of the four words."""
    return Cell(verdict, f"word {verdict}")


def name(result: Result) -> str:
    """Return what was measured: case, benchmark and metric."""
    record = result.record
    same = record.benchmark.casefold() == record.case.casefold()
    benchmark = "" if same else record.benchmark
    return " ".join(filter(None, (record.case, benchmark, record.metric)))


def settings(result: Result) -> str:
    """Return how it was measured: mode, placement and parameters."""
    record = result.record
    mode = "" if record.mode == "current" else f"mode {record.mode}"
    return ", ".join(filter(None, (mode, record.placement, pairs(record.parameters))))


def figure(result: Result, benchmarks: Benchmarks) -> Cell:
    """Return the cell that says what was measured, what that means, and how."""
    case = benchmarks.cases.get(result.record.case)
    metric = case.metrics.get(result.record.metric) if case else None
    details = (metric.what if metric else "", settings(result))
    return Cell(name(result), "strong", details=tuple(filter(None, details)))


def measured(result: Result) -> str:
    """Return the median with its unit; – where there is no valid number."""
    value = result.record.value
    return "–" if value is None else f"{number(value)} {result.record.unit}"


def repeats(result: Result) -> str:
    """Return how often it was measured, and the range where that is more than once."""
    values = result.values
    if len(values) < 2:
        return str(len(values))
    return f"{len(values)}: {number(min(values))} … {number(max(values))}"


def judged_section(material: RunData) -> Section:
    """Return the figures that a reference applies to."""
    if not material.verdict.judgements():
        nothing = "No reference applies to any figure of this run: all of them are UNJUDGED."
        return Section("judged", "Judged figures", (Block(paragraphs=(nothing,)),))
    explained = (
        "A ratio is the median divided by the reference, or the median of the ratios within the "
        "repeats if both were measured in the same repeats. If several references apply to a "
        "figure, each has its row, and the worst decides."
    )
    return Section(
        "judged",
        "Judged figures",
        (Block(paragraphs=(explained,), tables=(_judged_table(material),)),),
    )


HOLDS = {"FAIL": ("FAIL",), "PASS": ("FAIL", "PASS"), "UNJUDGED": ("FAIL", "PASS", "UNJUDGED")}
"""In which results an answer stands: the worst of a result's answers is its verdict."""


def _judged_table(material: RunData) -> Table:
    verdict = material.verdict
    rows = (
        (
            word(judgement.outcome),
            figure(result, material.benchmarks),
            result.record.node,
            measured(result),
            repeats(result),
            _reference(result, judgement),
            number(judgement.ratio, 3),
            _limits(judgement),
            f"{judgement.kind}: {judgement.source}",
        )
        for outcome, words in HOLDS.items()
        for result in verdict.of(*words)
        for judgement in result.references
        if judgement.outcome == outcome
    )
    columns = (
        "Verdict",
        "Figure",
        "Node",
        Column("Median", NUMBER),
        Column("Repeats", NUMBER),
        Column("Reference", NUMBER),
        Column("Ratio", NUMBER),
        "Limits",
        "Source",
    )
    rest, total = "All stand in verdict.json.", verdict.judgements()
    return table("Figures with a reference", columns, rows, rest=rest, total=total)


def _reference(result: Result, judgement: Judgement) -> str:
    if judgement.value is None:
        return judgement.reason
    return f"{number(judgement.value)} {result.record.unit}"


def _limits(judgement: Judgement) -> str:
    bounds = (("at least", judgement.at_least), ("at most", judgement.at_most))
    return ", ".join(f"{words} {limit:g}" for words, limit in bounds if limit is not None)


def all_section(material: RunData) -> Section:
    """Return every figure of the run, folded away."""
    results = material.verdict.results
    rows = (
        (
            word(result.verdict),
            name(result),
            settings(result),
            result.record.node,
            measured(result),
            repeats(result),
            Cell(result.reason, "reason"),
        )
        for result in results
    )
    columns = (
        "Verdict",
        "Figure",
        "Setting",
        "Node",
        Column("Median", NUMBER),
        Column("Repeats", NUMBER),
        "Reason",
    )
    every = table("All figures", columns, rows, kind="dense", rest=REST, total=len(results))
    fold = Fold(f"Show {count(len(results), 'figure')}", Block(tables=(every,)), "long")
    links = (
        Link("records.parquet", "records.parquet"),
        Link("verdict.json", "verdict.json"),
        Link("junit.xml", "junit.xml"),
    )
    said = "The SHA-256 of every file of the run, each raw output included, is in SHA256SUMS."
    return Section("all", "All figures", (Block(paragraphs=(said,), folds=(fold,), links=links),))

"""Rpeak nominal, as the papers state it: information, never a verdict."""

from __future__ import annotations

from proofmark.judge.references.derived import flop_per_cycle, peak
from proofmark.report.drawing.ticks import gigaflops
from proofmark.report.page import TITLED, Block, Column, Section, Table, table
from proofmark.report.plots.blas_kernel import HPL
from proofmark.report.results import figure
from proofmark.report.run_data import RunData
from proofmark.report.text import number
from proofmark.site.node.facts import NodeFacts


def peak_of_run(material: RunData) -> float | None:
    """Return Rpeak nominal of the one node of a run; None where there are several."""
    return peak(material.facts[0]) if len(material.nodes) == 1 else None


def section(material: RunData) -> Section:
    """Return Rpeak nominal of each kind of node, and HPL as a part of it."""
    kinds: dict[tuple[str, ...], list[str]] = {}
    for facts in material.facts:
        kinds.setdefault(_row(facts), []).append(facts.hostname)
    if not kinds:
        unknown = "Rpeak is not known: no provenance was collected."
        return Section("information", "Information", (Block(paragraphs=(unknown,)),))
    columns = (
        "Processor",
        Column("Cores", "number"),
        Column("Flop/cycle", "number"),
        Column("Nominal GHz", "number"),
        Column("Rpeak nominal", "number"),
        Column("Nodes", "number"),
    )
    rows = [(*row, str(len(hosts))) for row, hosts in kinds.items()]
    caption = "Rpeak nominal of one node"
    tables = [table(caption, columns, rows, kind=TITLED), *_efficiencies(material)]
    return Section(
        "information",
        "Information",
        (Block(titles=(caption,), paragraphs=_explained(material), tables=tuple(tables)),),
    )


def _row(facts: NodeFacts) -> tuple[str, ...]:
    flops, rate = flop_per_cycle(facts), peak(facts)
    return (
        f"{facts.cpu_model} ({facts.vector_isa})",
        str(facts.cores),
        "unknown" if flops is None else str(flops),
        "unknown" if facts.base_hz is None else f"{facts.base_hz / 1e9:g}",
        "unknown" if rate is None else f"{number(rate)} GFlop/s",
    )


def _explained(material: RunData) -> tuple[str, ...]:
    said = [
        "Cores × flop per cycle × nominal frequency, with two vector units a core. It judges "
        "nothing: under vector instructions a processor runs at another frequency."
    ]
    if any(facts.virtual for facts in material.facts):
        said.append(
            "In a virtual machine the frequency under vector instructions is unknown, and so is "
            "what else the processor does: HPL is judged against DGEMM of the same run."
        )
    if any(facts.base_hz is None for facts in material.facts):
        said.append("Where the node does not tell its nominal frequency, Rpeak is unknown.")
    return tuple(said)


def _efficiencies(material: RunData) -> list[Table]:
    rate = peak_of_run(material)
    rows = []
    for result in material.verdict.about(lambda record: record.metric in HPL):
        factor = gigaflops(result.record)
        value = result.record.value
        if rate and factor and value is not None:
            part = f"{100 * value * factor / rate:.1f} %"
            shown = f"{number(value * factor)} GFlop/s"
            rows.append((figure(result, material.benchmarks), shown, part))
    columns = ("Figure", Column("Rmax", "number"), Column("Rmax ÷ Rpeak", "number"))
    return [table("HPL as a part of Rpeak nominal", columns, rows)] if rows else []

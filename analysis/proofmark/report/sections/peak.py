"""Rpeak nominal, and the kernel that the BLAS chose: information, not a verdict."""

from __future__ import annotations

from collections.abc import Iterator

from proofmark.cases.vocabulary import BLAS_KERNEL
from proofmark.common.text import factor
from proofmark.common.translation import _
from proofmark.judge.references.derived import flop_per_cycle, nominal_hz, peak
from proofmark.report.page import Block, Section, Table, numeric, table, titled
from proofmark.report.run_data import RunData
from proofmark.report.sections.figure_tables import figure_cell
from proofmark.report.words import number
from proofmark.site.hardware import StatedNode
from proofmark.site.node.facts import NodeFacts
from proofmark.software.software import Package, Software


def peak_of_run(run_data: RunData) -> float | None:
    """Return Rpeak nominal in GFlop/s of the only node of a run; None if there are several."""
    return peak(run_data.facts[0], _node(run_data)) if len(run_data.nodes) == 1 else None


def _node(run_data: RunData) -> StatedNode:
    return run_data.site.partition.node


def section(run_data: RunData) -> Section:
    """Return the section: Rpeak nominal of each kind of node, and HPL in percent of it."""
    kinds: dict[tuple[str, ...], list[str]] = {}
    for facts in run_data.facts:
        kinds.setdefault(_row(facts, _node(run_data)), []).append(facts.hostname)
    if not kinds:
        unknown = _("Rpeak is unknown: no provenance was collected.")
        return Section("information", _("Information"), (Block(paragraphs=(unknown,)),))
    columns = (
        _("Processor"),
        numeric(_("Cores")),
        numeric(_("Flop/cycle")),
        numeric(_("Nominal GHz")),
        numeric(_("Rpeak nominal")),
        numeric(_("Nodes")),
    )
    rows = [(*row, str(len(hosts))) for row, hosts in kinds.items()]
    caption = _("Rpeak nominal of one node")
    tables = [titled(caption, columns, rows), *_efficiencies(run_data)]
    return Section(
        "information",
        _("Information"),
        (Block(titles=(caption,), paragraphs=_explanation(run_data), tables=tuple(tables)),),
    )


def _row(facts: NodeFacts, node: StatedNode) -> tuple[str, ...]:
    flops, hertz = flop_per_cycle(facts, node), nominal_hz(facts, node)
    rate = peak(facts, node)
    return (
        f"{facts.cpu_model} ({facts.vector_isa})",
        str(facts.cores),
        _("unknown") if flops is None else str(flops[0]),
        _("unknown") if hertz is None else f"{hertz / 1e9:g}",
        _("unknown") if rate is None else f"{number(rate)} GFlop/s",
    )


def _explanation(run_data: RunData) -> tuple[str, ...]:
    sentences = [
        _(
            "Cores × flop per cycle × nominal frequency. No figure is judged with it: under vector "
            "instructions a processor runs at another frequency."
        )
    ]
    if any(facts.virtual for facts in run_data.facts):
        sentences.append(
            _(
                "In a virtual machine the frequency under vector instructions and the other load "
                "of the processor are unknown: HPL is judged against DGEMM of the same run."
            )
        )
    if not _node(run_data).clock_hz and any(facts.base_hz is None for facts in run_data.facts):
        sentences.append(
            _("If a node does not report its nominal frequency, its Rpeak is unknown.")
        )
    return tuple(sentences)


def _efficiencies(run_data: RunData) -> list[Table]:
    rate = peak_of_run(run_data)
    rows = []
    for result in run_data.verdict.about(lambda record: record.metric in ("rmax", "hpl_rmax")):
        times = factor(result.record.unit, "GFlop/s")
        value = result.record.value
        if rate and times and value is not None:
            percent = f"{100 * value * times / rate:.1f} %"
            shown = f"{number(value * times)} GFlop/s"
            rows.append((figure_cell(result, run_data.benchmarks), shown, percent))
    columns = (_("Figure"), numeric("Rmax"), numeric(_("Rmax ÷ Rpeak")))
    return [table(_("HPL in percent of Rpeak nominal"), columns, rows)] if rows else []


def wanted_kernels(software: Software | None) -> dict[str, str]:
    """Return the kernel that the BLAS of the program should use, by choice of the variant."""
    wanted: dict[str, str] = {}
    for package in software.packages.values() if software else ():
        for choice, environment in package.variants.get(BLAS_KERNEL, {}).items():
            kernel = ", ".join(environment.values()) or _default_kernel(package)
            if kernel:
                wanted.setdefault(choice, kernel)
    return wanted


def _default_kernel(package: Package) -> str:
    for program in package.programs.values():
        if program.blas:
            return program.blas.chosen or program.blas.built_for or ""
    return ""


def other_kernels(run_data: RunData) -> Iterator[str]:
    """Yield each choice of a kernel that the output of its program does not confirm."""
    for choice, wanted in wanted_kernels(run_data.software).items():
        names = run_data.kernels.get(choice, ())
        if names and {name.casefold() for name in names} != {wanted.casefold()}:
            printed = _(" and ").join(names)
            yield _("{choice}: {wanted} was wanted, the output reports {printed}.").format(
                choice=choice, wanted=wanted, printed=printed
            )

"""Rpeak nominal, and the kernel that the BLAS chose: information, not a verdict."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from proofmark.cases.vocabulary import BLAS_KERNEL
from proofmark.common.translation import _
from proofmark.judge.references.derived import flop_per_cycle, nominal_hz, peak
from proofmark.judge.verdict import Result
from proofmark.report.drawing.series import gigaflops
from proofmark.report.page import Block, Cell, Column, Section, Table, numeric, table, titled
from proofmark.report.plots.core_plots import HPL
from proofmark.report.run_data import RunData
from proofmark.report.sections.figure_tables import figure_cell, name
from proofmark.report.words import number, pairs
from proofmark.site.hardware import StatedNode
from proofmark.site.node.facts import NodeFacts
from proofmark.software.program import AS_INSTALLED, RIGHT
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
    for result in run_data.verdict.about(lambda record: record.metric in HPL):
        factor = gigaflops(result.record)
        value = result.record.value
        if rate and factor and value is not None:
            percent = f"{100 * value * factor / rate:.1f} %"
            shown = f"{number(value * factor)} GFlop/s"
            rows.append((figure_cell(result, run_data.benchmarks), shown, percent))
    columns = (_("Figure"), numeric("Rmax"), numeric(_("Rmax ÷ Rpeak")))
    return [table(_("HPL in percent of Rpeak nominal"), columns, rows)] if rows else []


_BOUND_BY_BLAS = re.compile(r"rmax|hpl|dgemm")


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


def kernels(run_data: RunData) -> dict[str, str]:
    """Return the kernel that was used, by choice: from the outputs, else the wanted kernel."""
    reported = {
        choice: _(" and ").join(names) for choice, names in run_data.kernels.items() if names
    }
    return {**wanted_kernels(run_data.software), **reported}


def blas_kernel_blocks(run_data: RunData) -> list[Block]:
    """Return the comparison of the BLAS kernels of a run; nothing if no step had a choice."""
    chosen = run_data.verdict.about(lambda record: BLAS_KERNEL in record.parameters)
    compared = _compared(chosen)
    if not compared:
        return []
    used = kernels(run_data)
    blocks: set[str] = set()
    for values in compared.values():
        blocks.update(values)
    choices = sorted(
        blocks,
        key=lambda choice: (choice != AS_INSTALLED, choice != RIGHT, choice),
    )
    sentences = tuple(_sentences(run_data, used))
    title = _("BLAS kernel: chosen kernel and right kernel")
    if len(choices) < 2:
        return [Block(titles=(title,), paragraphs=sentences)] if sentences else []
    columns: list[Column | str] = [
        _("Figure"),
        _("Node"),
        *(numeric(_title(choice, used)) for choice in choices),
        numeric(_("Gain")),
    ]
    rows: list[list[Cell | str]] = [
        [
            Cell(figure, "strong", details=(pairs(json.loads(setting)),)),
            node,
            *(_cell(values.get(choice)) for choice in choices),
            _gain(values),
        ]
        for (figure, node, setting), values in compared.items()
    ]
    caption = _("The same program with the kernel that the BLAS chooses, and with the right kernel")
    return [
        Block(
            titles=(title,),
            paragraphs=sentences,
            tables=(
                table(caption, columns, rows, rest=_("The complete list is in records.parquet.")),
            ),
        )
    ]


def _compared(
    results: Iterable[Result],
) -> dict[tuple[str, str, str], dict[str, Result]]:
    """Return results by choice of the kernel, for each figure, node and other parameters."""
    compared: dict[tuple[str, str, str], dict[str, Result]] = {}
    for result in results:
        record = result.record
        if not _BOUND_BY_BLAS.search(record.metric):
            continue
        if result.verdict == "INVALID" or gigaflops(record) is None:
            continue
        others = {key: value for key, value in record.parameters.items() if key != BLAS_KERNEL}
        key = (name(result), record.node, json.dumps(others, sort_keys=True))
        compared.setdefault(key, {})[str(record.parameters[BLAS_KERNEL])] = result
    return compared


def _title(choice: str, used: Mapping[str, str]) -> str:
    return f"{choice}: {used[choice]}" if choice in used else choice


def _cell(result: Result | None) -> str:
    if result is None or result.record.value is None:
        return _("not measured")
    return f"{number(result.record.value)} {result.record.unit}"


def _gain(values: Mapping[str, Result]) -> str:
    default, right = values.get(AS_INSTALLED), values.get(RIGHT)
    if default is None or right is None or not default.record.value or right.record.value is None:
        return "–"
    return f"{right.record.value / default.record.value:.2f} ×"


def _sentences(run_data: RunData, used: Mapping[str, str]) -> list[str]:
    sentences = []
    default, right = used.get(AS_INSTALLED), used.get(RIGHT)
    if default and right and default == right:
        sentences.append(
            _(
                "The BLAS chooses {kernel}, which is the right kernel for this "
                "processor. A second measurement with the right kernel would repeat the "
                "same command."
            ).format(kernel=default)
        )
    elif default and right:
        sentences.append(
            _(
                "The BLAS chooses {kernel}; the right kernel for this processor is "
                "{right}. Programs that run without the setting have the performance of "
                "the first column."
            ).format(kernel=default, right=right)
        )
    for choice, wanted in wanted_kernels(run_data.software).items():
        names = run_data.kernels.get(choice, ())
        if names and {name.casefold() for name in names} != {wanted.casefold()}:
            printed = _(" and ").join(names)
            sentences.append(
                _("{choice}: {wanted} was wanted, the output reports {printed}.").format(
                    choice=choice, wanted=wanted, printed=printed
                )
            )
    return sentences

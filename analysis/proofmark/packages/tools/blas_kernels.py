"""The plot of the rates of HPL and DGEMM by the kernel of the BLAS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from proofmark.common.translation import N_, _, translated
from proofmark.judge.headline import CONTRACT, EXPECTED
from proofmark.records.columns import Record
from proofmark.report.drawing.charts import (
    COLOURS,
    HATCHES,
    INK,
    LIMIT_NAMES,
    PAPER,
    Drawing,
    sheet,
)
from proofmark.report.drawing.series import (
    Sample,
    Series,
    gigaflops,
    lines_by_settings,
    number_label,
    parameter,
)
from proofmark.report.plots import Plot, PlotContext
from proofmark.report.plots.core_plots import HPL
from proofmark.report.words import number, sentence

DGEMM = "dgemm_star"
VARIANT = "blas_kernel"


@dataclass(frozen=True)
class Bars:
    """Bars of one colour: a value for each group; None if the group lacks it."""

    label: str
    values: Sequence[float | None]


def draw_bars(
    groups: Sequence[str], series: Sequence[Bars], y_label: str, levels: Sequence[tuple[str, float]]
) -> Figure:
    """Return a figure of bars that begin at 0, each labelled with its value.

    Args:
        groups: labels of the groups on the x axis.
        series: the bars of one colour each.
        y_label: quantity and unit.
        levels: label and value of each horizontal line.
    """
    figure, axes = sheet()
    width = 0.8 / len(series)
    for index, (one, colour, hatch) in enumerate(zip(series, COLOURS, HATCHES, strict=False)):
        shown = [
            (position, value) for position, value in enumerate(one.values) if value is not None
        ]
        x = [position + (index - (len(series) - 1) / 2) * width for position, _ in shown]
        y = [value for _, value in shown]
        drawn = axes.bar(
            x, y, width * 0.92, label=one.label, color=colour, hatch=hatch, edgecolor=PAPER
        )
        axes.bar_label(drawn, [number(value, 3) for value in y], padding=2, fontsize=8.5)
    for name, value in levels:
        axes.axhline(value, color=INK, linestyle=(0, (4, 3)), linewidth=1.0)
        position = (len(groups) - 0.5, value)
        axes.annotate(
            name, position, xytext=(0, 3), textcoords="offset points", ha="right", fontsize=8.5
        )
    axes.set_xticks(range(len(groups)), groups)
    axes.set_xlim(-0.5, len(groups) - 0.5)
    heights = []
    for one in series:
        heights += [value for value in one.values if value is not None]
    axes.set_ylim(0, 1.12 * max([*heights, *(value for _, value in levels)]))
    axes.tick_params(axis="x", length=0)
    axes.yaxis.set_major_formatter(FuncFormatter(number_label))
    axes.set_title(y_label, loc="left")
    figure.legend(loc="outside upper left", ncols=2, frameon=False, borderaxespad=0.2)
    return figure


def whole_rate(record: Record) -> float | None:
    """Return the factor from the record's rate to GFlop/s of all ranks; None for other units.

    hpcc prints the DGEMM rate of one rank, so the factor includes the number of ranks.
    """
    factor = gigaflops(record)
    if factor is None or record.metric != DGEMM:
        return factor
    ranks = parameter(record, "ranks")
    return None if ranks is None else factor * ranks


def _rates(samples: Sequence[Sample]) -> dict[str, float]:
    """Return the best rate in GFlop/s of each choice of the kernel."""
    choices = dict.fromkeys(str(sample.record.parameters[VARIANT]) for sample in samples)
    rates: dict[str, float] = {}
    for choice in choices:
        chosen = [sample for sample in samples if sample.record.parameters[VARIANT] == choice]
        lines: list[Series] = lines_by_settings(chosen, lambda _: 0.0, (), whole_rate)
        values = []
        for line in lines:
            values += [point.y for point in line.points]
        if values:
            rates[choice] = max(values)
    return rates


def _limits(samples: Sequence[Sample]) -> list[tuple[str, float]]:
    """Return the contract limits and expected values of HPL in GFlop/s, each with its name."""
    found = set()
    for sample in samples:
        if sample.record.metric in HPL and (factor := gigaflops(sample.record)):
            found |= {
                (kind, bound * factor)
                for kind, bound in sample.limits
                if kind in (CONTRACT, EXPECTED)
            }
    return [(f"{translated(LIMIT_NAMES[kind])} {number(bound)}", bound) for kind, bound in found]


class BlasKernels(Plot):
    """Bars of HPL Rmax and of DGEMM × ranks for each kernel that the BLAS used."""

    name = "blas_kernel"
    title = N_("HPL and DGEMM by BLAS kernel")
    position = 60

    def wants(self, record: Record) -> bool:
        """Return whether `record` is a rate of HPL or DGEMM with the parameter ``blas_kernel``."""
        return (
            record.metric in (*HPL, DGEMM)
            and VARIANT in record.parameters
            and gigaflops(record) is not None
        )

    def draw(self, samples: Sequence[Sample], context: PlotContext) -> list[Drawing]:
        """Draw two bars for each kernel, and a line at Rpeak if it is known."""
        hpl = _rates([sample for sample in samples if sample.record.metric in HPL])
        dgemm = _rates([sample for sample in samples if sample.record.metric == DGEMM])
        choices = list(dict.fromkeys([*hpl, *dgemm]))
        names = [context.choice_labels.get((VARIANT, choice), "") for choice in choices]
        groups = [
            f"{choice}\n{name}" if name else choice
            for choice, name in zip(choices, names, strict=True)
        ]
        series = [
            Bars(_("HPL Rmax"), [hpl.get(choice) for choice in choices]),
            Bars("DGEMM × ranks", [dgemm.get(choice) for choice in choices]),
        ]
        peak = context.peak_gflops
        levels = _limits(samples)
        if peak is not None:
            levels.append((_("Rpeak nominal {rate} (information)").format(rate=number(peak)), peak))
        text = sentence(
            f"{group.replace(chr(10), ', ')}: HPL {number(hpl.get(choice))} GFlop/s, "
            f"DGEMM × ranks {number(dgemm.get(choice))} GFlop/s"
            for group, choice in zip(groups, choices, strict=True)
        )
        figure = draw_bars(groups, series, _("rate in GFlop/s"), levels)
        title = _("HPL and DGEMM by the kernel of the BLAS")
        return [Drawing("blas-kernel", title, text, figure, samples)]

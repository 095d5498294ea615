"""The section of congestion: the slowdown of figures beside a load, as a distribution."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from proofmark.cases.vocabulary import LOAD
from proofmark.common.translation import ENGLISH, _, in_language
from proofmark.judge.slowdown import Slowdown
from proofmark.report.drawing.charts import COLOURS, DASHES, INK, Drawing, plot_style, sheet
from proofmark.report.page import Block, Cell, Column, Section, numeric, titled
from proofmark.report.run_data import RunData
from proofmark.report.sections.plots_section import Files, picture
from proofmark.report.words import number, pairs

NAME = "slowdown"


def sections(run_data: RunData) -> tuple[tuple[Section, ...], Files]:
    """Return the section and its files; nothing if no figure was measured beside a load."""
    slowdowns = run_data.verdict.effects.slowdowns
    if not slowdowns:
        return (), {}
    files: Files = {}
    about = _(
        "A slowdown is a figure beside its load compared with the same figure without it, of one "
        "pair of nodes in one repeat. It is above 1 if the load makes the figure worse."
    )
    rows = [_row(each) for each in slowdowns]
    columns: tuple[Column | str, ...] = (
        _("Figure"),
        _("Load"),
        *(numeric(title) for title in (_("Samples"), _("Median"), "90 %", "99 %", _("Greatest"))),
        _("Worst pair"),
    )
    caption = _("Slowdown beside a load")
    shown = titled(caption, columns, rows, rest=_("The list is in verdict.json."))
    with plot_style():
        drawing = Drawing(NAME, caption, _described(slowdowns), _figure(slowdowns), ())
    drawn = picture(drawing, files, run_data.run.files.plots.name)
    block = Block(paragraphs=(about,), tables=(shown,), pictures=(drawn,))
    with in_language(ENGLISH):  # programs read it
        files[f"{NAME}.csv"] = _csv(slowdowns).encode()
    return (Section(NAME, _("Congestion"), (block,)),), files


def label(slowdown: Slowdown) -> str:
    """Return the name of a slowdown: case, metric and load."""
    record = slowdown.record
    return _("{figure} {metric} beside {load}").format(
        figure=record.case, metric=record.metric, load=record.parameters[LOAD]
    )


def _row(slowdown: Slowdown) -> tuple[Cell | str, ...]:
    record = slowdown.record
    settings = {name: value for name, value in record.parameters.items() if name != LOAD}
    ends = (slowdown.percentile(50), slowdown.percentile(90), slowdown.percentile(99))
    return (
        Cell(f"{record.case} {record.metric}", "strong", details=(pairs(settings),)),
        str(record.parameters[LOAD]),
        _("{measured} of {all} pairs").format(measured=len(slowdown.ratios), all=slowdown.pairs),
        *(number(value, 3) for value in (*ends, slowdown.ratios[-1])),
        ", ".join(slowdown.worst),
    )


def _figure(slowdowns: Sequence[Slowdown]) -> Figure:
    """Return the share of samples with at most a slowdown, a line for each metric."""
    figure, axes = sheet()
    for slowdown, colour, dash in zip(slowdowns, COLOURS, DASHES, strict=False):
        ratios = np.array(slowdown.ratios)
        share = np.arange(1, len(ratios) + 1) / len(ratios)
        axes.step(ratios, 100 * share, where="post", color=colour, linestyle=dash,
                  marker=".", label=label(slowdown))  # fmt: skip
    axes.axvline(1, color=INK, linewidth=0.8, alpha=0.5)
    axes.set_xscale("log")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_ylim(0, 101)
    axes.set_xlabel(_("slowdown"))
    axes.set_title(_("share of the samples with at most this slowdown in %"), loc="left")
    figure.legend(loc="outside upper left", ncols=1, frameon=False, borderaxespad=0.2)
    return figure


def _described(slowdowns: Sequence[Slowdown]) -> str:
    sentences = (
        _("{label}: median {median}, greatest {greatest}").format(
            label=label(each),
            median=number(each.percentile(50), 3),
            greatest=number(each.ratios[-1], 3),
        )
        for each in slowdowns
    )
    return _("Slowdown – {values}.").format(values="; ".join(sentences))


def _csv(slowdowns: Sequence[Slowdown]) -> str:
    rows = []
    for each in slowdowns:
        rows += [f'"{label(each)}",{ratio}' for ratio in each.ratios]
    return "\n".join(["figure,slowdown", *rows]) + "\n"

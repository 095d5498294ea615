"""The links of the fabric: slow elements, and the rate across each level."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from proofmark.common.translation import N_, _, translated
from proofmark.judge.verdict import Verdict
from proofmark.packages.fabric.links import FABRIC, LinkFit, Matrix, SlowElement
from proofmark.report.additions import AddedSection, Addition, RunAddition
from proofmark.report.page import Block, Cell, PageLink, Section, numeric, titled
from proofmark.report.words import count, number
from proofmark.runs.run import Run

Files = dict[str, bytes]
"""Contents by file name."""

REST = N_("The complete list is in verdict.json.")

MOST_NAMED = 12
"""The largest number of slow elements that the summary names."""


def matrix_csv(matrix: Matrix) -> str:
    """Return the measured cells as CSV: from, to, ratio."""
    lines = [f"from_{matrix.level},to_{matrix.level},ratio"]
    for one, row in zip(matrix.names, matrix.ratio.tolist(), strict=True):
        lines += (
            f"{one},{other},{ratio:.6g}"
            for other, ratio in zip(matrix.names, row, strict=True)
            if not math.isnan(ratio)
        )
    return "\n".join(lines) + "\n"


class LinksOnPage(Addition):
    """Shows the links of a run with rounds of pairs."""

    def of_run(self, run: Run, verdict: Verdict) -> LinksOfRun | None:
        """Return what is added to the page of `run`; None for a run without rounds of pairs."""
        fit = verdict.added.get(FABRIC)
        return LinksOfRun(fit, run.files.plots.name) if isinstance(fit, LinkFit) else None


@dataclass(frozen=True)
class LinksOfRun(RunAddition):
    """What is added to the page of a run with rounds of pairs.

    Attributes:
        fit: its slow elements.
        folder: the name of the folder of its plots.
    """

    fit: LinkFit
    folder: str

    def sections(self) -> Iterator[AddedSection]:
        """Yield the section of the links."""
        files: Files = {}
        blocks = [*_slow_elements(self.fit), *_bisection(self.fit)]
        if self.fit.matrix is not None:
            files["links.csv"] = matrix_csv(self.fit.matrix).encode()
            data = PageLink(f"{self.folder}/links.csv", _("data as CSV"))
            blocks.append(Block(links=(data,)))
        yield AddedSection(Section("links", _("Links"), tuple(blocks)), "baseline", files)

    def summary(self) -> Iterator[tuple[str, str]]:
        """Yield the line with the slow links."""
        fit = self.fit
        named = [f"{each.name} ({each.ratio:.2g} ×)" for each in fit.elements[:MOST_NAMED]]
        more = len(fit.elements) - len(named)
        text = "; ".join(named) + (_(" and {count} more").format(count=more) if more else "")
        none = _("none in {rounds} of pairs").format(rounds=count(fit.rounds, "round"))
        yield _("Slow links"), text if fit.elements else none

    def issues(self) -> Iterator[Block]:
        """Yield the slow elements."""
        if self.fit.elements:
            yield from _slow_elements(self.fit)


def _slow_elements(fit: LinkFit) -> Iterator[Block]:
    """Yield the table of the slow elements."""
    base = _(
        "{measurements} of {rounds} of pairs were compared with like pairs. On a "
        "healthy fabric, {share} of 100 runs name at least one element."
    ).format(
        measurements=count(fit.compared, "measurement"),
        rounds=count(fit.rounds, "round"),
        share=f"{100 * fit.level:g}",
    )
    if fit.untested:
        base += _(" Too few measurements to name one of these: {elements}.").format(
            elements="; ".join(fit.untested)
        )
    if not fit.elements:
        yield Block(paragraphs=(_("No element of the fabric is slow."), base))
        return
    rows = [
        (
            Cell(each.name, "strong", details=_alternatives(each)),
            f"{each.ratio:.2g}",
            f"{100 * each.confidence:.0f} %",
            _("{slow} of {measured}").format(slow=each.slow, measured=each.measured),
            each.nodes,
        )
        for each in fit.elements
    ]
    columns = (
        _("Element"),
        numeric(_("Measured ÷ usual")),
        numeric(_("Confidence")),
        numeric(_("Slow measurements")),
        _("Nodes behind it"),
    )
    caption = count(len(fit.elements), "slow element")
    explanation = _(
        "{before} The confidence is the probability of the element among those "
        "that explain the same measurements."
    ).format(before=base)
    shown = titled(caption, columns, rows, rest=translated(REST))
    yield Block(titles=(caption,), paragraphs=(explanation,), tables=(shown,))


def _alternatives(element: SlowElement) -> tuple[str, ...]:
    return tuple(
        _("or {element}: {percent} %").format(element=name, percent=f"{100 * each:.0f}")
        for name, each in element.alternatives
    )


def _bisection(fit: LinkFit) -> Iterator[Block]:
    rows = [
        (
            Cell(f"{each.case} {each.metric}", "strong"),
            _("pairs that leave a switch of the level {level}").format(level=each.level),
            str(each.pairs),
            number(each.bytes_per_s / 1e9),
            "–" if each.share is None else f"{100 * each.share:.0f} %",
            Cell(each.round, "code"),
        )
        for each in fit.bisections
    ]
    if rows:
        caption = _("Rate across each level")
        columns = (
            _("Figure"),
            _("Crossed"),
            numeric(_("Pairs")),
            numeric(_("Sum in GB/s")),
            numeric(_("Of the links' rate")),
            _("Round"),
        )
        explanation = _(
            "All pairs of one round measured at the same time. What the links allow follows from "
            "the declared rates and uplinks. These sums are information, no limit judges them."
        )
        shown = titled(caption, columns, rows, rest=translated(REST))
        yield Block(titles=(caption,), paragraphs=(explanation,), tables=(shown,))

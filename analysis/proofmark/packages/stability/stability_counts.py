"""The counts of a stability run: jobs by cause, each failure, and the risks of the terms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import isfinite

from proofmark.common.message import localized
from proofmark.common.nodesets import folded
from proofmark.common.text import percent
from proofmark.common.translation import N_, _, translated
from proofmark.judge.verdict import Verdict
from proofmark.packages.stability.sampling import CONFIDENCE
from proofmark.packages.stability.tally import JobTally
from proofmark.report.additions import AddedSection, Addition, RunAddition
from proofmark.report.page import Block, Cell, Section, numeric, titled
from proofmark.report.sections.main_figures import MAIN_FIGURES
from proofmark.runs.run import Run

CAUSES = {
    "node": N_("node"),
    "fabric": N_("fabric"),
    "file-system": N_("file system"),
    "scheduler": N_("scheduler"),
    "program": N_("program"),
    "unknown": N_("unknown"),
}
"""The titles of the causes."""
REST = N_("The complete list is in verdict.json.")
MARKS = 60
"""The number of parts of the time line."""


@dataclass(frozen=True)
class CountsOfRun(RunAddition):
    """The section of one stability run."""

    found: JobTally

    def sections(self) -> Iterable[AddedSection]:
        """Return the counts, behind the main figures."""
        found = self.found
        blocks = (_counts(found), *_failures(found), *_risks(found))
        section = Section("stability", _("Stability"), blocks)
        return (AddedSection(section, after=MAIN_FIGURES),)


class StabilityPage(Addition):
    """Adds the counts to the page of a stability run."""

    def of_run(self, run: Run, verdict: Verdict) -> RunAddition | None:
        """Return the counts of a stability run; None for any other run."""
        found = verdict.of_kind
        return CountsOfRun(found) if isinstance(found, JobTally) else None


def _counts(found: JobTally) -> Block:
    state = _("The run is over.") if found.over else _("The run is not over: nothing is judged.")
    rows = [
        (
            Cell(translated(CAUSES[cause]), "strong"),
            f"{count}",
            f"{percent(count / max(1, found.ended))} %",
            Cell(_line(found, cause)),
        )
        for cause, count in found.failed.items()
    ]
    columns = (
        _("Cause"),
        numeric(_("Failed jobs")),
        numeric(_("Share")),
        _("Begin to end"),
    )
    caption = _("Failed jobs by cause")
    doubts = (*found.damaged, *found.damaged_jobs, *found.weaker)
    texts = (f"{state} {localized(found.label)}.", _times(found), *map(localized, doubts))
    listed = titled(caption, columns, rows, rest=translated(REST))
    return Block(titles=(caption,), paragraphs=texts, tables=(listed,))


def _times(found: JobTally) -> str:
    return f"{_mean_time(found)} {_seen(found)}"


def _mean_time(found: JobTally) -> str:
    """Return the mean time between interrupts with its confidence.

    Without an interrupt only the lower limit is known: one side of the interval.
    """
    low, high = found.interval
    if not found.interrupts:
        return _(
            "No interrupt in {hours} h: the mean time between interrupts is at least {low} h with "
            "{confidence} % confidence (chi-square limit of a time-terminated test; all failed "
            "jobs but those that failed by their program are interrupts)."
        ).format(
            hours=f"{found.hours:.4g}", low=f"{low:.4g}", confidence=percent((1 + CONFIDENCE) / 2)
        )
    return _(
        "Mean time between interrupts: {mtbi} h ({confidence} % interval: {low} to {high} h, "
        "chi-square limits of a time-terminated test; {interrupts} interrupts: all failed jobs but "
        "those that failed by their program)."
    ).format(
        mtbi=f"{found.mtbi:.4g}",
        confidence=percent(CONFIDENCE),
        low=f"{low:.4g}",
        high=f"{high:.4g}" if isfinite(high) else "∞",
        interrupts=found.interrupts,
    )


def _seen(found: JobTally) -> str:
    return _(
        "Nodes were seen to be up in {available} of the time, "
        "and in {seen} of the time in which somebody looked. Nobody looked for {unseen} of {hours} "
        "h. Load: {load} %. Nodes that failed: {lost}. Restarts of the time: {restarts}."
    ).format(
        available=_share(found.seen.up),
        seen=_share(found.seen.up_when_seen),
        unseen=f"{found.seen.unseen:.4g}",
        hours=f"{found.seen.hours:.4g}",
        load=percent(found.load),
        lost=folded(found.lost) if found.lost else "–",
        restarts=found.restarts,
    )


def _share(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.2f} %"


def _line(found: JobTally, cause: str) -> str:
    """Return a time line with a mark for each part of the time in which a job failed."""
    end = found.end if isfinite(found.end) else max((e.ended for e in found.failures), default=0)
    whole = end - found.begin
    if not (isfinite(whole) and whole > 0):
        return "–"
    places = {
        min(MARKS - 1, int(MARKS * (each.ended - found.begin) / whole))
        for each in found.failures
        if each.cause == cause
    }
    return "".join("■" if place in places else "·" for place in range(MARKS))


def _failures(found: JobTally) -> Iterator[Block]:
    rows = [
        (
            Cell(each.job, "strong"),
            each.case,
            folded(each.nodes),
            each.time,
            translated(CAUSES[each.cause]),
            Cell(": ".join(filter(None, (translated(each.state), each.reason))), "reason"),
        )
        for each in found.failures
    ]
    if rows:
        caption = _("Failed jobs")
        columns = (_("Job"), _("Case"), _("Nodes"), _("End"), _("Cause"), _("State"))
        listed = titled(caption, columns, rows, rest=translated(REST))
        yield Block(titles=(caption,), tables=(listed,))


def _risks(found: JobTally) -> Iterator[Block]:
    if found.risks:
        text = _(
            "Risks of both parties, if failures come independently with a constant rate (operating "
            "characteristic by the Poisson distribution, as of the fixed-duration plans of "
            "MIL-HDBK-781A; by the binomial distribution for a share of jobs)."
        )
        lines = tuple(localized(each.message) for each in found.risks)
        yield Block(titles=(_("Risks"),), paragraphs=(text, *lines))

"""What rounds of pairs show: pairs that measured apart, and slowdowns beside a load.

The pairs of a round must measure at the same time (docs/design/fabric.md). Each node writes when
its program ended, by its own clock, and how long it ran. So a clock that is wrong by seconds looks
like a pair that measured too late.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from proofmark.cases.vocabulary import LOAD, TOGETHER
from proofmark.common.message import Message, localized
from proofmark.common.translation import _
from proofmark.judge.additions import AddedJudge, Finding
from proofmark.judge.evidence import Evidence
from proofmark.judge.fleet.fleet import Fleet
from proofmark.judge.verdict import Verdict
from proofmark.packages.fabric.slowdown import Slowdown, slowdowns
from proofmark.plan.plan import Plan
from proofmark.plan.step import StepInstance
from proofmark.records.columns import Execution
from proofmark.report.additions import AddedSection, Addition, RunAddition
from proofmark.report.page import Block, Cell, Column, Section, listed, numeric, tabled
from proofmark.report.words import number, pairs
from proofmark.runs.run import Run

LEAST_TOGETHER = 0.75
"""The least share of its time, and of its round, in which a pair measures beside others."""
MAX_PAIRS_NAMED = 8


@dataclass(frozen=True)
class RoundOverlap:
    """The times of the pairs of one execution of a round.

    Attributes:
        attempt: the number of the execution, from 1.
        pairs: the number of pairs with a result.
        apart: the pairs that measured beside others for less than `LEAST_TOGETHER` of the time.
        unknown: the number of pairs whose times are not known.
        overlap: the least part of a pair; None if no time is known.
    """

    step: str
    attempt: int
    pairs: int
    apart: tuple[str, ...]
    unknown: int
    overlap: float | None

    def messages(self) -> Iterator[Message]:
        """Yield what is wrong with the round; nothing if all pairs measured together."""
        of: dict[str, str | int] = {
            "step": self.step,
            "execution": self.attempt,
            "pairs": self.pairs,
        }
        if self.apart:
            listed = ", ".join(self.apart[:MAX_PAIRS_NAMED])
            if (more := len(self.apart) - MAX_PAIRS_NAMED) > 0:
                listed = Message("listed-and-more", listed=listed, count=more)
            shown = {"share": f"{LEAST_TOGETHER:.0%}", "listed": listed}
            yield Message("round-apart", apart=len(self.apart), **shown, **of)
        if self.unknown:
            yield Message("round-unknown", unknown=self.unknown, **of)

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
        return {**vars(self), "apart": list(self.apart)}


def round_overlaps(plan: Plan, executions: Iterable[Execution]) -> tuple[RoundOverlap, ...]:
    """Return the overlap of each execution of the rounds of `plan` whose pairs measure together.

    A repeated execution has only some of the pairs: those that were disturbed, or that a person ran
    again.
    """
    names = {
        step.id
        for step in plan.steps_to_run()
        if step.round and step.round.measured == TOGETHER and step.measurements > 1
    }
    found: dict[tuple[str, int], dict[str, Execution]] = {}
    for each in executions:
        pair = StepInstance.parse(each.step)
        if pair.step in names:
            found.setdefault((pair.step, each.attempt), {})[pair.name] = each
    return tuple(_overlap(*key, pairs) for key, pairs in sorted(found.items()))


def _overlap(step: str, attempt: int, executions: dict[str, Execution]) -> RoundOverlap:
    names = list(executions)
    ended = np.array([each.ended for each in executions.values()])
    seconds = np.array([each.seconds for each in executions.values()])
    known = np.isfinite(ended) & np.isfinite(seconds) & (seconds > 0)
    unknown = int((~known).sum())
    if not known.any():
        return RoundOverlap(step, attempt, len(names), (), unknown=unknown, overlap=None)
    end, begin = ended[known], (ended - seconds)[known]
    first, last = float(np.median(begin)), float(np.median(end))
    common = np.minimum(end, last) - np.maximum(begin, first)
    # A slow pair measures longer than the others, and with all of them.
    share = np.clip(common, 0, None) / np.minimum(end - begin, max(last - first, 1e-9))
    places = np.flatnonzero(known)
    apart = tuple(names[place] for place in places[share < LEAST_TOGETHER].tolist())
    return RoundOverlap(
        step, attempt, len(names), apart, unknown=unknown, overlap=round(float(share.min()), 3)
    )


PAIRS = "pairs"
"""The name of the judge, and of what it found."""


@dataclass(frozen=True)
class PairFindings(Finding):
    """The rounds of a run, and the slowdowns of its pairs."""

    rounds: tuple[RoundOverlap, ...]
    slowdowns: tuple[Slowdown, ...]

    def as_json(self) -> Mapping[str, Any]:
        """Return the keys ``rounds`` and ``slowdowns`` of ``verdict.json``, without empty ones."""
        keys = {
            "rounds": [each.as_json() for each in self.rounds],
            "slowdowns": [each.as_json() for each in self.slowdowns],
        }
        return {key: found for key, found in keys.items() if found}


def pair_findings(verdict: Verdict) -> PairFindings:
    """Return what the pairs of a judged run show."""
    found = verdict.added.get(PAIRS)
    return found if isinstance(found, PairFindings) else PairFindings((), ())


class PairsJudge(AddedJudge):
    """Finds pairs that measured apart, and how much a load slows pairs."""

    def judge(self, evidence: Evidence, fleet: Fleet) -> PairFindings | None:
        """Return what the pairs show; None for a run without rounds and loads."""
        rounds = round_overlaps(evidence.plan, evidence.records.executions)
        slower = slowdowns(evidence.figures, evidence.benchmarks, evidence.plan)
        return PairFindings(rounds, slower) if rounds or slower else None


class PairsOnPage(Addition):
    """Shows what the pairs of a run show."""

    def of_run(self, run: Run, verdict: Verdict) -> PairsOfRun | None:
        """Return what is added to the page of `run`; None for a run without rounds and loads."""
        return PairsOfRun(pair_findings(verdict)) if PAIRS in verdict.added else None


@dataclass(frozen=True)
class PairsOfRun(RunAddition):
    """What is added to the page of a run."""

    found: PairFindings

    def sections(self) -> Iterator[AddedSection]:
        """Yield the slowdowns of figures beside a load, as distributions."""
        if not self.found.slowdowns:
            return
        about = _(
            "A slowdown is a figure beside its load compared with the same figure without it, of "
            "one pair of nodes in one repeat. It is above 1 if the load makes the figure worse."
        )
        columns: tuple[Column | str, ...] = (
            _("Figure"),
            _("Load"),
            *(
                numeric(title)
                for title in (_("Samples"), _("Median"), "90 %", "99 %", _("Greatest"))
            ),
            _("Worst pair"),
        )
        rows = [_slowdown(each) for each in self.found.slowdowns]
        caption = _("Slowdown beside a load")
        block = tabled(caption, columns, rows, about, rest=_("The list is in verdict.json."))
        yield AddedSection(Section("slowdown", _("Congestion"), (block,)), "file-drivers")

    def issues(self) -> Iterator[Block]:
        """Yield the rounds of pairs that did not measure at the same time."""
        named: list[Message] = []
        for each in self.found.rounds:
            named += each.messages()
        if named:
            effect = _("A pair that measured without the others had the links for itself.")
            title = _("Pairs of a round that did not measure together")
            yield listed(title, map(localized, named), effect)


def _slowdown(slowdown: Slowdown) -> tuple[Cell | str, ...]:
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

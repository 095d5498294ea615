"""What was found about each figure: its median, the answers of its references, and the worst."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from proofmark.judge.aggregate import Aggregates
from proofmark.judge.fleet.fleet import Fleet
from proofmark.judge.intervals import Interval, interval
from proofmark.judge.references.compare import Judgement
from proofmark.records.columns import Numbers, Record

WORDS = ("PASS", "FAIL", "INVALID", "UNJUDGED")


@dataclass(frozen=True, slots=True)
class Result:
    """One figure: the median of its repeats, and what was found about it.

    Attributes:
        interval: in which the median lies, with its confidence; None of a single measurement.
        retest: it fails, but by less than its noise: it has to be measured again before it counts
            against a node.
        steps: where it was measured, as `proofmark rerun` takes them.
    """

    record: Record
    values: tuple[float, ...]
    verdict: str
    reason: str
    references: tuple[Judgement, ...]
    interval: Interval | None = None
    retest: bool = False
    steps: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Results(Sequence[Result]):
    """The results of a run; each is made when it is asked for.

    Attributes:
        standing: the figures, one a result.
        verdict: the verdict on each, as its number in `WORDS`.
        answers: those of references, by figure.
        fleet: what like nodes say.
    """

    standing: Aggregates
    verdict: Numbers
    answers: Mapping[int, tuple[Judgement, ...]]
    fleet: Fleet

    def __len__(self) -> int:
        return len(self.standing)

    @overload
    def __getitem__(self, index: int) -> Result: ...
    @overload
    def __getitem__(self, index: slice) -> list[Result]: ...
    def __getitem__(self, index: int | slice) -> Result | list[Result]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        figure = range(len(self))[index]
        record, values = self.standing.record(figure), self.standing.values(figure)
        steps = tuple(dict.fromkeys(each.step for each in self.standing.executions(figure)))
        if not record.valid:
            return Result(record, values, "INVALID", record.reason, (), None, False, steps)
        fleet = self.fleet.judge(figure)
        answers = (*self.answers.get(figure, ()), *([fleet] if fleet else []))
        found = _settled(Result(record, values, "", "", answers, interval(values), steps=steps))
        disturbed = int(self.standing.disturbed[figure])
        if not disturbed:
            return found
        left_out = f"{disturbed} of {disturbed + len(values)} repeats were disturbed and left out"
        return replace(found, reason=f"{found.reason}; {left_out}")

    @cached_property
    def passed_by_peers_only(self) -> NDArray[np.bool_]:
        """Mask of the results that passed and were judged only by the fleet comparison."""
        plain: NDArray[np.bool_] = self.verdict == WORDS.index("PASS")
        plain[list(self.answers)] = False
        plain &= self.fleet.of >= 0
        return plain

    def judgements(self) -> int:
        """Return how many answers of references there are."""
        own = sum(len(each) for each in self.answers.values())
        return own + int((self.fleet.of >= 0).sum())

    def about(self, wanted: Callable[[Record], bool]) -> Iterator[Result]:
        """Yield the results that are wanted, by what they are: not by their node or value."""
        for figure in np.flatnonzero(self.standing.about(wanted)):
            yield self[int(figure)]

    def of(self, words: Collection[str]) -> Iterator[Result]:
        """Yield the results with these verdicts."""
        wanted = [WORDS.index(word) for word in words]
        for figure in np.flatnonzero(np.isin(self.verdict, wanted)):
            yield self[int(figure)]


def result_json(result: Result) -> dict[str, Any]:
    """Return a result as ``verdict.json`` has it."""
    return {
        **{name: getattr(result.record, name) for name in Record.__slots__},
        "parameters": dict(result.record.parameters),
        "values": list(result.values),
        "interval": result.interval and [result.interval.low, result.interval.high],
        "confidence": result.interval and result.interval.confidence,
        "verdict": result.verdict,
        "reason": result.reason,
        "retest": result.retest,
        "references": [
            {name: getattr(judgement, name) for name in Judgement.__slots__}
            for judgement in result.references
        ],
    }


def _settled(result: Result) -> Result:
    """Let the worst of all answers stand."""
    answers = result.references
    outcomes = {answer.outcome for answer in answers}
    verdict = next((word for word in ("FAIL", "PASS") if word in outcomes), "UNJUDGED")
    if verdict == "UNJUDGED":
        reason = answers[0].reason if answers else "no reference applies"
    else:
        reason = "; ".join(answer.reason for answer in answers if answer.outcome == verdict)
    retest = verdict == "FAIL" and all(answer.within_noise(result.values) for answer in answers)
    return replace(result, verdict=verdict, reason=reason, retest=retest)

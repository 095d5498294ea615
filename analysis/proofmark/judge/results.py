"""The result of each figure: its median, its judgements, its verdict, and why it is INVALID."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property, partial
from itertools import chain
from typing import Any

import numpy as np

from proofmark.common.message import NOTHING, Message, joined
from proofmark.common.translation import N_
from proofmark.common.yaml_models import shipped_data
from proofmark.judge.aggregate import Aggregates
from proofmark.judge.baseline import BaselineComparison
from proofmark.judge.confidence import Interval, interval, noise_in
from proofmark.judge.fleet.fleet import Fleet
from proofmark.judge.references.judgement import PEERS, Judgement
from proofmark.records.columns import Mask, Numbers, Record
from proofmark.runs.samples import Shares, mean_shares


class Again(Enum):
    """The command that follows an advice."""

    NOTHING = "nothing"
    """The advice has no command, or its text names one."""
    RERUN = "rerun"
    """The steps run again, and the run is judged again."""
    CONTINUE = "continue"
    """The command of the acceptance repeats what is missing or was disturbed."""
    FRESH = "fresh"
    """The command of the acceptance starts a new run."""
    REPEATS = "repeats"
    """The command of the acceptance starts a new run with more repeats."""
    RESTORE = "restore"
    """The nodes are restored."""
    COMPARE = "compare"
    """The inventory is compared with the machine."""


class InvalidCause(Enum):
    """Why a figure is INVALID, and the one advice: the terminal and the page print it.

    Attributes:
        text: one or two sentences without the last full stop, for `translated`. ``{processes}``
            stands for what disturbed the figures.
        again: the command that follows.
    """

    DISTURBED = (
        N_("Stop {processes}. Then the same command repeats only the disturbed steps"),
        Again.CONTINUE,
    )
    NO_SPACE = (
        N_("Free some space, or use another scratch folder. Then measure again"),
        Again.RERUN,
    )
    ERROR_COUNTERS = (
        N_("Error counters of the node rose. Replace the part that they name, then measure again"),
        Again.RERUN,
    )
    NO_PROGRAM = (
        N_("The program or a library is missing. Check it with `proofmark stage check-programs`"),
        Again.NOTHING,
    )
    NO_END = (
        N_("The program did not end by itself. Read stderr of the step, then measure again"),
        Again.RERUN,
    )
    TIME_LIMIT = (
        N_(
            "The program did not end within its time limit. If its output shows that it was only "
            "slow, state a longer `timeout` in its case, and measure in a new run. Else remove "
            "the cause and measure again"
        ),
        Again.RERUN,
    )
    FILE_SYSTEM = (
        N_("Check the mounts of the scratch folder on the node. Then measure again"),
        Again.RERUN,
    )
    MODE = (
        N_(
            "Verify the firmware mode of the node with `proofmark modes verify`. Then measure again"
        ),
        Again.NOTHING,
    )
    BINDING = (
        N_(
            "Check the affinity of the scheduler and of the MPI. A changed machine needs a new "
            "run. Compare the machine with the inventory"
        ),
        Again.COMPARE,
    )
    IMPOSSIBLE = (
        N_("The value is faster than the hardware. Check the input and the clock of the node"),
        Again.NOTHING,
    )
    NETWORK = (
        N_("The traffic did not use the planned network. Check the settings of the MPI"),
        Again.NOTHING,
    )
    NETWORK_UNPROVEN = (
        N_("The counters of the networks are missing. Read the messages of the job"),
        Again.NOTHING,
    )
    OTHER = (
        N_("Read stdout and stderr of the step. Remove the cause. Then measure again"),
        Again.RERUN,
    )

    def __init__(self, text: str, again: Again) -> None:
        self.text, self.again = text, again


NOT_BY_RERUN = frozenset(
    cause for cause in InvalidCause if cause.again not in (Again.RERUN, Again.CONTINUE)
)
"""The causes that a further execution of the step does not remove."""


def invalid_cause(reason: Message) -> InvalidCause:
    """Return the cause of a figure that is INVALID for `reason`."""
    codes = set(reason.codes)
    return next((cause for cause, known in CODES.items() if codes & known), InvalidCause.OTHER)


CODES: Mapping[InvalidCause, frozenset[str]] = {
    InvalidCause[name]: codes
    for name, codes in shipped_data(
        "proofmark.judge", "causes.yml", dict[str, frozenset[str]]
    ).items()
}
"""The codes of each cause. The first cause with a code of the reason counts."""

WORDS = ("PASS", "FAIL", "INVALID", "UNJUDGED")
CONFIRMING = 2
"""The least number of undisturbed executions that must show a failure before a node is named for
return. They must also be more than half of the undisturbed executions of the figure."""
BEYOND = "repeats-beyond"
"""The code of a judgement by the executions that miss a limit clearly, and not by the median."""
PLANNED_ALONE = "planned-alone"
"""The code of a judgement by the planned executions, which is worse than that of all."""
UNCONFIRMED = "unconfirmed"
"""The code of the reason why a figure is measured again."""


@dataclass(frozen=True, slots=True)
class Result:
    """One figure: the median of its repeats, and its verdict.

    Attributes:
        record: the first record of the figure, with the median as value; the first invalid record
            of an INVALID figure.
        values: the values of its valid records, in the unit of `record`.
        interval: the interval of the median, with its confidence; None for a single measurement.
        retest: whether it is measured again before it counts against a node, because too few
            undisturbed executions show it, or because they do not agree.
        shown_by: the undisturbed executions whose own value fails, as ``<step>#<attempt>``.
        steps: the steps that measured it, as `proofmark rerun` takes them.
        degraded: the label of a figure of fewer nodes than intended; empty for all others.
        cause: why it is INVALID; None for all others.
    """

    record: Record
    values: tuple[float, ...]
    verdict: str
    reason: Message
    references: tuple[Judgement, ...]
    interval: Interval | None = None
    retest: bool = False
    steps: tuple[str, ...] = ()
    degraded: Message = NOTHING
    cause: InvalidCause | None = None
    shown_by: tuple[str, ...] = ()

    @property
    def rerun_helps(self) -> bool:
        """Whether further executions can change the verdict.

        They cannot if the planned executions alone fail, or if the cause is not in the execution.
        """
        settled = any(each.reason.main_code == PLANNED_ALONE for each in self.references)
        return not settled and self.cause not in NOT_BY_RERUN

    @property
    def single_run(self) -> bool:
        """Whether the figure is valid and was measured once: its noise is not known."""
        return self.record.valid and len(self.values) == 1


@dataclass(frozen=True, eq=False)
class Results:
    """The results of a run. A result is made when it is read.

    Attributes:
        degraded: the label of each step with fewer nodes than intended.
        baseline: the comparison with the accepted runs; None if there are none.
    """

    aggregates: Aggregates
    verdict: Numbers
    answers: Mapping[int, tuple[Judgement, ...]]
    fleet: Fleet
    degraded: Mapping[str, Message] = field(default_factory=dict)
    baseline: BaselineComparison | None = None
    _failed: dict[int, Result] = field(default_factory=dict, init=False, repr=False)

    def __len__(self) -> int:
        return len(self.aggregates)

    def __iter__(self) -> Iterator[Result]:
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, index: int) -> Result:
        figure = range(len(self))[index]
        if WORDS[int(self.verdict[figure])] != "FAIL":
            return self._result(figure)
        if figure not in self._failed:  # advice, page and summary read each failure
            self._failed[figure] = self._result(figure)
        return self._failed[figure]

    def _result(self, figure: int) -> Result:
        aggregates = self.aggregates
        record, values = aggregates.record(figure), aggregates.values(figure)
        fewer = self.degraded.get(record.step, NOTHING)
        result = partial(Result, record, values, steps=aggregates.steps(figure), degraded=fewer)
        if not record.valid:
            why = record.reason
            return result("INVALID", why, references=(), cause=invalid_cause(why))
        answers, word = self.references(figure), WORDS[int(self.verdict[figure])]
        reason, retest, shown = reason_of(word, answers), figure in self.again, list[str]()
        if word == "FAIL":
            for number, value in aggregates.undisturbed(figure).items():
                if any(each.outcome == "FAIL" and each.misses(value) for each in answers):
                    shown.append(number)
            retest = len(shown) < CONFIRMING
        if disturbed := int(aggregates.disturbed[figure]):
            every = disturbed + len(values)
            left_out = Message("repeats-left-out", disturbed=disturbed, repeats=every)
            reason = joined((reason, left_out))
        return result(
            word,
            reason,
            references=answers,
            interval=interval(values),
            retest=retest,
            shown_by=tuple(shown),
        )

    def disturbers(self) -> Shares:
        """Return what took CPU time from the ranks of the disturbed executions, the worst first."""
        executions = self.aggregates.records.executions
        return mean_shares(
            [each.disturbers for each in executions if each.disturbed or each.unsteady]
        )

    @property
    def single_runs(self) -> int:
        """The number of valid figures that were measured once."""
        return int(self.aggregates.single_run.sum())

    def references(self, figure: int) -> tuple[Judgement, ...]:
        """Return the judgements of a valid figure: by references, by peers and by accepted runs."""
        fleet = self.fleet.judge(figure)
        accepted = self.baseline.judge(figure) if self.baseline else ()
        return (*self.answers.get(figure, ()), *([fleet] if fleet else []), *accepted)

    @cached_property
    def again(self) -> list[int]:
        """The figures without a FAIL that miss a limit, and whose repeats do not show it."""
        found = measured_again(self.answers, self.fleet, self.baseline)
        return sorted({each for each in found if WORDS[int(self.verdict[each])] == "UNJUDGED"})

    @cached_property
    def plain(self) -> Mask:
        """Mask of the valid results that do not fail, of undisturbed repeats.

        Their fields are those of `references`, and those that all valid results have.
        """
        failed, invalid = WORDS.index("FAIL"), WORDS.index("INVALID")
        mask: Mask = ~np.isin(self.verdict, [failed, invalid])
        mask &= self.aggregates.disturbed == 0
        mask[self.again] = False
        return mask

    @cached_property
    def without_finding(self) -> Mask:
        """Mask of the plain results that are UNJUDGED, and that no limit or reference is for."""
        unjudged = self.verdict == WORDS.index("UNJUDGED")
        mask: Mask = self.plain & unjudged & ~self._limited
        return mask

    def judgements(self) -> int:
        """Return the number of judgements of all figures."""
        by_references = sum(len(judgements) for judgements in self.answers.values())
        by_baseline = self.baseline.judgements if self.baseline else 0
        return by_references + int((self.fleet.of >= 0).sum()) + by_baseline

    @property
    def _limited(self) -> Mask:
        mask: Mask = np.zeros(len(self), dtype=bool)
        mask[list(self.answers)] = True
        if self.baseline:
            mask[self.baseline.compared] = True
        return mask

    def about(self, wanted: Callable[[Record], bool], *, limited: bool = False) -> Iterator[Result]:
        """Yield the results for which `wanted` is true.

        Args:
            wanted: gets a record without node, execution and value.
        """
        chosen = self.aggregates.about(wanted)
        for figure in np.flatnonzero(chosen & self._limited if limited else chosen):
            yield self[int(figure)]

    def too_noisy(self) -> Iterator[tuple[Result, Message]]:
        """Yield the results that their limits or baseline do not pass because of their noise.

        The message states what would be seen, and how many repeats are needed.
        """
        unjudged = self.verdict == WORDS.index("UNJUDGED")
        for figure in np.flatnonzero(self._limited & unjudged).tolist():
            of_limits = (each.reason for each in self.references(figure) if each.kind != PEERS)
            if noise := next(filter(None, map(noise_in, of_limits)), None):
                yield self[figure], noise

    @cached_property
    def repeats_needed(self) -> int:
        """The repeats with which those figures could pass; 0 if none is noisy, or no number is."""
        every = chain.from_iterable(result.references for result, _ in self.too_noisy())
        return max((each.repeats_needed for each in every), default=0)

    def of(self, words: Collection[str]) -> Iterator[Result]:
        """Yield the results with these verdicts."""
        numbers = [WORDS.index(word) for word in words]
        for figure in np.flatnonzero(np.isin(self.verdict, numbers)):
            yield self[int(figure)]


def result_json(result: Result) -> dict[str, Any]:
    """Return a result in the form of ``verdict.json``."""
    stored = {
        **{name: getattr(result.record, name) for name in Record.__slots__},
        "parameters": dict(result.record.parameters),
        "values": list(result.values),
        "single_run": result.single_run,
        "degraded": result.degraded,
        "interval": result.interval and [result.interval.low, result.interval.high],
        "confidence": result.interval and result.interval.confidence,
        "verdict": result.verdict,
        **result.reason.as_json("reason"),
        "retest": result.retest,
    }
    if result.retest:
        stored["retest_reason"] = UNCONFIRMED
    stored["references"] = [judgement_json(judgement) for judgement in result.references]
    return stored


def judgement_json(judgement: Judgement) -> dict[str, Any]:
    """Return a judgement in the form of ``verdict.json``."""
    # The reason states the repeats that are needed.
    written = [name for name in Judgement.__slots__ if name != "repeats_needed"]
    fields = {name: getattr(judgement, name) for name in written}
    return {**fields, "reason_code": judgement.reason.main_code}


def reason_of(verdict: str, answers: Sequence[Judgement]) -> Message:
    """Return the reasons of the judgements that have `verdict` as outcome; of UNJUDGED: of all."""
    if verdict == "UNJUDGED":
        return joined(answer.reason for answer in answers) or Message("no-reference")
    return joined(answer.reason for answer in answers if answer.outcome == verdict)


def measured_again(
    answers: Mapping[int, Sequence[Judgement]], fleet: Fleet, accepted: BaselineComparison | None
) -> Iterator[int]:
    """Yield the figures with a judgement that misses a limit, and that the repeats do not show."""
    for figure, judgements in answers.items():
        if any(each.is_open for each in judgements):
            yield figure
    yield from fleet.again.tolist()
    yield from accepted.outcome("again").tolist() if accepted else ()


def verdicts_of(
    count: int,
    answers: Mapping[int, Sequence[Judgement]],
    fleet: Fleet,
    accepted: BaselineComparison | None,
    invalid: Iterable[bool],
) -> Numbers:
    """Return the worst outcome of each of `count` figures, as its number in `WORDS`."""
    outcomes = {word: np.zeros(count, dtype=bool) for word in WORDS}
    for figure, judgements in answers.items():
        for judgement in judgements:
            outcomes[judgement.outcome][figure] = True
    if accepted:
        outcomes["PASS"][accepted.outcome("passed")] = True
        outcomes["FAIL"][accepted.outcome("worse")] = True
    # A figure that misses a limit is not accepted by another one.
    outcomes["PASS"][[*measured_again(answers, fleet, accepted)]] = False
    outcomes["FAIL"][fleet.failed] = True
    outcomes["INVALID"] = np.asarray(invalid)
    verdicts = np.full(count, WORDS.index("UNJUDGED"), dtype=np.int64)
    for word in ("PASS", "FAIL", "INVALID"):  # the last one that is true counts
        verdicts[outcomes[word]] = WORDS.index(word)
    return verdicts

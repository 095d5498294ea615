"""The exit code and the first words of a verdict: what it is, and which kinds of limits judged."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, get_args

from proofmark.cases.reference import ELSEWHERE as ELSEWHERE
from proofmark.cases.reference import Kind
from proofmark.common.message import Message, joined
from proofmark.judge.baseline import comparison
from proofmark.judge.references.judgement import PEERS

CONTRACT, EXPECTED, FLOOR = get_args(Kind)
BASELINE = comparison.KIND
PASSING = (CONTRACT, EXPECTED, ELSEWHERE, BASELINE)
"""The kinds of limits that make a PASS."""
JUDGED_BY: Mapping[str, str] = {
    CONTRACT: "judged-contract",
    EXPECTED: "judged-expected",
    ELSEWHERE: "judged-elsewhere",
    BASELINE: "judged-baseline",
    FLOOR: "judged-floor",
    PEERS: "judged-peers",
}
"""The message of each kind of limits that judged."""
SANITY = "NO FAULT FOUND"
"""The word of a verdict without PASS and FAIL: floors and peers show no fault."""


@dataclass(frozen=True)
class Judged:
    """What one kind of limits judged: limits of the contract and floors, else figures.

    Attributes:
        total: of the limits or figures that apply to the run.
        met: of those that are PASS; of floors and peers, those without a fault.
        failed: of those that are FAIL.
        waived: of items of the contract that are not met, those that a party waived.
        minor: of the items that are not met and not waived, the minor ones.
    """

    total: int = 0
    met: int = 0
    failed: int = 0
    waived: int = 0
    minor: int = 0

    def as_json(self) -> dict[str, int]:
        """Return the form of ``verdict.json``."""
        more = {"waived": self.waived, "minor": self.minor}
        of_items = {name: count for name, count in more.items() if count}
        return {"total": self.total, "met": self.met, "failed": self.failed, **of_items}


@dataclass(frozen=True)
class Headline:
    """The first words of a verdict.

    Attributes:
        word: ``PASS``, ``FAIL``, ``INVALID``, ``UNJUDGED`` or `SANITY`.
        kinds: what each kind of limits judged, by kind; without those that judged nothing.
    """

    word: str
    kinds: Mapping[str, Judged]

    @property
    def text(self) -> Message:
        """What judged: ``14 of 14 contract limits``."""
        judged: list[Message] = []
        for kind, of in self.kinds.items():
            judged.append(Message(JUDGED_BY[kind], met=of.met, total=of.total))
            if of.waived:
                judged.append(Message("items-waived", count=of.waived))
            if of.minor:
                judged.append(Message("items-minor", count=of.minor))
        if not judged:
            return Message("judged-nothing")
        if any(kind in PASSING for kind in self.kinds):
            return joined(judged)
        return joined([*judged, Message("judged-no-limit")])

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
        return {
            "word": self.word,
            **self.text.as_json("judged"),
            "kinds": {kind: of.as_json() for kind, of in self.kinds.items()},
        }


class MeasuredCounts(Protocol):
    """The numbers of a coverage that decide the exit code."""

    @property
    def expected(self) -> int:
        """The number of planned steps."""

    @property
    def measured(self) -> int:
        """The number of steps with a record."""

    @property
    def duplicate(self) -> int:
        """The number of figures that one execution gave twice."""


def exit_code(
    counts: Mapping[str, int],
    coverage: MeasuredCounts,
    unmet: Collection[object] = (),
    enough: bool = False,
    faults: Collection[object] = (),
) -> int:
    """Return the exit code of a verdict.

    2: INVALID, or a step not measured once. 1: FAIL, or a fault that no figure has. 4: nothing was
    judged, or not everything that must be judged, or a stage failed. 0: PASS.

    Args:
        counts: the number of results by verdict.
        coverage: the planned and the measured steps.
        unmet: the limits and required metrics that were not judged, and the stages that failed.
        enough: whether floors and peers suffice, and judged a figure.
        faults: the faults of nodes that no figure has.
    """
    if counts.get("INVALID") or coverage.measured < coverage.expected or coverage.duplicate:
        return 2
    if counts.get("FAIL") or faults:
        return 1
    if unmet:
        return 4
    return 0 if counts.get("PASS") or enough else 4


def headline(code: int, kinds: Mapping[str, Judged], *, faulty: bool = False) -> Headline:
    """Return the first words of a verdict with this exit code, by what each kind judged.

    An acceptance that lacks something is UNJUDGED, not `SANITY`, if a limit could have accepted it,
    or if a stage failed (`faulty`).
    """
    used = {kind: of for kind, of in kinds.items() if of.total}
    accepting = [of for kind, of in used.items() if kind in PASSING]
    if code in (1, 2):
        word = {1: "FAIL", 2: "INVALID"}[code]
    elif code == 0 and any(of.met for of in accepting):
        word = "PASS"
    elif used and (code == 0 or not accepting) and not faulty:
        word = SANITY
    else:
        word = "UNJUDGED"
    return Headline(word, used)

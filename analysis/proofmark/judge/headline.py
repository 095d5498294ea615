"""The exit code and the first words of a verdict, and what a run must have judged for them.

Items of the contract that the run measures replace the list of the suite: what the parties agreed
decides, and nothing else has to be judged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, get_args

import numpy as np
from pydantic import Field

from proofmark.cases.case import TELEMETRY
from proofmark.cases.reference import Kind
from proofmark.cases.suite import Required
from proofmark.cases.vocabulary import PART_AXES, RESOLVED_AXES, SENSOR
from proofmark.common.message import Message, Term, joined
from proofmark.judge import baseline
from proofmark.judge.aggregate import Aggregates
from proofmark.judge.coverage import Coverage
from proofmark.judge.fleet.populations import Kinds
from proofmark.judge.references.judgement import PEERS, traits
from proofmark.judge.results import WORDS, Results
from proofmark.records.columns import VIRTUAL

CONTRACT, EXPECTED, FLOOR = get_args(Kind)
BASELINE = baseline.KIND
PASSING = (CONTRACT, EXPECTED, BASELINE)
"""The kinds of limits that make a PASS."""
JUDGED_BY: Mapping[str, str] = {
    CONTRACT: "judged-contract",
    EXPECTED: "judged-expected",
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
        met: of those that are PASS; of floors and peers, those without a fault.
    """

    total: int = 0
    met: int = 0
    failed: int = 0
    minor: int = 0

    def as_json(self) -> dict[str, int]:
        """Return the form of ``verdict.json``."""
        minor = {"minor": self.minor} if self.minor else {}
        return {"total": self.total, "met": self.met, "failed": self.failed, **minor}


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


def exit_code(
    counts: Mapping[str, int],
    coverage: Coverage,
    unmet: Collection[object] = (),
    enough: bool = False,
    faults: Collection[object] = (),
) -> int:
    """Return the exit code of a verdict.

    2: INVALID, or a step not measured once. 1: FAIL, or a fault that no figure has. 4: nothing was
    judged, or not everything that must be judged, or a stage failed. 0: PASS.

    Args:
        coverage: the planned and the measured steps.
        unmet: the limits and required metrics that were not judged, and the stages that failed.
        enough: whether floors and peers suffice, and judged a figure.
    """
    if counts.get("INVALID") or coverage.measured < coverage.expected or coverage.duplicate:
        return 2
    if counts.get("FAIL") or faults:
        return 1
    if unmet:
        return 4
    return 0 if counts.get("PASS") or enough else 4


def headline(
    code: int, kinds: Mapping[str, Judged], *, faulty: bool = False, virtual: bool = False
) -> Headline:
    """Return the first words of a verdict with this exit code, by what each kind judged.

    An acceptance that lacks something is UNJUDGED, not `SANITY`, if a limit could have accepted it,
    or if a stage failed (`faulty`). `virtual` figures accept no machine: their word is never PASS.
    """
    used = {kind: of for kind, of in kinds.items() if of.total}
    accepting = [of for kind, of in used.items() if kind in PASSING]
    if code in (1, 2):
        word = {1: "FAIL", 2: "INVALID"}[code]
    elif code == 0 and any(of.met for of in accepting):
        word = SANITY if virtual else "PASS"
    elif used and (code == 0 or not accepting) and not faulty:
        word = SANITY
    else:
        word = "UNJUDGED"
    return Headline(word, used)


_COUNTS = {
    **{"passed": "PASS", "failed": "FAIL", "invalid": "INVALID", "unjudged": "UNJUDGED"},
    **{"measured": "measured", "expected": "expected"},
}


PrintedKind = Annotated[str, Field(pattern=f"^({'|'.join((*PASSING, FLOOR, PEERS))})$")]


def line_of(word: str, kinds: Mapping[str, Judged], counts: Mapping[str, int]) -> Message:
    """Return a verdict with its counts, as in the last lines of an acceptance.

    Args:
        counts: of results by verdict, and of steps: ``expected`` and ``measured``.
    """
    return Message(
        "past-verdict",
        text=Term(word),
        judged=Headline(word, kinds).text,
        **{key: counts.get(name, 0) for key, name in _COUNTS.items()},
    )


NOT_MEASURED = Message("no-row")


@dataclass(frozen=True)
class NodeClass:
    """Nodes, pairs or sets of nodes of one kind of hardware in one mode.

    Attributes:
        hardware: the processor, sockets and cores; empty if they are not known.
        part: the memory, the distance and the file system that were measured, if they were chosen.
    """

    hardware: str
    nodes: int
    mode: str
    part: tuple[str, ...]

    def __str__(self) -> str:
        several = f"{self.nodes} nodes of " if self.nodes > 1 else ""
        mode = () if self.mode == "current" else (f"mode {self.mode}",)
        return "; ".join([f"{several}{self.hardware or 'unknown hardware'}", *mode, *self.part])


@dataclass
class _Found:
    """The figures of one metric on one class of nodes."""

    figures: list[int] = field(default_factory=list)
    judged: bool = False


def unjudged(
    required: Sequence[Required],
    figures: Aggregates,
    results: Results,
    kinds: Kinds,
    sanity: bool = False,
) -> Iterator[Message]:
    """Yield each required metric that has neither PASS nor FAIL on a class of nodes, and why.

    A class is one on which the case was measured. An emulated figure only has to be valid, because
    its speed is not that of a real machine. With `sanity` it has to be compared with a floor.

    Args:
        sanity: whether the suite only looks for faults.
    """
    for each in required:
        for metric in each.metrics:
            for of, found in _classes(each, metric, figures, results, kinds).items():
                floor = sanity and any(_with_floor(each, results) for each in found.figures)
                if not (found.judged or floor):
                    what = {"case": each.case, "metric": metric, "hardware": f"{of}"}
                    yield Message("required-open", text=_reason(found.figures, results), **what)


def _with_floor(figure: int, results: Results) -> bool:
    answers = results.answers.get(figure, ())
    return any(answer.evaluated and answer.kind == FLOOR for answer in answers)


def _classes(
    required: Required, metric: str, figures: Aggregates, results: Results, kinds: Kinds
) -> dict[NodeClass, _Found]:
    records = figures.records
    kind, hardware = kinds.numbers(records.nodes)
    passed, failed, invalid = (WORDS.index(word) for word in ("PASS", "FAIL", "INVALID"))
    classes: dict[NodeClass, _Found] = {}
    for number, measurand in enumerate(records.measurands):
        if measurand.case != required.case:
            continue
        known = traits(records.of_measurand(number))
        if (SENSOR in known) != (metric in TELEMETRY):
            continue  # a job of several nodes has the sensors of each of them
        if not known.keys().isdisjoint(PART_AXES):
            continue  # a part of a node is compared with its other parts
        if any(known.get(key, value) != value for key, value in required.where.items()):
            continue
        part = tuple(f"{axis} {known[axis]}" for axis in RESOLVED_AXES if axis in known)
        wanted = measurand.metric == metric and required.where.keys() <= known.keys()
        of_measurand = np.flatnonzero(figures.measurand == number)
        of_kind = kind[figures.node[of_measurand]]
        for place in np.unique(of_kind).tolist():
            members = of_measurand[of_kind == place]
            name, count = hardware[place]
            of = NodeClass(name, count, measurand.mode, part)
            found = classes.setdefault(of, _Found())
            if not wanted:
                continue
            found.figures += members.tolist()
            verdicts = results.verdict[members]
            if measurand.origin in VIRTUAL:
                found.judged |= bool((verdicts != invalid).any())
            found.judged |= bool(np.isin(verdicts, (passed, failed)).any())
    return classes


def _reason(figures: Sequence[int], results: Results) -> Message:
    """Return the reason of the first figure with a reference, else of the first figure."""
    if not figures:
        return NOT_MEASURED
    with_reference = (figure for figure in figures if results.answers.get(figure))
    return results[next(with_reference, figures[0])].reason

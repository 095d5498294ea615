"""The judge of adopted runs: what outputs without proofs show, and what they leave open.

Their values are read and judged as those of an own run. A judgement that needs a missing proof is
UNJUDGED, and never PASS (docs/packages/adopt.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from proofmark.cases.reference import Reference
from proofmark.cases.suite import Benchmarks
from proofmark.common.expressions import variables_in
from proofmark.common.message import Message, joined
from proofmark.common.nodesets import hosts_of
from proofmark.judge.additions import KindResult
from proofmark.judge.evidence import Evidence
from proofmark.judge.judging import KindJudge
from proofmark.judge.references.elsewhere import ElsewhereReference
from proofmark.judge.references.judgement import Judgement, Terms, judging_bounds, traits
from proofmark.judge.verdict import Verdict
from proofmark.packages.foreign.adopted import KIND, adopted_files
from proofmark.packages.foreign.copies import copied_files, edited_copies
from proofmark.records.columns import Record
from proofmark.runs.run import Run

MODE = "mode"
CORES = "cores"
SYSTEM = "system"
PARAMETER = "parameter"
FILE_SYSTEM = "file_system"
NETWORK = "network"
FACTS = "facts"
REASONS: Mapping[str, Message] = {
    MODE: Message("imported-mode"),
    CORES: Message("imported-cores"),
    SYSTEM: Message("imported-system"),
    PARAMETER: Message("imported-parameter"),
    FILE_SYSTEM: Message("imported-file-system"),
    NETWORK: Message("imported-network"),
    FACTS: Message("imported-facts"),
}
"""Why a figure stays UNJUDGED, by the proof that is missing."""


@dataclass(frozen=True)
class AdoptedTerms(Terms):
    """The terms of the judgements of one adopted run.

    Attributes:
        network: whether own runs of the site must prove the network between nodes.
        tolerance: that of the site for expected values; None is that of each value.
    """

    largest_ratio: ClassVar[float] = 10.0

    benchmarks: Benchmarks
    network: bool
    tolerance: float | None = None

    def judge(
        self, record: Record, reference: Reference, compared: Callable[[], Judgement]
    ) -> Judgement:
        """Return the judgement of an adopted figure.

        Args:
            reference: a reference that applies to it.
            compared: returns the judgement of an own figure with this value.
        """
        if missing := _to_compare(record, reference):
            bounds = judging_bounds(reference, self.tolerance)
            return Judgement(
                reference.kind, reference.source, "UNJUDGED", REASONS[missing], **bounds._asdict()
            )
        judgement = compared()
        missing = self._to_pass(record)
        if judgement.outcome != "PASS" or not missing:
            return judgement
        reason = joined((REASONS[missing], judgement.reason))
        without = replace(judgement, ratios=(), visible=None)
        return replace(without, outcome="UNJUDGED", reason=reason)

    def _to_pass(self, record: Record) -> str:
        """Return the proof that a PASS of a figure lacks, or an empty string.

        It is one without which an own figure of this case is INVALID. A FAIL does not need it: a
        value that misses its limit shows no acceptance on any file system or network.
        """
        case = self.benchmarks.case(record.case)
        if case.writes is not None:
            return FILE_SYSTEM
        several = len(hosts_of(record.node)) > 1
        return NETWORK if several and self.network and case.network_bytes else ""


def missing_proof(judgement: Judgement) -> str:
    """Return the key of `REASONS` of a judgement that a missing proof prevented, or ""."""
    if judgement.outcome != "UNJUDGED":
        return ""
    found = (proof for proof, why in REASONS.items() if judgement.reason.main_code == why.code)
    return next(found, "")


def _to_compare(record: Record, reference: Reference) -> str:
    """Return the proof without which it is not known whether the reference is for the figure."""
    if reference.mode is not None:
        return MODE
    if reference.system is not None:
        return SYSTEM
    if reference.rule is not None or isinstance(reference, ElsewhereReference):
        return FACTS
    if reference.all_cores:
        return CORES
    if reference.against is not None:
        used = variables_in(reference.against.times)
        return PARAMETER if used - traits(record).keys() else ""
    return ""


LEAST_HOSTS = 3
"""The least number of hosts of a group: separate pairs of one machine are no groups."""
SWEPT = 3
"""Hosts of one sweep were paired with the same others: a part of this many of them counts."""


def measured_groups(nodes: Iterable[str]) -> list[tuple[str, ...]]:
    """Return the groups of hosts that were measured against each other; nothing if it is one.

    Only pairs of a sweep connect hosts. A single pair between two sweeps connects nothing, and a
    measurement of more hosts says nothing of pairs.

    Args:
        nodes: the nodes of records: a host, or the set of hosts of one measurement.
    """
    paired: dict[str, set[str]] = {}
    for pair in filter(lambda hosts: len(hosts) == 2, map(hosts_of, dict.fromkeys(nodes))):
        for host in pair:
            paired.setdefault(host, set()).update(pair)
    groups: list[tuple[str, ...]] = []
    left = dict.fromkeys(sorted(paired))
    while left:
        waiting, group = [next(iter(left))], set[str]()
        while waiting:
            host = waiting.pop()
            if host in left:
                del left[host]
                group.add(host)
                waiting += (each for each in paired[host] if _are_swept(paired, host, each))
        if len(group) >= LEAST_HOSTS:
            groups.append(tuple(sorted(group)))
    return sorted(groups) if len(groups) > 1 else []


def _are_swept(paired: Mapping[str, set[str]], one: str, two: str) -> bool:
    """Return whether enough other hosts were paired with both."""
    fewer = min(len(paired[one]), len(paired[two])) - 2
    return SWEPT * (len(paired[one] & paired[two]) - 2) >= max(fewer, 1)


class ByOthers(KindResult):
    """That others produced the outputs."""

    kind = KIND
    can_repeat = False

    @property
    def label(self) -> Message:
        """The fact."""
        return Message("adopted-run")

    @property
    def last_line(self) -> Message:
        """The same in two words."""
        return Message("adopted-short")

    @property
    def note(self) -> Message:
        """What is missing."""
        return Message("adopted-note")

    def as_json(self) -> bool:
        """Return true: ``verdict.json`` of other runs lacks the key."""
        return True


class AdoptedJudge(KindJudge):
    """Judges without the proofs that an own run has."""

    def judge(self, run: Run, evidence: Evidence) -> Verdict:
        """Return the verdict by the terms of the run, with the copies among its outputs."""
        files = adopted_files(run.files)
        records, benchmarks = evidence.records, evidence.benchmarks
        terms = AdoptedTerms(benchmarks, evidence.network.proven, evidence.judge_expected.tolerance)
        shown = replace(
            evidence,
            sources={step: file.source for step, file in files.items()},
            terms=terms,
            groups=measured_groups(records.nodes) if run.plan.site == KIND else (),
            faults=(copied_files(files, run.plan), edited_copies(records, benchmarks)),
        )
        return replace(super().judge(run, shown), of_kind=ByOthers())

"""What a judgement of imported figures needs besides their values (docs/packages/adopt.md).

An own run proves its conditions, else its figures are INVALID. Imported outputs have no such
proof. Their values are read. A judgement that needs a missing proof is UNJUDGED, and never PASS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from proofmark.cases.reference import Reference
from proofmark.cases.suite import Benchmarks
from proofmark.common.expressions import variables_in
from proofmark.common.message import Message, joined
from proofmark.common.nodesets import hosts_of
from proofmark.judge.references.elsewhere import ElsewhereReference
from proofmark.judge.references.judgement import Judgement, judging_bounds, traits
from proofmark.records.columns import Record

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
class ImportedRules:
    """The rules for the judgements of one run.

    Attributes:
        network: whether own runs of the site must prove the network between nodes.
        tolerance: that of the site for expected values; None is that of each value.
    """

    benchmarks: Benchmarks
    network: bool
    tolerance: float | None = None

    def judge(
        self, record: Record, reference: Reference, compared: Callable[[], Judgement]
    ) -> Judgement:
        """Return the judgement of an imported figure.

        Args:
            reference: a reference that applies to it.
            compared: returns the judgement of an own figure with this value.
        """
        if missing := _to_compare(record, reference):
            of = (reference.kind, reference.source, "UNJUDGED", REASONS[missing])
            return Judgement(*of, None, None, *judging_bounds(reference, self.tolerance))
        judgement = compared()
        missing = self._to_pass(record)
        if judgement.outcome != "PASS" or not missing:
            return judgement
        reason = joined((REASONS[missing], judgement.reason))
        without = replace(judgement, ratio=None, ratios=(), visible=None)
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

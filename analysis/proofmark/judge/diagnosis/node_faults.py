"""The judges of nodes: each yields the faults of nodes that no figure has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from proofmark.common.message import Message
from proofmark.judge.diagnosis.copied_files import copied_files
from proofmark.judge.diagnosis.edited_copies import edited_copies
from proofmark.judge.diagnosis.hardware_errors import error_faults
from proofmark.judge.diagnosis.implausible import (
    above_nominal,
    copied_outputs,
    same_machines,
    too_good,
)
from proofmark.judge.diagnosis.rail_faults import rail_faults
from proofmark.judge.diagnosis.unlike_parts import unlike_parts
from proofmark.judge.evidence import Evidence
from proofmark.judge.fleet.fleet import Fleet
from proofmark.judge.references.judgement import Judgement, OfCase
from proofmark.judge.stated_parts import Statements, ordered_hardware, part_faults
from proofmark.site.installed_parts import declared_parts

NodeFaults = Mapping[str, tuple[Message, ...]]
"""The faults of each node that no figure has."""


def node_faults(
    evidence: Evidence,
    stated: Mapping[str, Statements],
    fleet: Fleet,
    judged: Mapping[OfCase, Sequence[tuple[int, Judgement]]],
) -> Iterator[NodeFaults]:
    """Yield what each judge finds.

    Args:
        evidence: of the run.
        stated: what is stated about the parts of each node.
        fleet: the comparison of like nodes.
        judged: the figures that each reference judged.
    """
    figures, benchmarks, facts = evidence.figures, evidence.benchmarks, evidence.facts
    yield part_faults(facts, stated)
    yield rail_faults(facts, declared_parts(evidence.node), ordered_hardware(facts, stated))
    yield unlike_parts(figures, benchmarks)
    yield error_faults(evidence.probes)
    yield same_machines(facts, min(evidence.origins, default=""))
    yield copied_outputs(evidence.records, benchmarks)
    yield copied_files(evidence.adopted, evidence.plan)
    yield edited_copies(evidence.records, benchmarks) if evidence.adopted else {}
    yield too_good(figures, benchmarks, fleet, judged)
    yield above_nominal(figures, judged)

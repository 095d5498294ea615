"""The judges of nodes: each yields the faults of nodes that no figure has."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from proofmark.common.host_names import canonical
from proofmark.common.message import Message
from proofmark.common.nodesets import folded
from proofmark.judge.diagnosis.edited_copies import edited_copies
from proofmark.judge.diagnosis.hardware_errors import error_faults
from proofmark.judge.diagnosis.implausible import (
    CHANCE,
    Faults,
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
from proofmark.plan.plan import Plan
from proofmark.plan.step import StepInstance
from proofmark.runs.adopted import AdoptedFile
from proofmark.site.installed_parts import declared_parts

EQUAL = 1e-4
"""The probability that two outputs of like nodes are equal by chance if they print times of day.

They begin and end in the same second, and have the same figure, of which three digits differ."""
FEW_FIGURES, MORE = 3, 0.1
"""An output prints three figures that are equal anyway, or follow from each other. Each further one
makes chance less likely by this factor."""
LEAST_MOMENTS = 2


def copied_files(adopted: Mapping[str, AdoptedFile], plan: Plan) -> Faults:
    """Return the nodes that have one output with other nodes: all its numbers and times are equal.

    The words can differ: a copy is edited to have the name of another host. The more outputs are
    equal, the less likely is chance: nodes that start together can print equal times. An output
    without two times of day proves nothing: its figures can have few digits.

    Args:
        adopted: the files, by the folder of their step.
        plan: of the run.
    """
    of_steps = {step.id: tuple(step.nodes) for step in plan.steps()}
    cases = {step.id: step.case for step in plan.steps()}
    owners: dict[tuple[str, str, int], set[tuple[str, ...]]] = {}
    files: dict[str, int] = {}
    for folder, file in adopted.items():
        step = StepInstance.parse(folder)
        case = cases.get(step.step, "")
        files[case] = files.get(case, 0) + 1
        if file.numbers and file.moments >= LEAST_MOMENTS and case:
            nodes = (step.name,) if step.name else of_steps[step.step]
            owners.setdefault((case, file.numbers, file.figures), set()).add(nodes)
    found: dict[str, list[Message]] = {}
    for (case, _, figures), of_nodes in owners.items():
        alike = len(of_nodes)
        if alike < 2 or not _proven(files[case], alike, figures):
            continue
        hosts = sorted({canonical(host) for nodes in of_nodes for host in nodes})
        message = Message("same-file", case=case, nodes=folded(hosts))
        for nodes in of_nodes:
            for host in nodes:
                found.setdefault(host, []).append(message)
    return {host: tuple(messages) for host, messages in found.items()}


def _proven(files: int, alike: int, figures: int) -> bool:
    """Return whether chance hardly ever makes `alike` of `files` equal."""
    groups = math.log10(math.comb(files, alike))
    equal = math.log10(EQUAL) + max(0, figures - FEW_FIGURES) * math.log10(MORE)
    return groups + (alike - 1) * equal < math.log10(CHANCE)


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

"""Files that were adopted as the outputs of several nodes although they are one output."""

from __future__ import annotations

import math
from collections.abc import Mapping

from proofmark.common.host_names import canonical
from proofmark.common.message import Message
from proofmark.common.nodesets import folded
from proofmark.judge.diagnosis.implausible import CHANCE, Faults
from proofmark.plan.plan import Plan
from proofmark.plan.step import StepInstance
from proofmark.runs.adopted import AdoptedFile

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

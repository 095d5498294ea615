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

EQUAL = 1e-3
"""The probability that two files of like nodes are equal by chance if they print times of day.

They begin and end in the same second, and have the same figure, of which three digits differ."""
LEAST_MOMENTS = 2


def copied_files(adopted: Mapping[str, AdoptedFile], plan: Plan) -> Faults:
    """Return the nodes that have one file with other nodes.

    The more files are equal, the less likely is chance: nodes that start together can print equal
    times. A file without two times of day proves nothing: its figures can have few digits.

    Args:
        adopted: the files, by the folder of their step.
        plan: of the run.
    """
    of_steps = {step.id: tuple(step.nodes) for step in plan.steps()}
    cases = {step.id: step.case for step in plan.steps()}
    owners: dict[tuple[str, str], dict[tuple[str, ...], str]] = {}
    files: dict[str, int] = {}
    for folder, file in adopted.items():
        step = StepInstance.parse(folder)
        case = cases.get(step.step, "")
        files[case] = files.get(case, 0) + 1
        if file.sha256 and file.moments >= LEAST_MOMENTS and case:
            nodes = (step.name,) if step.name else of_steps[step.step]
            owners.setdefault((case, file.sha256), {}).setdefault(nodes, folder)
    found: dict[str, list[Message]] = {}
    for (case, digest), of_nodes in owners.items():
        alike = len(of_nodes)
        if alike < 2 or not _proven(files[case], alike):
            continue
        hosts = sorted({canonical(host) for nodes in of_nodes for host in nodes})
        message = Message("same-file", case=case, nodes=folded(hosts), digest=digest[:12])
        for nodes in of_nodes:
            for host in nodes:
                found.setdefault(host, []).append(message)
    return {host: tuple(messages) for host, messages in found.items()}


def _proven(files: int, alike: int) -> bool:
    """Return whether chance hardly ever makes `alike` of `files` equal."""
    groups = math.log10(math.comb(files, alike))
    return groups + (alike - 1) * math.log10(EQUAL) < math.log10(CHANCE)

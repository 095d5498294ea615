"""The plan of a run whose outputs others produced: one measurement for each output in a file.

Such a plan has no command, no rank count and no cost. Its steps only relate files to nodes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from proofmark.cases.banners import Lines
from proofmark.cases.suite import Benchmarks
from proofmark.cases.vocabulary import Scalar
from proofmark.plan.expansion import content_digest
from proofmark.plan.plan import Group, Job, Plan, Totals
from proofmark.plan.step import Step
from proofmark.site.hardware import UNRECORDED
from proofmark.site.inventory import Site

SUITE = "adopted"
"""The name that the plan has instead of that of a suite."""


@dataclass(frozen=True)
class Output:
    """The output of a program that others produced: a file, or its part of one.

    Attributes:
        source: its path below the adopted folder.
        case: the case whose reader reads it.
        nodes: the hosts of the site that it was measured on, at least one.
        parameters: the parameters that its path states.
        lines: its lines in the file; empty: all.
    """

    source: str
    case: str
    nodes: tuple[str, ...]
    parameters: Mapping[str, Scalar] = field(default_factory=dict)
    lines: Lines = ()


def adopted_plan(
    outputs: Iterable[Output], benchmarks: Benchmarks, site: Site
) -> tuple[Plan, dict[str, Output]]:
    """Return the plan of `outputs`, and each output by the folder of its step below ``steps/``.

    The first file of each node is one step, the second file of each node another one: repeats of
    a node are in different steps. A file of several nodes is a step of its own. Files with other
    parameters in their paths are in other steps.

    Args:
        outputs: at least one.
        benchmarks: the cases.
        site: the site, whose hosts include all nodes of `outputs`.
    """
    numbers = count(1)
    order = {host: number for number, host in enumerate(site.hosts)}
    steps: list[Step] = []
    folders: dict[str, Output] = {}
    for members in _groups(outputs):
        for part in _rounds(members):
            first = part[0]
            part.sort(key=lambda output: order[output.nodes[0]])
            alone = len(first.nodes) == 1
            nodes = [node for output in part for node in output.nodes]
            step = _step(f"{next(numbers):04d}-{first.case}", first, nodes, benchmarks, alone=alone)
            steps.append(step)
            folders |= {
                f"{step.id}/{output.nodes[0]}" if alone else step.id: output for output in part
            }
    cases = {step.case: benchmarks.case(step.case) for step in steps}
    plan = Plan(
        digest="",
        site=site.name,
        partition=site.partition_name,
        suite=SUITE,
        system=site.partition_name,
        groups=[
            Group(mode=UNRECORDED, environment=site.partition.environment, jobs=_jobs(steps)),
        ],
        totals=Totals(
            jobs=0, steps=len(steps), node_hours=0, bytes=0, scratch_peak_bytes=0, wall_s=0
        ),
        cases={name: content_digest(case.model_dump(mode="json")) for name, case in cases.items()},
        current_mode=UNRECORDED,
        fewer_nodes=_fewer_nodes(steps, site),
        imported=True,
    )
    sources = {folder: output.source for folder, output in folders.items()}
    content = [plan.model_dump(mode="json"), site.partition.model_dump(mode="json"), sources]
    return plan.model_copy(update={"digest": content_digest(content)}), folders


def _groups(outputs: Iterable[Output]) -> list[list[Output]]:
    """Return the outputs with the same case and parameters, of one node or of several nodes."""
    groups: dict[tuple[str, str, bool], list[Output]] = {}
    for output in sorted(outputs, key=lambda output: output.source):
        parameters = json.dumps(dict(output.parameters), sort_keys=True)
        key = (output.case, parameters, len(output.nodes) > 1)
        groups.setdefault(key, []).append(output)
    return [members for _, members in sorted(groups.items())]


def _rounds(members: Sequence[Output]) -> Iterator[list[Output]]:
    """Yield the first file of each node, then the second ones; a file of several nodes alone."""
    if len(members[0].nodes) > 1:
        yield from ([output] for output in members)
        return
    by_number: dict[int, list[Output]] = {}
    seen: dict[str, int] = {}
    for output in members:
        number = seen[output.nodes[0]] = seen.get(output.nodes[0], 0) + 1
        by_number.setdefault(number, []).append(output)
    yield from by_number.values()


def _step(
    name: str, output: Output, nodes: Sequence[str], benchmarks: Benchmarks, *, alone: bool
) -> Step:
    case = benchmarks.case(output.case)
    return Step(
        id=name,
        case=output.case,
        repeat=1,
        nodes=list(nodes),
        ranks=0,
        threads=0,
        placement="",
        parameters=dict(output.parameters),
        derived={},
        package=case.package,
        program="",
        launch=case.launch,
        arguments=[],
        environment={},
        inputs={},
        output="stdout",
        variants={},
        cpus=[],
        seconds=0,
        timeout=0,
        bytes=0,
        scope="each-node" if alone else "job",
    )


def _jobs(steps: Sequence[Step]) -> list[Job]:
    by_nodes: dict[tuple[str, ...], list[Step]] = {}
    for step in steps:
        by_nodes.setdefault(tuple(step.nodes), []).append(step)
    return [
        Job(id=f"00-{number:04d}", nodes=list(nodes), steps=members)
        for number, (nodes, members) in enumerate(by_nodes.items(), start=1)
    ]


def _fewer_nodes(steps: Sequence[Step], site: Site) -> dict[str, int]:
    """Return the cases of single nodes that some hosts lack (docs/design/cases.md)."""
    hosts = len(site.partition_hosts or site.hosts)
    together = {step.case for step in steps if step.scope == "job"}
    nodes: dict[str, set[str]] = {}
    for step in steps:
        if step.case not in together:
            nodes.setdefault(step.case, set()).update(step.nodes)
    return {case: hosts for case, known in nodes.items() if len(known) < hosts}

"""The plan: modes x cases x placements of one suite on one partition, expanded, ordered, costed.

Pure: facts and models in, a `Plan` out. The plan names programs by package, not by path: it
stands before anything is installed, and its digest does not depend on where that will be.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from proofmark.cases import AXES, Benchmarks, Case, SuiteUse, reference_mistakes
from proofmark.errors import BadInput, bad_input
from proofmark.expressions import render
from proofmark.placement import place
from proofmark.site import Site
from proofmark.topology import Topology

SCRATCH = "{scratch}"
"""Stands in arguments and inputs for the step's own scratch folder until the step is written."""

Scalar = str | int | float
Cpus = tuple[int, tuple[int, ...]]
"""One rank: its node's index in the step's nodes, and its CPUs in the order of its threads."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Step(_Model):
    """One command of the plan.

    ``parameters`` are the sweep's own axes, ``derived`` what the case computes from them.
    ``cpus`` has one entry per rank and is empty where the program places its own processes;
    ``seconds`` and ``bytes`` are the expected wall time and the most it leaves in scratch.
    """

    id: str
    case: str
    repeat: int
    nodes: list[str]
    ranks: int
    threads: int
    placement: str
    parameters: dict[str, Scalar]
    derived: dict[str, Scalar]
    package: str
    program: str
    launch: Literal["mpi", "threads", "process"]
    arguments: list[str]
    environment: dict[str, str]
    inputs: dict[str, str]
    output: str
    variants: dict[str, str]
    cpus: list[Cpus]
    seconds: float
    timeout: int
    bytes: int


class Job(_Model):
    """What the scheduler sees: steps that share a set of nodes."""

    id: str
    nodes: list[str]
    steps: list[Step]


class Group(_Model):
    """Jobs that need the same mode of the machine and the same build."""

    mode: str
    environment: str
    jobs: list[Job]


class Totals(_Model):
    """Cost of a plan. ``scratch_peak_bytes`` is the most that stands in scratch at one time."""

    jobs: int
    steps: int
    node_hours: float
    bytes: int
    scratch_peak_bytes: int
    wall_s: float


class Plan(_Model):
    """Everything one acceptance will do."""

    digest: str
    site: str
    partition: str
    suite: str
    system: str
    groups: list[Group]
    totals: Totals
    cases: dict[str, str]

    def steps(self) -> Iterator[Step]:
        """Yield every step in the order of execution."""
        for group in self.groups:
            for job in group.jobs:
                yield from job.steps


@dataclass(frozen=True)
class Machine:
    """What the plan must know of one node of the partition."""

    symbols: Mapping[str, Any]
    topology: Topology


def make_plan(benchmarks: Benchmarks, suite: str, site: Site, machine: Machine) -> Plan:
    """Expand `suite` on the partition of `site`.

    Raises:
        BadInput: unknown suite, no case in it, a sweep that expands to nothing, a placement that
            the machine cannot hold, or a contract limit that can never judge.
    """
    for index, limit in enumerate(site.partition.limits):
        key = f"partition.limits.{index}"
        if wrong := [*reference_mistakes(site.facts, key, limit, limit.case, benchmarks.cases)]:
            raise BadInput(*wrong)
    repeats = benchmarks.suite(suite).repeats
    members = benchmarks.members(suite)
    if not members:
        raise bad_input(benchmarks.folder, suite, "a suite that no case joins", "a case with it")
    groups: list[Group] = []
    numbers = itertools.count(1)
    for mode in site.partition.modes:
        drafts = [
            draft
            for repeat in range(1, repeats + 1)
            for name, case in members.items()
            for draft in _expand(benchmarks, name, case, suite, site, machine, repeat)
        ]
        steps = [
            draft.model_copy(update={"id": f"{next(numbers):04d}-{draft.id}"}) for draft in drafts
        ]
        environment = site.partition.environment
        groups.append(Group(mode=mode, environment=environment, jobs=_jobs(steps, len(groups))))
    digests = {name: content_digest(case.model_dump(mode="json")) for name, case in members.items()}
    body = {
        "site": site.name,
        "partition": site.partition_name,
        "suite": suite,
        "system": site.partition_name,
        "groups": groups,
        "totals": _totals(groups),
        "cases": digests,
    }
    draft_plan = Plan(digest="", **body)
    # A run keeps its partition's facts, such as the scratch: with others it is another run.
    decided = [draft_plan.model_dump(mode="json"), site.partition.model_dump(mode="json")]
    digest = content_digest(decided)
    return draft_plan.model_copy(update={"digest": digest})


def content_digest(content: Any) -> str:
    """Return the SHA-256 of `content` as canonical JSON."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _expand(
    benchmarks: Benchmarks,
    name: str,
    case: Case,
    suite: str,
    site: Site,
    machine: Machine,
    repeat: int,
) -> list[Step]:
    file = benchmarks.folder / f"{name}.yml"
    use = case.suites[suite]
    points = list(_points(case, use, machine, f"{file}", suite))
    if not points:
        found = f"{case.where!r}, which no point of the sweep of {suite} satisfies"
        raise bad_input(file, "where", found, "at least one point")
    steps = [_step(file, name, case, use, point, site, machine, repeat) for point in points]
    return _label(name, points, steps)


def _points(
    case: Case, use: SuiteUse, machine: Machine, file: str, suite: str
) -> Iterator[dict[str, Any]]:
    """Yield the sweep's points that satisfy the case's ``where``, with ``let`` values added."""
    axes = {"nodes": 1, "ranks": 1, "threads": 1, **case.sweep, **use.sweep}
    if case.launch != "process":
        axes.setdefault("placement", "close")
    values: dict[str, list[Any]] = {}
    for axis, given in axes.items():
        key = f"suites.{suite}.sweep.{axis}" if axis in use.sweep else f"sweep.{axis}"
        value = render(given, machine.symbols, file=file, key=key)
        values[axis] = value if isinstance(value, list) else [value]
        if not values[axis]:
            raise bad_input(file, key, f"{given!r}, which gives no point", "at least one point")
    for combination in itertools.product(*values.values()):
        # A point's own number of nodes hides the partition's total.
        point = dict(zip(values, combination, strict=True))
        for letter, expression in {**case.let, **use.let}.items():
            scope = {**machine.symbols, **point}
            point[letter] = render(expression, scope, file=file, key=f"let.{letter}")
        scope = {**machine.symbols, **point}
        wanted = case.where is None or render(case.where, scope, file=file, key="where")
        if not isinstance(wanted, bool):
            raise bad_input(file, "where", repr(case.where), "a comparison in braces")
        if wanted:
            yield point


def _step(
    file: Any,
    name: str,
    case: Case,
    use: SuiteUse,
    point: Mapping[str, Any],
    site: Site,
    machine: Machine,
    repeat: int,
) -> Step:
    scope = {**machine.symbols, **point, "scratch": SCRATCH}

    def rendered(value: Any, key: str) -> Any:
        return render(value, scope, file=file, key=key)

    lets = {**case.let, **use.let}
    nodes, ranks, threads = (
        _count(point[axis], file, f"sweep.{axis}", least=1)
        for axis in ("nodes", "ranks", "threads")
    )
    if nodes > len(site.hosts):
        raise bad_input(file, "sweep.nodes", f"{nodes} nodes", f"at most {len(site.hosts)} of -l")
    seconds = _number(rendered(case.cost.seconds, "cost.seconds"), file, "cost.seconds", least=0)
    timeout = 60 + 10 * seconds
    if case.timeout is not None:
        timeout = _number(rendered(case.timeout, "timeout"), file, "timeout", least=1)
    return Step(
        id="",
        case=name,
        repeat=repeat,
        nodes=list(site.hosts[:nodes]),
        ranks=ranks,
        threads=threads,
        placement=str(point.get("placement", "")),
        # class_ is how an expression spells class, which Python keeps for itself.
        parameters={
            key.rstrip("_"): point[key] for key in point if key not in AXES and key not in lets
        },
        derived={key.rstrip("_"): point[key] for key in lets},
        package=case.package,
        program=str(rendered(case.program, "program")),
        launch=case.launch,
        arguments=[str(rendered(item, "arguments")) for item in case.arguments],
        environment={
            key: str(rendered(item, f"environment.{key}")) for key, item in case.environment.items()
        },
        inputs={key: str(rendered(text, f"inputs.{key}")) for key, text in case.inputs.items()},
        output=case.output,
        variants={key: str(point[key]) for key in case.variants if key in point},
        cpus=_cpus(file, case, point, nodes, ranks, threads, machine.topology),
        seconds=seconds,
        timeout=int(timeout),
        bytes=_count(rendered(case.cost.bytes, "cost.bytes"), file, "cost.bytes", least=0),
    )


def _number(value: Any, file: object, key: str, *, least: int) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not least <= number < math.inf:
        raise bad_input(file, key, repr(value), f"a number from {least}")
    return number


def _count(value: Any, file: object, key: str, *, least: int) -> int:
    number = _number(value, file, key, least=least)
    if number != int(number):
        raise bad_input(file, key, repr(value), f"a whole number from {least}")
    return int(number)


def _cpus(
    file: Any,
    case: Case,
    point: Mapping[str, Any],
    nodes: int,
    ranks: int,
    threads: int,
    topology: Topology,
) -> list[Cpus]:
    if case.launch == "process":
        return []
    if case.launch == "threads" and ranks != 1:
        raise bad_input(file, "sweep.ranks", f"{ranks} ranks", "1: the case has threads, not ranks")
    wanted = str(point["placement"])
    placement = place(
        topology,
        wanted,
        ranks,
        nodes=nodes,
        threads=threads,
        pus_per_core=int(point.get("pus_per_core", 1)),
        asked_in=f"{file}",
    )
    return [(rank.node, tuple(rank.pus)) for rank in placement.ranks]


def _label(name: str, points: Sequence[Mapping[str, Any]], steps: Sequence[Step]) -> list[Step]:
    """Name each step after its case and the values in which it differs from its fellows."""
    axes = [key for key in points[0] if key not in steps[0].derived]
    varying = [key for key in axes if len({str(point[key]) for point in points}) > 1]

    def slug(point: Mapping[str, Any]) -> str:
        words = [name, *(f"{point[key]}" for key in varying)]
        return re.sub(r"[^a-z0-9]+", "-", "-".join(words).lower()).strip("-")[:80]

    return [
        step.model_copy(update={"id": slug(point)})
        for point, step in zip(points, steps, strict=True)
    ]


def _jobs(steps: Sequence[Step], group: int) -> list[Job]:
    """Put all steps of one set of nodes into one job: the cost in jobs follows the node sets."""
    by_nodes: dict[tuple[str, ...], list[Step]] = {}
    for step in steps:
        by_nodes.setdefault(tuple(step.nodes), []).append(step)
    return [
        Job(id=f"{group:02d}-{number:04d}", nodes=list(nodes), steps=members)
        for number, (nodes, members) in enumerate(by_nodes.items(), start=1)
    ]


def _totals(groups: Sequence[Group]) -> Totals:
    jobs = [job for group in groups for job in group.jobs]
    steps = [step for job in jobs for step in job.steps]
    node_seconds = sum(len(job.nodes) * sum(step.seconds for step in job.steps) for job in jobs)
    return Totals(
        jobs=len(jobs),
        steps=len(steps),
        node_hours=round(node_seconds / 3600, 4),
        bytes=sum(step.bytes for step in steps),
        scratch_peak_bytes=max((step.bytes for step in steps), default=0),
        wall_s=round(sum(step.seconds for step in steps), 1),
    )

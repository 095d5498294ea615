"""The plan of a rolling acceptance: one job for each node or rack, which can grow. Pure.

A job has the steps that a node measures alone. The steps of several nodes do not roll; a normal
acceptance of the same run adds them (`steps_of_several`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from proofmark.cases.case import Scope
from proofmark.common.errors import bad_input
from proofmark.common.input_limits import MAX_STEPS
from proofmark.common.message import Message
from proofmark.common.shared_models import StrictModel
from proofmark.plan.expansion import content_digest
from proofmark.plan.kinds import Part, PlanRequest, RunKind, data_of
from proofmark.plan.plan import Job, Plan
from proofmark.plan.step import COUNTED, Step
from proofmark.plan.totals import totals
from proofmark.site.contract_document import ContractItem
from proofmark.site.inventory import Site
from proofmark.site.machines import machines_of

Unit = Literal["node", "rack"]
"""What one job of a rolling acceptance measures."""
KIND = "rolling"
NOT_ROLLING = "left-rolling"
"""The code of what a rolling plan leaves out."""


class RollingData(StrictModel):
    """What one job measures."""

    unit: Unit


def rolls(step: Step) -> bool:
    """Return whether a node measures `step` alone, with files of its own."""
    return step.nodes_each == 1 and not step.reads and not step.kept


def not_rolling(plan: Plan) -> dict[str, int]:
    """Return the number of steps of a normal plan that do not roll, by case."""
    counts: dict[str, int] = {}
    for step in plan.steps():
        if not rolls(step):
            counts[step.case] = counts.get(step.case, 0) + 1
    return counts


def steps_left(plan: Plan) -> list[Message]:
    """Return a message for each case with steps that a rolling plan leaves out."""
    return [each for each in plan.left_out if each.code == NOT_ROLLING]


def rolling_digest(plan: Plan, site: Site, unit: Unit) -> str:
    """Return the digest by which a later call finds the rolling run of `plan`.

    It has the cases and the facts of the partition, but no node: the partition may grow.
    """
    repeats = max(step.repeat for step in plan.steps())
    names = [plan.site, plan.partition, plan.suite, plan.current_mode, unit, repeats]
    return content_digest([names, plan.cases, site.partition.model_dump(mode="json")])


def units_of(site: Site, unit: Unit) -> list[list[str]]:
    """Return the nodes of each job, in the order of the inventory.

    Raises:
        BadInput: `unit` is a rack, and the inventory does not state the racks.
    """
    if unit == "rack" and not site.partition.fabric.rack:
        accepted = "the number of hosts of a rack; rolling=node has a job for each node"
        raise bad_input(site.facts, "partition.fabric.rack", "nothing", accepted)
    found: dict[str, list[str]] = {}
    for host in site.hosts:
        found.setdefault(site.location(host)["rack"] if unit == "rack" else host, []).append(host)
    return list(found.values())


def rolling_plan(plan: Plan, site: Site, unit: Unit) -> Plan:
    """Return the rolling plan of the hosts of `site`.

    Args:
        plan: the normal plan of the whole partition.
        site: the partition, with the hosts that join.
        unit: what one job measures.

    Raises:
        BadInput: no step of the suite rolls, or the plan would have too many steps.
    """
    if any(step.launch == COUNTED for step in plan.steps()):
        raise bad_input("rolling", "", f"with {plan.suite}", f"{plan.suite} without rolling=true")
    first = next(plan.steps()).nodes[0]  # with a limit of nodes, jobs of others have the same steps
    groups = _part(plan, lambda step: rolls(step) and first in step.nodes)
    if not groups:
        accepted = "a suite with steps of one node; without rolling=true its steps run together"
        raise bad_input("rolling", "", f"{plan.suite}: only steps of several nodes", accepted)
    left = [
        Message(NOT_ROLLING, case=case, count=count) for case, count in not_rolling(plan).items()
    ]
    empty = plan.model_copy(
        update={
            "groups": [group.model_copy(update={"jobs": []}) for group in groups],
            "left_out": [*plan.left_out, *left],
            "fewer_nodes": {},
            "kind": KIND,
            "of_kind": RollingData(unit=unit).model_dump(),
            "digest": rolling_digest(plan, site, unit),
        }
    )
    return grown(empty, _renamed(groups, empty, units_of(site, unit)))


def growth(plan: Plan, joining: Plan) -> Part:
    """Return the jobs of the nodes of `joining`, a rolling plan, that `plan` does not have.

    Their steps are those of the first nodes of `plan`.
    """
    known, first = {*plan.nodes()}, plan.groups[0].jobs[0].nodes
    nodes = ([node for node in job.nodes if node not in known] for job in joining.groups[0].jobs)
    part = _part(plan, lambda step: rolls(step) and step.nodes == first)
    return _renamed(part, plan, [unit for unit in nodes if unit])


def steps_of_several(plan: Plan, normal: Plan) -> Part:
    """Return the jobs of `normal` with steps that do not roll; none if `plan` has such steps."""
    if not_rolling(plan):
        return []
    return _renamed(_part(normal, lambda step: not rolls(step)), plan, [()])


def grown(plan: Plan, part: Part) -> Plan:
    """Return `plan` with further jobs after its own, which stay as they are.

    Raises:
        BadInput: the plan would have too many steps.
    """
    jobs: dict[str, list[Job]] = {}
    for group in (every := [*plan.groups, *part]):
        jobs.setdefault(group.mode, []).extend(group.jobs)
    of_mode = {group.mode: group for group in reversed(every)}
    groups = [of_mode[mode].model_copy(update={"jobs": each}) for mode, each in jobs.items()]
    count = 0
    for group in groups:
        count += len([*group.steps()])
    if count > MAX_STEPS:
        accepted = f"at most {MAX_STEPS:,}: a smaller suite, or rolling=rack"
        raise bad_input("rolling", "", f"{count:,} steps", accepted)
    update = {"groups": groups, "totals": totals(groups)}
    return plan.model_copy(update=update)


def _part(plan: Plan, wanted: Callable[[Step], bool]) -> Part:
    """Return the jobs of `plan` with the wanted steps only."""

    def some(job: Job) -> Job:
        return job.model_copy(update={"steps": [step for step in job.steps if wanted(step)]})

    groups = []
    for group in plan.groups:
        if jobs := [job for job in map(some, group.jobs) if job.steps]:
            groups.append(group.model_copy(update={"jobs": jobs}))
    return groups


def _renamed(part: Part, plan: Plan, units: Iterable[Sequence[str]]) -> Part:
    """Return the steps of `part` as one job of each mode for each of `units`.

    The ids follow those of `plan`. A unit without nodes keeps the jobs with their nodes.
    """
    numbers = itertools.count(1 + max((_number(step.id) for step in plan.steps()), default=0))
    modes = list(dict.fromkeys(group.mode for group in (*plan.groups, *part)))
    earlier = {group.mode: len(group.jobs) for group in plan.groups}
    made: dict[str, list[Job]] = {group.mode: [] for group in part}
    for unit in units:
        ids: dict[str, str] = {}
        for group in part:
            for step in group.steps():
                ids[step.id] = f"{next(numbers):04d}-{step.id.partition('-')[2]}"
        for group in part:
            every = Job(id="unit", nodes=list(unit), steps=[*group.steps()])
            of_unit = [every] if unit else group.jobs
            for job in of_unit:
                number = earlier.get(group.mode, 0) + len(made[group.mode]) + 1
                steps = [_on(unit, step, ids) for step in job.steps]
                name = f"{modes.index(group.mode):02d}-{number:04d}"
                made[group.mode].append(Job(id=name, nodes=job.nodes, steps=steps))
    return [group.model_copy(update={"jobs": made[group.mode]}) for group in part]


def _number(step: str) -> int:
    return int(step.partition("-")[0])


def _on(unit: Sequence[str], step: Step, ids: Mapping[str, str]) -> Step:
    """Return a copy of `step` with its new id, on the nodes of `unit` if there are any."""
    update: dict[str, Any] = {"id": ids[step.id], "reads": ids.get(step.reads, "")}
    if unit:
        scope: Scope = "job" if len(unit) == 1 else "each-node"
        update |= {"nodes": list(unit), "scope": scope}
        if step.load:
            program = step.load.step.model_copy(update={"nodes": [unit[0]]})
            load = step.load.model_copy(update={"step": program})
            update["load"] = load.of_instances(scope)
    return step.model_copy(update=update)


class RollingRun(RunKind):
    """One job for each node or rack, which starts when its nodes are available."""

    options = ("rolling",)
    needs = "rolling=true, rolling=node or rolling=rack"
    grows = True
    nodes_arrive = True

    def plan(self, request: PlanRequest) -> Plan | None:
        """Return the plan of the hosts of the site, with the steps of its whole partition."""
        asked = request.options.rolling
        if asked in ("", "false"):
            return None
        site = request.site
        hosts = tuple(site.partition_hosts or site.hosts)
        whole = site.model_copy(update={"hosts": hosts, "limit": site.partition_name})
        of_whole, _ = machines_of(whole)
        return rolling_plan(
            request.on(whole, of_whole), site, "rack" if asked == "rack" else "node"
        )

    def grown(self, plan: Plan, part: Part) -> Plan:
        """Return `plan` with the jobs of `part`."""
        return grown(plan, part)

    def joining(self, plan: Plan, asked: Plan, site: Site) -> Part | None:
        """Return the jobs of further nodes; of a usual plan, the steps of several nodes."""
        rolling = asked.kind == KIND
        unit = data_of(plan, RollingData).unit
        digest = asked.digest if rolling else rolling_digest(asked, site, unit)
        if digest != plan.digest:
            return None
        return growth(plan, asked) if rolling else steps_of_several(plan, asked)

    def notes(self, plan: Plan, items: Collection[ContractItem]) -> Iterator[str]:
        """Yield the steps that the plan leaves out."""
        yield from steps_left(plan)

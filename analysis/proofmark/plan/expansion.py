"""Expands a suite on a site into a plan."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

from proofmark.cases.case import Case, SuiteUse
from proofmark.cases.loading import reference_mistakes
from proofmark.cases.suite import Benchmarks, members_from
from proofmark.common.errors import BadInput, InputError, NothingToRun, bad_input
from proofmark.common.grouping import batched, flat, gathered
from proofmark.common.input_limits import MAX_REPEATS, MAX_STEPS
from proofmark.common.message import Message
from proofmark.common.printed_command import option_of
from proofmark.common.text import duration
from proofmark.common.yaml_models import placed
from proofmark.plan.plan import Group, Job, Plan
from proofmark.plan.selection import (
    Reach,
    Suites,
    cases_of,
    figures_of_steps,
    selection_mistakes,
    unreachable,
)
from proofmark.plan.step import COUNTED, Step
from proofmark.plan.step_draft import Draft, fewer_nodes
from proofmark.plan.suite_steps import SuiteSteps
from proofmark.plan.sweep import assumed_rates, assumed_storage
from proofmark.plan.totals import assumed, totals, within_limit
from proofmark.site.ceilings import attainable
from proofmark.site.contract_document import DerivedItem
from proofmark.site.execution import Queue
from proofmark.site.inventory import Site, variable_files
from proofmark.site.machines import Machine, Machines, contradictions, counted_node

PREINSTALLED = "preinstalled"
"""The value of ``partition.provision_from`` for programs that the inventory names."""


class IdleLimits(BadInput):
    """Limits of a contract that no figure of any suite can meet."""


def members_at(benchmarks: Benchmarks, suite: str, site: Site) -> dict[str, Case]:
    """Return the cases of `suite` for the origin of the programs of the partition, by id.

    Raises:
        BadInput: there is no such suite.
    """
    partition = site.partition
    named = partition.preinstalled if partition.provision_from == PREINSTALLED else ()
    return members_from(benchmarks, suite, partition.provision_from, named)


Uses = Sequence[tuple[SuiteUse, list[Draft]]]


def within(limit_s: float | None, uses: Uses, leave_out: Callable[[Message], None]) -> Uses:
    """Return the uses of one mode with as many repeats as end within `limit_s` (`Suite.within_s`).

    All uses lose the same share of their repeats, and keep ``least_repeats``. If these take longer,
    the plan takes longer. `leave_out` takes the reason for which a use has fewer repeats.
    """
    if limit_s is None:
        return uses
    once = [sum(draft.step.wall_s for draft in drafts) for _, drafts in uses]
    numbers = []
    for percent in range(100, 0, -1):
        numbers = [
            max(min(use.least_repeats, use.repeats), use.repeats * percent // 100)
            for use, _ in uses
        ]
        if sum(number * time for number, time in zip(numbers, once, strict=True)) <= limit_s:
            break
    reduced = []
    for number, (use, drafts) in zip(numbers, uses, strict=True):
        if number < use.repeats and drafts:
            case = drafts[0].step.case
            repeats = {"repeats": number, "stated": use.repeats}
            leave_out(Message("left-repeats", case=case, **repeats, within=duration(limit_s)))
        reduced.append((use.model_copy(update={"repeats": number}), drafts))
    return reduced


def make_plan(
    benchmarks: Benchmarks,
    suite: str,
    site: Site,
    machines: Machines,
    repeats: int | None = None,
    *,
    digest: bool = True,
) -> Plan:
    """Return the plan of `suite` on the partition of `site`.

    Args:
        repeats: how often each step runs; None is the number of the suite.
        digest: whether the plan gets its digest, which takes a fifth of the time.

    Raises:
        BadInput: the suite is unknown or has no case, a sweep has no point, the machine cannot hold
            a placement, a step cannot finish within its time limit, or a contract limit selects no
            figure of any suite.
    """
    mistakes = limit_mistakes(benchmarks, site) or idle_limits(benchmarks, site, machines)
    if mistakes:
        raise IdleLimits(*mistakes)
    if repeats is not None and not 1 <= repeats <= MAX_REPEATS:
        raise bad_input("repeats", "", f"{repeats}", f"a whole number from 1 to {MAX_REPEATS}")
    repeats = repeats or benchmarks.suite(suite).repeats
    members = members_at(benchmarks, suite, site)
    if not members:
        raise bad_input(benchmarks.folder, suite, "a suite that no case joins", "a case with it")
    expansion = SuiteSteps(benchmarks, suite, site, machines)
    groups: list[Group] = []
    numbers = itertools.count(1)
    current = site.partition.current_mode
    for mode in sorted(site.partition.modes, key=lambda mode: mode != current):
        every = flat(expansion.uses(name, case, mode) for name, case in members.items())
        uses = within(benchmarks.suite(suite).within_s, every, expansion.leave_out)
        planned = (
            draft.changed(id=f"{next(numbers):04d}-{draft.step.id}", repeat=repeat, nodes=nodes)
            for earlier in range(repeats)
            for use, drafts in uses
            for repeat in range(earlier * use.repeats + 1, (earlier + 1) * use.repeats + 1)
            for draft in drafts
            for nodes in _chunks(draft.step, site.partition.nodes_per_job)
        )
        drafts = expansion.linked(_limited(planned, suite))
        steps = [draft.step for draft in drafts]
        environment = site.partition.environment
        if steps:
            jobs = _jobs(steps, len(groups), site.partition.queue)
            groups.append(Group(mode=mode, environment=environment, jobs=jobs))
    if not groups:
        found = f"nothing that {site.partition_name} can run"
        accepted = "; ".join(expansion.left_out) or "steps"
        raise NothingToRun(InputError(str(benchmarks.folder), suite, found, accepted))
    all_steps = flat(group.steps() for group in groups)
    digests = {name: content_digest(case.model_dump(mode="json")) for name, case in members.items()}
    used = {step.case for step in all_steps}
    plan = Plan(
        digest="",
        site=site.name,
        partition=site.partition_name,
        suite=suite,
        system=site.partition_name,
        groups=groups,
        totals=totals(groups),
        cases=digests,
        current_mode=current,
        left_out=list(expansion.left_out),
        assumed=assumed(site, groups)
        | assumed_storage(site.partition, members.values())
        | assumed_rates(site.partition, [members[name] for name in used]),
        fewer_nodes=fewer_nodes(expansion.intended_nodes, all_steps),
    )
    if not digest:
        return plan
    # Other facts of the partition, such as another scratch, and another contract make another run.
    parts = [plan, site.partition, *([site.contract] if site.contract else [])]
    content = [each.model_dump(mode="json") for each in parts]
    return plan.model_copy(update={"digest": content_digest(content)})


def _limited(drafts: Iterable[Draft], suite: str) -> list[Draft]:
    """Return `drafts`, unless there are more steps than a plan may have.

    Raises:
        BadInput: there are more than `MAX_STEPS`.
    """
    listed = list(itertools.islice(drafts, MAX_STEPS + 1))
    if len(listed) > MAX_STEPS:
        found = f"{suite}: more than {MAX_STEPS:,} steps"
        raise bad_input("suite", "", found, "fewer repeats, a smaller suite or fewer nodes")
    return listed


def limit_mistakes(benchmarks: Benchmarks, site: Site) -> list[InputError]:
    """Return the unknown names in the contract limits of `site`."""
    found = (
        reference_mistakes(site.contract_file, key, item, item.case, benchmarks.cases)
        for key, item in site.items.items()
    )
    return [located(site, mistake) for mistake in itertools.chain.from_iterable(found)]


def located(site: Site, mistake: InputError) -> InputError:
    """Return a mistake in the facts of the partition, or in an item, with its file and line."""
    option = mistake.key.removeprefix("partition.")
    if not mistake.file and option in site.replaced:
        return replace(mistake, file=option_of(option), key="")
    facts = variable_files(site.facts)
    files = {"": facts, f"{site.facts}": facts, f"{site.contract_file}": [site.contract_file]}
    parts = [int(part) if part.isdecimal() else part for part in mistake.key.split(".")]
    file, _ = placed(files.get(mistake.file, []), parts)
    return replace(mistake, file=file or mistake.file or f"{site.facts}")


def idle_limits(benchmarks: Benchmarks, site: Site, machines: Machines) -> list[InputError]:
    """Return the contract limits of `site` that no figure of any suite can meet.

    They select none, or are beyond what the hardware can reach. Limits with unknown names are left
    to `limit_mistakes`.
    """
    if limit_mistakes(benchmarks, site):
        return []
    node, limits, file = counted_node(site), site.items, f"{site.contract_file}"
    names = set[str]().union(*(cases_of(item, item.case) for item in limits.values()))
    suites = all_suites(benchmarks, names, site, machines)
    mistakes: list[InputError] = [*contradictions(site, node)]
    ceilings = attainable(node, site.partition.scratch.bytes_per_s)
    reach = Reach(suites, benchmarks, ceilings, node.rails.bytes_per_s)
    for key, item in limits.items():
        mistakes += selection_mistakes(file, key, item, item.case, suites, benchmarks)
        mistakes += unreachable(file, key, item, reach.of_item(item))
    numbers = {item.number: item for item in limits.values()}
    for place, each in enumerate(site.contract.items if site.contract else ()):
        if isinstance(each, DerivedItem) and numbers.keys() >= {*each.items}:
            parts = [numbers[number] for number in each.items]
            mistakes += unreachable(file, f"items.{place}", each, reach.of_derived(each, parts))
    return [located(site, mistake) for mistake in mistakes]


def all_suites(
    benchmarks: Benchmarks, cases: Collection[str], site: Site, machines: Machines
) -> Suites:
    """Return the figures of `cases` in all suites that the partition of `site` can run.

    All hosts of the partition count, not only those under the limit of `site`.
    """
    hosts = tuple(site.partition_hosts or site.hosts)
    whole = site.model_copy(update={"hosts": hosts, "limit": site.partition_name})

    def of_all_hosts(mode: str) -> Machine:
        machine = machines(mode)
        return replace(machine, symbols={**machine.symbols, "nodes": len(hosts)})

    figures = {}
    refused = []
    for suite in benchmarks.suites if cases else ():
        expansion = SuiteSteps(benchmarks, suite, whole, of_all_hosts)
        joined = members_at(benchmarks, suite, whole)
        counted = {name: case for name, case in joined.items() if case.launch == COUNTED}
        members = {name: case for name, case in (counted or joined).items() if name in cases}
        try:
            steps = [
                (mode, draft.step)
                for mode in site.partition.modes
                for name, case in members.items()
                for _, drafts in expansion.uses(name, case, mode)
                for draft in drafts
            ]
        except BadInput:
            refused.append(suite)
            continue
        if steps:
            figures[suite] = figures_of_steps(steps, site.partition_name, benchmarks)
    return Suites(figures, refused)


def content_digest(content: Any) -> str:
    """Return the SHA-256 of `content` as canonical JSON."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _chunks(step: Step, limit: int | None) -> list[list[str]]:
    """Divide the nodes of a per-node step into groups of at most `limit` nodes, one per job."""
    if step.scope == "job" or limit is None or step.round:
        return [step.nodes]
    size = limit - limit % 2 if step.scope == "each-pair" else limit
    return [*batched(step.nodes_in_order(), size)]


def _jobs(steps: Sequence[Step], group: int, queue: Queue) -> list[Job]:
    """Put all steps with the same nodes into one job, or into several that the queue accepts."""
    jobs: list[Job] = []
    for nodes, members in gathered((tuple(step.nodes), step) for step in steps).items():
        for part in within_limit(members, queue):
            name = f"{group:02d}-{len(jobs) + 1:04d}"
            jobs.append(Job(id=name, nodes=list(nodes), steps=part))
    return jobs

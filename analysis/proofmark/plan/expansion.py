"""Expands a suite on a site into a plan."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

from proofmark.cases.loading import reference_mistakes
from proofmark.cases.models import Benchmarks, Case, Scope, SuiteUse
from proofmark.common.errors import BadInput, InputError, NothingToRun, bad_input
from proofmark.common.expressions import names_in, render
from proofmark.common.input_limits import MAX_REPEATS, MAX_STEPS
from proofmark.plan.dependencies import linked
from proofmark.plan.draft import Draft, axes_of
from proofmark.plan.full_scale import fewer_nodes, fits_a_job, intended_nodes, most_nodes, of_a_job
from proofmark.plan.layout import Layouts
from proofmark.plan.load import beside
from proofmark.plan.members import members_at
from proofmark.plan.plan import Group, Job, Plan
from proofmark.plan.search import Search
from proofmark.plan.searches import searches_of
from proofmark.plan.selection import Suites, cases_of, selection_mistakes
from proofmark.plan.step import Step, labelled, step_of
from proofmark.plan.storage_facts import assumed_caches, storage_symbols
from proofmark.plan.sweep import Sweep
from proofmark.plan.time_limit import endless_steps
from proofmark.plan.totals import assumed, totals
from proofmark.plan.unmet import unmet
from proofmark.site.inventory import Site
from proofmark.site.machine import Machine, Machines

DEFAULT_FACTS = {"memory_test": 0, "burnin_minutes": 10}
"""Values of facts that a partition need not have, for the expressions of the cases: 1 if the site
provides stressapptest; the minutes of each program of a burn-in whose time can be chosen."""


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
        benchmarks: all cases and suites.
        suite: name of a suite.
        site: the partition and its nodes.
        machines: the machine, or a function from a mode to the machine in this mode.
        repeats: how often each step runs; None is the number of the suite.
        digest: whether the plan gets its digest, which takes a fifth of the time.

    Raises:
        BadInput: the suite is unknown or has no case, a sweep has no point, the machine cannot hold
            a placement, a step cannot finish within its time limit, or a contract limit selects no
            figure of any suite.
    """
    mistakes = limit_mistakes(benchmarks, site) or idle_limits(benchmarks, site, machines)
    if mistakes:
        raise BadInput(*mistakes)
    if repeats is not None and not 1 <= repeats <= MAX_REPEATS:
        raise bad_input("repeats", "", f"{repeats}", f"a whole number from 1 to {MAX_REPEATS}")
    repeats = repeats or benchmarks.suite(suite).repeats
    members = members_at(benchmarks, suite, site)
    if not members:
        raise bad_input(benchmarks.folder, suite, "a suite that no case joins", "a case with it")
    expansion = _Expansion(benchmarks, suite, site, machines)
    groups: list[Group] = []
    searches: list[Search] = []
    numbers = itertools.count(1)
    current = site.partition.current_mode
    for mode in sorted(site.partition.modes, key=lambda mode: mode != current):
        uses = [use for name, case in members.items() for use in expansion.uses(name, case, mode)]
        planned = (
            replace(
                draft,
                step=draft.step.model_copy(
                    update={
                        "id": f"{next(numbers):04d}-{draft.step.id}",
                        "repeat": repeat,
                        "nodes": nodes,
                    }
                ),
            )
            for earlier in range(repeats)
            for use, drafts in uses
            if earlier < (use.at_most or repeats)
            for repeat in range(earlier * use.repeats + 1, (earlier + 1) * use.repeats + 1)
            for draft in drafts
            for nodes in _chunks(draft.step, site.partition.nodes_per_job)
        )
        drafts = expansion.linked(_limited(planned, suite))
        steps = [draft.step for draft in drafts]
        searches += searches_of(drafts, members, taken=[each.id for each in searches])
        environment = site.partition.environment
        if steps:
            groups.append(Group(mode=mode, environment=environment, jobs=_jobs(steps, len(groups))))
    if not groups:
        found = f"nothing that {site.partition_name} can run"
        accepted = "; ".join(expansion.left_out) or "steps"
        raise NothingToRun(InputError(str(benchmarks.folder), suite, found, accepted))
    all_steps = [step for group in groups for job in group.jobs for step in job.steps]
    digests = {name: content_digest(case.model_dump(mode="json")) for name, case in members.items()}
    body = {
        "digest": "",
        "site": site.name,
        "partition": site.partition_name,
        "suite": suite,
        "system": site.partition_name,
        "groups": groups,
        "totals": totals(groups, searches),
        "cases": digests,
        "current_mode": current,
        "left_out": list(expansion.left_out),
        "assumed": assumed(site, groups) | assumed_caches(site.partition, members.values()),
        "searches": searches,
        "fewer_nodes": fewer_nodes(expansion.intended_nodes, all_steps),
    }
    plan = Plan(**body)
    if not digest:
        return plan
    # Other facts of the partition, such as another scratch, make another run.
    content = [plan.model_dump(mode="json"), site.partition.model_dump(mode="json")]
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
    return [
        mistake
        for index, limit in enumerate(site.partition.limits)
        for mistake in reference_mistakes(
            site.facts, f"partition.limits.{index}", limit, limit.case, benchmarks.cases
        )
    ]


def idle_limits(benchmarks: Benchmarks, site: Site, machines: Machines) -> list[InputError]:
    """Return the mistakes in the contract limits of `site` that select no figure of any suite.

    Limits with unknown names are left to `limit_mistakes`.
    """
    limits = site.partition.limits
    names = {name for limit in limits for name in cases_of(limit, limit.case)}
    if not names <= benchmarks.cases.keys() or limit_mistakes(benchmarks, site):
        return []
    suites = all_suites(benchmarks, names, site, machines)
    return [
        mistake
        for index, limit in enumerate(limits)
        for mistake in selection_mistakes(
            str(site.facts),
            f"partition.limits.{index}",
            limit,
            limit.case,
            suites,
            benchmarks,
        )
    ]


def all_suites(
    benchmarks: Benchmarks, cases: Collection[str], site: Site, machines: Machines
) -> Suites:
    """Return the steps of `cases` in all suites that the partition of `site` can run.

    All hosts of the partition count, not only those under the limit of `site`.
    """
    hosts = tuple(site.partition_hosts or site.hosts)
    whole = site.model_copy(update={"hosts": hosts, "limit": site.partition_name})
    of_mode = (lambda _: machines) if isinstance(machines, Machine) else machines

    def of_all_hosts(mode: str) -> Machine:
        machine = of_mode(mode)
        return replace(machine, symbols={**machine.symbols, "nodes": len(hosts)})

    steps: dict[str, list[tuple[str, Step]]] = {}
    refused: list[str] = []
    for suite in benchmarks.suites if cases else ():
        expansion = _Expansion(benchmarks, suite, whole, of_all_hosts)
        joined = members_at(benchmarks, suite, whole)
        members = {name: case for name, case in joined.items() if name in cases}
        try:
            steps[suite] = [
                (mode, draft.step)
                for mode in site.partition.modes
                for name, case in members.items()
                for _, drafts in expansion.uses(name, case, mode)
                for draft in drafts
            ]
        except BadInput:
            refused.append(suite)
    found = {suite: of_suite for suite, of_suite in steps.items() if of_suite}
    return Suites(site.partition_name, found, refused)


def content_digest(content: Any) -> str:
    """Return the SHA-256 of `content` as canonical JSON."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


class _Expansion:
    """Expands the cases of one suite on one site, mode by mode."""

    def __init__(self, benchmarks: Benchmarks, suite: str, site: Site, machines: Machines) -> None:
        self.left_out: dict[str, None] = {}
        self.intended_nodes: dict[tuple[str, Scope], int] = {}
        self._folder, self._suite, self._site = benchmarks.folder, suite, site
        self._cases = benchmarks.cases
        self._machine = (lambda _: machines) if isinstance(machines, Machine) else machines
        self._layouts: dict[str, Layouts] = {}

    def uses(self, name: str, case: Case, mode: str) -> list[tuple[SuiteUse, list[Draft]]]:
        """Return each use of `case` with its steps in `mode`.

        The steps are not numbered yet, and have all nodes.
        """
        uses = case.suites[self._suite]
        return [(use, self._drafts(name, case, number, mode)) for number, use in enumerate(uses)]

    def linked(self, drafts: Sequence[Draft]) -> list[Draft]:
        """Return `drafts` in their order; those that read files are related to those that write."""
        if not any(draft.use.reads for draft in drafts):
            return list(drafts)
        of_case: dict[str, list[Draft]] = {}
        for draft in drafts:
            of_case.setdefault(draft.step.case, []).append(draft)
        related = {
            draft.step.id: draft
            for name, members in of_case.items()
            for draft in linked(
                members, self._site.hosts, f"{self._folder / name}.yml", self._leave_out
            )
        }
        return [related[draft.step.id] for draft in drafts if draft.step.id in related]

    def _drafts(self, name: str, case: Case, number: int, mode: str) -> list[Draft]:
        use = case.suites[self._suite][number]
        partition = self._site.partition
        if mode not in modes_of(use, partition.modes, partition.current_mode):
            return []
        for missing in (each for each in use.modes if each not in partition.modes):
            self._leave_out(f"{name}: mode {missing}: {self._site.partition_name} has no such mode")
        sweep = self._sweep(name, case, use, mode)
        if not sweep.applies():
            self._leave_out(f"{name}: {unmet(use.when or '', sweep.symbols, sweep.file)}")
            return []
        key = (name, use.scope)
        self.intended_nodes[key] = max(intended_nodes(sweep), self.intended_nodes.get(key, 0))
        points = of_a_job(sweep)
        for reason, times in sweep.left_out.items():
            self._leave_out(f"{name}: {reason} (mode {mode}, {times} points)")
        if not points:
            reasons = "; ".join(sweep.left_out)
            found = f"a condition that no point of the sweep of {self._suite} satisfies"
            raise bad_input(sweep.file, "where", reasons or found, "at least one point")
        steps = labelled(name, points, [step_of(name, sweep, point) for point in points])
        drafts = list(zip(points, steps, strict=True))
        if use.load:
            load, of_load = use.load, self._cases[use.load.case]
            drafts = [
                (point, step)
                for point, each in drafts
                for step in beside(each, load, of_load, sweep)
            ]
            if not drafts:
                self._leave_out(f"{name}: no node is free for the load {load.case}")
        planned = [step for _, step in drafts]
        if endless := list(endless_steps(sweep.file, planned, partition.queue)):
            raise BadInput(*endless)
        return [
            Draft(step, use, number, axes_of(sweep, point))
            for point, draft in drafts
            for step in self._spread_out(draft, use)
        ]

    def _spread_out(self, step: Step, use: SuiteUse) -> list[Step]:
        """Give a step of the scope each-node or each-pair all nodes."""
        scope = use.scope
        needed = {"job": len(step.nodes), "each-node": 1, "each-pair": 2}[scope]
        hosts = list(self._site.hosts)
        if len(step.nodes) != needed:
            found = f"{len(step.nodes)} nodes with scope {scope}"
            raise bad_input(self._folder / f"{step.case}.yml", "sweep.nodes", found, f"{needed}")
        if not fits_a_job(needed, self._site):
            found = f"{needed} nodes together"
            accepted = f"at most {self._site.partition.nodes_per_job}: partition.nodes_per_job"
            raise bad_input(self._folder / f"{step.case}.yml", "sweep.nodes", found, accepted)
        if scope == "job" or len(hosts) == needed:
            return [step]  # a site of this many nodes has one instance: an ordinary step
        if use.pairs == "rounds":
            from proofmark.plan.rounds_of_steps import steps_of_rounds  # numpy costs time

            made = steps_of_rounds(step, use, self._site)
            for reason in made.left_out:
                self._leave_out(reason)
            return made.steps
        pairings = [1] if scope == "each-node" else [1, 2, 3] if len(hosts) % 2 else [1, 2]
        update: dict[str, Any] = {"scope": scope, "nodes": hosts}
        if step.load:
            update["load"] = step.load.of_instances(scope)
        return [step.model_copy(update={**update, "pairing": pairing}) for pairing in pairings]

    def _leave_out(self, reason: str) -> None:
        self.left_out[reason] = None

    def _sweep(self, name: str, case: Case, use: SuiteUse, mode: str) -> Sweep:
        machine = self._machine(mode)
        partition = self._site.partition
        symbols = {
            **DEFAULT_FACTS,
            **machine.symbols,
            **partition.facts,
            "file_systems": list(partition.scratches),
            **storage_symbols(partition),
            "fabric_levels": partition.fabric.names,
            "link_bytes_per_s": partition.fabric.link_bytes_per_s,
            "provision_from": partition.provision_from,
        }
        if requested := partition.queue.memory_per_node:
            symbols["memory_bytes"] = min(requested, symbols.get("memory_bytes", requested))
        file = f"{self._folder / name}.yml"
        for key in case.defaults.keys() - symbols.keys():
            symbols[key] = render(case.defaults[key], symbols, file=file, key=f"defaults.{key}")
        nodes = {**case.sweep, **use.sweep}.get("nodes")
        limit = most_nodes(self._site)
        if limit < symbols["nodes"]:
            # Nodes that run together are one job; per-node steps are divided into several jobs.
            symbols["nodes"] = limit
            if "nodes" in names_in(nodes):
                self._leave_out(f"{name}: more than {limit} nodes together: nodes_per_job")
        layouts = self._layouts.setdefault(mode, Layouts(machine.topology))
        return Sweep(file, case, use, self._suite, symbols, layouts, self._site)


def modes_of(use: SuiteUse, available: Collection[str], current: str) -> list[str]:
    """Return the modes in which `use` runs on a partition with the modes `available`."""
    return [mode for mode in use.modes if mode in available] or [current]


def _chunks(step: Step, limit: int | None) -> list[list[str]]:
    """Divide the nodes of a per-node step into groups of at most `limit` nodes, one per job."""
    if step.scope == "job" or limit is None or step.round:
        return [step.nodes]
    size = limit - limit % 2 if step.scope == "each-pair" else limit
    ordered = [node for nodes in step.instances().values() for node in nodes]
    return [ordered[at : at + size] for at in range(0, len(ordered), size)]


def _jobs(steps: Sequence[Step], group: int) -> list[Job]:
    """Put all steps with the same nodes into one job."""
    by_nodes: dict[tuple[str, ...], list[Step]] = {}
    for step in steps:
        by_nodes.setdefault(tuple(step.nodes), []).append(step)
    return [
        Job(id=f"{group:02d}-{number:04d}", nodes=list(nodes), steps=members)
        for number, (nodes, members) in enumerate(by_nodes.items(), start=1)
    ]

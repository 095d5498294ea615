"""The steps of the cases of one suite on one site, mode by mode.

A step can have a load: another program that runs beside it, on free cores or on free nodes. The
steps of the rounds of pairs are made from the step of one pair.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import chain, groupby, pairwise
from pathlib import PurePath
from typing import Any

import numpy as np

from proofmark.cases.case import NODES_EACH, Case, Load, Scope, SuiteUse
from proofmark.cases.suite import Benchmarks
from proofmark.cases.vocabulary import ALONE, LOAD, TOGETHER, Measured, Parameters, Scalar
from proofmark.common.errors import BadInput, InputError, bad_input
from proofmark.common.expressions import evaluate, names_in, render, variables_in
from proofmark.common.grouping import gathered
from proofmark.common.message import Message, joined
from proofmark.common.network_time import everywhere_s
from proofmark.plan.pairings import Numbers, nested, schedule
from proofmark.plan.placement import PlacementError
from proofmark.plan.rank_cpus import RankCpus, ranges_of
from proofmark.plan.step import PairRound, Step, StepLoad, labelled, step_of
from proofmark.plan.step_draft import (
    Draft,
    axes_of,
    fits_a_job,
    intended_nodes,
    most_nodes,
    of_a_job,
)
from proofmark.plan.sweep import Layouts, Sweep, rate_symbols, storage_symbols
from proofmark.plan.totals import endless_steps
from proofmark.site.fabric import Fabric
from proofmark.site.inventory import Site
from proofmark.site.machines import Machines

NO_LOAD = "none"
"""The value of the parameter `LOAD` of a baseline."""
GRACE_S = 120
"""The seconds that a load may run longer than the time limit of its step: its start and its end."""


def beside(step: Step, load: Load, case: Case, sweep: Sweep) -> list[Step]:
    """Return `step` with its load, after its baseline if the load wants one.

    It is empty if the load needs a free node and there is none.

    The nodes of a step whose load runs on other nodes are spread evenly over the hosts: pairs of
    ranks i and i + n are then far apart, and the load has nodes at every switch.

    Raises:
        BadInput: the step leaves no core free, or the load has not exactly one point.
    """
    site, file = sweep.site, sweep.file
    hosts = list(site.hosts)[: site.partition.nodes_per_job or len(site.hosts)]
    symbols = {**sweep.symbols}
    layouts = sweep.layouts
    own, others = step.nodes, step.nodes
    if load.place == "other-nodes":
        own = spread(hosts, len(step.nodes))
        others = [host for host in hosts if host not in own]
        if not others:
            return []
    else:
        layouts = free_layouts(step, sweep)
        symbols["cores"] = len(layouts.topology.cores)
    symbols["nodes"] = len(others)
    use = SuiteUse(sweep={"nodes": len(others), **load.sweep}, let=load.let)
    name = PurePath(file).with_name(f"{load.case}.yml")
    of_load = site.model_copy(update={"hosts": tuple(others)})
    points = Sweep(str(name), case, use, sweep.suite, symbols, layouts, of_load)
    every = list(points.points())
    if len(every) != 1:
        key = f"suites.{sweep.suite}.load.sweep"
        raise bad_input(file, key, f"{len(every)} points of {load.case}", "exactly one point")
    program = step_of(load.case, points, every[0])
    limit = step.timeout + math.ceil(load.warm_up_s) + GRACE_S
    program = program.model_copy(update={"timeout": limit, "seconds": step.seconds, "stagger": 0})
    if load.place == "same-nodes" and program.launch == "process":
        program = _bound(program, layouts, sweep)
    if program.copies != 1:
        found = f"{program.copies} copies of {load.case}"
        raise bad_input(file, f"suites.{sweep.suite}.load.case", found, "a case with one copy")
    nodes = own if load.place == "same-nodes" else [*own, *program.nodes]
    parameters = {**step.parameters, LOAD: NO_LOAD}
    baseline = step.model_copy(update={"nodes": nodes, "parameters": parameters})
    loaded = baseline.model_copy(
        update={
            "id": f"{step.id}-beside-{load.case}"[:100],
            "parameters": {**step.parameters, LOAD: load.case},
            "seconds": step.seconds + load.warm_up_s,
            "load": StepLoad(place=load.place, warm_up_s=load.warm_up_s, step=program),
        }
    )
    return [baseline, loaded] if load.baseline else [loaded]


def _bound(program: Step, layouts: Layouts, sweep: Sweep) -> Step:
    """Return a program that binds no process itself, bound as one process to all free cores.

    Raises:
        BadInput: it is one process, but there are several nodes.
    """
    if len(program.nodes) > 1:
        key = f"suites.{sweep.suite}.load.case"
        found = f"{program.case}, which is one process, on {len(program.nodes)} nodes"
        raise bad_input(sweep.file, key, found, "a case with ranks (launch: mpi)")
    pus = tuple(chain.from_iterable(core.pus for core in layouts.topology.cores))
    return program.model_copy(update={"cpus": [RankCpus(0, pus)]})


def spread(hosts: list[str], count: int) -> list[str]:
    """Return `count` of `hosts`, evenly spread, in their order; all if there are not more."""
    return [hosts[number * len(hosts) // count] for number in range(min(count, len(hosts)))]


def free_layouts(step: Step, sweep: Sweep) -> Layouts:
    """Return the placements on the cores that `step` leaves free on each of its nodes.

    Raises:
        BadInput: it leaves none free, or binds no rank: then no core is known to be free.
    """
    topology = sweep.layouts.topology
    used: set[int] = set()
    for _first, nodes in ranges_of(step.cpus):
        used.update(*nodes.cpus)
    free = topology.without(used)
    if not free.cores or not used:
        key = f"suites.{sweep.suite}.load.place"
        found = f"same-nodes, but {step.case} leaves no core free"
        if not used:
            found = f"same-nodes, but {step.case} does not bind its processes"
        accepted = "a step with fewer ranks or threads than cores"
        raise bad_input(sweep.file, key, found, accepted)
    return Layouts(free)


def linked(
    drafts: Sequence[Draft], hosts: Sequence[str], file: str, leave_out: Callable[[Message], None]
) -> list[Draft]:
    """Return the drafts of one case in one mode; each reading step is on nodes of its own.

    A reading step gets the first of `hosts` that its writing step does not use. The writing step
    has the same repeat and the same values of the common axes: those for which both uses have a
    value in common. An axis that tells writing from reading is not common.

    Args:
        drafts: all steps of the case, with their ids and nodes.
        hosts: the nodes of the site under its limit.
        leave_out: called with the reason for each reading step that cannot run.

    Raises:
        BadInput: a reading step has several writing steps.
    """
    common = {}
    kept: set[str] = set()
    result = []
    for draft in drafts:
        if not draft.use.reads:
            result.append(draft)
            continue
        if draft.number not in common:
            common[draft.number] = _common_axes(drafts, draft.number)
        writers = [
            each
            for each in drafts
            if each.number == draft.number - 1
            and each.step.repeat == draft.step.repeat
            and all(each.axes[axis] == draft.axes[axis] for axis in common[draft.number])
        ]
        point = ", ".join(f"{axis} {value}" for axis, value in draft.axes.items())
        if len(writers) > 1:
            found = f"{len(writers)} steps of the use before for {point}"
            raise bad_input(file, "reads", found, "one step that writes the files of each point")
        needed = len(draft.step.nodes)
        free = [host for host in hosts if writers and host not in writers[0].step.nodes]
        if not writers:
            leave_out(Message("left-unwritten", case=draft.step.case, point=point))
        elif len(free) < needed:
            counts = {"needed": needed, "free": len(free)}
            leave_out(Message("left-readers", case=draft.step.case, point=point, **counts))
        else:
            writer = writers[0].step
            kept.add(writer.id)
            place = {"nodes": free[:needed], "file_system": writer.file_system}
            result.append(draft.changed(reads=writer.id, **place))
    return [draft.changed(kept=True) if draft.step.id in kept else draft for draft in result]


def _common_axes(drafts: Sequence[Draft], reading: int) -> set[str]:
    """Return the axes for which a use and the use before it have a value in common."""

    def values(use: int) -> set[tuple[str, Scalar]]:
        return set().union(*(draft.axes.items() for draft in drafts if draft.number == use))

    return {axis for axis, _ in values(reading) & values(reading - 1)}


NAMES = {
    "nodes": "the number of nodes",
    "cores": "the number of cores",
    "sockets": "the number of sockets",
    "numa": "the number of NUMA domains with cores",
    "domain_cores": "the number of cores of each NUMA domain",
    "domain_threads": "the number of threads of a rank inside a NUMA domain",
    "l3_threads": "the number of threads of a rank inside a cache of level 3",
    "node_parts": "the list of NUMA domains and sockets of a node with several",
    "rail_count": "the number of rails of a node",
    "threads_per_core": "the number of hardware threads of a core",
    "memories": "the kinds of memory",
    "memory_bytes": "the memory in bytes",
    "layout_axes": "the layout that the file system of scratch can set",
    "storage_targets": "partition.scratch.storage_targets",
    "provision_from": "partition.provision_from",
}
"""The names of expressions in words; the others are facts of the partition."""
NEEDED: Mapping[type[ast.cmpop], str] = {
    ast.GtE: "unmet-least",
    ast.Gt: "unmet-more",
    ast.LtE: "unmet-most",
    ast.Lt: "unmet-less",
    ast.Eq: "unmet-value",
    ast.NotEq: "unmet-other",
}
"""The codes of comparisons that do not hold."""


def unmet(condition: str, names: Mapping[str, Any], file: str) -> Message:
    """Return which parts of `condition` do not hold, with the values that they have.

    Args:
        condition: an expression in braces whose value is false.

    Raises:
        BadInput: a part cannot be computed.
    """
    whole = ast.parse(condition.strip().removeprefix("{").removesuffix("}").strip(), mode="eval")
    body = whole.body
    parts = body.values if isinstance(body, ast.BoolOp) and isinstance(body.op, ast.And) else [body]

    def value(part: ast.expr) -> Any:
        return evaluate(ast.unparse(part), names, file=file, key="when")

    return joined(_message(part, value) for part in parts if not value(part))


def _message(part: ast.expr, value: Callable[[ast.expr], Any]) -> Message:
    """Return why one part of a condition is not met."""
    match part:
        case ast.Compare(ast.Name(name), [operator], [other]) if type(operator) in NEEDED:
            values = {"found": _text(value(part.left)), "needed": _text(value(other))}
            return Message(NEEDED[type(operator)], name=_words(name), **values)
        case ast.Compare(other, [ast.In()], [ast.Name(name)]):
            return Message("unmet-has", name=_words(name), needed=_text(value(other)))
    named = (
        f"{_words(name)} is {_text(value(ast.Name(name)))}"
        for name in sorted(variables_in(f"{{{ast.unparse(part)}}}"))
    )
    return Message("unmet-names", names=", ".join(named))


def _words(name: str) -> str:
    return NAMES.get(name, f"facts.{name}")


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "empty"
    return str(value)


DEFAULT_FACTS = {"memory_test": 0, "burnin_minutes": 10}
"""Values of facts that a partition need not have, for the expressions of the cases: 1 if the site
provides stressapptest; the minutes of each program of a burn-in whose time can be chosen."""


class SuiteSteps:
    """Expands the cases of one suite on one site, mode by mode."""

    def __init__(self, benchmarks: Benchmarks, suite: str, site: Site, machines: Machines) -> None:
        self.left_out: dict[Message, None] = {}
        self.intended_nodes: dict[tuple[str, Scope], int] = {}
        self._folder, self._suite, self._site = benchmarks.folder, suite, site
        self._cases = benchmarks.cases
        self._machine = machines
        self._layouts: dict[str, Layouts] = {}
        groups = cache(partial(node_groups, site, site.partition.nodes_per_job))
        self._rounds = cache(partial(rounds_of_jobs, site.partition.fabric, groups))

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
        related: dict[str, Draft] = {}
        for name, members in gathered((draft.step.case, draft) for draft in drafts).items():
            file = f"{self._folder / name}.yml"
            found = linked(members, self._site.hosts, file, self.leave_out)
            related |= {draft.step.id: draft for draft in found}
        return [related[draft.step.id] for draft in drafts if draft.step.id in related]

    def _drafts(self, name: str, case: Case, number: int, mode: str) -> list[Draft]:
        use = case.suites[self._suite][number]
        partition = self._site.partition
        modes = [each for each in use.modes if each in partition.modes]
        if mode not in (modes or [partition.current_mode]):
            return []
        for missing in (each for each in use.modes if each not in modes):
            where = {"mode": missing, "partition": self._site.partition_name}
            self.leave_out(Message("left-mode", case=name, **where))
        sweep = self._sweep(name, case, use, mode)
        if not sweep.applies():
            conditions = unmet(use.when or "", sweep.symbols, sweep.file)
            self.leave_out(Message("left-unmet", case=name, conditions=conditions))
            return []
        key = (name, use.scope)
        self.intended_nodes[key] = max(intended_nodes(sweep), self.intended_nodes.get(key, 0))
        points = of_a_job(sweep)
        for reason, times in sweep.left_out.items():
            where = {"case": name, "mode": mode}
            self.leave_out(Message("left-points", reason=reason, points=times, **where))
        if not points:
            accepted = "at least one point"
            if reasons := "; ".join(sweep.left_out):
                raise PlacementError(InputError(f"{sweep.file}", "where", reasons, accepted))
            found = f"a condition that no point of the sweep of {self._suite} satisfies"
            raise bad_input(sweep.file, "where", found, accepted)
        steps = labelled(name, points, [step_of(name, sweep, point) for point in points])
        beside_load = list(zip(points, steps, strict=True))
        if use.load:
            load, of_load = use.load, self._cases[use.load.case]
            beside_load = [
                (point, step)
                for point, each in beside_load
                for step in beside(each, load, of_load, sweep)
            ]
            if not beside_load:
                self.leave_out(Message("left-load", case=name, load=load.case))
        planned = [step for _, step in beside_load]
        if endless := list(endless_steps(sweep.file, planned, partition.queue)):
            raise BadInput(*endless)
        drafts = []
        for point, each in beside_load:
            axes = axes_of(sweep, point)
            drafts += [Draft(step, use, number, axes) for step in self._spread_out(each, use)]
        return drafts

    def _spread_out(self, step: Step, use: SuiteUse) -> list[Step]:
        """Give a step of the scope each-node or each-pair all nodes."""
        scope = use.scope
        needed = NODES_EACH.get(scope, len(step.nodes))
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
        if use.in_rounds:
            return self._steps_of_rounds(step, use)
        pairings = [1] if scope == "each-node" else [1, 2, 3] if len(hosts) % 2 else [1, 2]
        update: dict[str, Any] = {"scope": scope, "nodes": hosts}
        if step.load:
            update["load"] = step.load.of_instances(scope)
        return [step.model_copy(update={**update, "pairing": pairing}) for pairing in pairings]

    def _steps_of_rounds(self, step: Step, use: SuiteUse) -> list[Step]:
        """Return one step for each round of pairs of all hosts, of which there are more than two.

        All rounds of the same hosts are one job, because they have the same nodes.
        """
        jobs = self._rounds(use.rounds, ALONE if use.pairs == "alone" else TOGETHER)
        if len(jobs) > 1:
            cut = {"limit": self._site.partition.nodes_per_job or 0, "jobs": len(jobs)}
            self.leave_out(Message("left-pairs", case=step.case, **cut))
        steps = []
        idle = 0
        for hosts, rounds in jobs:
            changes = {
                "scope": use.scope,
                "nodes": hosts,
                "seconds": step.seconds + everywhere_s(len(hosts)),
            }
            for each in rounds:
                named = {"id": f"{step.id}-{each.slug}", "round": each}
                steps.append(step.model_copy(update=changes | named))
            pairs = [each.pairs(len(hosts)) for each in rounds]
            idle += len(hosts) - len(np.unique(np.concatenate(pairs)))
        if idle:
            code = "left-waves" if use.pairs == "alone" else "left-rounds"
            self.leave_out(Message(code, case=step.case, nodes=idle, rounds=use.rounds))
        return steps

    def leave_out(self, reason: Message) -> None:
        """Note why something of the suite is not measured."""
        self.left_out[reason] = None

    def _sweep(self, name: str, case: Case, use: SuiteUse, mode: str) -> Sweep:
        machine = self._machine(mode)
        partition = self._site.partition
        rails: Mapping[str, int | None] = partition.node.rails.adapters or machine.rails
        layouts = self._layouts.setdefault(mode, Layouts(machine.topology, rails))
        symbols = {
            **DEFAULT_FACTS,
            **machine.symbols,
            **partition.facts,
            "file_systems": list(partition.scratches),
            **storage_symbols(partition),
            **rate_symbols(partition, machine.symbols),
            "fabric_levels": partition.fabric.names,
            "link_bytes_per_s": partition.fabric.link_bytes_per_s,
            "provision_from": partition.provision_from,
            "node_parts": layouts.parts,
            "rails": list(rails),
            "rail_count": len(rails),
            "items": [*_agreed(self._site, name, use.scope)],
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
                self.leave_out(Message("left-larger", case=name, nodes=limit))
        return Sweep(file, case, use, self._suite, symbols, layouts, self._site)


def _agreed(site: Site, case: str, scope: Scope) -> Iterator[Parameters]:
    """Yield the conditions of each item of the contract for a case that a use can measure."""
    nodes = NODES_EACH.get(scope)
    for item in site.items.values():
        if item.case == case and (nodes is None or item.where.get("nodes", nodes) == nodes):
            yield item.where


Groups = list[tuple[list[str], Numbers]]
"""The hosts of each job, with the numbers of their switches, of shape (levels, hosts)."""


def rounds_of_jobs(
    fabric: Fabric, groups: Callable[[], Groups], most: int, measured: Measured
) -> list[tuple[list[str], list[PairRound]]]:
    """Return the hosts of each of `groups`, and the rounds of their pairs."""
    return [(hosts, pair_rounds(fabric, each, most, measured)) for hosts, each in groups()]


def node_groups(site: Site, limit: int | None) -> Groups:
    """Return the hosts of `site`, those of a switch one after the other, in one group for each job.

    A group has at most `limit` hosts. A last host that would be alone is paired with the host
    before it, which is then in two groups.
    """
    switches = nested(_switches(site))[1:-1]
    order = np.lexsort((np.arange(len(site.hosts)), *switches))
    number = -(-len(order) // limit) if limit else 1
    borders = [-(-len(order) * each // number) for each in range(number + 1)]
    groups = [order[max(0, min(first, last - 2)) : last] for first, last in pairwise(borders)]
    return [([site.hosts[place] for place in group], switches[:, group]) for group in groups]


def pair_rounds(
    fabric: Fabric, switches: Numbers, most: int, measured: Measured
) -> list[PairRound]:
    """Return the rounds of the pairs of at least two hosts.

    Args:
        switches: the numbers of their switches, as `node_groups` has ordered them.
    """
    sizes = {
        level.name: tuple(len(list(same)) for _, same in groupby(of_level.tolist()))
        for level, of_level in zip(fabric.levels, switches, strict=True)
    }
    made = schedule(tuple(sizes.values()), switches.shape[1], most, measured)
    return [
        PairRound(
            measured=measured,
            number=number,
            most=most,
            distance="" if each.distance is None else fabric.names[each.distance],
            top=fabric.top,
            switches=sizes,
        )
        for number, each in enumerate(made, start=1)
    ]


def _switches(site: Site) -> Numbers:
    """Return the numbers of the switches of the hosts of `site`, of shape (levels, hosts).

    A host without a declared switch has one for itself.
    """
    known: dict[str, int] = {}
    names = [[switch or f"host {host}" for switch in site.switches(host)] for host in site.hosts]
    numbers = [[known.setdefault(name, len(known)) for name in of_host] for of_host in names]
    levels = len(site.partition.fabric.levels)
    return np.array(numbers, dtype=np.int64).reshape(len(names), levels).T

"""The load of a step: another program that runs beside it, on free cores or on free nodes."""

from __future__ import annotations

import math
from pathlib import PurePath

from proofmark.cases.case import Case
from proofmark.cases.suite_use import Load, SuiteUse
from proofmark.cases.vocabulary import LOAD
from proofmark.common.errors import bad_input
from proofmark.plan.layout import Layouts
from proofmark.plan.rank_cpus import RankCpus, ranges_of
from proofmark.plan.step import Step, StepLoad, step_of
from proofmark.plan.sweep import Sweep

NO_LOAD = "none"
"""The value of the parameter `LOAD` of a baseline."""
GRACE_S = 120
"""The seconds that a load may run longer than the time limit of its step: its start and its end."""


def beside(step: Step, load: Load, case: Case, sweep: Sweep) -> list[Step]:
    """Return `step` with its load, after its baseline if the load wants one.

    It is empty if the load needs a free node and there is none.

    The nodes of a step whose load runs on other nodes are spread evenly over the hosts: pairs of
    ranks i and i + n are then far apart, and the load has nodes at every switch.

    Args:
        step: a step without a load.
        load: the load of its use.
        case: the case of the load.
        sweep: the sweep of the step.

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
    every_pu: list[int] = []
    for core in layouts.topology.cores:
        every_pu += core.pus
    pus = tuple(every_pu)
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

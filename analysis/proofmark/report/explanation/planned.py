"""What a step runs, where, with which programs and files, and what it waits for."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from itertools import groupby

from proofmark.common.call_settings import setting
from proofmark.common.files import is_regular
from proofmark.common.nodesets import folded
from proofmark.common.text import duration, size
from proofmark.plan.step import SCRATCH
from proofmark.report.explanation.context import Context
from proofmark.report.explanation.fact_sources import parameter_rows
from proofmark.report.explanation.rows import ExplainedRow
from proofmark.report.words import count
from proofmark.runs.decisions import read_decisions
from proofmark.runs.job_folder import JobFolder, last_state
from proofmark.runs.run_files import launch_command
from proofmark.site.node.cpu import cpu_list_text

MOST_RANKS = 8
"""The largest number of groups of ranks whose CPUs are listed."""
MOST_STEPS = 5
"""The largest number of other steps that a row names."""


def command_rows(context: Context) -> list[ExplainedRow]:
    """Return the script of the step, and how the launcher starts the program."""
    step, script = context.step, context.script
    rows = [
        ExplainedRow("case", f"{step.case}: {context.case.title}", f"benchmarks/{step.case}.yml")
    ]
    if step.copies > 1:
        rows.append(ExplainedRow("copies", f"{step.copies}", "started at the same time"))
    if is_regular(script):
        rows.append(
            ExplainedRow("script", f"{script.relative_to(context.run.folder)}", "in the run")
        )
    else:
        rows.append(
            ExplainedRow("script", "not written yet", "the run writes it before its first job")
        )
    launch = launch_command(context.script_text) or shlex.join([step.program, *step.arguments])
    return [*rows, *(ExplainedRow("launch", line.strip()) for line in launch.splitlines())]


def where_rows(context: Context) -> list[ExplainedRow]:
    """Return the nodes, ranks and CPUs of a step, its mode and its job."""
    step, plan = context.step, context.run.plan
    rows = [ExplainedRow("nodes", folded(context.nodes), count(len(context.nodes), "node"))]
    if step.scope != "job" and not context.instance.name:
        unit = "node" if step.scope == "each-node" else "pair of nodes"
        rows.append(ExplainedRow("measurements", f"{step.measurements}", f"one for each {unit}"))
    intended = plan.fewer_nodes.get(step.case)
    if intended and step.scope == "job" and len(step.nodes) > 1:
        rows.append(
            ExplainedRow("fewer nodes", f"the partition has {intended}", "the run is degraded")
        )
    rows.append(
        ExplainedRow(
            "ranks", f"{step.ranks}, each with {count(step.threads, 'thread')}", step.placement
        )
    )
    rows += _cpu_rows(context)
    if step.membind:
        rows.append(
            ExplainedRow("memory", f"NUMA domains {', '.join(map(str, step.membind))}", "bound")
        )
    else:
        rows.append(ExplainedRow("memory", "any NUMA domain", "not bound"))
    current = (
        "the current mode" if context.mode == plan.current_mode else "needs a confirmed reboot"
    )
    rows.append(ExplainedRow("mode", context.mode, current))
    folder = JobFolder(context.run, context.job)
    position = [each.id for each in context.job.steps].index(step.id) + 1
    place = f"step {position} of {len(context.job.steps)}"
    rows.append(
        ExplainedRow("job", context.job.id, "; ".join(filter(None, (place, last_state(folder)))))
    )
    excluded = [event["without"] for event in folder.history() if event["without"]]
    rows += (
        ExplainedRow("excluded nodes", text, "the last attempt of the job")
        for text in excluded[-1:]
    )
    return rows


def _cpu_rows(context: Context) -> Iterator[ExplainedRow]:
    """Yield the CPUs and NUMA domains of the ranks; like ranks of several nodes are one row."""
    step = context.step
    if not step.cpus:
        yield ExplainedRow("CPUs", "not bound by the kit", "the program binds its own processes")
        return
    domains: dict[int, int] = {}
    if context.machine and context.site.partition.host_cpus is None:
        for core in context.machine.topology.cores:
            domains |= {pu: core.numa for pu in core.pus}
    numbered = list(enumerate(step.cpus))
    of_nodes: dict[tuple[tuple[int, tuple[int, ...]], ...], list[int]] = {}
    for node, ranks in groupby(numbered, lambda each: each[1].node):
        listed = list(ranks)
        first = listed[0][0]
        key = tuple((number - first, rank.cpus) for number, rank in listed)
        of_nodes.setdefault(key, []).append(node)
    shown = 0
    for key, nodes in of_nodes.items():
        same = f"on each of {len(nodes)} nodes" if len(nodes) > 1 else ""
        for number, cpus in key:
            shown += 1
            if shown > MOST_RANKS:
                continue
            numa = sorted({domains[cpu] for cpu in cpus if cpu in domains})
            of = f"NUMA domain {', '.join(map(str, numa))}" if numa else ""
            source = "; ".join(filter(None, (of, same)))
            yield ExplainedRow(f"rank {number}", f"CPUs {cpu_list_text(cpus)}", source)
    if shown > MOST_RANKS:
        yield ExplainedRow("ranks", f"and {shown - MOST_RANKS} more", "plan.json has all")


def input_rows(context: Context) -> list[ExplainedRow]:
    """Return the parameters with their sources, the program, the files and the limits."""
    step = context.step
    rows = parameter_rows(context)
    rows += _program_rows(context)
    rows += (
        ExplainedRow(
            f"variable {name}", value.replace(SCRATCH, context.scratch or "$SCRATCH"), "the case"
        )
        for name, value in step.environment.items()
    )
    rows += (
        ExplainedRow(f"variant {name}", value, "the package has its variables")
        for name, value in step.variants.items()
    )
    rows += (
        ExplainedRow(f"file {name}", line.replace(SCRATCH, context.scratch or "$SCRATCH"))
        for name, text in step.inputs.items()
        for line in text.splitlines()
    )
    if step.uses_scratch:
        partition = context.site.partition
        folder = context.scratch or partition.scratch.path
        left = f"leaves at most {size(step.bytes)}" if step.bytes else ""
        name = f"file system {step.file_system}" if step.file_system else ""
        rows.append(ExplainedRow("scratch", folder, "; ".join(filter(None, (name, left)))))
    if step.layout:
        values = ", ".join(f"{axis} {value}" for axis, value in step.layout.values.items())
        rows.append(ExplainedRow("layout", values, step.layout.kind))
    queue = context.site.partition.queue
    if queue.memory_per_node:
        rows.append(
            ExplainedRow("memory limit", f"{size(queue.memory_per_node)} of a node", "the queue")
        )
    rows.append(ExplainedRow("time limit", duration(step.timeout), "the case"))
    rows.append(ExplainedRow("expected time", duration(step.wall_s), "cost of the case"))
    return rows


def _program_rows(context: Context) -> Iterator[ExplainedRow]:
    step = context.step
    environment = f"environment {context.environment}"
    package = context.software.packages.get(step.package) if context.software else None
    for name, value in (package.run_environment if package else {}).items():
        yield ExplainedRow(f"variable {name}", value, "launch of the site")
    if package is None:
        yield ExplainedRow(
            "program", f"{step.program} of {step.package}", f"{environment}; not recorded yet"
        )
        return
    known = " ".join(filter(None, (step.package, package.version, package.hash[:12])))
    yield ExplainedRow("package", known, f"{package.origin}, {environment}")
    yield ExplainedRow(
        "environment hash", package.environment_hash, "version, programs and libraries"
    )
    program = package.programs.get(step.program)
    if program:
        owner = program.package or "no package"
        yield ExplainedRow("program", program.path, f"SHA-256 {program.sha256}; {owner}")
        if mpi := program.mpi:
            yield ExplainedRow(
                "MPI", " ".join(filter(None, (mpi.family, mpi.version))), mpi.library
            )
        if blas := program.blas:
            known = " ".join(filter(None, (blas.family, blas.version, blas.chosen)))
            yield ExplainedRow("BLAS", known, blas.library)


def need_rows(context: Context) -> list[ExplainedRow]:
    """Return what must happen before and beside the step, and which steps wait for it."""
    step, plan = context.step, context.run.plan
    rows: list[ExplainedRow] = []
    if step.reads:
        rows.append(ExplainedRow("reads files of", step.reads, "runs after it, on other nodes"))
    readers = [each.id for each in plan.steps() if each.reads == step.id] if step.kept else []
    if readers:
        rows.append(ExplainedRow("is read by", _listed(readers), "its files stay in scratch"))
    decisions = read_decisions(context.run.files)
    for search in plan.searches:
        if step.id in search.steps():
            found = decisions.searches.get(search.id, "not ended")
            rows.append(ExplainedRow("search", search.id, found))
    if step.load:
        load = step.load.step
        place = f"{step.load.place}, {step.load.warm_up_s:g} s before the program"
        rows.append(ExplainedRow("load beside it", f"{load.case}: {load.program}", place))
    if reason := plan.not_needed.get(step.id):
        rows.append(ExplainedRow("not run", reason, "the run does not need it"))
    if context.mode not in {group.mode for group in plan.to_run()}:
        confirm = setting("confirm_reboot")
        rows.append(ExplainedRow("not run", f"needs mode {context.mode}", confirm))
    return rows or [ExplainedRow("other steps", "none", "it can run in any order")]


def _listed(steps: list[str]) -> str:
    more = f" and {len(steps) - MOST_STEPS} more" if len(steps) > MOST_STEPS else ""
    return ", ".join(steps[:MOST_STEPS]) + more

"""What a run says of a step before its results: its command, place, inputs and needs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

from proofmark.cases.case import Case, SuiteUse
from proofmark.cases.suite import Benchmarks
from proofmark.cases.vocabulary import AXES, FILE_SYSTEM, LOAD, MEASURED
from proofmark.common.errors import BadInput
from proofmark.common.expressions import variables_in
from proofmark.common.files import exists, is_regular, read_json, text_or_empty
from proofmark.common.input_limits import MAX_PROBE_BYTES
from proofmark.common.nodesets import folded
from proofmark.common.printed_command import setting
from proofmark.common.text import duration, size
from proofmark.plan.plan import Job
from proofmark.plan.selection import StepFigures, figures_of
from proofmark.plan.step import SCRATCH, Step, StepInstance
from proofmark.plan.suite_steps import DEFAULT_FACTS, modes_of
from proofmark.report.words import count
from proofmark.runs.job_folder import JobFolder, last_state
from proofmark.runs.run import Run, benchmarks_of, read_decisions, site_of
from proofmark.runs.run_files import StepFiles, launch_command
from proofmark.site.inventory import Site
from proofmark.site.machines import Machine, declared
from proofmark.site.node.cpu import cpu_list_text
from proofmark.site.node.facts import NodeFacts, parse_probe
from proofmark.software.software import Software


@dataclass(frozen=True)
class ExplainedRow:
    """One fact about a step.

    Attributes:
        name: what the fact is about.
        source: where it comes from; may be empty.
    """

    name: str
    value: str
    source: str = ""


@dataclass(frozen=True)
class ExplanationSection:
    """Rows with a common title. `key` is the name of the section in JSON."""

    key: str
    title: str
    rows: Sequence[ExplainedRow]


@dataclass(frozen=True)
class Explanation:
    """All sections about one step, or one measurement of it.

    Attributes:
        instance: the nodes that measure together, or the whole step.
    """

    run: str
    instance: StepInstance
    sections: Sequence[ExplanationSection]

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``explain --json``."""
        sections: Mapping[str, list[dict[str, str]]] = {
            each.key: [
                {"name": row.name, "value": row.value, "source": row.source} for row in each.rows
            ]
            for each in self.sections
        }
        return {
            "run": self.run,
            "step": self.instance.step,
            "instance": self.instance.name,
            **sections,
        }


_SCRATCH = re.compile(r"^SCRATCH=(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Context:
    """A step of a run, with the inputs of the run.

    Attributes:
        instance: the nodes that measure together, or the whole step.
        unwritten: the text that the script will have; empty if it is not known.
    """

    run: Run
    step: Step
    instance: StepInstance
    mode: str
    environment: str
    job: Job
    benchmarks: Benchmarks
    site: Site
    unwritten: str = ""

    @property
    def case(self) -> Case:
        """The case of the step."""
        return self.benchmarks.case(self.step.case)

    @property
    def files(self) -> StepFiles:
        """The folder of the step."""
        return self.run.files.step(self.step.id)

    @property
    def nodes(self) -> list[str]:
        """The nodes that are explained: those of the instance, or all of the step."""
        return self.step.nodes_of(self.instance)

    @property
    def together(self) -> list[str]:
        """The nodes of one measurement."""
        return self.nodes if self.instance.name else next(iter(self.step.instances().values()))

    @cached_property
    def figures(self) -> StepFigures:
        """The figures that the step can give."""
        return figures_of(self.step, self.case, self.run.plan.system, self.mode)

    @cached_property
    def software(self) -> Software | None:
        """The programs of the run; None if they are not installed or their file is damaged."""
        path = self.run.files.software
        try:
            return read_json(path, Software) if exists(path) else None
        except BadInput:
            return None

    @property
    def script(self) -> Path:
        """The script that runs the program on the nodes of a measurement."""
        return self.run.files.scripts.step(self.step.id).program_script

    @cached_property
    def script_text(self) -> str:
        """The text of `script`, or the one that it will have."""
        return text_or_empty(self.script) or self.unwritten

    @cached_property
    def scratch(self) -> str:
        """The scratch folder of the step as its script has it; empty if it has none."""
        found = _SCRATCH.search(self.script_text)
        return next(iter(shlex.split(found[1])), "") if found else ""

    @cached_property
    def facts(self) -> NodeFacts | None:
        """The facts of the machine that planned the run, if its nodes are like it."""
        if self.site.partition.node.topology:
            return None
        text = text_or_empty(self.run.files.facts_probe, MAX_PROBE_BYTES)
        try:
            return parse_probe(text, self.run.files.facts_probe.name)
        except (BadInput, ValueError):
            return None

    @cached_property
    def machine(self) -> Machine | None:
        """A node of the partition in the mode of the step; None if it is not known."""
        node, nodes = self.site.partition.node, len(self.site.hosts)
        copied = self.site.model_copy(update={"inventory": self.run.files.inventory})
        try:
            if node.topology:
                return declared(copied, node, self.mode)
            return Machine.from_facts(self.facts, nodes) if self.facts else None
        except (BadInput, KeyError):
            return None


def context_of(run: Run, step: Step, instance: StepInstance, unwritten: str) -> Context:
    """Return the context of `step`.

    Raises:
        BadInput: a case or the site of the run is damaged.
    """
    group, job = next(
        (group, job) for group in run.plan.groups for job in group.jobs if step in job.steps
    )
    return Context(
        run=run,
        step=step,
        instance=instance,
        mode=group.mode,
        environment=group.environment,
        job=job,
        benchmarks=benchmarks_of(run),
        site=site_of(run),
        unwritten=unwritten,
    )


_DEFAULTS = {"nodes": 1, "ranks": 1, "threads": 1, "placement": "close"}
"""The values of the axes that no sweep names."""


@dataclass(frozen=True)
class Definition:
    """The place that gives a parameter its value, and its expression there; may be empty."""

    place: str
    expression: Any = ""

    def __str__(self) -> str:
        return f"{self.place}: {self.expression}" if self.expression != "" else self.place


def parameter_rows(context: Context) -> list[ExplainedRow]:
    """Return each parameter of the step with its value and its source."""
    step, uses = context.step, uses_of(context)
    values: dict[str, Any] = dict(step.recorded)
    values |= {"nodes": len(context.together), "ranks": step.ranks, "threads": step.threads}
    values |= {"placement": step.placement} if step.placement else {}
    searched = _searched(context)
    rows = []
    for name, value in (*values.items(), *step.derived.items()):
        found = dict.fromkeys(str(each) for each in _definitions(name, context, uses))
        source = " or ".join(found)
        if name in searched:
            source = f"{source}; {searched[name]}"
        rows.append(ExplainedRow(name, f"{value}", source))
    return rows


def fact_rows(context: Context) -> list[ExplainedRow]:
    """Return each fact that the expressions of the parameters use, with its value and source."""
    uses = uses_of(context)
    known = {*context.step.recorded, *context.step.derived, *AXES}
    pending = []
    for name in known:
        pending += [each.expression for each in _definitions(name, context, uses)]
    pending += [context.case.cost.seconds, context.case.cost.bytes, context.case.timeout]
    pending += [*context.case.arguments, *context.case.inputs.values()]
    seen: dict[str, None] = {}
    while pending:
        for text in _texts(pending.pop()):
            for name in sorted(_names(text) - seen.keys() - known):
                seen[name] = None
                pending += [each.expression for each in _definitions(name, context, uses)]
    rows = (_fact(name, context) for name in sorted(seen))
    return [row for row in rows if row]


def uses_of(context: Context) -> list[SuiteUse]:
    """Return the uses of the case in the suite that can have made the step: usually one."""
    case, step = context.case, context.step
    every = case.suites.get(context.run.plan.suite, [])
    return [use for use in every if _made_by(step, case, use, context)]


def _made_by(step: Step, case: Case, use: SuiteUse, context: Context) -> bool:
    partition = context.site.partition
    alone = step.scope == "job" and len(step.nodes) == {"each-pair": 2}.get(use.scope, 1)
    modes = modes_of(use, partition.modes, partition.current_mode)
    if context.mode not in modes or (use.scope != step.scope and not alone):
        return False
    if (use.load is not None) != (LOAD in step.parameters) or bool(use.reads) != bool(step.reads):
        return False
    if step.load and use.load and use.load.case != step.load.step.case:
        return False
    swept = {**case.sweep, **use.sweep}
    computed = {*case.let, *use.let, *AXES}
    return all(
        _has(step, axis.rstrip("_"), expression)
        for axis, expression in swept.items()
        if axis not in computed
    )


def _has(step: Step, axis: str, expression: Any) -> bool:
    """Return whether a step has the axis, with one of its values if they are constants."""
    if axis not in step.parameters:
        return isinstance(expression, str)  # an expression that gives a list is no parameter
    listed = expression if isinstance(expression, list) else [expression]
    constants = [f"{each}" for each in listed if "{" not in f"{each}"]
    return len(constants) < len(listed) or f"{step.parameters[axis]}" in constants


def _definitions(name: str, context: Context, uses: Sequence[SuiteUse]) -> Iterator[Definition]:
    """Yield what gives a parameter its value, one for each use; empty for a name without one."""
    for use in uses or [SuiteUse()]:
        if found := _definition(name, context, use):
            yield found


def _definition(name: str, context: Context, use: SuiteUse) -> Definition | None:
    case, suite = context.case, context.run.plan.suite
    places: tuple[tuple[str, Mapping[str, Any]], ...] = (
        ("label of the case", case.labels),
        (f"let of the suite {suite}", use.let),
        ("let of the case", case.let),
        (f"sweep of the suite {suite}", use.sweep),
        ("sweep of the case", case.sweep),
    )
    for place, values in places:
        for key in (name, f"{name}_"):
            if key in values:
                return Definition(place, values[key])
    if name == "fs_block_bytes":
        return Definition(f"block_bytes of the file system {context.step.file_system}")
    if name in (LOAD, MEASURED, FILE_SYSTEM):
        return Definition(f"the suite {suite}")
    if name in _DEFAULTS and name in AXES:
        return Definition("default of the kit", _DEFAULTS[name])
    return None


def _searched(context: Context) -> dict[str, str]:
    """Return the axes that a search of the plan varies among its steps, with its decision."""
    for search in context.run.plan.searches:
        if context.step.id in search.steps():
            text = f"the search {search.id} chooses among its values"
            return dict.fromkeys(search.rule.axes, text)
    return {}


def _texts(value: Any) -> list[str]:
    listed = value if isinstance(value, list) else [value]
    return [each for each in listed if isinstance(each, str)]


def _names(text: str) -> set[str]:
    try:
        return variables_in(text)
    except SyntaxError:
        return set()  # braces of a program's own syntax


def _fact(name: str, context: Context) -> ExplainedRow | None:
    """Return the value of a fact and its source; None for a name that is no fact."""
    partition = context.site.partition
    if name in partition.facts:
        sources = partition.node.sources
        source = sources.get(name) or sources.get(f"facts.{name}")
        place = f"fact of the partition {context.run.plan.partition}"
        return ExplainedRow(
            name, f"{partition.facts[name]}", f"{place}: {source}" if source else place
        )
    if name in context.case.defaults:
        return ExplainedRow(name, f"{context.case.defaults[name]}", "default of the case")
    if name in DEFAULT_FACTS:
        return ExplainedRow(name, f"{DEFAULT_FACTS[name]}", "default of the kit")
    symbols = context.machine.symbols if context.machine else {}
    if name in symbols:
        return ExplainedRow(name, f"{symbols[name]}", f"a node in mode {context.mode}")
    return None


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

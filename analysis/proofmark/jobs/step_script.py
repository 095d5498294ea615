"""The script of a step: it starts the program with its launcher, and records the execution.

From the software of its run a step takes its program, environment and launcher.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files

from proofmark.cases.case import Undisturbed
from proofmark.cases.vocabulary import ALL_RAILS, RAIL
from proofmark.common.errors import bad_input, nearest
from proofmark.common.grouping import flat, gathered
from proofmark.common.message import Message
from proofmark.jobs.launcher import Launch, Launcher, launcher, launchers_of_ranks
from proofmark.plan.file_layout import FileLayout
from proofmark.plan.plan import SCRATCH, Job, Plan, Step, host_numa_domains, host_rank_cpus
from proofmark.plan.rank_cpus import RankCpus
from proofmark.plan.step import WrittenFiles
from proofmark.site.execution import DEFAULT_LAUNCH, HostCpus, LaunchSettings
from proofmark.site.file_systems import LayoutTool, kinds
from proofmark.site.rails import variables_of_rail
from proofmark.software.program import Program
from proofmark.software.software import Package, Software
from proofmark.software.target import target_requirements


def repeated_commands(plan: Plan, software: Software) -> dict[str, Message]:
    """Return the steps that repeat the command of another step of their job, with the reason.

    Two choices of a variant may have the same environment: if a BLAS selects the right kernel by
    default, "right" is the same as "as-installed".
    """
    firsts: dict[tuple[str, ...], Step] = {}
    reasons: dict[str, Message] = {}
    for group in plan.groups:
        for job in group.jobs:
            for step in (step for step in job.steps if step.variants):
                first = firsts.setdefault((job.id, *_command(step, software)), step)
                if first is not step:
                    same = ", ".join(
                        f"{variant} {choice} is {first.variants[variant]}"
                        for variant, choice in step.variants.items()
                        if choice != first.variants[variant]
                    )
                    reasons[step.id] = Message("same-command", step=first.id, same=same)
    return reasons


def _command(step: Step, software: Software) -> tuple[str, str]:
    """Return the step without its id and its variants, and the environment of its variants."""
    parameters = {
        name: value for name, value in step.parameters.items() if name not in step.variants
    }
    plain = step.model_copy(update={"id": "", "variants": {}, "parameters": parameters})
    environment = environment_of_step(step, package_of_step(step, software))
    return plain.model_dump_json(), json.dumps(environment, sort_keys=True)


def processor_needs(job: Job, software: Software) -> str:
    """Return the requirements of the programs of `job` for processors: one line for each target.

    Raises:
        BadInput: archspec has no target of this name.
    """
    targets = {package_of_step(step, software).target for step in job.steps} - {""}
    return "".join(f"{target_requirements(target)}\n" for target in sorted(targets))


def launcher_of_step(
    step: Step, package: Package, launch_settings: LaunchSettings, replaced: Mapping[str, str]
) -> str:
    """Return the name of the launcher: that of the site, or that of the MPI.

    Args:
        replaced: the launchers of the scheduler instead of those of an MPI.

    Raises:
        BadInput: the ranks have no launcher: all of them would be one process.
    """
    if step.launch != "mpi":
        return "plain"
    if not launch_settings.launcher and package.launcher == "plain" and step.ranks > 1:
        found = f"no launcher for {step.ranks} ranks: the MPI of {step.package} is not recognized"
        accepted = f"partition.launch.launcher: {launchers_of_ranks()}"
        raise bad_input("software.json", step.id, found, accepted)
    return launch_settings.launcher or replaced.get(package.launcher, package.launcher)


def package_of_step(step: Step, software: Software) -> Package:
    """Return the package of `step`.

    Raises:
        BadInput: `software` lacks it.
    """
    if step.package not in software.packages:
        hint = nearest(step.package, software.packages)
        found = f"no package {step.package!r}{hint}"
        raise bad_input("software.json", step.id, found, ", ".join(software.packages) or "packages")
    return software.packages[step.package]


def program_of_step(step: Step, package: Package) -> Program:
    """Return the program of `step`.

    Raises:
        BadInput: `package` lacks it.
    """
    if step.program not in package.programs:
        hint = nearest(step.program, package.programs)
        found = f"no program {step.program!r} in {step.package}{hint}"
        raise bad_input("software.json", step.id, found, ", ".join(package.programs))
    return package.programs[step.program]


def environment_of_step(step: Step, package: Package) -> dict[str, str]:
    """Return the variables of the package, the site, the variants and the case.

    A later one overrides an earlier one.

    A package whose BLAS is not recognised, for example a static one, has no variants: then all
    choices are those of the package as it is.

    Raises:
        BadInput: the package has other choices of a variant.
    """
    merged = package.environment | package.run_environment
    for variant, choice in step.variants.items():
        known = package.variants.get(variant)
        if known is None:
            continue
        if choice not in known:
            hint = nearest(choice, known)
            found = f"{variant} {choice!r}{hint}"
            raise bad_input("software.json", step.id, found, ", ".join(known))
        merged |= known[choice]
    return merged | (_of_rail(step, package) or {}) | step.environment


def _of_rail(step: Step, package: Package) -> dict[str, str] | None:
    """Return the variables that choose the rail of `step`; None if its MPI is not known."""
    rail = str(step.parameters.get(RAIL, ALL_RAILS))
    program = package.programs.get(step.program)
    mpi = program.mpi.family if program and program.mpi else None
    return {} if rail == ALL_RAILS else variables_of_rail(rail, mpi)


def unselected_rails(plan: Plan, software: Software) -> dict[str, Message]:
    """Return the steps of one rail whose MPI cannot be told to use this rail, with the reason."""
    return {
        step.id: Message("rail-not-chosen", rail=f"{step.parameters[RAIL]}")
        for step in plan.steps()
        if step.package in software.packages
        and _of_rail(step, software.packages[step.package]) is None
    }


OPTIONS = "{options}"

_SHELL = files("proofmark.jobs") / "shell"

THRESHOLDS = ("max_steal", "max_others", "max_delay", "max_burst", "least_seconds")
"""The fields of `Undisturbed` that the script of a step compares with its samples."""

GRACE_S = 60
"""The seconds that a job waits for a per-node step after the time limit of one node."""

TELEMETRY_S = 10
"""The seconds of a line of ``telemetry.jsonl`` for at most `TELEMETRY_NODES` nodes."""

TELEMETRY_NODES = 128

NODE = "@NODE@"
"""Placeholder in the script of a per-node step: the name of the node."""

PEER = "@PEER@"
"""Placeholder in the script of a per-node step: the name of the other node of a pair."""

FOLDER = "@FOLDER@"
"""Placeholder in the script of a per-node step: the folder of the output of the node."""


def layout_functions(layout: FileLayout, folder: str) -> list[str]:
    """Return the lines of ``set_layout`` and ``print_layout FILE``.

    Both use the first tool of the file system that the node has. Each word is quoted.
    """

    def set_words(tool: LayoutTool) -> str:
        options: list[str] = []
        for axis, value in layout.values.items():
            options += [word.replace("{value}", str(value)) for word in tool.options[axis]]
        values = {"{path}": [folder], OPTIONS: options}
        return shlex.join(flat(values.get(word, [word]) for word in tool.set))

    def get_words(tool: LayoutTool) -> str:
        return " ".join('"$1"' if word == "{file}" else shlex.quote(word) for word in tool.get)

    tools = kinds()[layout.kind].steps
    return [
        *_function("set_layout", tools, set_words),
        *_function("print_layout", tools, get_words),
    ]


def _function(
    name: str, tools: Sequence[LayoutTool], command: Callable[[LayoutTool], str]
) -> list[str]:
    programs = " or ".join(dict.fromkeys(tool.set[0] for tool in tools))
    lines = [f"{name}() {{"]
    for number, tool in enumerate(tools):
        word = "elif" if number else "if"
        lines += [f"{word} command -v {tool.set[0]} >/dev/null; then", command(tool)]
    problem = f"no {programs}: the layout of files cannot be set"
    return [*lines, "else", f'echo "{problem}" >&2', "return 127", "fi", "}"]


@dataclass(frozen=True)
class LaunchSite:
    """The programs of a run, and how its site starts them.

    Attributes:
        host_cpus: the CPUs of the machine below virtual nodes; None: the nodes are real.
        aliases: further names that a node may report, by node.
    """

    software: Software
    settings: LaunchSettings = DEFAULT_LAUNCH
    host_cpus: HostCpus | None = None
    aliases: Mapping[str, Sequence[str]] = field(default_factory=dict)
    replaced_launchers: Mapping[str, str] = field(default_factory=dict)


def shell_parts(*parts: str) -> str:
    """Return the joined texts of files in ``jobs/shell``."""
    return "".join(map(_shell_part, parts))


@cache
def _shell_part(name: str) -> str:
    return (_SHELL / name).read_text(encoding="utf-8")


def each_script(step: Step) -> str:
    """Return the ``run.sh`` of a per-node step: it creates and runs the script of each node."""
    inputs = step.load.step.inputs if step.load else {}
    # The files of the load become those of each node.
    load_files = [f"load/{name}" for name in (*inputs, "node.sh")] if step.load else []
    head = [
        "#!/bin/sh",
        f"# {step.case}: {_describe(step)}",
        f"INPUTS={shlex.quote(' '.join(step.inputs))}",
        f"LOAD_FILES={shlex.quote(' '.join(load_files))}",
        f"STAGGER={step.stagger} # seconds",
        "",
    ]
    return "\n".join(head) + shell_parts("hosts.sh", "repeats.sh", "each.sh")


def step_script(
    step: Step, site: LaunchSite, scratch: str, undisturbed: Undisturbed | None = None
) -> str:
    """Return the self-contained ``run.sh`` of `step`, or of one of its instances.

    Args:
        undisturbed: the thresholds of a disturbance; None: nothing disturbs the step.

    Raises:
        BadInput: a package or program of the step is missing, or its ranks have no launcher.
    """
    package, host_cpus = package_of_step(step, site.software), site.host_cpus
    folder = scratch if step.uses_scratch else ""

    def placed(value: str) -> str:
        return value.replace(SCRATCH, scratch)

    program = program_of_step(step, package)
    cpus, membind = host_rank_cpus(step, host_cpus), host_numa_domains(step, host_cpus)
    launch = Launch(
        program=program.path,
        arguments=[placed(argument) for argument in step.arguments],
        environment={
            name: placed(value) for name, value in environment_of_step(step, package).items()
        },
        hosts=step.nodes if step.scope == "job" else [NODE, PEER],
        cpus=cpus,
        prefix=package.prefix,
        membind=membind,
        mpi=program.mpi.family or "" if program.mpi else "",
        settings=site.settings,
        concurrent=step.copies > 1,
        one_machine=host_cpus is not None,
    )
    chosen = launcher(launcher_of_step(step, package, site.settings, site.replaced_launchers))
    children = "yes" if len(launch.by_host) < 2 and chosen.starts_children else ""
    lines = chosen.lines(launch) if step.copies == 1 else _copied(step, chosen, launch)
    output_file = "" if step.output in ("stdout", "stderr") else step.output
    name = step.id if step.scope == "job" else f"{step.id}/{FOLDER}"
    declared = [NODE, PEER]
    if step.scope == "job":
        declared = flat((node, *site.aliases.get(node, ())) for node in step.nodes)
    hosts = dict.fromkeys(declared)
    use = "read" if step.reads else "kept" if step.kept else ""
    head = [
        "#!/bin/sh",
        f"# {step.case}: {_describe(step)}",
        f"STEP={shlex.quote(name)}",
        f"TIMEOUT={step.timeout} # seconds",
        f"CHILDREN={children} # yes: the ranks are child processes of the launcher",
        f"THREADS={_threads(step)} # bound: one CPU for each thread; reported: the launcher binds",
        f"SCRATCH={shlex.quote(folder)}",
        f"FILES={use} # kept: another step reads them; read: another step wrote them",
        f"DIRECTORY={shlex.quote(placed(step.directory))} # of the ranks; empty: the execution",
        *([_least(step.writes)] if step.writes else ["WRITES="]),
        f"LAYOUT={'yes' if step.layout else ''} # yes: its files get another layout than scratch",
        f"INPUTS={shlex.quote(' '.join(step.inputs))}",
        f"MADE={shlex.quote(output_file)}",
        f"HOSTS={shlex.quote(' '.join(hosts))} # the planned nodes, and names that they report",
        f"UNDISTURBED='{_thresholds(undisturbed)}'",
        f"TELEMETRY={telemetry_interval(len(step.nodes))} # seconds of a line of telemetry.jsonl",
        *_load_variables(step),
        "launch() {",
        *lines,
        "}",
        *_rank_cpus_function(cpus, host_cpus),
        *(layout_functions(step.layout, folder) if step.layout else ()),
        "",
    ]
    needed = {
        "files.sh": step.uses_scratch,
        "scratch.sh": step.writes,
        "layout.sh": step.layout,
        "load.sh": step.load,
    }
    optional = (part for part, used in needed.items() if used)
    parts = ("hosts.sh", "noise.sh", "telemetry.sh", *optional, "step.sh")
    return "\n".join(head) + shell_parts(*parts)


def _threads(step: Step) -> str:
    """Return who binds the threads of a rank, whose CPUs the script then reports; or ""."""
    if step.bind_threads:
        return "bound"
    return "reported" if step.launch == "threads" and step.threads > 1 else ""


def _least(writes: WrittenFiles) -> str:
    when = "running" if writes.removed else "ended"
    return f"WRITES='{when} {writes.bytes} {writes.files}' # least bytes and files in scratch"


def telemetry_interval(nodes: int) -> int:
    """Return the seconds of a line of ``telemetry.jsonl``: longer for more than 128 nodes."""
    return TELEMETRY_S * -(-nodes // TELEMETRY_NODES)


def _load_variables(step: Step) -> list[str]:
    if step.load is None:
        return ["LOAD_RANKS= # the number of ranks of the load; empty: the step has no load"]
    ranks = step.load.step.ranks
    warm_up = round(100 * step.load.warm_up_s)
    return [f"LOAD_RANKS={ranks} LOAD_WARM_UP={warm_up} # number; hundredths of a second"]


def _thresholds(undisturbed: Undisturbed | None) -> str:
    """Return the thresholds as the assignments of an awk program."""
    if undisturbed is None:
        return ""
    return " ".join(f"{name}={getattr(undisturbed, name):g}" for name in THRESHOLDS)


def _rank_cpus_function(ranks: Sequence[RankCpus], host_cpus: HostCpus | None) -> list[str]:
    """Return the sh function that sets CPUS to the CPUs of a rank, in the order of its threads.

    If the binding is the same on all nodes, the number of a rank on its node is enough.
    """
    cpus = [rank.cpus for rank in ranks]
    count = len(cpus)
    periods = (n for n in range(1, count) if count % n == 0 and cpus[n:] == cpus[:-n])
    period = next(periods, count)
    by_cpus = gathered((each, f"{number}") for number, each in enumerate(cpus[:period]))
    comment = [f"# CPU n of node m: {[*host_cpus]}[n + m] of this machine"] if host_cpus else []
    return [
        *comment,
        "rank_cpus() { # rank_cpus RANK: sets CPUS",
        f"case $(($1 % {period or 1})) in",
        *(
            f"{'|'.join(numbers)}) CPUS={','.join(map(str, cpus))} ;;"
            for cpus, numbers in by_cpus.items()
        ),
        "*) CPUS= ;;",
        "esac",
        "}",
    ]


def _copied(step: Step, chosen: Launcher, launch: Launch) -> list[str]:
    """Return the lines that start all copies at once and then print their outputs in order.

    Each copy has its own folder. The number of the copy is inserted after the first comment line,
    because the reader resets its context there.
    """
    copies, lines = step.copies, []
    for copy in range(copies):
        one_copy = replace(launch, cpus=launch.cpus[copy::copies])
        lines += [
            "(",
            "read -r start _ </proc/uptime",
            "(",
            f"mkdir -p copy-{copy + 1} && cd copy-{copy + 1} || exit 74",
            f"export FIRST_RANK={copy} RANK_STRIDE={copies}",
            *chosen.lines(one_copy),
            ")",
            "code=$?",
            "read -r end _ </proc/uptime",
            f'echo "{{\\"copy\\": {copy + 1}, \\"start\\": $start, \\"end\\": $end}}" '
            f">copy-{copy + 1}.when",
            'exit "$code"',
            f") >copy-{copy + 1}.out &",
            f"COPY_{copy + 1}=$!",
        ]
    numbers = range(1, copies + 1)
    after_first_comment = "'1; /^#/ && !printed++ { print copy }'"
    return [
        *lines,
        "FAILED=0",
        *(f'wait "$COPY_{number}" || FAILED=$?' for number in numbers),
        f"for copy in {' '.join(map(str, numbers))}; do",
        f'awk -v copy="# copy $copy of {copies}" {after_first_comment} "copy-$copy.out"',
        "done",
        f"for copy in {' '.join(map(str, numbers))}; do",
        'cat "copy-$copy.when"',
        "done | sed '1s/^/[/; $!s/$/,/; $s/$/]/' >copies.json",
        'exit "$FAILED"',
    ]


def _describe(step: Step) -> str:
    facts: dict[str, object] = {
        "repeat": step.repeat,
        "ranks": step.ranks,
        "threads": step.threads,
        "placement": step.placement or "none",
        **step.parameters,
    }
    if step.scope != "job":
        facts["scope"] = step.scope
    return ", ".join(f"{key} {value}" for key, value in facts.items())

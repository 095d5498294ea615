"""Writes the folders of a run's steps and jobs, once the programs are there."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

from proofmark.common.errors import bad_input, nearest
from proofmark.common.files import write_whole
from proofmark.jobs.launchers import Cpus, Launch, starts_children
from proofmark.jobs.launchers import lines as launcher_lines
from proofmark.jobs.request import request_of
from proofmark.machine.scheduler import Request
from proofmark.machine.scheduler import scheduler as scheduler_called
from proofmark.plan.host_cpus import real_domains, real_seats
from proofmark.plan.plan import SCRATCH, Job, Plan, Step
from proofmark.site.execution import NOTHING_TOLD, Queue, StandIns, Starting
from proofmark.software.program import Program
from proofmark.software.software import Package, Software
from proofmark.software.target import needs

SHELL = files("proofmark.jobs") / "shell"
PROBE = files("proofmark.site.node") / "probe.sh"
GRACE_S = 60
"""How much longer than on one node a step may take on many, before the job stops waiting."""


NODE, PEER, FOLDER = "@NODE@", "@PEER@", "@FOLDER@"
"""Stand in the script of a step that nodes measure by themselves; each node puts its own in."""


def write_steps(
    run: Path,
    plan: Plan,
    software: Software,
    scratch: Path,
    scheduler: str,
    file_systems: Mapping[str, Path] | None = None,
    queue: Queue | None = None,
    starting: Starting = NOTHING_TOLD,
    stand_ins: StandIns | None = None,
) -> None:
    """Write ``steps/*/run.sh`` with inputs, and ``jobs/*/job.sh``; what is there stays as it is.

    A step that was already written is left alone: its output belongs to exactly that command.
    `file_systems` are scratch folders by name, for steps that ask for another than `scratch`;
    `starting` is what the site says about starting ranks; `stand_ins` is for virtual nodes.

    Raises:
        BadInput: a package or program of the plan was not provided.
    """
    write_whole(run / "probe.sh", PROBE.read_text())
    write_whole(run / "fit.awk", (SHELL / "fit.awk").read_text())
    groups = plan.needed()
    for step in (step for group in groups for job in group.jobs for step in job.steps):
        folder = run / "steps" / step.id
        if (folder / "run.sh").exists():
            continue
        base = (file_systems or {}).get(step.file_system, scratch)
        own = f"/{FOLDER}" if step.scope != "job" else ""
        own_scratch = f"{base / run.name / step.id}{own}"
        text = step_script(step, software, own_scratch, starting, stand_ins)
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in step.inputs.items():
            (folder / name).write_text(content.replace(SCRATCH, own_scratch))
        if step.scope != "job":
            lines = (f"{name} {' '.join(nodes)}\n" for name, nodes in step.instances().items())
            (folder / "instances").write_text("".join(lines))
            write_whole(folder / "node.sh", text)
            text = each_script(step)
        write_whole(folder / "run.sh", text)
    for group in groups:
        for job in group.jobs:
            folder = run / "jobs" / job.id
            folder.mkdir(parents=True, exist_ok=True)
            write_whole(folder / "needs", processor_needs(job, software))
            write_job(run, job, scheduler, queue or Queue())


def repeated_commands(plan: Plan, software: Software) -> dict[str, str]:
    """Return the steps whose command another step of the same job has, each with the reason.

    Two choices of a variant may stand for the same environment: where a BLAS already takes the
    right kernel, "right" is "as-installed".
    """
    firsts: dict[tuple[str, ...], Step] = {}
    found: dict[str, str] = {}
    for group in plan.groups:
        for job in group.jobs:
            for step in (step for step in job.steps if step.variants):
                first = firsts.setdefault((job.id, *_command(step, software)), step)
                if first is not step:
                    found[step.id] = f"runs the command of {first.id}: " + ", ".join(
                        f"{variant} {choice} is {first.variants[variant]}"
                        for variant, choice in step.variants.items()
                        if choice != first.variants[variant]
                    )
    return found


def _command(step: Step, software: Software) -> tuple[str, str]:
    """Return the step without its number and its variants, and the environment of these."""
    parameters = {
        name: value for name, value in step.parameters.items() if name not in step.variants
    }
    plain = step.model_copy(update={"id": "", "variants": {}, "parameters": parameters})
    environment = _environment(step, _package(step, software))
    return plain.model_dump_json(), json.dumps(environment, sort_keys=True)


def each_script(step: Step) -> str:
    """Return the ``run.sh`` of a step that nodes measure by themselves: it makes theirs."""
    head = [
        "#!/bin/sh",
        f"# {step.case}: {_describe(step)}",
        f"INPUTS={shlex.quote(' '.join(step.inputs))}",
        f"STAGGER={step.stagger} # seconds",
        "",
    ]
    return "\n".join(head) + (SHELL / "each.sh").read_text()


def step_script(
    step: Step,
    software: Software,
    scratch: str,
    starting: Starting = NOTHING_TOLD,
    stand_ins: StandIns | None = None,
) -> str:
    """Return the self-contained ``run.sh`` of `step`, or of one of its instances.

    Raises:
        BadInput: as `write_steps`.
    """
    package = _package(step, software)
    texts = [*step.arguments, *step.environment.values(), *step.inputs.values()]
    folder = scratch if step.bytes or any(SCRATCH in text for text in texts) else ""

    def placed(value: str) -> str:
        return value.replace(SCRATCH, scratch)

    program = _program(step, package)
    cpus, membind = real_seats(step, stand_ins), real_domains(step, stand_ins)
    launch = Launch(
        program=program.path,
        arguments=[placed(argument) for argument in step.arguments],
        environment={name: placed(value) for name, value in _environment(step, package).items()},
        hosts=step.nodes if step.scope == "job" else [NODE, PEER],
        cpus=cpus,
        prefix=package.prefix,
        membind=membind,
        mpi=program.mpi.family or "" if program.mpi else "",
        starting=starting,
        together=step.copies > 1,
        one_machine=stand_ins is not None,
    )
    launcher = (starting.launcher or package.launcher) if step.launch == "mpi" else "plain"
    children = "yes" if len(launch.by_host) < 2 and starts_children(launcher) else ""
    lines = (
        launcher_lines(launcher, launch) if step.copies == 1 else _copied(step, launcher, launch)
    )
    made = "" if step.output in ("stdout", "stderr") else step.output
    name = step.id if step.scope == "job" else f"{step.id}/{FOLDER}"
    head = [
        "#!/bin/sh",
        f"# {step.case}: {_describe(step)}",
        f"STEP={shlex.quote(name)}",
        f"TIMEOUT={step.timeout} # seconds",
        f"CHILDREN={children} # are the program's processes children of the launcher?",
        f"SCRATCH={shlex.quote(folder)}",
        f"INPUTS={shlex.quote(' '.join(step.inputs))}",
        f"MADE={shlex.quote(made)}",
        "launch() {",
        *lines,
        "}",
        *_seats([rank for _, rank in cpus], stand_ins),
        "",
    ]
    return "\n".join(head) + (SHELL / "step.sh").read_text()


def _seats(ranks: Sequence[Cpus], stand_ins: StandIns | None) -> list[str]:
    """Return the sh function that knows the CPUs of each rank, in the order of its threads.

    Like nodes follow each other, so the number of a rank on its node is often enough.
    """
    seats = [tuple(cpus) for cpus in ranks]
    count = len(seats)
    period = next((n for n in range(1, count) if count % n == 0 and _repeats(seats, n)), count)
    by_cpus: dict[tuple[int, ...], list[str]] = {}
    for rank, cpus in enumerate(seats[:period]):
        by_cpus.setdefault(cpus, []).append(str(rank))
    told = [f"# CPU n of node m: {stand_ins.cpus}[n + m] of this machine"] if stand_ins else []
    return [
        *told,
        "seat() { # the CPUs of a rank",
        f"case $(($1 % {period or 1})) in",
        *(f"{'|'.join(own)}) CPUS={','.join(map(str, cpus))} ;;" for cpus, own in by_cpus.items()),
        "*) CPUS= ;;",
        "esac",
        "}",
    ]


def _repeats(seats: Sequence[Cpus], period: int) -> bool:
    return seats[period:] == seats[:-period]


def _copied(step: Step, launcher: str, launch: Launch) -> list[str]:
    """Start every copy at once, in a folder of its own; then print one output after the other.

    After the first comment, a title, stands whose output it is: readers forget what came before.
    """
    copies, lines = step.copies, []
    for copy in range(copies):
        own = replace(launch, cpus=launch.cpus[copy::copies])
        lines += [
            "(",
            "read -r start _ </proc/uptime",
            "(",
            f"mkdir -p copy-{copy + 1} && cd copy-{copy + 1} || exit 74",
            f"export FIRST_RANK={copy} RANK_STRIDE={copies}",
            *launcher_lines(launcher, own),
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
    after_first_comment = "'1; /^#/ && !told++ { print copy }'"
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


def processor_needs(job: Job, software: Software) -> str:
    """Return what the processors of `job`'s nodes must have: a line for each target of a program.

    Raises:
        BadInput: a package was built for a target that archspec does not know.
    """
    targets = {_package(step, software).target for step in job.steps} - {""}
    return "".join(f"{needs(target).line()}\n" for target in sorted(targets))


def write_job(run: Path, job: Job, scheduler: str, queue: Queue, *, again: bool = False) -> Request:
    """Write ``jobs/<id>/job.sh``, which runs the steps of `job` one after the other.

    A pair that has a node which `job` does not is not measured. With `again` it runs those that
    have a result once more.
    """
    folder = run / "jobs" / job.id
    folder.mkdir(parents=True, exist_ok=True)
    asked = request_of(run, job, queue)
    chosen = scheduler_called(scheduler)
    head = [
        "#!/bin/sh",
        *chosen.header(asked),
        f"RUN={shlex.quote(str(run.resolve()))}",
        f"JOB={job.id}",
        f"NODES={len(job.nodes)}",
        f"AGAIN={'yes' if again else ''}",
        f"WITHOUT={','.join(_absent(job)) if not again else ''}",
        *(chosen.fan_out(asked) if len(job.nodes) > 1 else ()),
        "STEPS='",
        *(step.id + _seconds_on_all(step) for step in job.steps),
        "'",
        "",
    ]
    write_whole(folder / "job.sh", "\n".join(head) + (SHELL / "job.sh").read_text())
    return asked


def _absent(job: Job) -> list[str]:
    """Return the nodes that pairs of `job` are planned for and that it has not."""
    planned = {node for step in job.steps if step.scope == "each-pair" for node in step.nodes}
    return sorted(planned - set(job.nodes))


def _seconds_on_all(step: Step) -> str:
    """Return how long a step may take that all nodes of the job run, behind a colon."""
    return "" if step.scope == "job" else f":{step.timeout + step.stagger + GRACE_S}"


def _describe(step: Step) -> str:
    facts: Mapping[str, object] = {
        "repeat": step.repeat,
        "ranks": step.ranks,
        "threads": step.threads,
        "placement": step.placement or "none",
        **step.parameters,
        **({"scope": step.scope} if step.scope != "job" else {}),
    }
    return ", ".join(f"{key} {value}" for key, value in facts.items())


def _package(step: Step, software: Software) -> Package:
    if step.package not in software.packages:
        hint = nearest(step.package, software.packages)
        found = f"no package {step.package!r}{hint}"
        raise bad_input("software.json", step.id, found, ", ".join(software.packages) or "packages")
    return software.packages[step.package]


def _program(step: Step, package: Package) -> Program:
    if step.program not in package.programs:
        hint = nearest(step.program, package.programs)
        found = f"no program {step.program!r} in {step.package}{hint}"
        raise bad_input("software.json", step.id, found, ", ".join(package.programs))
    return package.programs[step.program]


def _environment(step: Step, package: Package) -> dict[str, str]:
    """Merge what the package, the chosen variants and the case ask for; the case has the last word.

    Raises:
        BadInput: the package knows no such variant.
    """
    merged = dict(package.environment)
    for variant, choice in step.variants.items():
        known = package.variants.get(variant, {})
        if choice not in known:
            hint = nearest(choice, known)
            found = f"{variant} {choice!r}{hint}"
            raise bad_input("software.json", step.id, found, ", ".join(known) or "no variants")
        merged |= known[choice]
    return merged | step.environment

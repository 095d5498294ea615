"""The command ``twin``: simulates a suite on a model of a partition."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib.resources import as_file, files
from math import ceil
from pathlib import Path

from proofmark.cases.suite import Benchmarks, members_from
from proofmark.cli.command import (
    Command,
    limit_argument,
    runs_folder_argument,
    site_argument,
    suite_argument,
    whole,
)
from proofmark.cli.inputs import inventory_of, kit_benchmarks
from proofmark.cli.output import print_line
from proofmark.cli.plan import cost_line, print_steps
from proofmark.cli.run import stage
from proofmark.common.errors import bad_input, nearest
from proofmark.common.files import write_private
from proofmark.common.input_limits import MAX_PARALLEL
from proofmark.common.kit import kit_folder, result_folder
from proofmark.common.message import Message
from proofmark.common.printed_command import PrintedCommand, of_person
from proofmark.common.processes import run_command
from proofmark.common.progress_lines import say
from proofmark.common.text import size
from proofmark.jobs.execute import execute, summary
from proofmark.packages.twin import LINK
from proofmark.packages.twin.calibration import cache_bytes, calibrated, fit
from proofmark.packages.twin.platform import platform_xml, settings
from proofmark.packages.twin.simulated_jobs import divided
from proofmark.packages.twin.smpi import SOURCES, Release, releases, simulator_version
from proofmark.packages.twin.twin_files import MeasuredFigures, ModelFit, SimulatedRun, TwinFacts
from proofmark.packages.twin.twin_model import (
    Graph,
    Interconnect,
    TwinModel,
    interconnect_of,
    twin_model,
)
from proofmark.plan.expansion import content_digest, make_plan
from proofmark.plan.plan import Group, Plan
from proofmark.plan.step import Step
from proofmark.plan.totals import totals
from proofmark.runs.evidence import seal
from proofmark.runs.run import Run, site_of
from proofmark.runs.start import Copied, RunInputs, start_or_continue
from proofmark.site.execution import LaunchSettings, Queue
from proofmark.site.file_systems import Scratch
from proofmark.site.inventory import Site, load_site
from proofmark.site.machines import machines_of, probe_here
from proofmark.site.node.facts import parse_probe
from proofmark.site.partition import PREDICTED
from proofmark.software.installed import ProvisionRequest, Sources
from proofmark.software.provider import PROVIDERS
from proofmark.software.provision import ProgramProbe, ProgramProbes, provide_software

PROVIDER = "twin"
"""The provider of programs that are compiled for SimGrid."""


def twin_site(site: Site, scratch: Path, known: Interconnect, selector: str = "") -> Site:
    """Return `site` with simulated nodes: this machine runs all jobs.

    Args:
        scratch: a folder of this machine; simulated steps write no files in it.
        known: the figures of the processor family.
        selector: the MPI whose collectives are imitated; empty: the first that is possible. It is a
            part of the site, so that another selector makes another run.

    Raises:
        BadInput: `selector` is not one of the selectors of the processor family.
    """
    chosen = _selector(known, selector)
    partition = site.partition
    current = partition.current_mode
    simulated = partition.model_copy(
        update={
            "origin": PREDICTED,
            "scheduler": "simulated",
            "launch": LaunchSettings(launcher="twin", mpi=chosen),
            "queue": Queue(exclusive=True),
            "provision_from": PROVIDER,
            "scratch": Scratch(path=str(scratch)),
            "file_systems": [],
            "firmware": None,
            "modes": {current: partition.modes[current]},
            "run_user": None,
            "host_cpus": None,
        }
    )
    changes = {"partition": simulated, "connection": "local", "contract": None}
    return site.model_copy(update=changes)


def with_jobs(site: Site, count: int) -> Site:
    """Return the twin `site` with up to `count` jobs at the same time."""
    queue = site.partition.queue.model_copy(update={"max_jobs": count})
    partition = site.partition.model_copy(update={"queue": queue})
    return site.model_copy(update={"partition": partition})


def used_nodes(site: Site, plan: Plan) -> list[str]:
    """Return the nodes of the steps of `plan`, in the order of `site`."""
    used = set()
    for step in plan.steps():
        used.update(step.nodes)
    return [host for host in site.hosts if host in used]


def make_twin(
    site: Site,
    model: TwinModel,
    simulator: tuple[int, int],
    *,
    fit: ModelFit | None = None,
    measured: MeasuredFigures | None = None,
) -> SimulatedRun:
    """Return the files of a simulation on the twin `site`.

    Args:
        model: of the nodes that steps use, with the figures that were fitted.
        simulator: SimGrid's version.
        fit: what was fitted to a real run.
        measured: the figures of that run.
    """
    chosen = site.partition.launch.mpi
    values = settings(model.interconnect, chosen, simulator)
    facts = TwinFacts(
        selector=chosen,
        selectors=model.interconnect.collectives,
        settings=values,
        assumptions=model.assumptions,
        fit=fit,
    )
    return SimulatedRun(platform_xml(model, values), facts, measured)


def _selector(interconnect: Interconnect, given: str) -> str:
    known: tuple[str, ...] = interconnect.collectives
    if not given:
        return known[0]
    if given not in known:
        raise bad_input("--selector", "", f"{given!r}{nearest(given, known)}", ", ".join(known))
    return given


BUFFERS = 2
"""The buffers of a rank, each with one message of every rank, if the case has no `buffer_bytes`."""
ROUTE_BYTES = 32
"""The memory of a route. Measured: SimGrid 3.32, 2 to 64 nodes of 275 ends, 1,600 of 13."""
OPERATION_S = 2e-9
"""The time of an operation of Floyd's algorithm. Measured: 0.9 to 2.2 ns for these models."""
EXCESS = 10
"""The factor of the estimated time in the time limit of a step."""


@dataclass(frozen=True)
class StartCost:
    """What a step needs to read the model: memory in bytes, time in seconds."""

    memory: float
    seconds: float


def start_cost(model: TwinModel) -> StartCost:
    """Return the cost of the start of a step."""
    inside, nodes = _ends(model.node), len(model.nodes)
    between = nodes + _ends(model.network)
    routes = nodes * inside**2 + between**2
    operations = nodes * inside**3 + between**3
    return StartCost(routes * ROUTE_BYTES, operations * OPERATION_S)


def _ends(graph: Graph) -> int:
    return len(graph.cpus) + len(graph.routers)


def with_starts(plan: Plan, start: StartCost) -> Plan:
    """Return `plan`. The time and the time limit of each step include the start."""

    def started(step: Step) -> Step:
        later = {
            "seconds": step.seconds + start.seconds,
            "timeout": step.timeout + ceil(EXCESS * start.seconds),
        }
        return step.model_copy(update=later)

    def of_group(group: Group) -> Group:
        jobs = [
            job.model_copy(update={"steps": [started(step) for step in job.steps]})
            for job in group.jobs
        ]
        return group.model_copy(update={"jobs": jobs})

    groups = [of_group(group) for group in plan.groups]
    return plan.model_copy(update={"groups": groups, "totals": totals(groups)})


def memory_bytes(plan: Plan, start: StartCost) -> float:
    """Return the memory of the largest step of each job that runs at the same time."""
    largest = sorted(max(_step_bytes(step, start) for step in job.steps) for job in plan.jobs())
    return sum(largest[-plan.at_once :])


def _step_bytes(step: Step, start: StartCost) -> float:
    """Return the memory of a step, whose measurements are simulations at the same time.

    `buffer_bytes` of its case are the buffers of one rank.
    """
    largest = 2.0 ** float(step.derived.get("largest_log2", 0))
    buffers = float(step.derived.get("buffer_bytes", BUFFERS * largest * step.ranks))
    return step.measurements * (simulated_bytes(step.ranks, buffers) + start.memory)


PROBE_LIMIT_S = 60.0


def arguments(parser: ArgumentParser) -> None:
    """Add the arguments of ``proofmark twin`` to `parser`."""
    site_argument(parser)
    limit_argument(parser, required=True)
    suite_argument(parser)
    parser.add_argument(
        "--selector", default="", help="the MPI whose collectives are imitated (default: the first)"
    )
    parser.add_argument(
        "--measured",
        type=Path,
        metavar="RUN",
        help="a real run of the partition, which the model is fitted to and compared with",
    )
    parser.add_argument(
        "--jobs",
        type=whole(0, MAX_PARALLEL),
        default=0,
        metavar="N",
        help="simulations at the same time (0: one for each CPU, as far as the memory is enough)",
    )
    parser.add_argument("--plan", action="store_true", help="only print the plan")
    runs_folder_argument(parser)
    parser.add_argument("--run-id", help="the name of the run")
    parser.add_argument("--fresh", action="store_true", help="never continue a run")
    parser.add_argument("--prefixes", type=Path, metavar="FOLDER", help="folder of installations")
    parser.add_argument("--sources", type=Path, metavar="FOLDER", help="a mirror with sources")


def twin(options: Namespace) -> int:
    """Simulate a suite on a model of a partition."""
    kit = kit_folder()
    benchmarks, left_out = _with_sources(kit_benchmarks(), options.suite, kit)
    runs = result_folder(kit, "runs", options.runs)
    real = load_site(inventory_of(options), options.limit)
    machines, probe = machines_of(real)
    discovered = parse_probe(probe, "probe of this machine").architecture if probe else ""
    known = interconnect_of(real, discovered)
    site = twin_site(real, runs, known, options.selector)
    made = make_plan(benchmarks, options.suite, site, machines)
    if lacking := _without_program(made, releases(kit / "environments")):
        reasons = [*lacking.values()]
        if lacking.keys() == {step.case for step in made.steps()}:
            accepted = "a case whose programs have a source"
            raise bad_input(kit / "environments" / SOURCES, "", "; ".join(reasons), accepted)
        benchmarks = _without(benchmarks, lacking)
        left_out += reasons
        made = make_plan(benchmarks, options.suite, site, machines)
    topology = machines(real.partition.current_mode).topology
    measured, fitted = None, None
    if options.measured:
        from proofmark.packages.twin.twin_error import measured_by  # polars costs time

        measured = measured_by(options.measured, real, topology)
        fitted = fit(measured, known, cache_bytes(topology))
        known = calibrated(known, fitted)
        # Another fit is another run.
        digest = content_digest([made.digest, fitted.model_dump(mode="json")])
        made = made.model_copy(update={"digest": digest})
    made = made.model_copy(update={"left_out": [*made.left_out, *left_out]})
    model = twin_model(site, topology, used_nodes(site, made), known, fitted)
    start = start_cost(model)
    made = _for_this_machine(with_starts(made, start), start, options.jobs)
    needed = memory_bytes(made, start)
    site = with_jobs(site, made.at_once)
    if options.plan:
        print_steps(made)
        for why in made.left_out:
            print_line(f"left out: {why}")
        print_line(cost_line(made))
        print_line(_memory_line(needed))
        return 0
    _check_memory(made, needed)
    twin_of_run = make_twin(site, model, simulator_version(), fit=fitted, measured=measured)
    run, continued = start_or_continue(
        runs,
        RunInputs(made, benchmarks, site, probe_here()),
        Copied(further=twin_of_run.inputs),
        run_id=options.run_id,
        fresh=options.fresh,
        link=LINK,
    )
    say(f"run: {run.folder}{', continued' if continued else ''}; {_memory_line(needed)}")
    _provide(run, kit, options)
    run = stage(run, site_of(run))
    execute(run, site.partition.scheduler, say)
    seal(run.folder)
    print_line(summary(run))
    print_line(f"next: {PrintedCommand('proofmark', 'report', of_person(run.folder, 'RUN'))}")
    return 0


def _with_sources(
    benchmarks: Benchmarks, suite: str, kit: Path
) -> tuple[Benchmarks, list[Message]]:
    """Return the cases whose programs can be compiled for SimGrid, and why others are left out.

    If no case of the suite is one of them, all cases are returned: the first is then refused.
    """
    known = releases(kit / "environments")
    members = members_from(benchmarks, suite, PROVIDER)
    lacking = {name: case for name, case in members.items() if case.package not in known}
    if len(lacking) == len(members):
        return benchmarks, []
    left_out = [
        Message("left-no-source", case=name, package=case.package) for name, case in lacking.items()
    ]
    return _without(benchmarks, lacking), left_out


def _without_program(made: Plan, known: Mapping[str, Release]) -> dict[str, Message]:
    """Return the cases of `made` with a program that no release has, each with the reason."""
    found = {}
    for step in made.steps():
        for each in (step, *([step.load.step] if step.load else [])):
            release = known.get(each.package)
            if release is None or each.program not in release.programs:
                of = {"program": each.program, "package": each.package}
                found[step.case] = Message("left-no-program", case=step.case, **of)
    return found


def _without(benchmarks: Benchmarks, names: Collection[str]) -> Benchmarks:
    """Return `benchmarks` without the cases `names`."""
    cases = {name: case for name, case in benchmarks.cases.items() if name not in names}
    return benchmarks.model_copy(update={"cases": cases})


def _for_this_machine(made: Plan, start: StartCost, jobs: int) -> Plan:
    """Return `made` for `jobs` simulations at the same time; 0: as many as the machine can run.

    Raises:
        BadInput: `jobs` is negative.
    """
    if jobs < 0:
        raise bad_input("--jobs", "", f"{jobs}", "0, or the number of simulations at the same time")
    if jobs:
        return divided(made, jobs)
    free = _free()
    choices = (divided(made, count) for count in range(len(os.sched_getaffinity(0)), 1, -1))
    return next((each for each in choices if memory_bytes(each, start) <= free), made)


def _memory_line(needed: float) -> str:
    return f"the simulation needs about {size(needed)} of memory, {size(_free())} are free"


def _free() -> int:
    """Return the memory of this machine that programs can get, in bytes."""
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    values = {name: int(value.split()[0]) for name, _, value in (x.partition(":") for x in lines)}
    return values["MemAvailable"] * 1024


def _check_memory(made: Plan, needed: float) -> None:
    """Refuse a plan that needs more memory than this machine has.

    Raises:
        BadInput: the largest step would not fit.
    """
    if needed > _free():
        found = f"a simulation that needs about {size(needed)}"
        raise bad_input("memory", made.suite, found, f"at most {size(_free())}, which is free")


def _provide(run: Run, kit: Path, options: Namespace) -> None:
    """Compile the programs of the plan, if that is not done, and record them.

    Raises:
        BadInput: a source is not available, or a program cannot be compiled.
    """
    request = ProvisionRequest(
        kit=kit,
        arch=PROVIDER,
        programs=run.plan.packages(),
        prefixes=(options.prefixes or result_folder(kit, ".provision")).resolve(),
        sources=Sources(mirror=options.sources.resolve() if options.sources else None),
    )
    installed = PROVIDERS.get(PROVIDER)(request).install()
    if not run.files.installed.exists():
        write_private(run.files.installed, installed.model_dump_json(indent=1) + "\n")
    probes = {
        name: ProgramProbe(output=_probed(sorted(package.programs.values())))
        for name, package in installed.packages.items()
    }
    provide_software(
        run,
        kit / "environments",
        ProgramProbes(node=probe_here(), packages=probes),
        by_installed=True,
    )


def _probed(programs: list[str]) -> str:
    """Return the output of the probe of programs on this machine."""
    with as_file(files("proofmark.software") / "probe-program.sh") as script:
        done = run_command(["sh", f"{script}", *programs], timeout_s=PROBE_LIMIT_S)
    if done.returncode:
        found = f"exit code {done.returncode}: {done.stderr.strip()}"
        raise bad_input("probe-program.sh", "", found, "exit code 0")
    return done.stdout


COMMANDS = {
    "twin": Command(twin, "twin -i inventory/p595 -l p595 --suite twin-p5", arguments),
}


SIMULATED_RANK_BYTES = 1.5 * 2**20
"""The memory of this machine for one simulated rank, besides its buffers."""


def simulated_bytes(ranks: int, rank_bytes: float) -> float:
    """Return the memory to simulate `ranks` ranks with buffers of `rank_bytes` each."""
    return ranks * (SIMULATED_RANK_BYTES + rank_bytes)

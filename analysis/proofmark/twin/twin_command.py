"""The command ``twin``: simulates a suite on a model of a partition."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Collection, Mapping
from importlib.resources import as_file, files
from pathlib import Path

from proofmark.cases.alternatives import members_from
from proofmark.cases.suite import Benchmarks
from proofmark.cli.amounts import whole
from proofmark.cli.command import Command, Words, complete
from proofmark.cli.command_inputs import kit_benchmarks, runs_folder_argument, suite_argument
from proofmark.cli.output import print_line
from proofmark.cli.plan_print import print_steps
from proofmark.cli.plan_summary import cost_line
from proofmark.cli.run_command import stage
from proofmark.cli.site import inventory_of, limit_argument, site_argument
from proofmark.common.errors import bad_input
from proofmark.common.files import write_private
from proofmark.common.input_limits import MAX_PARALLEL
from proofmark.common.kit import kit_folder, result_folder
from proofmark.common.message import Message
from proofmark.common.printed_command import PrintedCommand, of_person
from proofmark.common.processes import run_command
from proofmark.common.progress_lines import say
from proofmark.common.text import size
from proofmark.jobs.execute import execute, summary
from proofmark.plan.expansion import content_digest, make_plan
from proofmark.plan.plan import Plan
from proofmark.runs.evidence import seal
from proofmark.runs.latest import Link
from proofmark.runs.run import Run, site_of
from proofmark.runs.start import Copied, RunInputs, start_or_continue
from proofmark.site.discovery import probe_here
from proofmark.site.inventory import load_site
from proofmark.site.machines import machines_of
from proofmark.site.node.facts import parse_probe
from proofmark.software.provider import PROVIDERS
from proofmark.software.provision import ProgramProbe, ProgramProbes, provide_software
from proofmark.software.request import ProvisionRequest, Sources
from proofmark.twin.at_once import divided
from proofmark.twin.calibration import cache_bytes, calibrated, fit
from proofmark.twin.cost import StartCost, memory_bytes, start_cost, with_starts
from proofmark.twin.simulated_site import PROVIDER, make_twin, twin_site, used_nodes, with_jobs
from proofmark.twin.smpi import SOURCES, Release, releases, simulator_version
from proofmark.twin.twin_model import interconnect_of, twin_model

PROBE_LIMIT_S = 60.0


def arguments(parser: ArgumentParser) -> None:
    """Add the arguments of ``proofmark twin`` to `parser`."""
    site_argument(parser)
    limit_argument(parser, required=True)
    suite_argument(parser)
    parser.add_argument(
        "--selector", default="", help="the MPI whose collectives are imitated (default: the first)"
    )
    measured = parser.add_argument(
        "--measured",
        type=Path,
        metavar="RUN",
        help="a real run of the partition, which the model is fitted to and compared with",
    )
    complete(measured, Words.RUN)
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
        from proofmark.twin.twin_error import measured_by  # polars costs time

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
        link=Link.TWIN,
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
    installed = PROVIDERS.get(PROVIDER)(request).install(say)
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

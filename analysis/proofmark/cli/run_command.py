"""The commands that execute a run."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Collection
from dataclasses import replace
from functools import partial
from pathlib import Path

from proofmark.cli.amounts import above_zero
from proofmark.cli.command import Command, run_argument
from proofmark.cli.input import read_stdin
from proofmark.cli.output import print_json, print_line
from proofmark.cli.site import node_names
from proofmark.common.errors import BadInput, NodeFailure, note_failed_nodes
from proofmark.common.files import is_folder, read_json
from proofmark.common.input_limits import MAX_WAIT_S
from proofmark.common.kit import kit_folder
from proofmark.common.progress_lines import say
from proofmark.jobs.execute import execute as execute_run
from proofmark.jobs.execute import pick, summary
from proofmark.jobs.execute import rerun as rerun_steps
from proofmark.jobs.job_request import Arrivals
from proofmark.jobs.kinds import Execution, jobs_of
from proofmark.jobs.scripts import Manner, Scripts, write_scripts
from proofmark.jobs.step_script import repeated_commands, unselected_rails
from proofmark.machine.preflight import refuse_unseen
from proofmark.plan.kinds import kind_of
from proofmark.plan.search import Figures, Search
from proofmark.runs.adopted import refuse_imported
from proofmark.runs.cost_history import measured_cost
from proofmark.runs.evidence import SealedEvidence, read_evidence, seal
from proofmark.runs.nodes import nodes_of
from proofmark.runs.run import (
    Run,
    add_decisions,
    benchmarks_of,
    leave_out,
    open_run,
    reported_names,
    site_of,
    with_decisions,
)
from proofmark.runs.sealed_runs import keep, sealed_of
from proofmark.runs.stage_faults import noting_faults
from proofmark.runs.work_folder import make_work_folder, use_work_folder, work_files
from proofmark.site.inventory import Site
from proofmark.software.provision import ProgramProbes, provide_software, without_romio
from proofmark.software.software import Software

STOPPED_EARLY = 6
"""Exit code of ``stage execute --fail-fast`` that started no further step."""


def _rerun_arguments(parser: ArgumentParser) -> None:
    run_argument(parser)
    parser.add_argument(
        "steps", metavar="STEP", nargs="+", help="step ids, numbers, or <step>/<node>"
    )
    parser.add_argument(
        "--replaces",
        metavar="REASON",
        default="",
        help="why earlier crashes of these steps say nothing about the nodes; the report has it",
    )


def rerun(options: Namespace) -> int:
    """Run steps of a run again."""
    run = open_run(options.folder)
    refuse_imported(run)
    refuse_unseen(site_of(run), work_files(run.folder).folder)
    rerun_steps(run, pick(run, options.steps), say, options.replaces)
    _seal(run)
    return 0


def _seal(run: Run) -> None:
    """Seal what is new in `run`, and read it."""
    _, sealed = _sealed(run.folder)
    _read(sealed)


def _sealed(folder: Path) -> tuple[SealedEvidence, Run]:
    """Seal what is new in a run, and record the run in the state of its site."""
    evidence = seal(folder)
    run = evidence.run()
    keep(sealed_of(run, folder), evidence.digests[:-1])
    return evidence, run


def _record_arguments(parser: ArgumentParser) -> None:
    run_argument(parser)
    parser.add_argument("--installed", action="store_true", help="use the run's installed.json")


def record_software(options: Namespace) -> int:
    """Write ``software.json`` from the probes; stdin has them as JSON."""
    run = open_run(options.folder)
    refuse_imported(run)
    with noting_faults(run.folder, "programs"):
        provide_software(
            run,
            kit_folder() / "environments",
            read_stdin(ProgramProbes),
            by_installed=options.installed,
        )
    return 0


def _execute_arguments(parser: ArgumentParser) -> None:
    run_argument(parser)
    parser.add_argument(
        "--scripts", action="store_true", help="write the scripts of the steps; run no job"
    )
    parser.add_argument(
        "--fail-fast",
        action="store_true",
        help="start no further step after the first one that fails or stays disturbed; exit code "
        f"{STOPPED_EARLY}",
    )
    parser.add_argument(
        "--wait-s",
        type=above_zero(MAX_WAIT_S),
        default=0.0,
        metavar="SECONDS",
        help="of a run that nodes join: how long it waits for nodes that are down (default: not at "
        "all)",
    )
    parser.add_argument("--only", metavar="NODES", help="of a run that nodes join: only their jobs")


def stage(run: Run, site: Site) -> Run:
    """Write the scripts of the steps and jobs; return the run without steps that repeat others."""
    user = make_work_folder(run.folder, site, with_scratch=True)
    use_work_folder(run.folder, user.name)
    software = read_json(run.files.software, Software)
    repeated = repeated_commands(run.plan, software) | unselected_rails(run.plan, software)
    if lost := without_romio(run.plan, software):
        add_decisions(run.files, not_run=lost)
        for step, why in lost.items():
            say(f"{step}: INVALID: {why}")
    run = leave_out(run, repeated)
    for step, why in repeated.items():
        say(f"{step}: not needed: {why}")
    names, measured = reported_names(run, site), measured_cost(run.plan, run.folder.parent).seconds
    made = Scripts.of(site.partition, software, names, benchmarks_of(run), measured)
    if not kind_of(run.plan).has_figures:
        made = replace(made, stability={})  # its jobs disturb each other, and are not repeated
    write_scripts(run.folder, run.plan, made)
    return run


def execute(options: Namespace) -> int:
    """Run the jobs of a run and print a summary; with ``--scripts``, only write the scripts."""
    run = open_run(options.folder)
    refuse_imported(run)
    site = site_of(run)
    if not options.scripts:
        refuse_unseen(site, work_files(run.folder).folder)
    run = stage(run, site)
    if options.scripts:
        return 0
    manner = Manner.FAIL_FAST if options.fail_fast else Manner.UNFINISHED
    arrivals = Arrivals(options.wait_s, node_names(options.only), site.partition.queue.reservation)
    name = site.partition.scheduler
    if jobs := jobs_of(run.plan.kind):
        early = jobs.execute(Execution(run, name, say, partial(stage, site=site), manner))
    else:
        early = execute_run(run, name, say, _figures, manner=manner, arrivals=arrivals)
    if run.plan.more_repeats_s and not early:
        from proofmark.cli.noisy_steps import repeat_noisy_steps  # it judges; few plans need it

        repeat_noisy_steps(with_decisions(run), say)
    print_line(summary(with_decisions(run)))
    return STOPPED_EARLY if early else 0


def _figures(run: Run, search: Search, steps: Collection[str]) -> Figures:
    """Return the figures of finished steps."""
    from proofmark.records.read import figures_of  # polars costs time; few runs search

    return figures_of(run, search, steps)


def collect(options: Namespace) -> int:
    """Seal what is new in a run, and read it; return 1 if a node did not prove its state."""
    known = read_evidence(options.folder.resolve())
    evidence, run = _sealed(options.folder)
    print_json(
        {
            "folder": f"{evidence.folder}",
            "number": evidence.newest.number,
            "sha256": evidence.digest,
            "changed": known is None or known.digest != evidence.digest,
        }
    )
    for path, change in evidence.newest_changes.items():
        say(f"{path}: {change} after it was sealed; the sealed content counts")
    unproven = {
        host: "; ".join(probe.reason for probe in node.damaged)
        for host, node in nodes_of(run).items()
        if node.damaged
    }
    for host, reason in unproven.items():
        say(f"proofmark: {host}: {reason}; its steps of this job are INVALID")
    note_failed_nodes({host: NodeFailure(reason) for host, reason in unproven.items()})
    if is_folder(run.files.work.steps):
        _read(run)
    return 1 if unproven else 0


def _read(run: Run) -> None:
    """Read the outputs of a sealed run, so that its verdict need not."""
    from proofmark.records.stored_readings import read_and_store  # the other stages read none

    try:
        read_and_store(run)
    except BadInput as error:  # it ends the verdict, not the seal
        say(f"not read: {error}")


COMMANDS = {
    "rerun": Command(rerun, "rerun runs/latest-local 3", _rerun_arguments),
    "stage record-software": Command(
        record_software,
        "stage record-software runs/latest-local --installed",
        _record_arguments,
    ),
    "stage execute": Command(execute, "stage execute runs/latest-local", _execute_arguments),
    "stage collect": Command(
        collect,
        "stage collect runs/latest-local",
        traced=False,
    ),
}

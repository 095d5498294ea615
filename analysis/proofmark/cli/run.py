"""The commands that execute a run."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from functools import partial
from pathlib import Path

from proofmark.cli.commands import STOPPED_EARLY
from proofmark.cli.inputs import executed_run, node_names, open_or_plan_run, read_stdin
from proofmark.cli.output import print_json, print_line
from proofmark.common.errors import BadInput, NodeFailure, note_failed_nodes
from proofmark.common.files import is_folder, read_json
from proofmark.common.kit import kit_folder
from proofmark.common.progress_lines import say
from proofmark.jobs.execute import execute as execute_run
from proofmark.jobs.execute import pick, summary
from proofmark.jobs.execute import rerun as rerun_steps
from proofmark.jobs.job_request import Arrivals
from proofmark.jobs.scripts import Execution, Manner, Scripts, jobs_of, write_scripts
from proofmark.jobs.step_script import repeated_commands, unselected_rails
from proofmark.machine.node_commands import check_programs
from proofmark.machine.preflight import refuse_unseen
from proofmark.plan.kinds import kind_of
from proofmark.runs.acceptance import resting_on
from proofmark.runs.evidence import SealedEvidence, seal, sealed_digests
from proofmark.runs.nodes import nodes_of
from proofmark.runs.run import (
    Run,
    benchmarks_of,
    leave_out,
    reported_names,
    site_of,
    with_decisions,
)
from proofmark.runs.run_files import make_work_folder, use_work_folder, work_files
from proofmark.runs.sealed_runs import keep, sealed_of
from proofmark.runs.stage_faults import noting_faults
from proofmark.site.inventory import Site
from proofmark.software.provision import ProgramProbes, provide_software
from proofmark.software.software import Software


def rerun(options: Namespace) -> int:
    """Run steps of a run again."""
    run = executed_run(options.folder)
    refuse_unseen(site_of(run), work_files(run.folder).folder)
    rerun_steps(run, pick(run, options.steps), say, options.replaces)
    _read(_sealed(run.folder)[1])
    for place in resting_on(run.folder):
        say(f"{place}: signed with the evidence before: what it states now needs a new signature")
    return 0


def _sealed(folder: Path) -> tuple[SealedEvidence, Run]:
    """Seal what is new in a run, and record the run in the state of its site."""
    evidence = seal(folder)
    run = evidence.run()
    keep(sealed_of(run, folder), evidence.digests[:-1])
    return evidence, run


def record_software(options: Namespace) -> int:
    """Write ``software.json`` from the probes; stdin has them as JSON."""
    run = executed_run(options.folder)
    with noting_faults(run.folder, "programs"):
        provide_software(
            run,
            kit_folder() / "environments",
            read_stdin(ProgramProbes),
            by_installed=options.installed,
        )
    return 0


def stage(run: Run, site: Site) -> Run:
    """Write the scripts of the steps and jobs; return the run without steps that repeat others."""
    user = make_work_folder(run.folder, site, with_scratch=True)
    use_work_folder(run.folder, user.name)
    software = read_json(run.files.software, Software)
    repeated = repeated_commands(run.plan, software) | unselected_rails(run.plan, software)
    every = sum(1 for _ in run.plan.steps())
    run = leave_out(run, repeated)
    if repeated:
        say(f"{len(repeated)} of the {every} planned steps are not needed: the others are counted")
    for step, why in repeated.items():
        say(f"{step}: not needed: {why}")
    made = Scripts.of(site.partition, software, reported_names(run, site), benchmarks_of(run))
    if not kind_of(run.plan).has_figures:
        made = replace(made, undisturbed={})  # its jobs disturb each other, and are not repeated
    write_scripts(run.folder, run.plan, made)
    return run


def execute(options: Namespace) -> int:
    """Run the jobs of a run and print a summary; with ``--scripts``, only write the scripts."""
    run = executed_run(options.folder)
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
        early = execute_run(run, name, say, manner=manner, arrivals=arrivals)
    print_line(summary(with_decisions(run)))
    return STOPPED_EARLY if early else 0


def collect(options: Namespace) -> int:
    """Seal what is new in a run, and read it; return 1 if a node did not prove its state."""
    known = sealed_digests(options.folder.resolve())
    evidence, run = _sealed(options.folder)
    print_json(
        {
            "folder": f"{evidence.folder}",
            "number": evidence.newest.number,
            "sha256": evidence.digest,
            "changed": evidence.digest not in known,
        }
    )
    for path, change in evidence.newest.kept.items():
        say(f"{path}: {change} after it was sealed; the sealed content counts")
    unproven = {
        host: "; ".join(found)
        for host, node in nodes_of(run).items()
        if (found := [probe.reason for probe in node.damaged if probe.code != "stopped"])
    }
    for host, reason in unproven.items():
        say(f"proofmark: {host}: {reason}; its steps of this job are INVALID")
    note_failed_nodes({host: NodeFailure(reason) for host, reason in unproven.items()})
    if is_folder(run.files.work.steps):
        _read(run)
    return 1 if unproven else 0


def _read(run: Run) -> None:
    """Read the outputs of a sealed run, so that its verdict need not."""
    from proofmark.records.stored_readings import store  # the other stages read none

    try:
        store(run)
    except BadInput as error:  # it ends the verdict, not the seal
        say(f"not read: {error}")


def programs(options: Namespace) -> int:
    """Check on every node of a run for programs.

    Raises:
        BadInput: a node lacks a program.
    """
    with open_or_plan_run(options) as (run, site):
        check_programs(run, site, options.program)
    return 0

"""The command ``plan``."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

from proofmark.cases.suite import Benchmarks
from proofmark.cli.command import ArgumentUse, Command, Words, complete
from proofmark.cli.command_inputs import (
    kit_benchmarks,
    packages_of_kit,
    plan_arguments,
    plan_of,
)
from proofmark.cli.output import print_json, print_line, print_table, print_text
from proofmark.cli.plan_notes import place, plan_notes, prefixes, prefixes_argument
from proofmark.cli.plan_summary import plan_summary
from proofmark.cli.site import inventory_of, only_nodes
from proofmark.common.errors import (
    BadInput,
    NodeFailure,
    NothingToRun,
    bad_input,
    note_failed_nodes,
)
from proofmark.common.kit import expanded, kit_folder, result_folder
from proofmark.common.nodesets import folded
from proofmark.common.printed_command import setting
from proofmark.common.progress_lines import say
from proofmark.common.text import duration
from proofmark.judge.foreseen import ACCEPT, Unjudged, refusals, refusing, unjudged_of
from proofmark.machine.node_commands import run_text
from proofmark.machine.preflight import refuse_unseen
from proofmark.machine.scheduler import present
from proofmark.plan.kinds import kind_of
from proofmark.plan.lacking import refuse_lacking
from proofmark.plan.plan import Plan, step_named
from proofmark.plan.totals import JobTime, job_times
from proofmark.runs.busy_nodes import warning_of_probe
from proofmark.runs.cost_history import measured_cost
from proofmark.runs.play_variables import play_variable_names, write_play_variables
from proofmark.runs.predictions import Predictions
from proofmark.runs.progress import due_nodes
from proofmark.runs.run import Link, Run
from proofmark.runs.start import Copied, RunInputs, start_or_continue
from proofmark.site.accepted_baseline import ACCEPTED, NONE, chosen_baseline
from proofmark.site.execution import Queue
from proofmark.site.inventory import Site, load_site, load_sites
from proofmark.software.provider import check_name, check_provider


class ShownPlan(NamedTuple):
    """A plan, the queue of its partition, further lines, and what will stay unjudged."""

    plan: Plan
    queue: Queue
    notes: Sequence[str]
    unjudged: Sequence[Unjudged]


def print_as_json(plans: Sequence[ShownPlan], runs: Path) -> None:
    """Print the plans, one for each partition, with their notes.

    stderr has the notes too, because a playbook prints stderr.

    Args:
        runs: the runs from which durations are known.
    """
    texts = []
    for each in plans:
        cost = measured_cost(each.plan, runs)
        history = {key: value for key, value in asdict(cost).items() if key != "seconds"}
        texts.append(
            {
                **each.plan.model_dump(mode="json"),
                "summary": plan_summary(each.plan),
                "history": history,
                "jobs": [_job(job) for job in job_times(each.plan, each.queue, cost.seconds)],
                "unjudged": [one.as_json() for one in each.unjudged],
                "notes": each.notes,
            }
        )
        for line in (*each.notes, *unjudged_lines(each.unjudged)):
            say(line)
    print_json(texts[0] if len(texts) == 1 else {"partitions": texts})


def unjudged_lines(unjudged: Sequence[Unjudged]) -> Iterator[str]:
    """Yield a line for each figure that will stay unjudged, and whether a run is refused."""
    for each in unjudged:
        yield f"unjudged: {each.message}"
    if refusing(unjudged):
        yield f"refused without {setting(ACCEPT)}"


def _job(time: JobTime) -> dict[str, Any]:
    """Return a job for JSON: its mode, id, numbers of nodes and steps, and its times in seconds."""
    counts = {"nodes": len(time.job.nodes), "steps": len(time.job.steps)}
    times = {"expected_s": round(time.expected_s, 1), "requested_s": time.requested_s}
    return {"mode": time.mode, "job": time.job.id, **counts, **times}


def print_steps(made: Plan) -> None:
    """Print the steps of a plan as a table."""
    headers = ("mode", "job", "nodes", "step", "ranks", "threads", "placement", "duration", "limit")
    rows = []
    for group in made.groups:
        for job in group.jobs:
            nodes = folded(job.nodes)
            for step in job.steps:
                ranks = str(step.ranks) if step.cpus else "–"
                rows.append(
                    (
                        *(group.mode, job.id, nodes, step.id, ranks),
                        *(str(step.threads), step.placement or "–", duration(step.seconds)),
                        duration(step.timeout),
                    )
                )
    print_table(headers, rows)


REACH_S = 60.0
"""The time in which a node must answer, in seconds."""


def _plan_arguments(parser: ArgumentParser) -> None:
    plan_arguments(parser)
    prefixes_argument(parser)
    parser.add_argument("--reservation", help="replaces the value of the inventory's queue")
    parser.add_argument("--only", metavar="NODES", help="only these nodes of the limit")
    note = "print the plan as JSON; refuse what a run would refuse"
    parser.add_argument("--json", action="store_true", help=note)
    note = "a new or empty folder for the scripts of jobs and steps, and the inputs of the programs"
    complete(parser.add_argument("-o", "--output", type=Path, metavar="DIR", help=note), Words.PATH)
    note = "log in to the nodes, and print which do not answer"
    parser.add_argument("--reach", action="store_true", help=note)
    note = "print every step; --step prints one step whole"
    parser.add_argument("-v", "--verbose", action="store_true", help=note)
    note = "a step, by id or number: its launch line, environment, inputs and job"
    parser.add_argument("--step", metavar="ID", help=note)
    parser.add_argument("--create", action="store_true", help="create the run, or continue it")
    parser.add_argument("--run-id", help="with --create: the run's name")
    parser.add_argument(
        "--baseline",
        help=f"with --create: the accepted runs to compare with, or {NONE} (default: {ACCEPTED})",
    )
    expected = parser.add_argument(
        "--expected",
        type=Path,
        metavar="RUN",
        help="with --create: a run of a twin, whose figures are shown beside the measured ones",
    )
    complete(expected, Words.RUN)
    parser.add_argument("--fresh", action="store_true", help="with --create: never continue a run")
    parser.add_argument(
        "--accept-unjudged",
        action="store_true",
        help="with --create: although required metrics or limits cannot be judged",
    )
    parser.add_argument(
        "--no-link", action="store_true", help="with --create: leave runs/latest-<site> as it is"
    )


def plan(options: Namespace) -> int:
    """Print what a run will start, and how long; write its scripts, or create the run."""
    benchmarks = kit_benchmarks()
    overrides = {
        "provision_from": options.provision_from,
        "scratch_dir": options.scratch_dir,
        "reservation": options.reservation,
    }
    inventory = inventory_of(options)
    runs = result_folder(kit_folder(), "runs", options.runs)
    if not options.create:
        sites = [
            only_nodes(site, options.only)
            for site in load_sites(inventory, options.limit, overrides)
        ]
        for site in sites:
            check_name(site.partition.provision_from)
        (_print_json if options.json else _print)(options, benchmarks, sites, runs)
        return 0
    site = only_nodes(load_site(inventory, options.limit, overrides), options.only)
    check_provider(site.partition.provision_from, prefixes(options))
    made, machines, probe = plan_of(options, benchmarks, site)
    refuse_lacking(made, benchmarks, site, machines, packages_of_kit)
    # The module imports all plug-ins. A plan that is only printed does not need them.
    from proofmark.jobs.job_request import job_mistakes

    if mistakes := job_mistakes(site, [made]):
        file = str(site.facts)
        raise BadInput(*(replace(mistake, file=file) for mistake in mistakes))
    unjudged = unjudged_of(made, benchmarks, site, machines, probe, options.baseline)
    if (refused := refusals(unjudged, site)) and not options.accept_unjudged:
        raise BadInput(*refused)
    refuse_unseen(site, runs)
    site, baseline = with_baseline(site, options.baseline)
    if probe and (warning := warning_of_probe(probe, "probe of this machine")):
        say(warning)
    run, continued = start_or_continue(
        runs,
        RunInputs(made, benchmarks, site, probe),
        Copied(
            baseline=baseline,
            expected=_predictions(options.expected, site) if options.expected else None,
        ),
        run_id=options.run_id,
        fresh=options.fresh,
        link=None if options.no_link else Link.ACCEPTANCE,
    )
    if not continued:
        given = {name: getattr(options, name) for name in play_variable_names()}
        write_play_variables(run, {name: str(value) for name, value in given.items() if value})
    if continued and options.expected:
        say(f"expected: {run.id} is continued, and keeps the expected figures of its start")
    notes = (note.line for note in plan_notes(made, benchmarks, site, machines, probe))
    for line in (*notes, *unjudged_lines(unjudged)):
        say(line)
    print_json(
        {
            **plan_summary(run.plan, site.hosts),
            **_representative(run, site),
            "run": run.id,
            "folder": str(run.folder),
            "continued": continued,
            "digest": made.digest,
        }
    )
    return 0


def _print_json(
    options: Namespace, benchmarks: Benchmarks, sites: Sequence[Site], runs: Path
) -> None:
    """Print the plans that can run.

    Raises:
        BadInput: a site lacks programs of the suite.
    """
    shown = []
    for site in sites:
        made, machines, probe = plan_of(options, benchmarks, site)
        refuse_lacking(made, benchmarks, site, machines, packages_of_kit)
        notes = [note.line for note in plan_notes(made, benchmarks, site, machines, probe)]
        notes += place(site, options)
        unjudged = unjudged_of(made, benchmarks, site, machines, probe, options.baseline)
        shown.append(ShownPlan(made, site.partition.queue, notes, unjudged))
    print_as_json(shown, runs)


def _print(options: Namespace, benchmarks: Benchmarks, sites: Sequence[Site], runs: Path) -> None:
    """Print the plans with the reasons why a run would be refused; write the scripts into -o."""
    from proofmark.cli.planned import Foreseen, Planned  # it imports all plug-ins

    if options.output and options.output.exists() and any(options.output.iterdir()):
        raise bad_input("--output", "", f"{options.output}, with files", "a new or empty folder")
    totals = []
    for site in sites:
        try:
            made, machines, probe = plan_of(options, benchmarks, site, shown=True)
        except NothingToRun as error:
            if len(sites) == 1:
                raise
            for each in error.mistakes:
                print_line(f"no step: {site.partition_name}: {each.accepted}")
            continue
        totals.append(made.totals)
        foreseen = Foreseen(probe, options.baseline, (*place(site, options),))
        planned = Planned(site, made, benchmarks, machines, runs, foreseen)
        if options.step:
            lines = planned.step(step_named(options.step, made.steps()))
        else:
            if options.verbose:
                print_steps(made)
            lines = planned.summary(*((sys.maxsize,) if options.verbose else ()))
        if options.output:
            folder = options.output / (site.partition_name if len(sites) > 1 else "")
            planned.preview.write(folder)
            lines.append(f"scripts and inputs: {folder}")
        if options.reach:
            nodes = dict.fromkeys([min(site.hosts), *made.nodes()])  # playbooks run on the first
            _, failed = run_text(site, [*nodes], "exit 0\n", timeout_s=REACH_S)
            reasons = {node: NodeFailure(why.text, why.outcome) for node, why in failed.items()}
            note_failed_nodes(reasons)
            lines += [f"not reached: {folded(failed)}"] if failed else []
        print_text("\n".join(lines))
    if len(totals) > 1:
        hours = sum(each.node_hours for each in totals)
        print_line(
            f"{len(totals)} partitions: {sum(each.jobs for each in totals)} jobs, "
            f"{sum(each.steps for each in totals)} steps, {hours:.2f} node-hours; "
            "one run per partition"
        )


def with_baseline(site: Site, name: str | None) -> tuple[Site, Path | None]:
    """Return the site, with the option if it replaces the accepted baseline, and the baseline."""
    chosen, usual = (
        chosen_baseline(site.inventory, site.partition_name, each) for each in (name, None)
    )
    if not usual or not name or chosen == usual:
        return site, chosen
    replaced = {**site.replaced, "baseline": (ACCEPTED, name)}
    return site.model_copy(update={"replaced": replaced}), chosen


def _representative(run: Run, site: Site) -> dict[str, str]:
    """Return a node that is up, one with waiting steps first; nothing if no nodes arrive."""
    if not kind_of(run.plan).nodes_arrive:
        return {}
    up = present(run, site, list(dict.fromkeys([*due_nodes(run), *site.hosts])))
    return {"representative": up[0] if up else ""}


def _predictions(folder: Path, site: Site) -> Predictions:
    """Return the predictions in `folder` for the figures of `site`.

    Raises:
        BadInput: no installed package finds predictions there.
    """
    from proofmark.report.additions import predictions_in  # it imports polars

    return predictions_in(expanded(folder), site)


USES = (
    ArgumentUse(
        ("--run-id", "--expected", "--fresh", "--accept-unjudged", "--no-link"),
        beside=("--create",),
    ),
    ArgumentUse(("--output", "--reach", "--verbose", "--step"), without=("--create", "--json")),
    ArgumentUse(("--verbose",), without=("--step",)),
)
"""The options that would be ignored beside others."""

COMMANDS = {
    "plan": Command(
        plan, "plan -i inventory/local -l local --suite quick", _plan_arguments, uses=USES
    )
}

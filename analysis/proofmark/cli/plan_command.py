"""The commands about a site and its plans: ``plan``, ``validate`` and ``fabric``."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from proofmark.cases.suite import Benchmarks
from proofmark.cases.vocabulary import DEFAULT_SUITE
from proofmark.cli.command import Command, Words, complete
from proofmark.cli.command_inputs import (
    kit_benchmarks,
    packages_of_kit,
    plan_arguments,
    suite_argument,
)
from proofmark.cli.output import print_json, print_line, print_table
from proofmark.cli.plan_print import print_as_json, print_steps
from proofmark.cli.plan_summary import plan_summary
from proofmark.cli.site import inventory_of, limit_argument, only_nodes, site_argument
from proofmark.common.errors import BadInput, bad_input
from proofmark.common.home import expanded
from proofmark.common.kit import kit_folder, result_folder
from proofmark.common.progress_lines import say
from proofmark.common.text import duration
from proofmark.machine.checkout import refuse_unseen, unseen
from proofmark.plan.expansion import make_plan
from proofmark.plan.lacking import in_words, refuse_lacking
from proofmark.plan.limits_of_suites import without_figures
from proofmark.plan.plan import Plan
from proofmark.plan.step_names import step_named
from proofmark.plan.totals import idle_cores
from proofmark.plan.validation import SiteChecks
from proofmark.plan.validation import validate as check_site
from proofmark.runs.asked import write_asked
from proofmark.runs.busy_nodes import warning_of_probe
from proofmark.runs.latest import Link
from proofmark.runs.predicted import Expected
from proofmark.runs.start import Copied, RunInputs, start_or_continue
from proofmark.site.accepted_baseline import ACCEPTED, NONE, chosen_baseline
from proofmark.site.fabric_import import fabric_levels
from proofmark.site.inventory import Site, load_site, load_sites
from proofmark.site.literals import literal_yaml
from proofmark.site.machine import Machine
from proofmark.site.machines import machines_of
from proofmark.site.node.unread import unread_lines
from proofmark.site.questions import comments
from proofmark.software.provider import check_provider

ASKED = ("repeats", "provision_from", "scratch_dir", "baseline", "expected")
"""The options of a plan that are extra variables of the playbooks with the same name."""


def _plan_arguments(parser: ArgumentParser) -> None:
    plan_arguments(parser)
    _prefixes_argument(parser)
    parser.add_argument("--reservation", help="replaces the value of the inventory's queue")
    parser.add_argument("--only", metavar="NODES", help="only these nodes of the limit")
    parser.add_argument("--json", action="store_true", help="print the plan as JSON")
    note = "print every step; --step prints one step whole"
    parser.add_argument("-v", "--verbose", dest="every_step", action="store_true", help=note)
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
        "--no-link", action="store_true", help="with --create: leave runs/latest-<site> as it is"
    )


def plan(options: Namespace) -> int:
    """Print the plan of each partition, or create the run of one."""
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
            check_provider(site.partition.provision_from, _prefixes(options))
        found = []
        for site in sites:
            machines, _ = machines_of(site)
            made = make_plan(benchmarks, options.suite, site, machines, options.repeats)
            refuse_lacking(made, benchmarks, site, machines, packages_of_kit)
            found.append((site, made, machines))
        if options.json:
            notes = [[*_notes(made, benchmarks, site, at)] for site, made, at in found]
            print_as_json([made for _, made, _ in found], notes, runs)
            return 0
        from proofmark.cli.preview import Planned  # it imports all plug-ins

        for site, made, machines in found:
            planned = Planned(site, made, benchmarks, machines, runs)
            if options.step:
                lines = planned.step(step_named(options.step, made.steps()))
            elif options.every_step or options.verbose:
                print_steps(made)
                lines = planned.summary(most=sys.maxsize)
            else:
                lines = planned.summary()
            print("\n".join(lines))
        if len(found) > 1:
            totals = [made.totals for _, made, _ in found]
            hours = sum(each.node_hours for each in totals)
            print(
                f"{len(found)} partitions: {sum(each.jobs for each in totals)} jobs, "
                f"{sum(each.steps for each in totals)} steps, {hours:.2f} node-hours; "
                "one run per partition"
            )
        return 0
    site = only_nodes(load_site(inventory, options.limit, overrides), options.only)
    check_provider(site.partition.provision_from, _prefixes(options))
    machines, probe = machines_of(site)
    made = make_plan(benchmarks, options.suite, site, machines, options.repeats)
    refuse_lacking(made, benchmarks, site, machines, packages_of_kit)
    # The module imports all plug-ins. A plan that is only printed does not need them.
    from proofmark.jobs.site_check import job_mistakes

    if mistakes := job_mistakes(site, [made]):
        file = str(site.facts)
        raise BadInput(*(replace(mistake, file=file) for mistake in mistakes))
    refuse_unseen(site, runs)
    if probe and (warning := warning_of_probe(probe, "probe of this machine")):
        say(warning)
    run, continued = start_or_continue(
        runs,
        RunInputs(made, benchmarks, site, probe),
        Copied(
            baseline=chosen_baseline(site.inventory, site.partition_name, options.baseline),
            expected=_expected(options.expected, site) if options.expected else None,
        ),
        run_id=options.run_id,
        fresh=options.fresh,
        link=None if options.no_link else Link.ACCEPTANCE,
    )
    if not continued:
        given = {name: getattr(options, name) for name in ASKED}
        write_asked(run, {name: str(value) for name, value in given.items() if value})
    if continued and options.expected:
        say(f"expected: {run.id} is continued, and keeps the expected figures of its start")
    for line in _notes(made, benchmarks, site, machines):
        say(line)
    print_json(
        {
            **plan_summary(run.plan),
            "run": run.id,
            "folder": str(run.folder),
            "continued": continued,
            "digest": made.digest,
        }
    )
    return 0


def _prefixes_argument(parser: ArgumentParser) -> None:
    note = "folder of installations, whose path must not be too long (default: .provision)"
    prefixes = parser.add_argument("--prefixes", default="", metavar="FOLDER", help=note)
    complete(prefixes, Words.PATH)


def _prefixes(options: Namespace) -> Path:
    return result_folder(kit_folder(), ".provision", options.prefixes).resolve()


def _notes(
    made: Plan, benchmarks: Benchmarks, site: Site, machines: Callable[[str], Machine]
) -> Iterator[str]:
    """Yield a line for each unknown fact, idle core and limit without a figure."""
    unread = machines(site.partition.current_mode).unread
    yield from (f"not known: {line}" for line in unread_lines(unread))
    yield from idle_cores(made, machines)
    yield from without_figures(made, benchmarks, site, machines)


def _expected(folder: Path, site: Site) -> Expected:
    """Return the predictions of the run of a twin in `folder`.

    Raises:
        BadInput: it is no finished run of a twin of `site`.
    """
    # It imports polars and all readers of outputs. Other plans do not need them.
    from proofmark.judge.twin_error import model_error_of
    from proofmark.judge.twin_predictions import expected_of

    run = expanded(folder)
    made = expected_of(run, site)
    error = model_error_of(run)
    return made.model_copy(update={"errors": error.rows if error else ()})


def _validate_arguments(parser: ArgumentParser) -> None:
    site_argument(parser, "the site")
    limit_argument(parser, "a partition (default: all)", default="compute")
    note = (
        f"only this suite, which must lack no program (default: all suites; {DEFAULT_SUITE} must "
        "lack none)"
    )
    suite_argument(parser, None, note)
    _prefixes_argument(parser)


def validate(options: Namespace) -> int:
    """Check a site, and print the cost of each suite there and the packages that it lacks."""
    # They import the registries of all plug-ins, which other uses of this module do not need.
    from proofmark.cli.site_checks import site_checks
    from proofmark.jobs.site_check import job_mistakes

    inventory = inventory_of(options)
    checked = check_site(
        inventory,
        options.limit,
        kit_benchmarks(),
        SiteChecks(
            facts=site_checks(kit_folder(), _prefixes(options)),
            packages=packages_of_kit,
            jobs=job_mistakes,
        ),
        options.suite,
    )
    if checked.mistakes:
        raise BadInput(*checked.mistakes)
    rows = []
    for made, missing in zip(checked.plans, checked.lacks, strict=True):
        totals = made.totals
        numbers = (str(totals.jobs), str(totals.steps), f"{totals.node_hours:.2f}")
        time, lacking = duration(totals.wall_s), in_words(missing) or "–"
        rows.append((made.partition, made.suite, *numbers, time, lacking))
    headers = ("partition", "suite", "jobs", "steps", "node-hours", "duration", "lacks")
    print_table(headers, rows)
    for partition, assumed in {made.partition: made.assumed for made in checked.plans}.items():
        for fact, why in assumed.items():
            print(f"assumed: {partition}: {fact}: {why}")
    for partition, lines in checked.limits.items():
        for line in lines:
            print_line(f"limit: {partition}: {line}")
    for partition, refusals in checked.refused.items():
        for refusal in refusals:
            print_line(f"refused: {partition}: {refusal.line()}")
    for line in checked.not_here:
        print_line(f"not here: {line}")
    for line in checked.unread:
        print_line(f"not known: {line}")
    for place, question in comments(inventory.folder):
        print_line(f"question: {place}: {question}")
    runs = result_folder(kit_folder(), "runs")
    for site in checked.sites:
        if unrunnable := unseen(site, runs):
            print_line(f"no run from here: {unrunnable}")
    return 0


def _fabric_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", type=Path)
    parser.add_argument("--names", default="", help="names of the levels, the nearest level first")


def fabric(options: Namespace) -> int:
    """Print the ``fabric`` of a partition's facts."""
    try:
        text = options.file.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        found = error.strerror or "unreadable"
        raise bad_input(options.file, "", found, "a readable file") from None
    names = [name for name in options.names.split(",") if name]
    levels = fabric_levels(text, options.file, names)
    top = list(levels)[-1]
    near = [{"name": name, "switches": levels[name]} for name in levels if name != top]
    facts = {"fabric": {"levels": near, "top": top, "source": f"{options.file.name} of the site"}}
    print(literal_yaml(facts), end="")
    return 0


COMMANDS = {
    "plan": Command(plan, "plan -i inventory/local -l local --suite quick", _plan_arguments),
    "validate": Command(validate, "validate -i inventory/nurion", _validate_arguments),
    "fabric": Command(
        fabric, "fabric /etc/slurm/topology.conf --names chip,line-card,switch", _fabric_arguments
    ),
}

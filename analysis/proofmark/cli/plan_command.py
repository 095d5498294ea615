"""The commands about a site and its plans: ``plan``, ``validate`` and ``fabric``."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from proofmark.cases.suite import Benchmarks
from proofmark.cases.vocabulary import DEFAULT_SUITE, RAIL
from proofmark.cli.command import Command, Words, complete
from proofmark.cli.command_inputs import (
    kit_benchmarks,
    packages_of_kit,
    plan_of,
    repeats_argument,
    rolling_argument,
    runs_folder_argument,
    suite_argument,
)
from proofmark.cli.output import print_json, print_line, print_table
from proofmark.cli.plan_print import ShownPlan, print_plans, unjudged_lines
from proofmark.cli.plan_summary import plan_summary
from proofmark.cli.site import inventory_of, limit_argument, only_nodes, site_argument
from proofmark.common.errors import BadInput, bad_input
from proofmark.common.home import expanded
from proofmark.common.kit import kit_folder, result_folder
from proofmark.common.message import Message
from proofmark.common.progress_lines import say
from proofmark.common.text import duration
from proofmark.judge.foreseen import ACCEPT, refusals, unjudged_of
from proofmark.machine.checkout import refuse_unseen, unseen
from proofmark.machine.present_nodes import present
from proofmark.plan.lacking import in_words, refuse_lacking
from proofmark.plan.limits_of_suites import without_figures
from proofmark.plan.plan import Plan
from proofmark.plan.rolling import steps_left
from proofmark.plan.totals import idle_cores
from proofmark.plan.validation import Checked, SiteChecks
from proofmark.plan.validation import validate as check_site
from proofmark.runs.asked import write_asked
from proofmark.runs.busy_nodes import warning_of_probe
from proofmark.runs.latest import Link
from proofmark.runs.predicted import Expected
from proofmark.runs.run import Run
from proofmark.runs.run_names import names_of
from proofmark.runs.start import Copied, RunInputs, start_or_continue
from proofmark.site.accepted_baseline import ACCEPTED, NONE, chosen_baseline
from proofmark.site.fabric_import import fabric_levels
from proofmark.site.inventory import Site, load_site, load_sites
from proofmark.site.literals import literal_yaml
from proofmark.site.machine import Machine
from proofmark.site.machines import machines_of
from proofmark.site.node.unread import unread_lines
from proofmark.site.questions import comments
from proofmark.site.run_variables import MPIS_OF_LAUNCHER, doubtful
from proofmark.software.provider import check_name, check_provider

ASKED = ("repeats", "rolling", "provision_from", "scratch_dir", "baseline", "expected", ACCEPT)
"""The options of a plan that are extra variables of the playbooks with the same name."""


def _plan_arguments(parser: ArgumentParser) -> None:
    site_argument(parser)
    limit_argument(parser, required=True)
    suite_argument(parser)
    repeats_argument(parser)
    rolling_argument(parser)
    parser.add_argument("--provision-from", help="replaces the value of the inventory")
    _prefixes_argument(parser)
    parser.add_argument("--scratch-dir", help="replaces the value of the inventory")
    parser.add_argument("--reservation", help="replaces the value of the inventory's queue")
    parser.add_argument("--only", metavar="NODES", help="only these nodes of the limit")
    runs_folder_argument(parser)
    parser.add_argument("--json", action="store_true", help="print the plan as JSON")
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
            check_name(site.partition.provision_from)
        shown = []
        for site in sites:
            made, machines, probe = plan_of(options, benchmarks, site)
            refuse_lacking(made, benchmarks, site, machines, packages_of_kit)
            notes = [*_notes(made, benchmarks, site, machines), *_place(site, options)]
            unjudged = unjudged_of(made, benchmarks, site, machines, probe, options.baseline)
            shown.append(ShownPlan(made, site.partition.queue, notes, unjudged))
        print_plans(shown, runs, as_json=options.json)
        return 0
    site = only_nodes(load_site(inventory, options.limit, overrides), options.only)
    check_provider(site.partition.provision_from, _prefixes(options))
    made, machines, probe = plan_of(options, benchmarks, site)
    refuse_lacking(made, benchmarks, site, machines, packages_of_kit)
    # The module imports all plug-ins. A plan that is only printed does not need them.
    from proofmark.jobs.site_check import job_mistakes

    if mistakes := job_mistakes(site, [made]):
        file = str(site.facts)
        raise BadInput(*(replace(mistake, file=file) for mistake in mistakes))
    unjudged = unjudged_of(made, benchmarks, site, machines, probe, options.baseline)
    if (refused := refusals(unjudged)) and not options.accept_unjudged:
        raise BadInput(*(replace(mistake, file=f"{site.facts}") for mistake in refused))
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
    notes = _notes(made, benchmarks, site, machines)
    for line in (*steps_left(made), *notes, *unjudged_lines(unjudged)):
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


def _representative(run: Run, site: Site) -> dict[str, str]:
    """Return a node of a rolling run that is up, one with waiting steps first; empty: none is."""
    names = names_of(run)
    if not names.rolling:
        return {}
    up = present(names, site, list(dict.fromkeys([*names.due(), *site.hosts])))
    return {"representative": up[0] if up else ""}


def _prefixes_argument(parser: ArgumentParser) -> None:
    note = "folder of installations, whose path must not be too long (default: .provision)"
    prefixes = parser.add_argument("--prefixes", default="", metavar="FOLDER", help=note)
    complete(prefixes, Words.PATH)


def _prefixes(options: Namespace) -> Path:
    return result_folder(kit_folder(), ".provision", options.prefixes).resolve()


def _place(site: Site, options: Namespace) -> Iterator[str]:
    """Yield why the programs of `site` cannot be installed from this checkout."""
    try:
        check_provider(site.partition.provision_from, _prefixes(options))
    except BadInput as error:
        yield from (f"no run from here: {mistake}" for mistake in error.mistakes)


def _notes(
    made: Plan, benchmarks: Benchmarks, site: Site, machines: Callable[[str], Machine]
) -> Iterator[str]:
    """Yield a line for each unknown fact, idle core and limit without a figure."""
    unread = machines(site.partition.current_mode).unread
    yield from (f"not known: {line}" for line in unread_lines(unread))
    yield from _doubts(site, benchmarks)
    launcher = site.partition.launch.launcher
    if launcher not in MPIS_OF_LAUNCHER and any(RAIL in each.parameters for each in made.steps()):
        yield f"not judged: one rail alone, unless {RAILS_KNOWN}"
    yield from idle_cores(made, machines)
    yield from without_figures(made, benchmarks, site, machines)


RAILS_KNOWN = "the MPI of the programs is Open MPI, MPICH, MVAPICH or Intel MPI"
"""The condition under which a program can be told to use one rail (``site/data/rails.yml``)."""


def _doubts(site: Site, benchmarks: Benchmarks) -> Iterator[str]:
    """Yield a warning for each run-time variable that is not known, or of another MPI."""
    launch = site.partition.launch
    name = site.partition_name
    yield from (f"warning: {name}: partition.launch: {each}" for each in launch.doubts())
    for name, case in benchmarks.cases.items():
        for each in doubtful(case.environment, MPIS_OF_LAUNCHER.get(launch.launcher, ())):
            yield f"warning: {name}: environment: {each}"


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

    inventory, benchmarks = inventory_of(options), kit_benchmarks()
    checked = check_site(
        inventory,
        options.limit,
        benchmarks,
        SiteChecks(
            facts=site_checks(kit_folder()),
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
    for line in _limit_lines(checked):
        print_line(line)
    for line in checked.not_here:
        print_line(f"not here: {line}")
    for line in checked.unread:
        print_line(f"not known: {line}")
    for line in (line for site in checked.sites for line in _doubts(site, kit_benchmarks())):
        print_line(line)
    for place, question in comments(inventory.folder):
        print_line(f"question: {place}: {question}")
    for site in checked.sites:
        for line in _of_site(site, checked, benchmarks, options):
            print_line(line)
    return 0


def _limit_lines(checked: Checked) -> Iterator[str]:
    """Yield a line for each limit, and for each suite that lacks programs."""
    for partition, lines in checked.limits.items():
        yield from (f"limit: {partition}: {line}" for line in lines)
    for partition, lacking in checked.refused.items():
        yield from (f"refused: {partition}: {each.line()}" for each in lacking)


def _of_site(
    site: Site, checked: Checked, benchmarks: Benchmarks, options: Namespace
) -> Iterator[str]:
    """Yield what stays unjudged on `site`, and why no run starts from this checkout."""
    plans = [each for each in checked.plans if each.partition == site.partition_name]
    yield from _unjudged_lines(site, plans, benchmarks)
    yield from _place(site, options)
    if unrunnable := unseen(site, result_folder(kit_folder(), "runs")):
        yield f"no run from here: {unrunnable}"


def _unjudged_lines(site: Site, plans: Sequence[Plan], benchmarks: Benchmarks) -> Iterator[str]:
    """Yield a line for each figure that will stay unjudged, with its suites."""
    machines, probe = machines_of(site)
    suites: dict[Message, list[str]] = {}
    refused: list[str] = []
    for plan in plans:
        found = unjudged_of(plan, benchmarks, site, machines, probe)
        refused += [plan.suite] if refusals(found) else []
        for each in found:
            suites.setdefault(each.message, []).append(plan.suite)
    for message, names in suites.items():
        yield f"unjudged: {site.partition_name}: {', '.join(names)}: {message}"
    if refused:
        yield f"refused without -e {ACCEPT}=true: {site.partition_name}: {', '.join(refused)}"


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

"""The commands about a site and its plans: ``plan``, ``validate`` and ``fabric``."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path

from proofmark.cli.command import Command, Words, complete
from proofmark.cli.command_inputs import (
    kit_benchmarks,
    packages_of_kit,
    plan_arguments,
    plan_of,
)
from proofmark.cli.output import print_json, print_line, print_text
from proofmark.cli.plan_notes import place, plan_notes, prefixes, prefixes_argument
from proofmark.cli.plan_print import ShownPlan, print_as_json, print_steps, unjudged_lines
from proofmark.cli.plan_summary import plan_summary
from proofmark.cli.site import inventory_of, only_nodes
from proofmark.common.errors import BadInput, bad_input
from proofmark.common.home import expanded
from proofmark.common.kit import kit_folder, result_folder
from proofmark.common.progress_lines import say
from proofmark.judge.foreseen import refusals, unjudged_of
from proofmark.machine.checkout import refuse_unseen
from proofmark.machine.present_nodes import present
from proofmark.plan.lacking import refuse_lacking
from proofmark.plan.rolling import steps_left
from proofmark.plan.step_names import step_named
from proofmark.runs.asked import ASKED, write_asked
from proofmark.runs.busy_nodes import warning_of_probe
from proofmark.runs.latest import Link
from proofmark.runs.predicted import Expected
from proofmark.runs.run import Run
from proofmark.runs.run_names import names_of
from proofmark.runs.start import Copied, RunInputs, start_or_continue
from proofmark.site.accepted_baseline import ACCEPTED, NONE, chosen_baseline
from proofmark.site.fabric_import import fabric_levels, unnamed_adapters
from proofmark.site.inventory import Site, load_site, load_sites
from proofmark.site.literals import literal_yaml
from proofmark.software.provider import check_name, check_provider


def _plan_arguments(parser: ArgumentParser) -> None:
    plan_arguments(parser)
    prefixes_argument(parser)
    parser.add_argument("--reservation", help="replaces the value of the inventory's queue")
    parser.add_argument("--only", metavar="NODES", help="only these nodes of the limit")
    parser.add_argument("--json", action="store_true", help="print the plan as JSON")
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
        found = []
        for site in sites:
            made, machines, probe = plan_of(options, benchmarks, site)
            refuse_lacking(made, benchmarks, site, machines, packages_of_kit)
            found.append((site, made, machines, probe))
        if options.json:
            print_as_json(
                [
                    ShownPlan(
                        made,
                        site.partition.queue,
                        [*plan_notes(made, benchmarks, site, at), *place(site, options)],
                        unjudged_of(made, benchmarks, site, at, probe, options.baseline),
                    )
                    for site, made, at, probe in found
                ],
                runs,
            )
            return 0
        from proofmark.cli.preview import Foreseen, Planned  # it imports all plug-ins

        for site, made, machines, probe in found:
            foreseen = Foreseen(probe, options.baseline, (*place(site, options),))
            planned = Planned(site, made, benchmarks, machines, runs, foreseen)
            if options.step:
                lines = planned.step(step_named(options.step, made.steps()))
            elif options.verbose:
                print_steps(made)
                lines = planned.summary(most=sys.maxsize)
            else:
                lines = planned.summary()
            print_text("\n".join(lines))
        if len(found) > 1:
            totals = [made.totals for _, made, _, _ in found]
            hours = sum(each.node_hours for each in totals)
            print_line(
                f"{len(found)} partitions: {sum(each.jobs for each in totals)} jobs, "
                f"{sum(each.steps for each in totals)} steps, {hours:.2f} node-hours; "
                "one run per partition"
            )
        return 0
    site = only_nodes(load_site(inventory, options.limit, overrides), options.only)
    check_provider(site.partition.provision_from, prefixes(options))
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
    site, baseline = with_baseline(site, options.baseline)
    if probe and (warning := warning_of_probe(probe, "probe of this machine")):
        say(warning)
    run, continued = start_or_continue(
        runs,
        RunInputs(made, benchmarks, site, probe),
        Copied(
            baseline=baseline,
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
    notes = plan_notes(made, benchmarks, site, machines)
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
    """Return a node of a rolling run that is up, one with waiting steps first; empty: none is."""
    names = names_of(run)
    if not names.rolling:
        return {}
    up = present(names, site, list(dict.fromkeys([*names.due(), *site.hosts])))
    return {"representative": up[0] if up else ""}


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
    if adapters := unnamed_adapters(text):
        listed = "; ".join(f"{name} ({words})" for name, words in adapters.items())
        say(f"{options.file}: adapters that name no host, and are in no level: {listed}")
    if not near:
        say(f"{options.file}: one switch has all nodes; there is no level below {top}")
    facts = {"fabric": {"levels": near, "top": top, "source": f"{options.file.name} of the site"}}
    print_text(literal_yaml(facts).removesuffix("\n"))
    return 0


COMMANDS = {
    "plan": Command(plan, "plan -i inventory/local -l local --suite quick", _plan_arguments),
    "fabric": Command(
        fabric, "fabric /etc/slurm/topology.conf --names chip,line-card,switch", _fabric_arguments
    ),
}

"""The command ``validate``: it checks a site, and prints the cost of each suite."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence

from proofmark.cases.suite import Benchmarks
from proofmark.cases.vocabulary import DEFAULT_SUITE
from proofmark.cli.command import Command
from proofmark.cli.command_inputs import kit_benchmarks, packages_of_kit, suite_argument
from proofmark.cli.output import print_line, print_table
from proofmark.cli.plan_notes import doubts, place, prefixes_argument
from proofmark.cli.site import inventory_of, limit_argument, site_argument
from proofmark.common.errors import BadInput
from proofmark.common.kit import kit_folder, result_folder
from proofmark.common.message import Message
from proofmark.common.text import duration
from proofmark.judge.foreseen import ACCEPT, refusals, unjudged_of
from proofmark.machine.checkout import unseen
from proofmark.machine.modes.mode_stage import unprovable_modes
from proofmark.plan.lacking import in_words
from proofmark.plan.plan import Plan
from proofmark.plan.validation import Checked, SiteChecks
from proofmark.plan.validation import validate as check_site
from proofmark.site.inventory import Site
from proofmark.site.machines import machines_of
from proofmark.site.questions import comments


def _validate_arguments(parser: ArgumentParser) -> None:
    site_argument(parser, "the site")
    limit_argument(parser, "a partition (default: all)", default="compute")
    note = (
        f"only this suite, which must lack no program (default: all suites; {DEFAULT_SUITE} must "
        "lack none)"
    )
    suite_argument(parser, None, note)
    prefixes_argument(parser)


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
    virtual = {site.partition_name for site in checked.sites if site.partition.origin != "measured"}
    shown = [
        (made, missing)
        for made, missing in zip(checked.plans, checked.lacks, strict=True)
        if options.suite or made.partition in virtual or benchmarks.suite(made.suite).listed
    ]
    rows = []
    for made, missing in shown:
        totals = made.totals
        numbers = (str(totals.jobs), str(totals.steps), f"{totals.node_hours:.2f}")
        time, lacking = duration(totals.wall_s), in_words(missing) or "–"
        rows.append((made.partition, made.suite, *numbers, time, lacking))
    headers = ("partition", "suite", "jobs", "steps", "node-hours", "duration", "lacks")
    print_table(headers, rows)
    for partition, assumed in {made.partition: made.assumed for made in checked.plans}.items():
        for fact, why in assumed.items():
            print_line(f"assumed: {partition}: {fact}: {why}")
    for line in _limit_lines(checked):
        print_line(line)
    for line in checked.not_here:
        print_line(f"not here: {line}")
    for line in checked.unread:
        print_line(f"not known: {line}")
    for line in (line for site in checked.sites for line in doubts(site, kit_benchmarks())):
        print_line(line)
    for key, question in comments(inventory.folder):
        print_line(f"question: {key}: {question}")
    for site in checked.sites:
        plans = [made for made, _ in shown if made.partition == site.partition_name]
        for line in _of_site(site, plans, benchmarks, options):
            print_line(line)
    return 0


def _limit_lines(checked: Checked) -> Iterator[str]:
    """Yield a line for each limit, and for each suite that lacks programs."""
    for partition, lines in checked.limits.items():
        yield from (f"limit: {partition}: {line}" for line in lines)
    for partition, lacking in checked.refused.items():
        yield from (f"refused: {partition}: {each.line()}" for each in lacking)


def _of_site(
    site: Site, plans: Sequence[Plan], benchmarks: Benchmarks, options: Namespace
) -> Iterator[str]:
    """Yield what stays unjudged or unproven on `site`, and why no run starts from this checkout."""
    yield from _unjudged_lines(site, plans, benchmarks)
    yield from unprovable_modes(site)
    yield from place(site, options)
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


COMMANDS = {"validate": Command(validate, "validate -i inventory/nurion", _validate_arguments)}

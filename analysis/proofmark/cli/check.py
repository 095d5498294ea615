"""The command ``check``: what can go wrong before a run, and what will stay unjudged.

Without ``--nodes`` it reads the files of the site only. With it, it asks nodes, scheduler and BMCs.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from proofmark.cases.suite import Benchmarks
from proofmark.cases.vocabulary import DEFAULT_SUITE
from proofmark.cli.bmc_credentials import credentials_argument, credentials_of
from proofmark.cli.command import ArgumentUse, Command
from proofmark.cli.command_inputs import (
    kit_benchmarks,
    packages_of_kit,
    repeats_argument,
    suite_argument,
)
from proofmark.cli.output import print_line, print_table
from proofmark.cli.plan_notes import doubts, place, prefixes_argument
from proofmark.cli.site import inventory_of, limit_argument, site_argument
from proofmark.common.errors import BadInput, NodeFailure, bad_input, note_failed_nodes
from proofmark.common.kit import kit_folder, result_folder
from proofmark.common.message import Message
from proofmark.common.printed_command import setting
from proofmark.common.progress_lines import say
from proofmark.common.rights import this_user
from proofmark.common.text import duration
from proofmark.judge.foreseen import ACCEPT, refusing, unjudged_of
from proofmark.machine.modes.rollout import unprovable_modes
from proofmark.machine.preflight import Finding, checkout_findings, preflight, unseen
from proofmark.plan.lacking import Lacked, in_words
from proofmark.plan.plan import Plan
from proofmark.plan.validation import CheckedSite, SiteChecks
from proofmark.plan.validation import validate as check_site
from proofmark.site.inventory import Site
from proofmark.site.literals import comments
from proofmark.site.machines import machines_of


def _arguments(parser: ArgumentParser) -> None:
    site_argument(parser, "the site")
    limit_argument(parser, "a partition, or hosts of one (default: all)", default="compute")
    note = (
        f"only this suite, which must lack no program (default: all suites, with --nodes "
        f"{DEFAULT_SUITE}; {DEFAULT_SUITE} must lack none)"
    )
    suite_argument(parser, None, note)
    repeats_argument(parser)
    prefixes_argument(parser)
    note = "ask the nodes, the scheduler and the BMCs too: log-ins, clocks, rights; change nothing"
    parser.add_argument("--nodes", action="store_true", help=note)
    credentials_argument(parser)
    note = "with --nodes: the end of the maintenance window"
    parser.add_argument("--window-ends", metavar="TIME", help=note)


def check(options: Namespace) -> int:
    """Check a site and its suites; with ``--nodes`` also its nodes, scheduler and BMCs."""
    # They import the registries of all plug-ins, which other uses of this module do not need.
    from proofmark.cli.site_checks import site_checks
    from proofmark.jobs.job_request import job_mistakes

    end = _window_end(options.window_ends)
    inventory, benchmarks = inventory_of(options), kit_benchmarks()
    checks = SiteChecks(
        facts=site_checks(kit_folder()), packages=packages_of_kit, jobs=job_mistakes
    )
    suite = options.suite or (DEFAULT_SUITE if options.nodes else None)
    checked = check_site(inventory, options.limit, benchmarks, checks, suite, options.repeats)
    if checked.mistakes:
        raise BadInput(*checked.mistakes)
    virtual = {site.partition_name for site in checked.sites if site.partition.origin != "measured"}
    shown = [
        (made, missing)
        for made, missing in zip(checked.plans, checked.lacks, strict=True)
        if suite or made.partition in virtual or benchmarks.suite(made.suite).listed
    ]
    _print_costs(shown)
    for line in _lines(checked, benchmarks):
        print_line(line)
    for key, question in comments(inventory.folder):
        print_line(f"question: {key}: {question}")
    for site in checked.sites:
        plans = [made for made, _ in shown if made.partition == site.partition_name]
        for line in _of_site(site, plans, benchmarks, options):
            print_line(line)
    return _ask_nodes(checked, options, end) if options.nodes else 0


def _print_costs(shown: Sequence[tuple[Plan, Sequence[Lacked]]]) -> None:
    """Print the cost of each suite on each partition, and the packages that it lacks."""
    rows = []
    for made, missing in shown:
        totals = made.totals
        numbers = (str(totals.jobs), str(totals.steps), f"{totals.node_hours:.2f}")
        time, lacking = duration(totals.wall_s), in_words(missing) or "–"
        rows.append((made.partition, made.suite, *numbers, time, lacking))
    headers = ("partition", "suite", "jobs", "steps", "node-hours", "duration", "lacks")
    print_table(headers, rows)


def _lines(checked: CheckedSite, benchmarks: Benchmarks) -> Iterator[str]:
    """Yield what is assumed, what a limit judges, and what is not there, of all partitions."""
    for partition, assumed in {made.partition: made.assumed for made in checked.plans}.items():
        yield from (f"assumed: {partition}: {fact}: {why}" for fact, why in assumed.items())
    for partition, lines in checked.limits.items():
        yield from (f"limit: {partition}: {line}" for line in lines)
    for partition, lacking in checked.refused.items():
        yield from (f"refused: {partition}: {each.line()}" for each in lacking)
    yield from (f"not here: {line}" for line in checked.not_here)
    yield from (f"not known: {line}" for line in checked.unread)
    for site in checked.sites:
        yield from doubts(site, benchmarks)


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
        refused += [plan.suite] if refusing(found) else []
        for each in found:
            suites.setdefault(each.message, []).append(plan.suite)
    for message, names in suites.items():
        yield f"unjudged: {site.partition_name}: {', '.join(names)}: {message}"
    if refused:
        yield f"refused without {setting(ACCEPT)}: {site.partition_name}: {', '.join(refused)}"


def _ask_nodes(checked: CheckedSite, options: Namespace, window_end: datetime | None) -> int:
    """Print a line for each check of nodes, scheduler and BMCs; return 1 if one is bad, else 0."""
    findings: list[Finding] = []
    who = credentials_of(options)
    plans = {made.partition: made for made in checked.plans}
    for site in checked.sites:
        user = site.partition.run_user or this_user().name
        findings += preflight(site, plans[site.partition_name], who, window_end, user)
        findings += checkout_findings(site, kit_folder())
    return print_findings(findings, say)


def _window_end(text: str | None) -> datetime | None:
    """Return the end of the maintenance window; None if none is given.

    Raises:
        BadInput: `text` is not a time with a zone.
    """
    if not text:
        return None
    try:
        end = datetime.fromisoformat(text)
    except ValueError:
        end = None
    if end is None or end.tzinfo is None:
        accepted = "a time with its zone, 2026-12-01T18:00:00Z"
        raise bad_input("--window-ends", "", repr(text), accepted)
    return end


def print_findings(findings: Sequence[Finding], say: Callable[[str], None]) -> int:
    """Print one line per finding; return 1 if one is bad, else 0."""
    for each in findings:
        if each.bad:
            failure = NodeFailure(f"{each.what}: {each.text}", each.outcome)
            note_failed_nodes(dict.fromkeys(each.nodes, failure))
        say(f"{'proofmark: ' if each.bad else ''}{each.outcome}: {each.what}: {each.text}")
    return int(any(each.bad for each in findings))


USES = (ArgumentUse(("--credentials", "--window-ends"), beside=("--nodes",)),)
"""The options that would be ignored beside others."""

COMMANDS = {"check": Command(check, "check -i inventory/nurion", _arguments, uses=USES)}

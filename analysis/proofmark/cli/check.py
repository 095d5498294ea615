"""The commands ``check``, ``cases`` and ``site``: a site, and what can be measured on it.

Without ``--nodes`` ``check`` reads files only. With it, it asks nodes, scheduler and BMCs too.
"""

from __future__ import annotations

import pwd
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from archspec.cpu import TARGETS

from proofmark.cases.loading import schema
from proofmark.cases.suite import Benchmarks
from proofmark.cli.inputs import (
    credentials_of,
    doubts,
    inventory_of,
    kit_benchmarks,
    packages_of_kit,
    place,
    unprovided_at,
)
from proofmark.cli.output import print_json, print_line, print_table
from proofmark.common.errors import (
    BadInput,
    NodeFailure,
    bad_input,
    nearest,
    note_failed_nodes,
    refuse,
)
from proofmark.common.kit import DEFAULT_SUITE, kit_folder, result_folder
from proofmark.common.message import Message
from proofmark.common.printed_command import setting
from proofmark.common.progress_lines import say
from proofmark.common.rights import this_user
from proofmark.common.text import duration
from proofmark.jobs.job_request import extreme_requests, job_mistakes
from proofmark.jobs.launcher import LAUNCHERS
from proofmark.judge.foreseen import ACCEPT, refusing, unjudged_of
from proofmark.machine.bmc.back_end import BACK_ENDS
from proofmark.machine.bmc.https import tls_context
from proofmark.machine.modes.rollout import hosts_of, unprovable_modes
from proofmark.machine.preflight import (
    Finding,
    checkout_findings,
    preflight,
    scheduler_findings,
    scratch_findings,
    unseen,
)
from proofmark.machine.scheduler import SCHEDULERS
from proofmark.machine.scratch_stage import mount_commands
from proofmark.plan.lacking import Available, Lacked, in_words
from proofmark.plan.plan import Plan
from proofmark.plan.validation import Check, CheckedSite, SiteChecks, sites_in, system_mistakes
from proofmark.plan.validation import validate as check_site
from proofmark.site.choice import choose_site, chosen_site
from proofmark.site.extra_vars import MOMENT, moment
from proofmark.site.groups import comments, odd_variables
from proofmark.site.inventory import Site
from proofmark.site.machines import machines_of
from proofmark.software.environments import check_environment
from proofmark.software.provider import check_name

WITHOUT_TARGET = ("loongarch64", "mips64", "s390x", "sw_64")
"""Machines of which archspec knows no processor, as ``uname -m`` names them."""


def check(options: Namespace) -> int:
    """Check a site and its suites; with ``--nodes`` also its nodes, scheduler and BMCs."""
    end = moment(options.window_ends) if options.window_ends else None
    if options.window_ends and end is None:
        raise bad_input("--window-ends", "", repr(options.window_ends), MOMENT)
    inventory, benchmarks = inventory_of(options), kit_benchmarks()
    known: dict[str, Available | None] = {}

    def packages(site: Site) -> Available | None:
        """Return the packages of a partition, whose lock is read once."""
        if site.partition_name not in known:
            known[site.partition_name] = packages_of_kit(site)
        return known[site.partition_name]

    checks = SiteChecks(facts=site_checks(kit_folder()), packages=packages, jobs=job_mistakes)
    suite = options.suite or (DEFAULT_SUITE if options.nodes else None)
    checked = check_site(inventory, options.limit, benchmarks, checks, suite, options.repeats)
    refuse(checked.mistakes or unprovided_at(benchmarks, checked.sites, packages))
    virtual = {site.partition_name for site in checked.sites if site.partition.origin != "measured"}
    shown = [
        (made, missing)
        for made, missing in zip(checked.plans, checked.lacks, strict=True)
        if suite or made.partition in virtual or benchmarks.suite(made.suite).listed
    ]
    _print_costs(shown)
    for line in _lines(checked, benchmarks):
        print_line(line)
    for each in odd_variables(inventory.source):
        print_line(f"not known: {each}")
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
        plan = plans[site.partition_name]
        findings += preflight(site, plan, who, window_end, user)
        findings += scheduler_findings(site, extreme_requests(site, plan), user)
        findings += scratch_findings(site, plan)
        findings += checkout_findings(site, kit_folder())
    return print_findings(findings)


def print_findings(findings: Sequence[Finding]) -> int:
    """Print one line per finding; return 1 if one is bad, else 0."""
    for each in findings:
        if each.bad:
            failure = NodeFailure(f"{each.what}: {each.text}", each.outcome)
            note_failed_nodes(dict.fromkeys(each.nodes, failure))
        say(f"{'proofmark: ' if each.bad else ''}{each.outcome}: {each.what}: {each.text}")
    return int(any(each.bad for each in findings))


def site_checks(kit: Path) -> Mapping[str, Check]:
    """Return the checks by the dotted key of the partition that each of them reads.

    A registry checks each name, also the names of the plug-ins of a site.
    """
    return {
        "node.architecture": _architecture,
        "environment": lambda site: check_environment(
            kit / "environments", site.partition.environment
        ),
        "provision_from": lambda site: check_name(site.partition.provision_from),
        "scheduler": lambda site: SCHEDULERS.get(site.partition.scheduler),
        "launch.launcher": lambda site: _launchers(filter(None, [site.partition.launch.launcher])),
        "launch.environment_of": lambda site: _launchers(site.partition.launch.environment_of),
        "firmware.back_end": lambda site: (
            site.partition.firmware and BACK_ENDS.get(site.partition.firmware.back_end)
        ),
        "firmware.bmc": _bmc_addresses,
        "firmware.ca": _authorities,
        "run_user": _run_user,
        "scratch": lambda site: mount_commands(site.partition.scratch),
    }


def _architecture(site: Site) -> None:
    architecture = site.partition.node.architecture
    if architecture and architecture not in (*TARGETS, *WITHOUT_TARGET):
        found = f"{architecture!r}{nearest(architecture, TARGETS)}"
        raise bad_input("", "", found, f"a name of archspec: {', '.join(sorted(TARGETS))}")


def _launchers(names: Iterable[str]) -> None:
    for name in names:
        LAUNCHERS.get(name)


def _bmc_addresses(site: Site) -> None:
    firmware = site.partition.firmware
    if firmware is None:
        return
    try:
        BACK_ENDS.get(firmware.back_end)
    except BadInput:
        return  # another check reports it
    hosts_of(site, firmware)


def _authorities(site: Site) -> None:
    """Read the authorities of the BMCs. Emulated BMCs write theirs when they start."""
    firmware = site.partition.firmware
    if firmware is None or firmware.ca is None or site.partition.origin == "emulated":
        return
    try:
        tls_context(firmware.ca, verify=firmware.verify_tls)
    except BadInput as error:
        (mistake,) = error.mistakes
        found = f"{firmware.ca!r}, {mistake.found}"
        raise bad_input("", "", found, mistake.accepted) from None


def _run_user(site: Site) -> None:
    """Find the user on this machine, where the plays run commands as this user."""
    name = site.partition.run_user
    if name is None:
        return
    try:
        pwd.getpwnam(name)
    except KeyError:
        users = [entry.pw_name for entry in pwd.getpwall() if entry.pw_uid != 0]
        found = f"{name!r}, no user of this machine{nearest(name, users)}"
        raise bad_input("", "", found, "a user of this machine and of all nodes") from None


def cases(options: Namespace) -> int:
    """List cases and the suites they run in."""
    if options.schema:
        print_json(schema())
        return 0
    benchmarks = kit_benchmarks()
    if options.check:
        sites, wrong = sites_in(kit_folder() / "inventory")
        mistakes = unprovided_at(benchmarks, sites)
        refuse([*system_mistakes(benchmarks, sites, wrong), *mistakes])
        return 0
    members, listed = benchmarks.cases, {*benchmarks.listed(), options.suite}
    if options.suite:
        benchmarks.suite(options.suite)
        members = benchmarks.members(options.suite)
    rows = []
    for name, case in members.items():
        suites = " ".join(suite for suite in case.suites if suite in listed) or "–"
        metrics = ", ".join(list(case.metrics)[:4]) + (" …" if len(case.metrics) > 4 else "")
        rows.append((name, suites, metrics, case.title))
    print_table(("case", "suites", "metrics", "title"), rows)
    return 0


def site(options: Namespace) -> int:
    """Choose the site of commands without ``-i``, and print it."""
    kit = kit_folder()
    if options.site:
        given = Path(options.site)
        choose_site(kit, kit / "inventory" / given if len(given.parts) == 1 else given)
    print_line(f"site: {chosen_site(kit).name} ({chosen_site(kit)})")
    return 0

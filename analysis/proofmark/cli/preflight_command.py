"""The command ``preflight``."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from datetime import datetime

from proofmark.cli.bmc_credentials import credentials_argument, credentials_of
from proofmark.cli.command import Command
from proofmark.cli.command_inputs import (
    kit_benchmarks,
    packages_of_kit,
    repeats_argument,
    suite_argument,
)
from proofmark.cli.site import inventory_of, limit_argument, site_argument
from proofmark.common.errors import bad_input
from proofmark.common.failed_nodes import note_failed_nodes
from proofmark.common.kit import kit_folder
from proofmark.common.progress_lines import say
from proofmark.machine.checkout import checkout_findings
from proofmark.machine.preflight import Finding, preflight
from proofmark.machine.scheduler import user_name
from proofmark.plan.expansion import make_plan
from proofmark.plan.lacking import refuse_lacking
from proofmark.site.inventory import load_site
from proofmark.site.machines import machines_of


def arguments(parser: ArgumentParser) -> None:
    """Add the command's arguments to `parser`."""
    site_argument(parser, "the site")
    limit_argument(parser, required=True)
    suite_argument(parser)
    repeats_argument(parser)
    credentials_argument(parser)
    parser.add_argument("--window-ends", metavar="TIME", help="end of the maintenance window")


def run(options: Namespace) -> int:
    """Check the requirements of an acceptance; change nothing."""
    site = load_site(inventory_of(options), options.limit)
    machines = machines_of(site)[0]
    benchmarks = kit_benchmarks()
    made = make_plan(benchmarks, options.suite, site, machines, options.repeats)
    refuse_lacking(made, benchmarks, site, machines, packages_of_kit)
    user = site.partition.run_user or user_name()
    who, end = credentials_of(options), window_end(options)
    findings = preflight(site, made, who, end, user)
    return print_findings([*findings, *checkout_findings(site, kit_folder())], say)


def window_end(options: Namespace) -> datetime | None:
    """Return the end of the maintenance window, or None.

    Raises:
        BadInput: the option is not a time with a zone.
    """
    if not options.window_ends:
        return None
    try:
        end = datetime.fromisoformat(options.window_ends)
    except ValueError:
        end = None
    if end is None or end.tzinfo is None:
        accepted = "a time with its zone, 2026-12-01T18:00:00Z"
        raise bad_input("--window-ends", "", repr(options.window_ends), accepted)
    return end


def print_findings(findings: Sequence[Finding], say: Callable[[str], None]) -> int:
    """Print one line per finding; return 1 if one is bad, else 0."""
    for each in findings:
        if each.bad:
            reason = f"{each.outcome}: {each.what}: {each.text}"
            note_failed_nodes(dict.fromkeys(each.nodes, reason))
        say(f"{'proofmark: ' if each.bad else ''}{each.outcome}: {each.what}: {each.text}")
    return int(any(each.bad for each in findings))


COMMANDS = {
    "preflight": Command(
        run,
        "preflight -i inventory/nurion -l knl --suite p1 --window-ends 2026-12-01T18:00:00Z",
        arguments,
    )
}

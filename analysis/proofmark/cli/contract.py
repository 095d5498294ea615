"""The command ``contract``: it checks and prints the contract of a site, and waives its items."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime
from pathlib import Path

from proofmark.cli.command import Command, Rights, Words, complete, verb_argument
from proofmark.cli.command_inputs import kit_benchmarks, packages_of_kit
from proofmark.cli.output import print_line, print_table
from proofmark.cli.site import inventory_of, limit_argument, site_argument
from proofmark.common.errors import BadInput, InputError, bad_input
from proofmark.plan.planned_items import planned_items
from proofmark.plan.validation import SiteChecks
from proofmark.plan.validation import validate as check_site
from proofmark.runs.checksums import is_signed
from proofmark.runs.owner import as_owner
from proofmark.runs.run_names import open_names
from proofmark.runs.waivers import Waiver, add_waiver, check, signed
from proofmark.site.contract_document import CONTRACT, Contract, ContractItem, read_contract
from proofmark.site.inventory import Inventory


def arguments(parser: ArgumentParser) -> None:
    """Add the arguments of ``proofmark contract`` to `parser`."""
    verb_argument(parser, VERBS)
    site_argument(parser, "the site")
    limit_argument(parser, "a partition (default: all)", default="compute")
    run = parser.add_argument("--run", type=Path, metavar="RUN", help="waive: the run's folder")
    complete(run, Words.RUN)
    parser.add_argument("--item", default="", help="waive: the number of the item")
    parser.add_argument("--by", default="", help="waive: the signer, as contract.yml names it")
    parser.add_argument("--reason", default="", help="waive: why the item is waived")
    parser.add_argument("--key", type=Path, metavar="FILE", help="waive: private ssh key")


def contract(options: Namespace) -> int:
    """Run the verb of the command line."""
    inventory = inventory_of(options)
    document = read_contract(inventory.folder)
    if document is None:
        raise bad_input(inventory.folder / CONTRACT, "", "no such file", "the contract of the site")
    VERBS[options.verb](options, inventory, document)
    return 0


def _check(options: Namespace, inventory: Inventory, document: Contract) -> None:
    """Print the suites that measure each item; refuse items that no suite can judge."""
    from proofmark.jobs.site_check import job_mistakes

    benchmarks = kit_benchmarks()
    checks = SiteChecks(facts={}, packages=packages_of_kit, jobs=job_mistakes)
    checked = check_site(inventory, options.limit, benchmarks, checks)
    planned = [*planned_items(document, checked.plans, benchmarks)]
    places = {item.number: place for place, item in enumerate(document.items)}
    mistakes = [
        InputError(
            f"{inventory.folder / CONTRACT}",
            f"items.{places[each.item.number]}.runs",
            f"{each.item.runs_needed} repeats on {each.partition}",
            f"at most {max(each.repeats.values())}, or more repeats: -e repeats=N",
        )
        for each in planned
        if each.repeats and each.too_few
    ]
    if mistakes or checked.mistakes:
        raise BadInput(*checked.mistakes, *mistakes)
    rows = [
        (
            each.item.number,
            each.partition,
            each.item.phase,
            f"{each.item.case} {each.item.metric}",
            limit_text(each.item),
            ", ".join(f"{suite} ({n})" for suite, n in each.repeats.items()) or "–",
        )
        for each in planned
    ]
    print_table(("item", "partition", "phase", "figure", "limit", "suites (repeats)"), rows)
    print_line(f"{len(document.items)} items: each selects planned figures")


def _show(_: Namespace, __: Inventory, document: Contract) -> None:
    """Print the parties and the items."""
    print_line(document.title)
    for role, name in document.parties.items():
        print_line(f"{role}: {name}")
    rows = [
        (item.number, item.phase, item.severity, item.text, limit_text(item), _rule(item))
        for item in document.items
    ]
    print_table(("item", "phase", "severity", "text", "limit", "rule"), rows)


def _waive(options: Namespace, inventory: Inventory, document: Contract) -> None:
    """Waive an item for a run, with the signature of a signer of the contract."""
    if not options.run or not options.key:
        raise bad_input(
            "waive", "", "no --run or no --key", "--run RUN --item N --by NAME --key FILE"
        )
    run = open_names(options.run)
    if run.names.site != (site := inventory.folder.name):
        raise bad_input("-i", "", f"the site {site}", f"{run.names.site}, the site of the run")
    folder = run.folder
    with as_owner(folder):
        closed = is_signed(folder)
    if closed:
        raise bad_input("--run", "", f"{folder.name}: signed", "a run that is not signed yet")
    stated = {"item": options.item, "by": options.by, "reason": options.reason}
    if empty := [name for name, text in stated.items() if not text.strip()]:
        raise bad_input(f"--{empty[0]}", "", "nothing", "a text")
    waiver = signed(Waiver(**stated, date=datetime.now(UTC).date()), folder.name, options.key)
    check(waiver, folder.name, document, "--item, --by and --key")
    with as_owner(folder):
        add_waiver(run.files, waiver)
    print_line(f"waived: item {waiver.item} by {waiver.by} on {waiver.date}: {waiver.reason}")


def limit_text(item: ContractItem) -> str:
    """Return the accepted values of an item: ``≥ 320 GB/s``."""
    against = item.against
    of = item.rule or (f"{against.case or item.case} {against.metric}" if against else "")
    unit = f" × {of}" if of else f" {item.unit or ''}".rstrip()
    bounds = (("≥", item.at_least), ("≤", item.at_most))
    return ", ".join(
        f"{sign} {bound * (item.value or 1):g}{unit}" for sign, bound in bounds if bound is not None
    )


def _rule(item: ContractItem) -> str:
    """Return the rule of an item: ``median of 5, on all nodes, scatter ≤ 3 % over 10``."""
    scatter = item.scatter
    return ", ".join(
        [
            f"{item.of} of {item.runs}" if item.runs > 1 else f"{item.of} of the repeats",
            "all nodes" if item.nodes == 1 else f"{100 * item.nodes:g} % of the nodes",
            *([f"scatter ≤ {scatter.cov_percent:g} % over {scatter.runs}"] if scatter else []),
        ]
    )


VERBS = {"check": _check, "show": _show, "waive": _waive}

COMMANDS = {
    "contract": Command(
        contract,
        "contract check -i inventory/example-epyc",
        arguments,
        rights=Rights.OF_ROOT,
        traced=False,
    )
}

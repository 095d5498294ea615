"""The command ``acceptance``: the contract of a site, and its judgement by the sealed runs."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from proofmark.cli.command import (
    ArgumentUse,
    Command,
    Words,
    complete,
    language_argument,
    verb_argument,
)
from proofmark.cli.command_inputs import kit_benchmarks, packages_of_kit, runs_folder_argument
from proofmark.cli.evidence import evidence_of
from proofmark.cli.output import print_line, print_table
from proofmark.cli.site import inventory_of, limit_argument, site_argument
from proofmark.common.errors import BadInput, InputError, bad_input
from proofmark.common.printed_command import setting
from proofmark.common.text import one_line
from proofmark.common.translation import in_language
from proofmark.plan.kinds import added_kinds
from proofmark.plan.selection import planned_items
from proofmark.plan.validation import SiteChecks
from proofmark.plan.validation import validate as check_site
from proofmark.report.words import item_text
from proofmark.runs.run import site_of
from proofmark.runs.run_files import AcceptanceFiles
from proofmark.runs.waivers import Waiver, add_waiver, check, digest_of, signed
from proofmark.site.contract_document import CONTRACT, CheckItem, Contract, Item, read_contract
from proofmark.site.groups import COMPUTE
from proofmark.site.inventory import Inventory


def arguments(parser: ArgumentParser) -> None:
    """Add the arguments of ``proofmark acceptance`` to `parser`."""
    verb_argument(parser, VERBS)
    site_argument(parser, "the site")
    limit_argument(parser, "a partition (default: all)", default=COMPUTE)
    note = "waive: the run; judge: only these runs (default: all sealed ones with this contract)"
    runs = parser.add_argument("--run", nargs="+", type=Path, default=[], metavar="RUN", help=note)
    complete(runs, Words.RUN)
    runs_folder_argument(parser)
    page = AcceptanceFiles.page.path
    note = f"judge, measure: the folder of {page} (default: acceptance-SITE beside the runs)"
    parser.add_argument("-o", "--output", type=Path, metavar="FOLDER", help=note)
    parser.add_argument("--json", action="store_true", help="judge, measure: print JSON")
    language_argument(parser)
    parser.add_argument("--item", default="", help="waive: the number of the item")
    parser.add_argument("--by", default="", help="waive: the signer, as contract.yml names it")
    parser.add_argument("--reason", default="", help="waive: why the item is waived")
    parser.add_argument("--key", type=Path, metavar="FILE", help="waive, sign: private ssh key")
    note = "measure: preview each suite, and write no page"
    parser.add_argument("--check", action="store_true", help=note)
    note = "measure: an argument of ansible-playbook, without a suite (again for each)"
    parser.add_argument("--playbook", action="append", default=[], metavar="WORD", help=note)


def acceptance(options: Namespace) -> int:
    """Check or print the contract of a site, judge its sealed runs by it, waive an item."""
    inventory = inventory_of(options)
    document = read_contract(inventory.folder)
    if document is None:
        raise bad_input(inventory.folder / CONTRACT, "", "no such file", "the contract of the site")
    return VERBS[options.verb](options, inventory, document)


def _check(options: Namespace, inventory: Inventory, document: Contract) -> int:
    """Print the suites that measure each item; refuse items that no suite can judge."""
    # They import numerics and plug-ins, which the other verbs need not.
    from proofmark.jobs.job_request import job_mistakes

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
            f"at most {max(each.repeats.values())}, or more repeats: {setting('repeats', 'N')}",
        )
        for each in planned
        if each.repeats and each.too_few
    ]
    for item in document.limits.values():
        for kind in added_kinds():
            if never := kind.refused(item, document):
                place = f"items.{places[item.number]}.value"
                mistakes.append(InputError(f"{inventory.folder / CONTRACT}", place, *never))
    if mistakes or checked.mistakes:
        raise BadInput(*checked.mistakes, *mistakes)
    rows = [
        (
            each.item.number,
            each.partition,
            each.item.phase,
            f"{each.item.case} {each.item.metric}".strip(),
            item_text(each.item),
            "every suite"
            if isinstance(each.item, CheckItem)
            else ", ".join(f"{suite} ({n})" for suite, n in each.repeats.items()) or "–",
        )
        for each in planned
    ]
    print_table(("item", "partition", "phase", "figure", "limit", "suites (repeats)"), rows)
    print_line(f"{len(document.items)} items: each selects planned figures")
    return 0


def _show(_: Namespace, __: Inventory, document: Contract) -> int:
    """Print the parties and the items."""
    print_line(document.title)
    for role, name in document.parties.items():
        print_line(f"{role}: {name}")
    rows = [
        (item.number, item.phase, item.severity, item.text, item_text(item), _rule(item))
        for item in document.items
    ]
    print_table(("item", "phase", "severity", "text", "limit", "rule"), rows)
    return 0


def _waive(options: Namespace, _: Inventory, document: Contract) -> int:
    """Waive an item that a run misses, with the signature of a signer of the contract."""
    from proofmark.judge.judging import judge_run  # it judges; the other verbs need it not

    if len(options.run) != 1 or not options.key:
        accepted = "--run RUN --item N --by NAME --key FILE"
        raise bad_input("waive", "", "not one --run, or no --key", accepted)
    stated = {"item": options.item, "by": options.by, "reason": one_line(options.reason)}
    if empty := [name for name, text in stated.items() if not text.strip()]:
        raise bad_input(f"--{empty[0]}", "", "nothing", "a text")
    numbers = [item.number for item in document.items]
    if options.item not in numbers:
        raise bad_input("--item", "", options.item, f"an item: {', '.join(numbers)}")
    run = evidence_of(options.run[0])
    contract, seal = site_of(run).contract, run.seal
    if contract is None or seal is None or digest_of(contract) != digest_of(document):
        found = "another contract than that of the run, which was sealed at its start"
        raise bad_input("-i", CONTRACT, found, "the site with the contract of the run")
    verdict = judge_run(run)
    named = (each for each in verdict.agreed if each.item and each.item.number == options.item)
    outcome = next(named, None)
    if outcome is None or outcome.outcome == "PASS" or outcome.waiver:
        found = outcome.outcome if outcome and not outcome.waiver else "waived, or not of this run"
        raise bad_input("--item", "", f"{options.item}: {found}", "an item that the run misses")
    waiver = Waiver(
        **stated,
        run=run.id,
        contract=digest_of(contract),
        evidence=seal.digest,
        outcome=outcome.outcome,
        worst=outcome.worst_value,
        date=datetime.now(UTC).date(),
    )
    waiver = signed(waiver, options.key)
    check(waiver, document, "--by and --key")
    add_waiver(run.products, waiver)
    print_line(
        f"waived: item {waiver.item}, {waiver.outcome}, by {waiver.by} on {waiver.date}: "
        f"{waiver.reason}"
    )
    return 0


def _judge(options: Namespace, inventory: Inventory, document: Contract) -> int:
    """Judge the acceptance by the sealed runs of the site, and write its page."""
    from proofmark.cli.judged_acceptance import judge_acceptance, question  # judges and pages

    with in_language(options.language):
        return judge_acceptance(options, question(options, inventory, document))


def _sign(options: Namespace, inventory: Inventory, document: Contract) -> int:
    """Sign the page of the acceptance with the data that it shows."""
    from proofmark.cli.judged_acceptance import question, sign_acceptance

    if not options.key:
        raise bad_input("sign", "", "no --key", "--key FILE")
    with in_language(options.language):
        return sign_acceptance(options, question(options, inventory, document))


def _measure(options: Namespace, inventory: Inventory, document: Contract) -> int:
    """Run the suites that the contract still needs, one after the other, then judge."""
    from proofmark.cli.judged_acceptance import measure_acceptance, question

    if not options.playbook:
        accepted = "`ansible-playbook acceptance.yml -i SITE -l PARTITION`, which uses this verb"
        raise bad_input("measure", "", "no --playbook", accepted)
    with in_language(options.language):
        return measure_acceptance(options, question(options, inventory, document))


def _rule(item: Item) -> str:
    """Return the rule of an item: ``median of 5, on all nodes, scatter ≤ 3 % over 10``."""
    if isinstance(item, CheckItem):
        return "all nodes" if item.nodes == 1 else f"{100 * item.nodes:g} % of the nodes"
    scatter = item.scatter
    return ", ".join(
        [
            f"{item.of} of {item.runs}" if item.runs > 1 else f"{item.of} of the repeats",
            "all nodes" if item.nodes == 1 else f"{100 * item.nodes:g} % of the nodes",
            *([f"scatter ≤ {scatter.cov_percent:g} % over {scatter.runs}"] if scatter else []),
        ]
    )


VERBS: Mapping[str, Callable[[Namespace, Inventory, Contract], int]] = {
    "check": _check,
    "judge": _judge,
    "measure": _measure,
    "show": _show,
    "sign": _sign,
    "waive": _waive,
}

USES = (
    ArgumentUse(("--run",), beside=("waive", "judge", "sign")),
    ArgumentUse(("--item", "--by", "--reason"), beside=("waive",)),
    ArgumentUse(("--key",), beside=("waive", "sign")),
    ArgumentUse(("--limit",), beside=("check", "judge", "measure", "sign")),
    ArgumentUse(("--runs", "--language"), beside=("judge", "measure", "sign")),
    ArgumentUse(("--output", "--json"), beside=("judge", "measure")),
    ArgumentUse(("--playbook", "--check"), beside=("measure",)),
)
"""The options that would be ignored beside others."""

COMMANDS = {
    "acceptance": Command(
        acceptance,
        "acceptance judge -i inventory/example-epyc",
        arguments,
        traced=False,
        uses=USES,
    )
}

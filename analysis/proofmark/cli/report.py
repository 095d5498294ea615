"""The commands ``report`` and ``export``."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from proofmark.cli.command import (
    ArgumentUse,
    Command,
    Words,
    complete,
    language_argument,
    run_argument,
)
from proofmark.cli.evidence import evidence_of, run_to_show
from proofmark.cli.output import print_json, print_line
from proofmark.common.errors import NodeFailure, bad_input, note_failed_nodes
from proofmark.common.message import localized
from proofmark.common.printed_command import PrintedCommand
from proofmark.common.progress_lines import say
from proofmark.common.translation import in_language
from proofmark.judge.ending import ending, failed_nodes
from proofmark.judge.judging import read_and_judge
from proofmark.records.stored_readings import stored_or_read
from proofmark.report.exports import EXPORTS
from proofmark.report.exports import export as export_run
from proofmark.report.products import write_products
from proofmark.runs.play_variables import acceptance_command, not_in
from proofmark.runs.sealed_runs import keep, sealed_of


def _report_arguments(parser: ArgumentParser) -> None:
    run_argument(parser, optional=True)
    parser.add_argument(
        "--json",
        action="store_true",
        help="print the verdict without its results as JSON, and its last three lines on stderr",
    )
    parser.add_argument(
        "--strict", action="store_true", help="with --json: exit_code is 4 if anything is UNJUDGED"
    )
    note = "the inventory that the next command names (default: inventory/ and the site's name)"
    complete(parser.add_argument("-i", "--inventory", default="", help=note), Words.SITE)
    language_argument(parser)


def report(options: Namespace) -> int:
    """Write records, verdict and report of a run; exit code 0 for every verdict."""
    with in_language(options.language):
        return _report(options)


def _report(options: Namespace) -> int:
    run = evidence_of(options.folder)
    written = write_products(run)
    answer, path = written.verdict, written.page
    keep(sealed_of(run, options.folder, answer.headline().word))
    if not options.json:
        print_line(f"{path}")
        return 0
    code = answer.exit_code(strict=options.strict)
    if code:
        reasons = failed_nodes(answer, run.plan)
        note_failed_nodes({node: NodeFailure(reason) for node, reason in reasons.items()})
    again = PrintedCommand()
    if not run.plan.imported:
        again = acceptance_command(run, written.run_data.site, inventory=options.inventory)
    if missing := not_in(again):
        say(localized(missing))
    here = _from_here(options.folder.resolve())
    lines = ending(answer, f"{path}", here, again=again, strict=options.strict)
    meaning = answer.headline(strict=options.strict).word
    print_json(
        {
            **answer.head(),
            "exit_code": code,
            "meaning": meaning,
            "lines": lines,
        }
    )
    for line in lines:  # the playbook prints stderr
        say(line)
    return 0


def _from_here(folder: Path) -> str:
    """Return the path of `folder` from the current folder, if `folder` is below it."""
    here = Path.cwd()
    return f"{folder.relative_to(here) if folder.is_relative_to(here) else folder}"


def _export_arguments(parser: ArgumentParser) -> None:
    run_argument(parser, optional=True)
    names = EXPORTS.names()
    formats = "\n".join(f"  {name:<12}{EXPORTS.get(name).content}" for name in names)
    parser.description = f"{parser.description}\n\nformats:\n{formats}"
    name = parser.add_argument("--format", required=True, help="one of the formats above")
    complete(name, names)
    parser.add_argument("-o", "--output", required=True, type=Path, metavar="FOLDER")


def export(options: Namespace) -> int:
    """Write a run in the format of another program."""
    EXPORTS.get(options.format)  # an unknown format costs no judgement
    run = run_to_show(options.folder)
    records, answer = read_and_judge(run, stored_or_read)
    written = export_run(options.format, run, records, answer, options.output)
    for path in written:
        print_line(f"{path}")
    if not written:
        raise bad_input(
            "--format",
            "",
            f"{options.format}: {run.id} has no results of it",
            "a run with such results",
        )
    return 0


USES = (ArgumentUse(("--strict", "--inventory"), beside=("--json",)),)
"""The options that would be ignored beside others."""

COMMANDS = {
    "report": Command(
        report,
        "report runs/latest-local",
        _report_arguments,
        uses=USES,
    ),
    "export": Command(export, "export runs/latest-local --format nhc -o nhc", _export_arguments),
}

"""The command ``cases``."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from proofmark.cases.loading import schema
from proofmark.cli.command import ArgumentUse, Command
from proofmark.cli.command_inputs import kit_benchmarks, suite_argument
from proofmark.cli.output import print_json, print_table
from proofmark.common.errors import BadInput
from proofmark.common.kit import kit_folder
from proofmark.plan.validation import system_mistakes


def _cases_arguments(parser: ArgumentParser) -> None:
    suite_argument(parser, default=None)
    parser.add_argument("--check", action="store_true", help="check the files and print nothing")
    parser.add_argument(
        "--schema", action="store_true", help="print the JSON Schema of a case file"
    )


def cases(options: Namespace) -> int:
    """List cases and the suites they run in."""
    if options.schema:
        print_json(schema())
        return 0
    benchmarks = kit_benchmarks()
    if options.check:
        if mistakes := system_mistakes(benchmarks, kit_folder() / "inventory"):
            raise BadInput(*mistakes)
        return 0
    members, listed = benchmarks.cases, {*benchmarks.listed(), options.suite}
    if options.suite:
        benchmarks.suite(options.suite)
        members = benchmarks.members(options.suite)
    rows = []
    for name, case in members.items():
        metrics = ", ".join(list(case.metrics)[:4]) + (" …" if len(case.metrics) > 4 else "")
        rows.append(
            (
                name,
                " ".join(suite for suite in case.suites if suite in listed) or "–",
                metrics,
                case.title,
            )
        )
    print_table(("case", "suites", "metrics", "title"), rows)
    return 0


USES = (
    ArgumentUse(("--suite",), without=("--check", "--schema")),
    ArgumentUse(("--check",), without=("--schema",)),
)
"""The options that would be ignored beside others."""

COMMANDS = {"cases": Command(cases, "cases --suite quick", _cases_arguments, uses=USES)}

"""The commands about cases: ``cases`` and ``read``."""

from __future__ import annotations

import csv
import json
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from proofmark.cases.loading import schema
from proofmark.cases.reader.command_line import Request
from proofmark.cases.reader.engine import program_runs, readings_of
from proofmark.cases.reader.output_text import output_text
from proofmark.cli.command import Command, Words, complete
from proofmark.cli.command_inputs import kit_benchmarks, suite_argument
from proofmark.cli.output import print_json, print_table
from proofmark.common.errors import BadInput, bad_input
from proofmark.common.files import read_bytes
from proofmark.common.kit import kit_folder
from proofmark.common.progress_lines import say
from proofmark.common.text import csv_cell
from proofmark.plan.published import system_mistakes

INVALID = 2


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
    members = benchmarks.cases
    if options.suite:
        benchmarks.suite(options.suite)
        members = benchmarks.members(options.suite)
    rows = []
    for name, case in members.items():
        metrics = ", ".join(list(case.metrics)[:4]) + (" …" if len(case.metrics) > 4 else "")
        rows.append((name, " ".join(case.suites) or "–", metrics, case.title))
    print_table(("case", "suites", "metrics", "title"), rows)
    return 0


def _read_arguments(parser: ArgumentParser) -> None:
    complete(parser.add_argument("case", metavar="CASE"), Words.CASE)
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path)
    parser.add_argument("--format", choices=("table", "csv", "json"), default="table")
    parser.add_argument(
        "--arguments",
        metavar="WORDS",
        help="the arguments that the program was started with, as '-m 1:4096'",
    )


def read(options: Namespace) -> int:
    """Print the readings of a case in output files."""
    case = kit_benchmarks().case(options.case)
    spec = case.reader()
    request = None if options.arguments is None else Request(options.arguments.split())
    several = len(options.files) > 1
    rows: list[dict[str, Any]] = []
    for path in options.files:
        try:
            text = output_text(read_bytes(path.resolve()))
        except OSError as error:
            raise bad_input(path, "", error.strerror or "unreadable", "a readable file") from None
        runs = program_runs(spec, text, request)
        if any(run.unproven for run in runs):
            say(
                f"{path}: the command line is not known, so missing last rows are not found; "
                "--arguments states it"
            )
        for note in dict.fromkeys(note for run in runs for note in run.notes):
            say(f"{path}: {note}")
        file = {"file": str(path)} if several else {}
        rows += [{**file, **reading._asdict()} for reading in readings_of(spec, options.case, runs)]
    if options.format == "json":
        print_json([{**row, "parameters": dict(row["parameters"])} for row in rows])
    elif options.format == "csv":
        flat = [
            {
                name: csv_cell(value) if isinstance(value, str) else value
                for name, value in row.items()
            }
            | {"parameters": json.dumps(dict(row["parameters"]))}
            for row in rows
        ]
        writer = csv.DictWriter(sys.stdout, list(flat[0]) if flat else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows(flat)
    else:
        lines = []
        for row in rows:
            parameters = " ".join(f"{key}={value}" for key, value in row["parameters"].items())
            value = "–" if row["value"] is None else f"{row['value']:g}"
            word = "" if row["valid"] else f"INVALID: {row['reason']}"
            names = (row["file"],) if several else ()
            figure = (row["benchmark"], row["metric"], value, row["unit"], parameters, word)
            lines.append((*names, *figure))
        titles = ("benchmark", "metric", "value", "unit", "parameters", "validity")
        nothing = "the output has no figure of the case"
        print_table(("file", *titles) if several else titles, lines, nothing)
    return 0 if rows and all(row["valid"] for row in rows) else INVALID


COMMANDS = {
    "cases": Command(cases, "cases --suite quick", _cases_arguments),
    "read": Command(read, "read stream out1.txt out2.txt", _read_arguments),
}

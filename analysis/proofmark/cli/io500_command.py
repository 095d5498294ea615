"""The command ``io500``: submissions to IO500 with their scores, computed again."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path, PurePosixPath

from proofmark.cases.io500 import (
    Submission,
    findings,
    read_submission,
    score_of_output,
    scores,
    submission_folders,
)
from proofmark.cases.reader.output_text import output_text
from proofmark.cases.suite import Benchmarks
from proofmark.cli.cases import INVALID
from proofmark.cli.command import Command
from proofmark.cli.command_inputs import kit_benchmarks
from proofmark.cli.output import print_table
from proofmark.common.errors import bad_input
from proofmark.runs.output_folder import OutputFolder, opened


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="of one or more submissions")


def io500(options: Namespace) -> int:
    """Print the scores of each submission below a folder, and the rules that it breaks."""
    with opened(options.folder) as outputs:
        return INVALID if _any_broken(outputs) else 0


def _any_broken(outputs: OutputFolder) -> bool:
    """Print the submissions among `outputs`; return whether one of them breaks a rule."""
    found = submission_folders(outputs.paths)
    if not found:
        accepted = "a folder with result.txt or result_summary.txt, and outputs of IOR and mdtest"
        raise bad_input("FOLDER", "", f"{outputs.folder}: no submission", accepted)
    benchmarks, broken = kit_benchmarks(), False
    for folder, paths in found.items():
        print(f"{outputs.folder / folder}:")
        try:
            submission = read_submission(_texts(outputs, paths))
        except (OSError, ValueError) as error:
            print(f"  {error}")
            broken = True
            continue
        print_table(
            ("figure", "printed", "computed", "unit", "seconds"), _rows(submission, benchmarks)
        )
        for message in (said := findings(submission, benchmarks)):
            print(f"  {message}")
        broken = broken or bool(said)
    return broken


def _texts(outputs: OutputFolder, paths: list[str]) -> dict[str, str]:
    wanted = [path for path in paths if path.endswith((".txt", ".ini"))]
    return {PurePosixPath(path).name: output_text(outputs.read(path)) for path in wanted}


def _rows(submission: Submission, benchmarks: Benchmarks) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for name, phase in submission.phases.items():
        unit = "GiB/s" if name.startswith("ior") else "kIOPS"
        computed = score_of_output(submission, name, benchmarks)
        rows.append((name, f"{phase.score:g}", _number(computed), unit, f"{phase.seconds:g}"))
    units = {"BW": "GiB/s", "MD": "kIOPS", "SCORE": ""}
    for name, value in scores(submission).items():
        rows.append((name, _number(submission.printed.get(name)), _number(value), units[name], ""))
    return rows


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


COMMANDS = {"io500": Command(io500, "io500 submissions/2026-isc", _arguments)}

"""The command ``io500``: submissions to IO500 with their scores, computed again."""

from __future__ import annotations

import math
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path, PurePosixPath

from proofmark.cases.io500 import (
    RESULTS,
    Submission,
    findings,
    phase_of,
    read_submission,
    score_of_output,
    scores,
    submission_folders,
)
from proofmark.cases.reader.output_text import output_text
from proofmark.cases.suite import Benchmarks
from proofmark.cli.adopt import INVALID
from proofmark.cli.command import Command
from proofmark.cli.command_inputs import kit_benchmarks
from proofmark.cli.output import print_line, print_table
from proofmark.common.errors import BadInput, InputError, bad_input
from proofmark.runs.output_folder import OutputFolder, opened

_ACCEPTED = "a folder with result.txt or result_summary.txt, and outputs of IOR and mdtest"


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="of one or more submissions")


def io500(options: Namespace) -> int:
    """Print the scores of each submission below a folder, and the rules that it breaks."""
    with opened(options.folder) as outputs:
        return INVALID if _any_broken(outputs) else 0


def _any_broken(outputs: OutputFolder) -> bool:
    """Print the submissions among `outputs`; return whether one of them breaks a rule.

    Raises:
        BadInput: a submission cannot be read, or has a number that is missing or out of range.
    """
    found = submission_folders(outputs.paths)
    if not found:
        raise bad_input("FOLDER", "", f"{outputs.folder}: no submission", _ACCEPTED)
    benchmarks, broken = kit_benchmarks(), False
    mistakes: list[InputError] = []
    for folder, paths in found.items():
        place = outputs.folder / folder
        print_line(f"{place}:")
        try:
            submission = read_submission(_texts(outputs, paths))
        except (OSError, ValueError) as error:
            mistakes.append(InputError(f"{place}", "", str(error), _ACCEPTED))
            continue
        print_table(
            ("figure", "printed", "computed", "unit", "seconds"), _rows(submission, benchmarks)
        )
        for message in (said := findings(submission, benchmarks)):
            print_line(message, indent="  ")
        broken = broken or bool(said)
        mistakes += (replace(each, file=f"{place / each.file}") for each in submission.mistakes)
    if mistakes:
        raise BadInput(*mistakes)
    return broken


def _texts(outputs: OutputFolder, paths: list[str]) -> dict[str, str]:
    names = {path: PurePosixPath(path).name for path in paths}
    return {
        name: output_text(outputs.read(path))
        for path, name in names.items()
        if name in RESULTS or phase_of(name) or name.endswith(".ini")
    }


def _rows(submission: Submission, benchmarks: Benchmarks) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for name, phase in submission.phases.items():
        unit = "GiB/s" if name.startswith("ior") else "kIOPS"
        computed = score_of_output(submission, name, benchmarks)
        seconds = _number(phase.seconds)
        rows.append((name, _number(phase.score), _number(computed), unit, seconds))
    units, means = {"BW": "GiB/s", "MD": "kIOPS", "SCORE": ""}, scores(submission)
    for name, value in submission.printed.items():
        rows.append((name, _number(value), _number(means.get(name)), units[name], ""))
    return rows


def _number(value: float | None) -> str:
    return "–" if value is None or math.isnan(value) else f"{value:g}"


COMMANDS = {"io500": Command(io500, "io500 submissions/2026-isc", _arguments)}

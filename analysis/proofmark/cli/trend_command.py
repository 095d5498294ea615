"""The command ``trend``."""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path

from proofmark.cases.reference import Metric
from proofmark.cases.telemetry import metrics_of
from proofmark.cli.command import Command, language_argument
from proofmark.cli.output import print_line
from proofmark.common.errors import BadInput, bad_input
from proofmark.common.files import write_whole
from proofmark.common.message import Message
from proofmark.common.parallel import gc_paused, parallel_map
from proofmark.common.progress_lines import say
from proofmark.common.translation import in_language
from proofmark.judge.trend.past_run import LeftOut, PastFigure, PastRun, read_past_run, run_folders
from proofmark.judge.trend.trend import trends
from proofmark.report.trend.trend_page import trend_page
from proofmark.runs.run import benchmarks_in

MANY = 64
"""From this number of runs on, they are read by several processes."""
PROGRESS_S = 2.0
"""Seconds between two lines about the progress."""
PAGE = "trend.html"


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "folders", metavar="RUNS", nargs="+", type=Path, help="a folder of runs, or a run"
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help=f"the page (default: {PAGE} in the first folder of RUNS)",
    )
    language_argument(parser)


def trend(options: Namespace) -> int:
    """Write one page with the figures of all runs over time, and print its path."""
    with in_language(options.language):
        return _trend(options)


def _trend(options: Namespace) -> int:
    for folder in options.folders:
        if not folder.is_dir():
            raise bad_input("RUNS", "", f"{folder}: no such folder", "a folder of runs")
    runs, left_out = _read(run_folders(options.folders))
    if not runs:
        reasons = "; ".join(f"{each.folder.name}: {each.reason}" for each in left_out[:3])
        raise bad_input("RUNS", "", f"no finished run ({reasons or 'no run'})", "finished runs")
    for each in left_out:
        say(f"left out: {each.folder.name}: {each.reason}")
    with gc_paused():
        content = trend_page(trends(runs, _metrics(runs)), runs, left_out)
    path = options.output or options.folders[0] / PAGE
    write_whole(path, content)
    print_line(f"{path}")
    return 0


def _read(folders: list[Path]) -> tuple[list[PastRun], list[LeftOut]]:
    """Return the runs in the order of time, and the folders that are left out."""
    runs: dict[str, PastRun] = {}
    left_out: list[LeftOut] = []
    said = time.monotonic()
    with gc_paused():
        work = parallel_map(read_past_run, folders, large=len(folders) >= MANY)
        for number, (folder, each) in enumerate(zip(folders, work, strict=True), start=1):
            if isinstance(each, LeftOut):
                left_out.append(each)
            elif each.run in runs:
                copy = Message("past-copy", folder=f"{runs[each.run].folder}")
                left_out.append(LeftOut(folder, copy))
            else:
                runs[each.run] = each
            if time.monotonic() - said >= PROGRESS_S:
                said = time.monotonic()
                say(f"{number} of {len(folders)} runs read")
    return sorted(runs.values(), key=lambda each: (each.started, each.run)), left_out


def _metrics(runs: list[PastRun]) -> Callable[[PastFigure], Metric | None]:
    """Return the function that returns the metric of a figure, from the newest run with its case.

    A run whose copy of the cases is damaged is passed over.
    """
    newest = {figure.case: number for number, run in enumerate(runs) for figure in run.figures}
    metrics: dict[tuple[str, str], Metric] = {}
    for number in sorted(set(newest.values())):
        try:
            cases = benchmarks_in(runs[number].folder).cases
        except BadInput:
            continue
        for name, case in cases.items():
            if newest.get(name) == number:
                found = metrics_of(case)
                metrics |= {(name, metric): about for metric, about in found.items()}
    return lambda figure: metrics.get((figure.case, figure.metric))


COMMANDS = {"trend": Command(trend, "trend runs/ -o trend.html", _arguments, traced=False)}

"""The command ``trend``: runs over time on one page, or two runs figure by figure."""

from __future__ import annotations

import math
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from proofmark.cases.reference import Metric
from proofmark.cases.telemetry import metrics_of
from proofmark.cli.command import Command, Words, complete, language_argument
from proofmark.cli.evidence import run_to_show
from proofmark.cli.output import print_line, print_table
from proofmark.common.errors import BadInput, bad_input
from proofmark.common.files import write_whole
from proofmark.common.message import Message
from proofmark.common.processes import gc_paused, parallel_map
from proofmark.common.progress_lines import say
from proofmark.common.text import percent
from proofmark.common.translation import ENGLISH, in_language
from proofmark.judge.judging import judge_run
from proofmark.packages.history.compare import (
    Difference,
    ProgramDifference,
    RunComparison,
    program_differences,
)
from proofmark.packages.history.compare import compare as compare_runs
from proofmark.packages.history.past_run import (
    LeftOut,
    PastFigure,
    PastRun,
    read_past_run,
)
from proofmark.packages.history.trend import trends
from proofmark.packages.history.trend_page import trend_page
from proofmark.records.stored_readings import stored_or_read
from proofmark.runs.run import Run, benchmarks_in, benchmarks_of
from proofmark.runs.run_files import is_run, run_folders
from proofmark.software.software import software_of

MANY = 64
"""From this number of runs on, they are read by several processes."""
PROGRESS_S = 2.0
"""Seconds between two lines about the progress."""
PAGE = "trend.html"
MOST_CHANGES = 20
"""The largest number of changes that are printed without ``--all``."""
WIDTH = 100
"""The length of the lines of the table, without ``--all``."""


def _arguments(parser: ArgumentParser) -> None:
    note = (
        "folders of runs: one page of all runs over time; two or more runs: the later ones are "
        "compared with the first, figure by figure"
    )
    runs = parser.add_argument("folders", metavar="RUNS", nargs="+", type=Path, help=note)
    complete(runs, Words.RUN)
    note = "of two or more runs: compare each node with itself"
    parser.add_argument("--nodes", action="store_true", help=note)
    note = "of two or more runs: print every figure, not only the changes that matter"
    parser.add_argument("--all", action="store_true", help=note)
    note = f"the page, also of two or more runs (default: {PAGE} in the first folder of RUNS)"
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help=note)
    language_argument(parser)


def trend(options: Namespace) -> int:
    """Compare two or more runs, or write one page with the figures of all runs over time."""
    for folder in options.folders:
        if not folder.is_dir():
            raise bad_input("RUNS", "", f"{folder}: no such folder", "a folder of runs, or runs")
    only_runs = len(options.folders) > 1 and all(is_run(each.resolve()) for each in options.folders)
    if only_runs and not options.output:
        if options.language != ENGLISH:
            found = f"{options.language}, and no -o"
            raise bad_input("--language", "", found, "the language of a page: -o FILE")
        return _compare(options.folders, nodes=options.nodes, every=options.all)
    for name, given in (("--nodes", options.nodes), ("--all", options.all)):
        if given:
            found = "a page" if only_runs else ", ".join(map(str, options.folders))
            raise bad_input(name, "", found, "two or more runs to compare, without -o")
    with in_language(options.language):
        return _write_page(options)


def _write_page(options: Namespace) -> int:
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
    newest: dict[str, int] = {}
    for number, run in enumerate(runs):
        newest |= {figure.case: number for figure in run.figures}
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


def _compare(folders: Sequence[Path], *, nodes: bool, every: bool) -> int:
    """Compare later runs with the first one."""
    runs = [run_to_show(folder) for folder in folders]
    if len({run.folder for run in runs}) < len(runs):
        named = ", ".join(run.id for run in runs)
        raise bad_input("RUNS", "", named, "two or more different runs")
    results = {
        str(at): judge_run(run, stored_or_read).results
        for at, run in zip(folders, runs, strict=True)
    }
    by_name = dict(zip(results, runs, strict=True))
    for comparison in compare_runs(results, nodes=nodes, benchmarks=benchmarks_of(runs[0])):
        for line in _changed_programs(runs[0], by_name[comparison.later]):
            print_line(line)
        _print_comparison(comparison, every=every)
    return 0


def _print_comparison(comparison: RunComparison, *, every: bool) -> None:
    """Print the changes between two runs, the largest first, and what only one run has.

    Without `every`, those that are no noise and large enough to matter, and numbers of the others.
    """
    named = f"{comparison.later} and {comparison.first}"
    if not comparison.differences:
        alone = (f"{len(keys)} only in {name}" for name, keys in comparison.alone.items())
        print_line(f"{named} have no figure in common: {', '.join(alone) or 'both have none'}")
        return
    note = "* an interval with 95 % confidence excludes 0 %"
    print_line(f"{comparison.later} compared with {comparison.first} ({note})")
    if other := sum(each.other_programs for each in comparison.differences):
        total = len(comparison.differences)
        print_line(f"{other} of {total} figures were measured with other programs")
    headers = ("metric", "first", "later", "unit", "change", "interval", "confidence")
    found = sorted(comparison.differences, key=lambda each: -abs(each.change or 0.0))
    if every:
        print_table((*headers, "visible change", "note"), [_row(each) for each in found])
        for name, keys in comparison.alone.items():
            print_line(f"{len(keys)} metrics only in {name}")
            for key in keys:
                print_line(" ".join(filter(None, key)))
        return
    material = [each for each in found if each.material]
    none = "no figure changed by more than its noise and by an amount that matters"
    rows = [_row(each)[:7] for each in material[:MOST_CHANGES]]
    print_table(headers, rows, none, WIDTH)
    if (more := len(material) - MOST_CHANGES) > 0:
        print_line(f"and {more} more that changed")
    noisy = sum(bool(each.noise) for each in found)
    unknown = sum(each.interval is None for each in found)
    left = len(found) - len(material) - noisy - unknown
    counts = {
        "without a change that matters": left,
        "too noisy for one": noisy,
        "of single values, whose noise is not known": unknown,
    }
    others = ", ".join(f"{amount} {text}" for text, amount in counts.items() if amount)
    print_line(f"other figures: {others or 'none'}; all: --all")
    for name, keys in comparison.alone.items():
        print_line(f"{len(keys)} metrics only in {name}")


def _row(each: Difference) -> tuple[str, ...]:
    """Return the row of a figure that both runs have."""
    interval = confidence = "–"
    if each.interval:
        interval = f"{100 * each.interval.low:+.1f} … {100 * each.interval.high:+.1f} %"
        confidence = f"{100 * each.interval.confidence:.1f} %"
    mark = " *" if each.clear else ""
    programs = "(other programs)" if each.other_programs else ""
    metric = " ".join(filter(None, (*each.key[:6], each.key[8], programs)))
    change = "–" if each.change is None else f"{100 * each.change:+.1f} %{mark}"
    values = (metric, f"{each.first:g}", f"{each.later:g}", each.unit, change)
    seen = "–" if math.isnan(each.visible) else f"{percent(each.visible)} %"
    return (*values, interval, confidence, seen, each.noise)


def _changed_programs(first: Run, later: Run) -> Iterator[str]:
    """Yield a line for each difference of the programs of two runs, with all packages that have it.

    Another MPI changes the same libraries in each package.
    """
    packages: dict[tuple[object, ...], tuple[ProgramDifference, list[str]]] = {}
    for each in program_differences(software_of(first), software_of(later)):
        key = (each.what.code, *each.what.fields.items(), each.first, each.later)
        packages.setdefault(key, (each, []))[1].append(each.package)
    for each, names in packages.values():
        change = f"{each.first or '–'} → {each.later or '–'}"
        yield f"changed: {', '.join(names)}: {each.what}: {change}"


COMMANDS = {"trend": Command(trend, "trend runs/before runs/after", _arguments, traced=False)}

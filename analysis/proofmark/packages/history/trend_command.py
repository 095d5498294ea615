"""The command ``trend``: runs over time on one page, or two runs figure by figure."""

from __future__ import annotations

import json
import math
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from statistics import median

from proofmark.cases.case import metrics_of
from proofmark.cases.reference import Metric
from proofmark.cases.suite import Benchmarks
from proofmark.cli.command import Command, language_argument
from proofmark.cli.inputs import run_to_show
from proofmark.cli.output import print_line, print_table
from proofmark.common.errors import BadInput, bad_input
from proofmark.common.files import write_atomic
from proofmark.common.grouping import batched
from proofmark.common.message import NOTHING, Message
from proofmark.common.processes import gc_paused, parallel_map
from proofmark.common.progress_lines import say
from proofmark.common.text import counted, percent
from proofmark.common.translation import ENGLISH, in_language
from proofmark.judge.confidence import (
    CONFIDENCE,
    Interval,
    MaterialOf,
    material_of,
    too_noisy,
)
from proofmark.judge.judging import judge_run
from proofmark.judge.stated_parts import DIGITS, differences, program_traits
from proofmark.judge.verdict import Result
from proofmark.packages.history.past_run import (
    LeftOut,
    PastFigure,
    PastRun,
    read_past_run,
)
from proofmark.packages.history.trend import trends
from proofmark.packages.history.trend_page import trend_page
from proofmark.packages.history.two_samples import change_seen, ratio, ratio_interval
from proofmark.records.stored_readings import stored_or_read
from proofmark.runs.run import Run, benchmarks_in, benchmarks_of
from proofmark.runs.run_files import is_run, run_folders
from proofmark.site.accepted_baseline import ProgramTrait
from proofmark.software.software import Package, Software, software_of

Key = tuple[str, ...]


@dataclass(frozen=True)
class ProgramDifference:
    """A difference of the programs of two runs.

    Attributes:
        what: the trait that differs.
        first, later: its values; empty if the run has none.
    """

    package: str
    what: Message
    first: str
    later: str


def program_differences(first: Software, later: Software) -> tuple[ProgramDifference, ...]:
    """Return each difference of the programs of two runs, package by package.

    Of a package: release, variants, compiler, flags, BLAS, MPI, variables, then the hashes of its
    programs, of its build and of its libraries.
    """
    found: list[ProgramDifference] = []
    for name in dict.fromkeys((*first.packages, *later.packages)):
        before, after = first.packages.get(name), later.packages.get(name)
        if before is None or after is None:
            versions = (each.version if each else "" for each in (before, after))
            found.append(ProgramDifference(name, Message("trait-only"), *versions))
            continue
        for trait, old, new in differences(build_traits(before), build_traits(after)):
            found.append(ProgramDifference(name, trait.text, old, new))
    return tuple(found)


@dataclass(frozen=True)
class Difference:
    """The change of one figure between two runs.

    Attributes:
        first, later: the medians of the runs, in `unit`.
        change: the ratio later / first minus 1, estimated from all pairs of values
            (`judge.confidence`). If a value is not positive: the ratio of the medians minus 1. None
            if the median of the first run is 0.
        interval: of the change, with its confidence. None if a run has a single value, or a value
            is not positive.
        counts: the number of values of each run.
        visible: the change that would be seen, as a part of the value: with a power of 95 % its
            interval excludes 0. NaN without an interval.
        noise: why a material change would not be seen; `NOTHING` if it would be, or if it is not
            known.
        least: the least change that matters, as a part of the value; NaN without an interval.
        other_programs: whether the runs measured it with other programs.
    """

    key: Key
    first: float
    later: float
    unit: str
    change: float | None
    interval: Interval | None
    counts: tuple[int, int]
    visible: float = math.nan
    noise: Message = NOTHING
    least: float = math.nan
    other_programs: bool = False

    @property
    def material(self) -> bool:
        """Whether the change is no noise, and at least the least one that matters."""
        return self.clear and self.change is not None and abs(self.change) >= self.least

    @property
    def clear(self) -> bool:
        """Whether an interval with a confidence of 95 % or more excludes 0."""
        if self.interval is None or self.interval.confidence < CONFIDENCE:
            return False
        return not self.interval.low <= 0 <= self.interval.high


@dataclass(frozen=True)
class RunComparison:
    """A later run compared with the first; `alone`: the figures of each run without a partner."""

    first: str
    later: str
    differences: tuple[Difference, ...]
    alone: Mapping[str, tuple[Key, ...]]


def compare(
    runs: Mapping[str, Iterable[Result]],
    *,
    nodes: bool = False,
    benchmarks: Benchmarks | None = None,
) -> list[RunComparison]:
    """Compare every later run with the first.

    Like figures have the same case, benchmark, metric, mode, placement, parameters and unit. A
    figure of other programs is compared if each run has it with one set of programs. Values of all
    nodes of a run are put together, unless `nodes` is true.

    Args:
        runs: results by run; the others are compared with the first.
        nodes: whether each node is compared only with itself.
        benchmarks: the cases, with the least change of each metric that matters.

    Raises:
        BadInput: the runs have different origins. Emulated and measured runs are not comparable.
    """
    origins = {run: {result.record.origin for result in results} for run, results in runs.items()}
    if len(set().union(*origins.values())) > 1:
        by_run = "; ".join(f"{run}: {', '.join(sorted(of))}" for run, of in origins.items())
        raise bad_input("RUN", "origin", by_run, "runs of one origin")
    material = material_of(benchmarks)
    (first, before), *others = (
        (run, _figures(results, nodes, material)) for run, results in runs.items()
    )
    return [_compare_two(first, before, later, after) for later, after in others]


@dataclass(frozen=True)
class _Figure:
    values: tuple[float, ...]
    unit: str
    material: float


def _figures(results: Iterable[Result], nodes: bool, material: MaterialOf) -> dict[Key, _Figure]:
    by_key: dict[Key, list[Result]] = {}
    for result in results:
        if result.verdict != "INVALID":
            by_key.setdefault(_key(result, nodes), []).append(result)
    return {
        key: _Figure(
            tuple(chain.from_iterable(result.values for result in alike)),
            alike[0].record.unit,
            material(alike[0].record),
        )
        for key, alike in by_key.items()
    }


def _key(result: Result, nodes: bool) -> Key:
    record = result.record
    return (
        record.case,
        record.benchmark,
        record.metric,
        record.mode,
        record.placement,
        json.dumps(dict(record.parameters), sort_keys=True),
        record.environment_hash,
        record.unit,
        record.node if nodes else "",
    )


def _compare_two(
    first: str, before: Mapping[Key, _Figure], later: str, after: Mapping[Key, _Figure]
) -> RunComparison:
    pairs = {key: key for key in before.keys() & after.keys()}
    pairs |= _of_other_programs(before.keys() - pairs.keys(), after.keys() - pairs.keys())
    found = tuple(
        replace(_difference(key, before[key], after[pairs[key]]), other_programs=key != pairs[key])
        for key in sorted(pairs)
    )
    alone = {
        first: tuple(sorted(before.keys() - pairs.keys())),
        later: tuple(sorted(after.keys() - {*pairs.values()})),
    }
    return RunComparison(first, later, found, alone)


_PROGRAMS = 6
"""The place of the digest of the programs in a key."""


def _of_other_programs(before: Set[Key], after: Set[Key]) -> dict[Key, Key]:
    """Return the keys that differ only in the programs, by that of the first run.

    A figure that a run has with several programs has no partner.
    """
    sides: list[dict[Key, list[Key]]] = [{}, {}]
    for keys, side in zip((before, after), sides, strict=True):
        for key in keys:
            side.setdefault((*key[:_PROGRAMS], *key[_PROGRAMS + 1 :]), []).append(key)
    first, later = sides
    return {
        keys[0]: later[rest][0]
        for rest, keys in first.items()
        if len(keys) == 1 and len(later.get(rest, ())) == 1
    }


def _difference(key: Key, before: _Figure, after: _Figure) -> Difference:
    first, later = median(before.values), median(after.values)
    counts = (len(before.values), len(after.values))
    change: float | None
    if min(*before.values, *after.values) > 0:
        change = ratio(before.values, after.values) - 1
        interval = _interval(before, after)
    else:
        change, interval = later / first - 1 if first else None, None
    found = Difference(key, first, later, before.unit, change, interval, counts)
    if interval is None:
        return found
    visible, repeats = change_seen(before.values, after.values, before.material)
    noise = NOTHING if found.clear else too_noisy(visible, before.material, repeats)
    return replace(found, visible=visible, noise=noise, least=before.material)


def _interval(before: _Figure, after: _Figure) -> Interval | None:
    """Return the interval of the change of positive values."""
    ratios = ratio_interval(before.values, after.values)
    return ratios and Interval(ratios.low - 1, ratios.high - 1, ratios.confidence)


BATCH = 32
"""The number of runs that one process reads at a time."""
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
    parser.add_argument("folders", metavar="RUNS", nargs="+", type=Path, help=note)
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
    write_atomic(path, content)
    print_line(f"{path}")
    return 0


def _read(folders: list[Path]) -> tuple[list[PastRun], list[LeftOut]]:
    """Return the runs in the order of time, and the folders that are left out."""
    runs: dict[str, PastRun] = {}
    left_out: list[LeftOut] = []
    said = time.monotonic()
    with gc_paused():
        work = parallel_map(lambda each: [*map(read_past_run, each)], batched(folders, BATCH))
        read = chain.from_iterable(work)
        for number, (folder, each) in enumerate(zip(folders, read, strict=True), start=1):
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
    for comparison in compare(results, nodes=nodes, benchmarks=benchmarks_of(runs[0])):
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
            print_line(f"{counted(len(keys), 'metric')} only in {name}")
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
        print_line(f"{counted(len(keys), 'metric')} only in {name}")


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
        key = (each.what, each.first, each.later)
        packages.setdefault(key, (each, []))[1].append(each.package)
    for each, names in packages.values():
        change = f"{each.first or '–'} → {each.later or '–'}"
        yield f"changed: {', '.join(names)}: {each.what}: {change}"


COMMANDS = {"trend": Command(trend, "trend runs/before runs/after", _arguments, traced=False)}


PARTS_OF_BUILD: Mapping[str, str] = {
    "variants": "trait-variants",
    "compiler": "trait-compiler",
    "flags": "trait-flags",
    "blas": "trait-blas-built",
    "mpi": "trait-mpi-built",
    "network": "trait-network-built",
}
"""The code of the trait of each key of `Package.built`, in the order of differences."""


OF_FILES = ("trait-program", "trait-build", "trait-library")
"""The codes of the traits that are hashes of files. Their differences are named last."""


def build_traits(package: Package) -> dict[ProgramTrait, str]:
    """Return all in which two builds of a package can differ.

    It is `program_traits`, and how the package was made. The release, variants, compiler, flags,
    BLAS and MPI come first, then the hashes.
    """
    traits = {ProgramTrait("trait-version"): package.version}
    for part, code in PARTS_OF_BUILD.items():
        traits[ProgramTrait(code)] = package.built.get(part, "")
    traits[ProgramTrait("trait-request")] = package.spec
    traits[ProgramTrait("trait-target")] = package.target
    known = program_traits(package)
    traits |= {name: text for name, text in known.items() if name.code not in OF_FILES}
    for name, program in package.programs.items():
        digest = (program.sha256 or "")[:DIGITS]
        text = " ".join(filter(None, (program.package, digest)))
        traits[ProgramTrait("trait-program", name)] = text
    traits[ProgramTrait("trait-build")] = package.hash
    traits |= {name: text for name, text in known.items() if name.code == "trait-library"}
    return {name: value for name, value in traits.items() if value}

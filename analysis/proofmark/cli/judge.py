"""The commands that judge runs: ``verdict`` and ``compare``."""

from __future__ import annotations

import math
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from proofmark.cli.command import (
    Command,
    Words,
    complete,
    language_argument,
    run_argument,
    runs_argument,
)
from proofmark.cli.evidence import run_to_show
from proofmark.cli.output import print_json, print_line, print_table
from proofmark.common.errors import bad_input
from proofmark.common.sentences import localized
from proofmark.common.text import one_line, percent
from proofmark.common.translation import _, in_language, translated
from proofmark.judge.claims_of_runs import answers_of
from proofmark.judge.compare import compare as compare_runs
from proofmark.judge.counterparts import Counterparts
from proofmark.judge.ending import counts_line
from proofmark.judge.judging import judge_run
from proofmark.judge.shared_traits import differences, software_traits
from proofmark.judge.verdict import WORDS, Verdict
from proofmark.judge.verdict_files import write_verdict
from proofmark.runs.adopted import files_of_executions
from proofmark.runs.run import Run, benchmarks_of
from proofmark.software.software import software_of


def _verdict_arguments(parser: ArgumentParser) -> None:
    run_argument(parser)
    note = (
        "print which claims of the papers hold in RUN and MORE; they are information: exit code 0"
    )
    parser.add_argument("--claims", action="store_true", help=note)
    note = "with --claims: further runs"
    more = parser.add_argument("more", metavar="MORE", nargs="*", type=Path, help=note)
    complete(more, Words.RUN)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--strict", action="store_true", help="exit 4 if anything is UNJUDGED")
    language_argument(parser)


def verdict(options: Namespace) -> int:
    """Judge a run and print the verdict, or the claims of the papers."""
    if options.claims:
        return _claims([options.folder, *options.more], as_json=options.json)
    if options.more:
        named = ", ".join(map(str, (options.folder, *options.more)))
        raise bad_input("RUN", "", named, "one run; several with --claims")
    with in_language(options.language):
        run = run_to_show(options.folder)
        answer = judge_run(run)
        if options.json:
            write_verdict(sys.stdout, answer, answers_of([(run, answer)]))
        else:
            _print_verdict(answer, files_of_executions(run))
    return answer.exit_code(strict=options.strict)


def _print_verdict(answer: Verdict, file: Callable[[str, int], str]) -> None:
    rows = []
    for result in answer.of("FAIL", "INVALID", "PASS"):
        record = result.record
        parameters = " ".join(f"{key}={value}" for key, value in record.parameters.items())
        metric = " ".join(filter(None, (record.benchmark, record.metric, parameters)))
        value = "–" if record.value is None else f"{record.value:g}"
        word, reason = translated(result.verdict), localized(result.reason)
        path = one_line(file(record.step, record.attempt))
        if (more := len(result.steps) - 1) > 0:
            path += _(" and {count} more").format(count=more)
        rows.append((word, record.node, record.case, metric, value, record.unit, reason, path))
    headers = (
        *(_("verdict"), _("node"), _("case"), _("metric"), _("value"), _("unit"), _("reason")),
        _("file"),
    )
    print_table(headers, rows, _("no figure is PASS, FAIL or INVALID"))
    if answer.expected is not None:
        _print_expected(answer, answer.expected)
    print_line(counts_line({word: answer.counts[word] for word in WORDS}))
    coverage = answer.coverage
    print_line(
        _("{measured} of {expected} steps measured, {twice} results twice").format(
            measured=coverage.measured, expected=coverage.expected, twice=coverage.duplicate
        )
    )
    notes = [
        *map(str, answer.stage_faults),
        *(
            _("not judged: {requirement}").format(requirement=localized(line))
            for line in answer.unmet
        ),
        *map(localized, answer.excused),
        *(each.message for each in coverage.missing),
        *map(localized, coverage.stopped),
        *(localized(each.message) for each in (*coverage.not_run, *coverage.not_needed)),
    ]
    for line in notes:
        print_line(line)
    if answer.disagreements:
        from proofmark.report.sections.disagreements import sentence

        for each in answer.disagreements:
            print_line(f"{answer.results[each.figure].record.node}: {sentence(each, answer)}")


def _print_expected(answer: Verdict, expected: Counterparts) -> None:
    """Print the figures with a prediction, its source and its error. They judge nothing."""
    # They import the parts of the report, which other uses of this module do not need.
    from proofmark.report.predictions import heads, notes, texts
    from proofmark.report.sections.figure_tables import median_text, name, settings

    rows = [
        (name(result), settings(result), result.record.node, median_text(result), *texts(result))
        for result in map(answer.results.__getitem__, np.flatnonzero(expected.mask).tolist())
    ]
    print_table((_("Figure"), _("Setting"), _("Node"), _("Median"), *heads()), rows)
    for what, text in notes(expected):
        print_line(f"{what}: {text}")


def _claims(folders: Sequence[Path], *, as_json: bool) -> int:
    runs = [run_to_show(folder) for folder in folders]
    answers = answers_of((run, judge_run(run)) for run in runs)
    if as_json:
        print_json([answer.as_json() for answer in answers])
        return 0
    print_table(
        ("claim", "answer", "origin", "reason"),
        [(each.claim.id, each.word, each.origin or "–", each.sentence) for each in answers],
        "no claim of a paper is known",
    )
    return 0


def _compare_arguments(parser: ArgumentParser) -> None:
    runs_argument(parser)
    parser.add_argument("--nodes", action="store_true", help="compare each node with itself")


def compare(options: Namespace) -> int:
    """Compare later runs with the first one."""
    runs = [run_to_show(folder) for folder in options.folders]
    if len({run.folder for run in runs}) < max(2, len(runs)):
        named = ", ".join(run.id for run in runs)
        raise bad_input("RUN", "", named, "two or more different runs")
    results = {
        str(folder): judge_run(run).results
        for folder, run in zip(options.folders, runs, strict=True)
    }
    benchmarks = benchmarks_of(runs[0])
    by_name = dict(zip(results, runs, strict=True))
    for comparison in compare_runs(results, nodes=options.nodes, benchmarks=benchmarks):
        rows = []
        for each in comparison.differences:
            interval = confidence = "–"
            if each.interval:
                interval = f"{100 * each.interval.low:+.1f} … {100 * each.interval.high:+.1f} %"
                confidence = f"{100 * each.interval.confidence:.1f} %"
            mark = " *" if each.clear else ""
            metric = " ".join(filter(None, (*each.key[:6], each.key[8])))
            change = "–" if each.change is None else f"{100 * each.change:+.1f} %{mark}"
            values = (metric, f"{each.first:g}", f"{each.later:g}", each.unit, change)
            seen = "–" if math.isnan(each.visible) else f"{percent(each.visible)} %"
            rows.append((*values, interval, confidence, seen, each.noise))
        for line in _changed_programs(runs[0], by_name[comparison.later]):
            print_line(line)
        if not rows:
            alone = (f"{len(keys)} only in {name}" for name, keys in comparison.alone.items())
            named = f"{comparison.later} and {comparison.first}"
            print_line(f"{named} have no figure in common: {', '.join(alone) or 'both have none'}")
            continue
        note = "* an interval with 95 % confidence excludes 0 %"
        print_line(f"{comparison.later} compared with {comparison.first} ({note})")
        print_table(
            (
                *("metric", "first", "later", "unit", "change", "interval", "confidence"),
                *("visible change", "note"),
            ),
            rows,
        )
        for name, keys in comparison.alone.items():
            print_line(f"{len(keys)} metrics only in {name}")
            for key in keys:
                print_line(" ".join(filter(None, key)))
    return 0


def _changed_programs(first: Run, later: Run) -> Iterator[str]:
    """Yield a line for each trait of programs that differs: versions, and run-time variables."""
    traits = (software_traits(software_of(run)) for run in (first, later))
    for trait, before, after in differences(*traits):
        yield f"changed: {trait}: {before or '–'} → {after or '–'}"


COMMANDS = {
    "verdict": Command(verdict, "verdict runs/latest-local", _verdict_arguments),
    "compare": Command(compare, "compare runs/before runs/after", _compare_arguments),
}

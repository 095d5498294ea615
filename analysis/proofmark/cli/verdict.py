"""The commands ``verdict`` and ``report``: the judgement of a run."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Iterable
from pathlib import Path

from proofmark.cli.inputs import evidence_of, run_to_show
from proofmark.cli.output import print_json, print_line, print_table
from proofmark.common.errors import NodeFailure, note_failed_nodes
from proofmark.common.message import localized
from proofmark.common.printed_command import PrintedCommand, of_person
from proofmark.common.progress_lines import say
from proofmark.common.text import one_line
from proofmark.common.translation import _, in_language, translated
from proofmark.judge.ending import (
    ending,
    failed_nodes,
    faults,
    judged_line,
    next_command,
    open_points,
    worst_results,
)
from proofmark.judge.judging import judge_run
from proofmark.judge.verdict import Result, Verdict, write_verdict
from proofmark.records.read import files_of_executions
from proofmark.records.stored_readings import stored_or_read
from proofmark.report.products import write_products
from proofmark.runs.play_variables import acceptance_command, not_in
from proofmark.runs.run import Run, site_of
from proofmark.runs.sealed_runs import keep, sealed_of

WORST = 5
"""The number of figures and faults that are printed without ``--all``."""


def verdict(options: Namespace) -> int:
    """Judge a run and print the verdict, or what another package prints instead."""
    if options.instead and (code := options.instead(options)) is not None:
        return int(code)
    with in_language(options.language):
        run = run_to_show(options.folder)
        answer = judge_run(run, stored_or_read)
        if options.json:
            write_verdict(sys.stdout, answer)
        else:
            if options.all:
                _print_all(answer, files_of_executions(run))
            else:
                _print_short(answer, run, options.folder, strict=options.strict)
    return answer.exit_code(strict=options.strict)


def _print_short(answer: Verdict, run: Run, folder: Path, *, strict: bool) -> None:
    """Print the worst five, and last the word, what judged, and the next command."""
    worst = [*worst_results(answer)]
    reasons = [*faults(answer), *open_points(answer, whole=True)]
    if worst:
        _print_figures(worst[:WORST], files_of_executions(run))
    for line in reasons[:WORST]:
        print_line(line)
    if (left := len(worst) + len(reasons) - len(worst[:WORST]) - len(reasons[:WORST])) > 0:
        print_line(_("and {count} more").format(count=left))
    named = of_person(f"{folder}", "RUN")
    every = PrintedCommand("proofmark", "verdict", named, "--all")
    again = acceptance_command(run, site_of(run)) if run.executed else PrintedCommand()
    code = answer.exit_code(strict=strict)
    command = next_command(answer, code, f"{folder}", again, every)
    if command is not every and (left > 0 or answer.counts["PASS"]):
        print_line(_("every judged figure: {command}").format(command=every))
    word = translated(answer.headline(strict=strict).word)
    print_line(f"{word}: {judged_line(answer, strict=strict)}")
    print_line(_("next: {command}").format(command=command))


def _print_figures(results: Iterable[Result], file: Callable[[str, int], str]) -> None:
    """Print a row for each of `results`, with its reason and its file."""
    rows = []
    for result in results:
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


def _print_all(answer: Verdict, file: Callable[[str, int], str]) -> None:
    """Print every judged and every INVALID figure, and what else the verdict states."""
    _print_figures(answer.of("FAIL", "INVALID", "PASS"), file)
    print_line(judged_line(answer))
    coverage = answer.coverage
    left = (localized(each.message) for each in (*coverage.not_run, *coverage.not_needed))
    for line in (*faults(answer), *open_points(answer, whole=True), *left):
        print_line(line)


def report(options: Namespace) -> int:
    """Write records, verdict and report of a run; exit code 0 for every verdict."""
    with in_language(options.language):
        return _report(options)


def _report(options: Namespace) -> int:
    run = evidence_of(options.folder, again=False)
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
    if run.executed:
        again = acceptance_command(run, written.run_data.site, inventory=options.inventory)
    if missing := not_in(again):
        say(localized(missing))
    here, cwd = options.folder.resolve(), Path.cwd()
    here = here.relative_to(cwd) if here.is_relative_to(cwd) else here
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

"""The command ``adopt``: a run from outputs of others, or the figures that a case reads in them."""

from __future__ import annotations

import csv
import json
import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from proofmark.cases.reader.engine import Reading, readings_of
from proofmark.cases.reader.settings import StartedCommand as Arguments
from proofmark.cli.command import (
    ArgumentUse,
    Command,
    limit_argument,
    runs_folder_argument,
    site_argument,
)
from proofmark.cli.inputs import inventory_of, kit_benchmarks
from proofmark.cli.output import print_json, print_line, print_table
from proofmark.common.errors import BadInput, bad_input
from proofmark.common.files import read_bytes
from proofmark.common.kit import kit_folder, result_folder
from proofmark.common.message import Message
from proofmark.common.nodesets import folded, unfold
from proofmark.common.printed_command import Part, PrintedCommand, of_person
from proofmark.common.progress_lines import say
from proofmark.common.text import counted, csv_cell
from proofmark.packages.foreign.adopted import Adopted, path_of, shown
from proofmark.packages.foreign.adopted_outputs import with_settings
from proofmark.packages.foreign.adoption import Counted, adopt_folder
from proofmark.packages.foreign.adoption_request import Adoption, AdoptionRequest, planned
from proofmark.packages.foreign.output_folder import HEAD, OutputFolder, opened
from proofmark.packages.foreign.output_text import output_text, runs_of_others
from proofmark.packages.foreign.packed import NotUnpacked, unpacked
from proofmark.packages.foreign.path_rules import MOST_PATTERNS, LabelRule, PathRule
from proofmark.plan.expansion import limit_mistakes
from proofmark.runs.run import Run
from proofmark.site.accepted_baseline import chosen_baseline
from proofmark.site.inventory import Site, load_site

INVALID = 2
MOST_LISTED = 10
"""The largest number of files that a message lists; ``inputs/adopted.json`` has all."""


_PRINTED = tuple(name for name in Reading._fields if name != "settings")
"""The fields of a reading that are printed: its settings are among its parameters."""


def arguments(parser: ArgumentParser) -> None:
    """Add the arguments of ``proofmark adopt`` to `parser`."""
    parser.add_argument(
        "sources",
        metavar="FOLDER",
        nargs="+",
        type=Path,
        help="the outputs; nothing is changed there; with --print: one or more files",
    )
    note = (
        "the outputs of a case: a pattern for paths below FOLDER, where * also matches /; without "
        "it, a plan is printed"
    )
    parser.add_argument("--case", metavar="CASE=PATTERN", action="append", default=[], help=note)
    note = "adopt what the plan proposes"
    parser.add_argument("--accept", action="store_true", help=note)
    note = (
        "finds the node in a path, which begins with /: the group (?P<node>…); further named "
        "groups are parameters"
    )
    parser.add_argument("--node", metavar="REGEX", help=note)
    note = "the nodes of each output whose path names none"
    parser.add_argument("--nodes", metavar="NODESET", help=note)
    note = (
        "separates figures by a label in the path, or with name: or file: before REGEX, in the "
        "name or the text of the file: kind='/(cpu|gpu)/', date='_([0-9]{8})_'"
    )
    parser.add_argument("--label", metavar="NAME=REGEX", action="append", default=[], help=note)
    parser.add_argument("--run-id", help="the name of the run")
    runs_folder_argument(parser)
    parser.add_argument("--baseline", help="with -i: the accepted runs to compare with, or none")
    site_argument(parser, "the site of the nodes, with its limits (default: none)")
    limit_argument(parser, "with -i: a partition, or hosts of one")
    note = "print the figures that a case reads in the files; create no run"
    parser.add_argument("--print", metavar="CASE", help=note)
    parser.add_argument(
        "--format",
        choices=("table", "csv", "json"),
        default="table",
        help="with --print: of the figures",
    )
    note = "with --print: the arguments that the program was started with, as '-m 1:4096'"
    parser.add_argument("--arguments", metavar="WORDS", help=note)


def adopt(options: Namespace) -> int:
    """Create a run from outputs that others produced, or print how it would be created.

    With ``--print`` it prints the figures of a case, and its exit code is 2 if one is INVALID.
    """
    if options.print is not None:
        return _print_figures(options)
    if len(options.sources) > 1:
        named = ", ".join(map(str, options.sources))
        raise bad_input("FOLDER", "", named, "one folder; several files with --print CASE")
    (source,) = options.sources
    benchmarks = kit_benchmarks()
    patterns: dict[str, list[str]] = {}
    for word in options.case:
        case, separator, pattern = word.partition("=")
        if not (separator and pattern):
            raise bad_input("--case", "", repr(word), "CASE=PATTERN, as hpl='*/xhpl*.out'")
        benchmarks.case(case)
        patterns.setdefault(case, []).append(pattern)
    if patterns and options.accept:
        raise bad_input("--accept", "", "with --case", "one of them: --accept chooses the cases")
    cases = {name: benchmarks.case(name) for name in patterns or benchmarks.cases}
    site = _site(options)
    if site and (mistakes := limit_mistakes(benchmarks, site)):
        raise BadInput(*mistakes)
    request = AdoptionRequest(
        folder=source,
        patterns=patterns,
        rule=None if options.node is None else PathRule(options.node, cases),
        nodes=_nodes(options.nodes),
        run_id=options.run_id,
        baseline=(
            chosen_baseline(site.inventory, site.partition_name, options.baseline) if site else None
        ),
        labels=tuple(LabelRule(label, cases.values()) for label in options.label),
    )
    if not patterns and not options.accept:
        with opened(source, HEAD) as folder:
            given = [_option("-i", each) for each in options.inventory or ()]
            given += [_option("-l", options.limit)] if options.limit else []
            given += [_option("--nodes", options.nodes)] if options.nodes else []
            for line in _plan(folder, planned(folder, request, benchmarks, site), given):
                print_line(line)
        return 0
    runs = result_folder(kit_folder(), "runs", options.runs)
    with _progress() as counted:
        run, adopted = adopt_folder(runs, request, benchmarks, site, counted)
    for line in _summary(run, adopted):
        print_line(line)
    return 0


def _print_figures(options: Namespace) -> int:
    case = kit_benchmarks().case(options.print)
    spec = case.reader()
    arguments = None if options.arguments is None else Arguments(options.arguments.split())
    several = len(options.sources) > 1
    rows: list[dict[str, Any]] = []
    for path in options.sources:
        try:
            text = output_text(unpacked(read_bytes(path.resolve())))
        except NotUnpacked as error:
            raise bad_input(path, "", f"{error.args[0]}", "a file that is whole") from None
        except OSError as error:
            raise bad_input(path, "", error.strerror or "unreadable", "a readable file") from None
        runs = runs_of_others(spec, text, arguments)
        if any(run.unproven for run in runs):
            say(
                f"{path}: the command line is not known, so missing last rows are not found; "
                "--arguments states it"
            )
        notes = []
        for run in runs:
            notes += run.notes
        for note in dict.fromkeys(notes):
            say(f"{path}: {note}")
        file = {"file": str(path)} if several else {}
        rows += [
            {**file, **{name: getattr(reading, name) for name in _PRINTED}}
            for reading in with_settings(readings_of(spec, options.print, runs))
        ]
    if options.format == "json":
        print_json([{**row, "parameters": dict(row["parameters"])} for row in rows])
    elif options.format == "csv":
        _print_csv(rows)
    else:
        _print_figure_table(rows, several=several)
    return 0 if rows and all(row["valid"] for row in rows) else INVALID


def _print_csv(rows: Sequence[Mapping[str, Any]]) -> None:
    writer = csv.DictWriter(sys.stdout, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    for row in rows:
        cells = {
            name: csv_cell(value) if isinstance(value, str) else value
            for name, value in row.items()
        }
        writer.writerow({**cells, "parameters": json.dumps(dict(row["parameters"]))})


def _print_figure_table(rows: Sequence[Mapping[str, Any]], *, several: bool) -> None:
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


def _site(options: Namespace) -> Site | None:
    if options.limit is None and not options.inventory:
        return None
    if options.limit is None:
        raise bad_input("-l", "", "nothing", "with -i: a partition, or hosts of one")
    return load_site(inventory_of(options), options.limit)


def _nodes(text: str | None) -> tuple[str, ...]:
    try:
        return tuple(unfold([text])) if text else ()
    except ValueError as error:
        raise bad_input("--nodes", "", f"{error}", "a node set, as n[001-004]") from None


@contextmanager
def _progress() -> Iterator[Counted]:
    """Yield a function that shows the number of copied files on stderr, if it is a terminal."""
    if not sys.stderr.isatty():
        yield lambda done, total: say(f"adopt: {done} of {total} files") if done == total else None
        return
    from rich.console import Console  # it takes a tenth of a second to import
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("adopt", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _summary(run: Run, adopted: Adopted) -> Iterator[str]:
    nodes = run.plan.nodes()
    by_case: dict[str, int] = {}
    for step in run.plan.steps():
        by_case[step.case] = by_case.get(step.case, 0) + step.measurements
    counts = ", ".join(f"{case} {number}" for case, number in by_case.items())
    yield f"run: {run.folder}"
    files, hosts = len({each.source for each in adopted.files.values()}), len(nodes)
    yield f"adopted: {counted(files, 'file')} of {counted(hosts, 'node')}: {counts}"
    unread = list(dict.fromkeys(each.problem for each in adopted.files.values() if each.problem))
    more = path_of(run.files).relative_to(run.folder.parent)
    yield from _listed("files that cannot be read, INVALID", unread, f"{more}")
    contradicted = [f"{path} ({each.message()})" for path, each in adopted.contradicted.items()]
    yield from _listed("paths and texts that name different nodes", contradicted, f"{more}")
    yield from _listed("files that match no case", adopted.unmatched, f"{more}")
    yield from _reasons("left over", dict(adopted.other_programs()), f"{more}")
    yield from _listed("not read", _not_read(adopted.not_entered), f"{more}")
    yield f"next: {PrintedCommand('proofmark', 'report', of_person(run.folder, 'RUN'))}"


def _plan(folder: OutputFolder, adoption: Adoption, given: Sequence[Part]) -> Iterator[str]:
    """Yield the lines of the plan: the files of each case, what is left over, and the options."""
    request, outputs = adoption.request, adoption.outputs
    by_case = Counter(each.case for each in outputs)
    counts = ", ".join(f"{case} {number}" for case, number in by_case.items())
    adopted = len({each.source for each in outputs})
    yield f"plan: {adopted} of {counted(len(folder.paths), 'file')}: {counts}"
    named = {
        each.source: each.source not in adoption.contradicted
        and bool(request.rule and request.rule.nodes(each.source))
        for each in outputs
    }
    for title, wanted in (("nodes in paths", True), ("nodes in outputs or job scripts", False)):
        if some := [each for each in outputs if named[each.source] is wanted]:
            collected: set[str] = set()
            for each in some:
                collected.update(each.nodes)
            number = len({each.source for each in some})
            yield f"{title}: {counted(number, 'file')} of {folded(collected)}"
    for label in request.labels:
        values = Counter(str(each.parameters.get(label.name, "without")) for each in outputs)
        found = ", ".join(f"{value} {number}" for value, number in sorted(values.items()))
        yield f"label {label.name}: {found}"
    contradicted = {path: each.message() for path, each in adoption.contradicted.items()}
    for title, files in (("contradiction", contradicted), ("left over", adoption.left)):
        yield from _reasons(title, {shown(path): why for path, why in files.items()}, "the folder")
    yield from _listed("not read", _not_read(folder.not_read), "the folder")
    for case, patterns in request.patterns.items():
        if len(patterns) >= MOST_PATTERNS:
            many = Message("adopt-many-patterns", case=case, most=MOST_PATTERNS)
            yield f"options, {many.code}: {many}"
    words = [of_person(folder.folder, "FOLDER")]
    for case, patterns in request.patterns.items():
        words += (_option("--case", f"{case}={pattern}") for pattern in patterns)
    words += [_option("--node", request.rule.pattern)] if request.rule else []
    words += (_option("--label", label.option) for label in request.labels)
    yield f"options: {PrintedCommand('proofmark', 'adopt', *words, *given)}"
    yield f"next: {PrintedCommand('proofmark', 'adopt', words[0], *given, '--accept')}"


def _option(name: str, value: str) -> Part:
    return of_person(value, name.strip("-").upper(), name)


def _not_read(problems: Mapping[str, str]) -> list[str]:
    return [f"{shown(path)} ({why})" for path, why in problems.items()]


def _reasons(title: str, files: Mapping[str, Message], file: str) -> Iterator[str]:
    """Yield a line for each reason, with the files that have it; `file` has all of them."""
    paths: dict[str, list[str]] = {}
    for path, why in files.items():
        paths.setdefault(f"{why.code}: {why}", []).append(path)
    for reason, names in paths.items():
        yield from _listed(f"{title}, {reason}", names, file)


def _listed(title: str, names: Sequence[str], file: str) -> Iterator[str]:
    if names:
        rest = f" and {len(names) - MOST_LISTED} more, in {file}"
        listed = ", ".join(names[:MOST_LISTED])
        yield f"{title}: {len(names)}: {listed}{rest if len(names) > MOST_LISTED else ''}"


USES = (
    ArgumentUse("--format --arguments", beside="--print"),
    ArgumentUse("--case --accept --node --nodes --label --baseline -i -l", without="--print"),
    ArgumentUse("--run-id --runs", beside="--case --accept", without="--print"),
    ArgumentUse("--baseline", beside="-i -l"),
)
"""The options that would be ignored beside others."""

COMMANDS = {
    "adopt": Command(
        adopt,
        "adopt vendor --case hpl='*/xhpl*.out' --node '/(?P<node>n[0-9]+)/'",
        arguments,
        traced=False,
        uses=USES,
    ),
}

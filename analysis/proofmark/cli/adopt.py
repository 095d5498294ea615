"""The command ``adopt``."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from proofmark.cli.command import Command, Words, complete
from proofmark.cli.command_inputs import kit_benchmarks, runs_folder_argument
from proofmark.cli.output import print_line
from proofmark.cli.site import inventory_of, limit_argument, site_argument
from proofmark.common.errors import BadInput, bad_input
from proofmark.common.kit import kit_folder, result_folder
from proofmark.common.nodesets import folded, unfold
from proofmark.common.printed_command import Part, PrintedCommand, of_person
from proofmark.common.progress_lines import say
from proofmark.plan.expansion import limit_mistakes
from proofmark.plan.output_paths import LabelRule, PathRule
from proofmark.runs.adopted import Adopted, shown
from proofmark.runs.adoption import Counted, adopt_folder
from proofmark.runs.adoption_request import Adoption, Request, planned
from proofmark.runs.output_folder import HEAD, OutputFolder, opened
from proofmark.runs.run import Run
from proofmark.site.accepted_baseline import chosen_baseline
from proofmark.site.inventory import Site, load_site

MOST_LISTED = 10
"""The largest number of files that a message lists; ``inputs/adopted.json`` has all."""


def arguments(parser: ArgumentParser) -> None:
    """Add the arguments of ``proofmark adopt`` to `parser`."""
    parser.add_argument(
        "source", metavar="FOLDER", type=Path, help="the outputs; nothing is changed there"
    )
    note = (
        "the outputs of a case: a pattern for paths below FOLDER, where * also matches /; without "
        "it, a plan is printed"
    )
    pattern = parser.add_argument(
        "--case", metavar="CASE=PATTERN", action="append", default=[], help=note
    )
    complete(pattern, Words.OUTPUTS)
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


def adopt(options: Namespace) -> int:
    """Create a run from outputs that others produced, or print how it would be created."""
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
    request = Request(
        folder=options.source,
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
        with opened(options.source, HEAD) as folder:
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
    files, hosts = len(adopted.files), len(nodes)
    yield f"adopted: {_count(files, 'file')} of {_count(hosts, 'node')}: {counts}"
    unread = [each.problem for each in adopted.files.values() if each.problem]
    more = run.files.adopted.relative_to(run.folder.parent)
    yield from _listed("files that cannot be read, INVALID", unread, f"{more}")
    yield from _listed("files that match no case", adopted.unmatched, f"{more}")
    yield from _listed("not read", _not_read(adopted.not_entered), f"{more}")
    yield f"next: {PrintedCommand('proofmark', 'report', of_person(run.folder, 'RUN'))}"


def _plan(folder: OutputFolder, adoption: Adoption, given: Sequence[Part]) -> Iterator[str]:
    """Yield the lines of the plan: the files of each case, what is left over, and the options."""
    request, outputs = adoption.request, adoption.outputs
    by_case = Counter(each.case for each in outputs)
    counts = ", ".join(f"{case} {number}" for case, number in by_case.items())
    yield f"plan: {len(outputs)} of {_count(len(folder.paths), 'file')}: {counts}"
    named = {
        each.source: bool(request.rule and request.rule.nodes(each.source)) for each in outputs
    }
    for title, wanted in (("nodes in paths", True), ("nodes in outputs or job scripts", False)):
        if some := [each.nodes for each in outputs if named[each.source] is wanted]:
            nodes = folded({node for each in some for node in each})
            yield f"{title}: {_count(len(some), 'file')} of {nodes}"
    for label in request.labels:
        values = Counter(str(each.parameters.get(label.name, "without")) for each in outputs)
        found = ", ".join(f"{value} {number}" for value, number in sorted(values.items()))
        yield f"label {label.name}: {found}"
    reasons: dict[str, list[str]] = {}
    for path, why in adoption.left.items():
        reasons.setdefault(f"{why.code}: {why}", []).append(shown(path))
    for reason, paths in reasons.items():
        yield from _listed(f"left over, {reason}", paths, "the folder")
    yield from _listed("not read", _not_read(folder.not_read), "the folder")
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


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _listed(title: str, names: Sequence[str], file: str) -> Iterator[str]:
    if names:
        rest = f" and {len(names) - MOST_LISTED} more, in {file}"
        listed = ", ".join(names[:MOST_LISTED])
        yield f"{title}: {len(names)}: {listed}{rest if len(names) > MOST_LISTED else ''}"


COMMANDS = {
    "adopt": Command(
        adopt,
        "adopt vendor --case hpl='*/xhpl*.out' --node '/(?P<node>n[0-9]+)/'",
        arguments,
        traced=False,
    ),
}

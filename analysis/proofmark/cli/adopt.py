"""The command ``adopt``."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from proofmark.cli.command import Command, Words, complete
from proofmark.cli.command_inputs import kit_benchmarks, runs_folder_argument
from proofmark.cli.output import print_line
from proofmark.cli.site import inventory_of, limit_argument, site_argument
from proofmark.common.errors import BadInput, bad_input
from proofmark.common.kit import kit_folder, result_folder
from proofmark.common.nodesets import unfold
from proofmark.common.progress_lines import say
from proofmark.plan.expansion import limit_mistakes
from proofmark.plan.output_paths import PathRule
from proofmark.runs.adopted import Adopted
from proofmark.runs.adoption import Counted, Request, adopt_folder
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
    note = "the outputs of a case: a pattern for paths below FOLDER, where * also matches /"
    pattern = parser.add_argument(
        "--case", metavar="CASE=PATTERN", action="append", required=True, help=note
    )
    complete(pattern, Words.OUTPUTS)
    note = (
        "finds the node in a path, which begins with /: the group (?P<node>…); further named "
        "groups are parameters"
    )
    parser.add_argument("--node", metavar="REGEX", help=note)
    note = "the nodes of each output whose path names none"
    parser.add_argument("--nodes", metavar="NODESET", help=note)
    parser.add_argument("--run-id", help="the name of the run")
    runs_folder_argument(parser)
    parser.add_argument("--baseline", help="with -i: the accepted runs to compare with, or none")
    site_argument(parser, "the site of the nodes, with its limits (default: none)")
    limit_argument(parser, "with -i: a partition, or hosts of one")


def adopt(options: Namespace) -> int:
    """Create a run from outputs that others produced."""
    benchmarks = kit_benchmarks()
    patterns: dict[str, list[str]] = {}
    for word in options.case:
        case, separator, pattern = word.partition("=")
        if not (separator and pattern):
            raise bad_input("--case", "", repr(word), "CASE=PATTERN, as hpl='*/xhpl*.out'")
        benchmarks.case(case)
        patterns.setdefault(case, []).append(pattern)
    cases = {name: benchmarks.case(name) for name in patterns}
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
    )
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
    left = [f"{path} ({why})" for path, why in adopted.not_entered.items()]
    yield from _listed("folders that were not read", left, f"{more}")
    yield f"next: proofmark report {run.folder}"


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

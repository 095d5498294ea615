"""What a plan and a checked site are printed with: unknown facts, warnings, idle cores."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from pathlib import Path

from proofmark.cases.suite import Benchmarks
from proofmark.cases.vocabulary import RAIL
from proofmark.cli.command import Words, complete
from proofmark.common.errors import BadInput
from proofmark.common.kit import kit_folder, result_folder
from proofmark.judge.stability.sampling import ahead
from proofmark.plan.limits_of_suites import without_figures
from proofmark.plan.plan import Plan
from proofmark.plan.stability_plan import counted_plan
from proofmark.plan.totals import idle_cores
from proofmark.site.inventory import Site
from proofmark.site.machine import Machine
from proofmark.site.node.unread import unread_lines
from proofmark.site.run_variables import MPIS_OF_LAUNCHER, doubtful
from proofmark.site.tried import untried
from proofmark.software.provider import check_provider


def prefixes_argument(parser: ArgumentParser) -> None:
    """Add ``--prefixes`` to `parser`."""
    note = "folder of installations, whose path must not be too long (default: .provision)"
    folder = parser.add_argument("--prefixes", default="", metavar="FOLDER", help=note)
    complete(folder, Words.PATH)


def prefixes(options: Namespace) -> Path:
    """Return the folder of the installations."""
    return result_folder(kit_folder(), ".provision", options.prefixes).resolve()


def place(site: Site, options: Namespace) -> Iterator[str]:
    """Yield why the programs of `site` cannot be installed from this checkout."""
    try:
        check_provider(site.partition.provision_from, prefixes(options))
    except BadInput as error:
        yield from (f"no run from here: {mistake}" for mistake in error.mistakes)


def plan_notes(
    made: Plan, benchmarks: Benchmarks, site: Site, machines: Callable[[str], Machine]
) -> Iterator[str]:
    """Yield a line for each unknown fact, idle core and limit without a figure."""
    unread = machines(site.partition.current_mode).unread
    yield from (f"not known: {line}" for line in unread_lines(unread))
    yield from doubts(site, benchmarks)
    launcher = site.partition.launch.launcher
    if launcher not in MPIS_OF_LAUNCHER and any(RAIL in each.parameters for each in made.steps()):
        yield f"not judged: one rail alone, unless {RAILS_KNOWN}"
    yield from idle_cores(made, machines)
    if made.stability:
        yield from ahead(made, [*site.items.values()])
        made = counted_plan(made)
    yield from without_figures(made, benchmarks, site, machines)


RAILS_KNOWN = "the MPI of the programs is Open MPI, MPICH, MVAPICH or Intel MPI"
"""The condition under which a program can be limited to one rail (``site/data/rails.yml``)."""


def doubts(site: Site, benchmarks: Benchmarks) -> Iterator[str]:
    """Yield a warning for each back end that never ran, and for each doubtful run-time variable."""
    launch = site.partition.launch
    name = site.partition_name
    for key, back_end in untried(site.partition).items():
        yield f"warning: {name}: partition.{key}: {back_end!r} never ran with the real thing"
    yield from (f"warning: {name}: partition.launch: {each}" for each in launch.doubts())
    for name, case in benchmarks.cases.items():
        for each in doubtful(case.environment, MPIS_OF_LAUNCHER.get(launch.launcher, ())):
            yield f"warning: {name}: environment: {each}"

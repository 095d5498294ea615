"""What a plan and a checked site are printed with: unknown facts, warnings, idle cores.

`plan_notes` makes the notes of a plan once, for the screen, for JSON and for the start of a run.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from proofmark.cases.suite import Benchmarks
from proofmark.cases.vocabulary import RAIL
from proofmark.cli.command import Words, complete
from proofmark.cli.command_inputs import packages_of_kit
from proofmark.common.errors import BadInput
from proofmark.common.kit import kit_folder, result_folder
from proofmark.common.message import Message
from proofmark.common.printed_command import PrintedCommand, of_person
from proofmark.judge.foreseen import facts_of_modes, judged_elsewhere
from proofmark.plan.kinds import kind_of
from proofmark.plan.lacking import available_at, lost_steps
from proofmark.plan.plan import Plan
from proofmark.plan.totals import idle_cores
from proofmark.plan.validation import without_figures
from proofmark.site.execution import MPIS_OF_LAUNCHER, doubtful
from proofmark.site.inventory import Site
from proofmark.site.machines import Machine
from proofmark.site.node.probe_text import unread_lines
from proofmark.site.partition import untried
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


class NoteKind(StrEnum):
    """What a note is about."""

    UNKNOWN = "not known"
    UNJUDGED = "not judged"
    DOUBT = "note"
    """A warning, or cores that stay idle."""
    LOST = "lost"
    """Steps that are not started and will be INVALID, because the MPI lacks a part of it."""
    OF_KIND = "kind"
    """What the kind of the run needs, and its risks."""
    LIMIT = "limit"
    """A limit of the site that judges no figure of the plan, and what other sites accepted."""


class Note(NamedTuple):
    """Something that a person should know before a run."""

    kind: NoteKind
    text: str

    @property
    def line(self) -> str:
        """The text; it begins with the kind if it does not state this itself."""
        stated = self.kind in (NoteKind.UNKNOWN, NoteKind.UNJUDGED, NoteKind.LOST)
        return f"{self.kind}: {self.text}" if stated else self.text


def plan_notes(
    made: Plan,
    benchmarks: Benchmarks,
    site: Site,
    machines: Callable[[str], Machine],
    probe: str = "",
) -> Iterator[Note]:
    """Yield a note for each unknown fact, doubt, lost step, idle core, and limit without a figure.

    Args:
        machines: its machine in each mode.
        probe: the output of the probe of a node; empty if the hardware is declared.
    """
    for line in unread_lines(machines(site.partition.current_mode).unread):
        yield Note(NoteKind.UNKNOWN, line)
    for line in doubts(site, benchmarks):
        yield Note(NoteKind.DOUBT, line)
    launcher = site.partition.launch.launcher
    if launcher not in MPIS_OF_LAUNCHER and any(RAIL in each.parameters for each in made.steps()):
        yield Note(NoteKind.UNJUDGED, f"one rail alone, unless {RAILS_KNOWN}")
    for line in _lost(made, site):
        yield Note(NoteKind.LOST, line)
    for line in idle_cores(made, machines):
        yield Note(NoteKind.DOUBT, line)
    kind = kind_of(made)
    for line in kind.notes(made, [*site.items.values()]):
        yield Note(NoteKind.OF_KIND, line)
    made = kind.judged(made)
    for line in without_figures(made, benchmarks, site, machines):
        yield Note(NoteKind.LIMIT, line)
    if site.elsewhere:
        facts = facts_of_modes(made, site, machines, probe)
        for line in judged_elsewhere(made, benchmarks, site, facts):
            yield Note(NoteKind.LIMIT, line)


def _lost(made: Plan, site: Site) -> Iterator[str]:
    """Yield the steps that need a part of the MPI that the MPI of the origin lacks."""
    available, _ = available_at(site, packages_of_kit)
    if steps := lost_steps(made, available):
        arch = of_person(site.partition.environment, "ARCH")
        command = PrintedCommand("proofmark", "lock", arch, "-i", "SITE", "--find", "--mpi=kit")
        reason = Message("hints-without-romio", part="the MPI of the lock")
        names = ", ".join(step.id for step in steps)
        yield f"{names}: INVALID, not started: {reason}; `{command}` makes a lock with ROMIO"


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

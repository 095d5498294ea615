"""The claims of the papers on the figures of runs: in verdict.json, on the page, in a command.

They are information. No verdict depends on them.
"""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from proofmark.cli.command import ArgumentUse
from proofmark.cli.inputs import run_to_show
from proofmark.cli.output import print_json, print_table
from proofmark.common.errors import BadInput, InputError, bad_input
from proofmark.common.message import localized
from proofmark.common.translation import ENGLISH, _, translated
from proofmark.judge.additions import AddedJudge, Finding
from proofmark.judge.aggregate import Aggregates
from proofmark.judge.evidence import Evidence
from proofmark.judge.fleet.fleet import Fleet
from proofmark.judge.judging import judge_run
from proofmark.judge.verdict import Verdict
from proofmark.packages.papers.all_claims import answers
from proofmark.packages.papers.claim import PAPERS, WORDS, Answer, NodeHardware
from proofmark.records.parquet_table import table
from proofmark.records.stored_readings import stored_or_read
from proofmark.report.additions import AddedSection, Addition, RunAddition
from proofmark.report.page import Block, Cell, PageLink, Section, Table, titled
from proofmark.report.words import count
from proofmark.runs.run import Run, site_of
from proofmark.site.hardware import UNRECORDED
from proofmark.site.machines import declared
from proofmark.site.partition import PREDICTED

FILE = "claims.json"
"""The file in the folder of the plots with every value that was compared."""
JUDGE = "papers"
"""The name of the judge, as in the table of this package."""


def answers_of(runs: Iterable[tuple[Run, Aggregates]]) -> list[Answer]:
    """Return the answer to every claim from the valid figures of all `runs` together.

    Raises:
        BadInput: two simulations of a system imitate different MPI libraries.
    """
    tables: list[pl.DataFrame] = []
    machines: dict[str, NodeHardware] = {}
    selectors: dict[str, str] = {}
    for run, figures in runs:
        _add_selector(run, selectors)
        tables.append(figures_table(figures, set(PAPERS)))
        if machine := declared_node(run):
            machines[run.plan.system] = machine
    return answers(pl.concat(tables), machines)


def figures_table(figures: Aggregates, systems: Collection[str]) -> pl.DataFrame:
    """Return the records of the valid figures of `systems`, with the columns of records.parquet.

    The first record of each other measurand is in it, too. Its texts are Categorical, which takes
    less memory.
    """
    records = figures.records
    members = figures.order[np.repeat(figures.valid, figures.count)]
    measurand = records.measurand[members]
    of_systems = [each.system in systems for each in records.measurands]
    wanted = np.array(of_systems, dtype=bool)[measurand]
    wanted[np.unique(measurand, return_index=True)[1]] = True
    members = members[wanted]
    chosen = replace(
        records,
        execution=records.execution[members],
        measurand=records.measurand[members],
        node=records.node[members],
        value=records.value[members],
        reason=records.reason[members],
    )
    return table(chosen, pl.Categorical)


def _add_selector(run: Run, selectors: dict[str, str]) -> None:
    """Add the selector of a simulation to those of other runs, by system."""
    partition = site_of(run).partition
    if partition.origin != PREDICTED:
        return
    selector = partition.launch.mpi
    known = selectors.setdefault(run.plan.system, selector)
    if selector != known:
        raise bad_input(run.folder, "selector", selector, known)


class ClaimsJudge(AddedJudge):
    """Answers the claims. It judges no figure and no node."""

    def judge(self, evidence: Evidence, fleet: Fleet) -> Finding | None:
        """Return the claims of the run; they are checked when they are first read."""
        run = evidence.read_from
        return RunClaims(run, evidence.figures) if run else None


@dataclass(frozen=True, eq=False)
class RunClaims(Finding):
    """The claims on the figures of one run."""

    run: Run
    figures: Aggregates

    @cached_property
    def answers(self) -> Sequence[Answer]:
        """The answer to every claim."""
        return answers_of([(self.run, self.figures)])

    def as_json(self) -> Mapping[str, Any]:
        """Return the key ``claims`` of ``verdict.json``; no key if no claim is on this system."""
        if all(answer.elsewhere for answer in self.answers):
            return {}
        return {"claims": [each.as_json() for each in self.answers]}


class ClaimsOnPage(Addition):
    """Shows the claims on the system of a run."""

    def of_run(self, run: Run, verdict: Verdict) -> ClaimsPage | None:
        """Return the claims of the verdict; None if it has none."""
        found = verdict.added.get(JUDGE)
        return ClaimsPage(run, found.answers) if isinstance(found, RunClaims) else None


@dataclass(frozen=True)
class ClaimsPage(RunAddition):
    """What is added to the page of a run."""

    run: Run
    answers: Sequence[Answer]

    def sections(self) -> Iterator[AddedSection]:
        """Yield the section with the claims on the run's system, if there are any."""
        checked = [answer for answer in self.answers if not answer.elsewhere]
        if not checked:
            return
        tallies = [(word, sum(answer.word == word for answer in checked)) for word in WORDS]
        counts = ", ".join(f"{translated(word)}: {amount}" for word, amount in tallies if amount)
        paragraphs = (
            _(
                "Statements of the papers, checked on the valid figures of this run. They are "
                "facts about the papers' systems: a claim that does not hold is not a fault of "
                "this machine. A claim cannot be told if its sweep is incomplete, or if the noise "
                "of the repeats hides it."
            ),
            _("{claims} on this system: {counts}.").format(
                claims=count(len(checked), "claim"), counts=counts
            ),
        )
        tables = (_table(_("Claims on this system"), checked),)
        path = f"{self.run.files.plots.name}/{FILE}"
        links = (PageLink(path, _("claims.json, with every value that was compared")),)
        block = Block(paragraphs=paragraphs, tables=tables, links=links)
        content = json.dumps([answer.as_json() for answer in self.answers], indent=1) + "\n"
        yield AddedSection(
            Section("claims", _("Claims of the papers"), (block,)),
            after="baseline",
            files={FILE: content.encode()},
        )


def _table(caption: str, answers: Sequence[Answer]) -> Table:
    rows = [
        (
            Cell(answer.claim.id, "strong"),
            Cell(translated(answer.claim.statement), "reason"),
            Cell(translated(answer.word), f"word {answer.word.replace(' ', '-')}"),
            Cell(
                localized(answer.sentence),
                "reason",
                details=tuple(map(localized, answer.missing[1:])),
            ),
        )
        for answer in answers
    ]
    return titled(
        caption,
        (_("Claim"), _("Statement of the paper"), _("Answer"), _("Result of this run")),
        rows,
    )


def declared_node(run: Run) -> NodeHardware | None:
    """Return the node of the run's system as the site declares it; None if it declares none."""
    site = site_of(run)
    node = site.partition.node
    if not node.topology:
        return None
    mode = run.plan.current_mode
    if mode == UNRECORDED:  # the cores are the same in each mode
        mode = site.partition.current_mode
    try:
        machine = declared(site, node, mode)
    except BadInput:
        # The topology is in a file of the inventory, which is missing on this machine.
        return None
    tiles = {core.tile for core in machine.topology.cores if core.tile is not None}
    peak = machine.symbols.get("rpeak_nominal")
    cores = len(machine.topology.cores)
    shared = len(tiles) if len(tiles) < cores else 0
    return NodeHardware(cores, shared, peak / 1e9 if peak else None)


def print_claims(options: Namespace) -> int | None:
    """Print the claims that hold in the runs; None: ``--claims`` is not given.

    Raises:
        BadInput: further options have no meaning beside ``--claims``, or further runs without it.
    """
    folders = [options.folder, *options.more]
    if not options.claims:
        if options.more:
            named = ", ".join(map(str, folders))
            raise bad_input("RUN", "", named, "one run; several with --claims")
        return None
    others = {"--strict": options.strict, "--all": options.all}
    given = [name for name, value in others.items() if value]
    given += ["--language"] if options.language != ENGLISH else []
    mistakes: list[InputError] = [
        *ArgumentUse(" ".join(given), without="--claims").mistakes([*given, "--claims"])
    ]
    if mistakes:
        raise BadInput(*mistakes)
    runs = [run_to_show(folder) for folder in folders]
    found = answers_of((run, judge_run(run, stored_or_read).results.aggregates) for run in runs)
    if options.json:
        print_json([answer.as_json() for answer in found])
        return 0
    print_table(
        ("claim", "answer", "origin", "reason"),
        [(each.claim.id, each.word, each.origin or "–", each.sentence) for each in found],
        "no claim of a paper is known",
    )
    return 0

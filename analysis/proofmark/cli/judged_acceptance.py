"""Judges an acceptance: reads the sealed runs of a site, prints the items, writes the page.

Measures what the contract still needs: the suites in the order that finds faults early.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from proofmark.cli.command_inputs import kit_benchmarks, packages_of_kit
from proofmark.cli.output import print_json, print_line, print_table
from proofmark.common.call_settings import setting
from proofmark.common.errors import BadInput, bad_input
from proofmark.common.files import read_regular, write_whole, write_whole_bytes
from proofmark.common.kit import kit_folder, result_folder
from proofmark.common.message import NOTHING, Message
from proofmark.common.printed_command import PrintedCommand, of_person
from proofmark.common.progress_lines import say
from proofmark.common.sentences import localized
from proofmark.common.text import one_line
from proofmark.common.translation import _, translated
from proofmark.judge.acceptance import (
    CODES,
    Acceptance,
    AcceptedItem,
    JudgedRun,
    RunLeftOut,
    acceptance,
    other_state,
)
from proofmark.judge.acceptance_gaps import Gap, Times, gaps, times_of
from proofmark.judge.judging import judge_run
from proofmark.judge.trend.past_run import is_run, run_folders
from proofmark.plan.planned_items import PlannedItem, planned_items
from proofmark.plan.validation import SiteChecks
from proofmark.plan.validation import validate as check_site
from proofmark.report.acceptance_page import (
    acceptance_page,
    figure_text,
    gap_text,
    item_limit,
    notes,
    runs_of,
)
from proofmark.runs.acceptance import new_signed, sign, signed_before, signed_folders, sums_of
from proofmark.runs.acceptance_data import PAGE, PAGE_DATA
from proofmark.runs.evidence import read_evidence
from proofmark.runs.run import Run, site_of
from proofmark.runs.sealed_runs import SealedRun, keep, sealed_of, sealed_runs
from proofmark.runs.waivers import digest_of
from proofmark.site.contract_document import Contract
from proofmark.site.groups import COMPUTE
from proofmark.site.inventory import Inventory, Site, load_sites

WIDTH = 100
"""The length of the lines of the table."""


@dataclass(frozen=True)
class Question:
    """An acceptance that is judged.

    Attributes:
        inventory: the inventory of the site.
        contract: its contract.
        limit: a partition, or hosts of it; `COMPUTE` for all partitions.
        root: the folder of the runs.
        named: the only runs that count; empty: all runs of the folder.
    """

    inventory: Inventory
    contract: Contract
    limit: str
    root: Path
    named: Sequence[Path] = ()

    @property
    def site(self) -> str:
        """The inventory, as a person named it."""
        return f"{self.inventory.source}"

    @property
    def folder(self) -> Path:
        """The folder of the page, beside the runs."""
        of_part = [] if self.limit == COMPUTE else [each.partition_name for each in self.sites]
        return self.root / "-".join(["acceptance", self.inventory.folder.name, *of_part])

    @cached_property
    def sites(self) -> list[Site]:
        """The partitions under the limit. Each has all of its hosts in ``partition_hosts``.

        Raises:
            BadInput: the inventory is wrong, or the limit selects no host.
        """
        return load_sites(self.inventory, self.limit)

    @cached_property
    def suites(self) -> tuple[Sequence[PlannedItem], Times]:
        """The suites that measure each item, and the expected times of those that can run."""
        from proofmark.jobs.site_check import job_mistakes

        benchmarks = kit_benchmarks()
        checks = SiteChecks(facts={}, packages=packages_of_kit, jobs=job_mistakes)
        checked = check_site(self.inventory, self.limit, benchmarks, checks)
        for mistake in checked.mistakes:
            say(f"proofmark: {mistake}")
        refused = {
            (partition, refusal.suite)
            for partition, refusals in checked.refused.items()
            for refusal in refusals
        }
        plans = [plan for plan in checked.plans if benchmarks.suite(plan.suite).measures_all]
        planned = [*planned_items(self.contract, plans, benchmarks)]
        return planned, times_of(plans, refused)

    def answer(self) -> Acceptance:
        """Return the acceptance by the runs that there are now."""
        sites = self.sites
        runs, left_out = self._runs({each.partition_name: each for each in sites})
        partitions = {each.partition_name: each.partition_hosts or each.hosts for each in sites}
        name = self.inventory.folder.name
        return acceptance(name, self.contract, partitions, runs, left_out)

    def _runs(self, sites: Mapping[str, Site]) -> tuple[list[JudgedRun], list[RunLeftOut]]:
        """Return the runs that can decide, and those that cannot, with the reason.

        They are the runs below the folder, and those that this user knows to be sealed.

        Raises:
            BadInput: a run of `named` cannot decide, or the state of the site is damaged.
        """
        runs: dict[str, JudgedRun] = {}
        left_out = []
        known = [
            each
            for each in sealed_runs(self.inventory.folder.name)
            if each.contract == digest_of(self.contract) and each.partition in sites
        ]
        elsewhere = [each.folder for each in known if is_run(each.folder)]
        beside = [self.root] if self.root.is_dir() else []
        for folder in self.named or run_folders([*beside, *elsewhere]):
            found = _run(folder, sites, self.contract)
            if isinstance(found, JudgedRun) and found.id not in runs:
                runs[found.id] = found
                continue
            if isinstance(found, JudgedRun):
                runs[found.id], left = _one_of(runs[found.id], found)
            else:
                left = RunLeftOut(folder.name, found)
            if self.named:
                accepted = "a sealed run of this site with its contract, measured on it"
                raise bad_input("--run", "", f"{folder}: {left.reason}", accepted)
            if left.reason.code != "acceptance-site":  # the folder has the runs of all sites
                left_out.append(left)
        for each in known:
            if each.run not in runs or not runs[each.run].has(each.evidence):
                left_out.append(_lacking(each, named=bool(self.named)))
        return [*runs.values()], left_out


def question(options: Namespace, inventory: Inventory, contract: Contract) -> Question:
    """Return the acceptance that the options of the command name."""
    root = result_folder(kit_folder(), "runs", options.runs)
    return Question(inventory, contract, options.limit, root, options.run)


def judge_acceptance(options: Namespace, asked: Question) -> int:
    """Judge the runs of a site by its contract; print the items and write the page.

    Raises:
        BadInput: a run that is named cannot decide, the inventory is wrong, or the page cannot be
            written.
    """
    return _shown(options, asked, asked.answer())


def _shown(options: Namespace, asked: Question, found: Acceptance) -> int:
    """Print the items of an acceptance and write its page; return the exit code of its word."""
    missing = _gaps(asked, found.open_items)
    folder = options.output or asked.folder
    if not options.check:
        for run in found.runs:
            keep(run.kept, run.earlier)
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in _files(found, asked.contract, missing).items():
            write_whole(folder / name, text)
    if options.json:
        print_json(_content(found, asked.contract, missing))
    else:
        _print(found, missing)
        print_line(f"{folder / PAGE}")
    return CODES[found.word]


def sign_acceptance(options: Namespace, asked: Question) -> int:
    """Sign the page of an acceptance that is what its runs give, or add a signature to it.

    Raises:
        BadInput: the page is not what the runs give, or ssh-keygen refuses.
    """
    found = asked.answer()
    missing = _gaps(asked, found.open_items)
    files = _files(found, asked.contract, missing)
    written = {name: read_regular(asked.folder / name) for name in files}
    if written != {name: text.encode() for name, text in files.items()}:
        judge = PrintedCommand(
            "proofmark", "acceptance", "judge", of_person(asked.site, "SITE", "-i")
        )
        raise bad_input(asked.folder / PAGE, "", "not what its runs give", f"what `{judge}` writes")
    place = asked.folder
    place.mkdir(parents=True, exist_ok=True)
    with new_signed(place) as new:
        for name, content in written.items():
            write_whole_bytes(new / name, content)
        content = sums_of(new)
        same = signed_before(place, content)
        signature = sign(same or new, options.key, content)
        if same:
            shutil.rmtree(new)
    newest = same or signed_folders(place)[0]
    print_line(f"{newest / signature.name}")
    print_line(f"{translated(found.word)}: {localized(found.text)}")
    return 0


def measure_acceptance(options: Namespace, asked: Question) -> int:
    """Run the suites that the contract still needs, then judge.

    It stops after a suite that misses an item. What an earlier run missed is measured again.
    A suite is one call of the playbook, which continues an unfinished run of the same plan.

    Raises:
        BadInput: the nodes of a partition are not real, or as in `judge_acceptance`.
    """
    for site in asked.sites:
        if why := other_state(None, site.partition.origin):
            one = setting("suite", "SUITE")
            accepted = f"a measured partition; else {one} measures one suite"
            raise bad_input(site.facts, "partition.origin", localized(why), accepted)
    found, measured = asked.answer(), set[tuple[str, str]]()
    earlier, failed = {run.id for run in found.runs}, 0
    while not (failed or found.misses({run.id for run in found.runs} - earlier)):
        wanted = [each for each in _to_measure(asked, found) if each.suite]
        left = [each for each in wanted if (each.partition, each.suite) not in measured]
        if not left:
            break
        if not measured:
            for each in left:
                say(f"acceptance: {each.suite}, {gap_text(each)}: items {', '.join(each.items)}")
        measured.add((left[0].partition, left[0].suite))
        before = {run.evidence for run in found.runs}
        repeats = max(each.repeats for each in left if each.suite == left[0].suite)
        play = _play(options.playbook, left[0].suite, repeats)
        code = subprocess.run(play, check=False).returncode
        found = asked.answer()
        # A play that failed without new evidence measured nothing: its own message says why.
        failed = code if before == {run.evidence for run in found.runs} else 0
    return _shown(options, asked, found) or failed


def _to_measure(asked: Question, found: Acceptance) -> list[Gap]:
    """Return the suites for the items that are open or missed, or for a fault that stands."""
    items = (*found.open_items, *found.missed_items)
    if not items and found.word == "FAIL":
        items = found.items  # the nodes with a fault are measured again
    return _gaps(asked, items)


def _play(given: Sequence[str], suite: str, repeats: int) -> list[str]:
    """Return the command line of the playbook for a suite.

    Args:
        given: the command line without a suite. Its own number of repeats follows, and so counts.
        suite: the suite.
        repeats: of each step; 0 for those of the suite.
    """
    more = ["-e", f"repeats={repeats}"] if repeats else []
    play = f"{Path(sys.executable).parent / 'ansible-playbook'}"
    return [play, *more, *given, "-e", f"suite={suite}"]


def _files(found: Acceptance, contract: Contract, missing: Sequence[Gap]) -> dict[str, str]:
    """Return the page and its data, by the names of the files."""
    text = json.dumps(_content(found, contract, missing), indent=1) + "\n"
    digest = sha256(text.encode()).hexdigest()
    return {PAGE_DATA: text, PAGE: acceptance_page(found, contract, missing, digest)}


def _one_of(first: JudgedRun, second: JudgedRun) -> tuple[JudgedRun, RunLeftOut]:
    """Return which of two folders of a run decides, and the other one, which is left out."""
    newer, older = (second, first) if second.has(first.evidence) else (first, second)
    place = older.kept.folder if older.kept else Path(older.id)
    if newer.has(older.evidence):
        return newer, RunLeftOut(place.name, Message("past-copy", folder=newer.id))
    return newer, RunLeftOut(place.name, Message("acceptance-fork", folder=f"{place}"), open=True)


def _lacking(sealed: SealedRun, *, named: bool) -> RunLeftOut:
    """Return why sealed evidence decides nothing; with `named`, a person chose the runs."""
    about = {
        "word": sealed.word or Message("sealed-only"),
        "date": f"{sealed.sealed:%Y-%m-%d %H:%M UTC}",
        "folder": f"{sealed.folder}",
    }
    if not is_run(sealed.folder):
        return RunLeftOut(sealed.run, Message("acceptance-missing", **about), open=not named)
    if named:
        return RunLeftOut(sealed.run, Message("acceptance-not-named", **about))
    reason = Message("acceptance-other-evidence", **about, evidence=sealed.evidence)
    return RunLeftOut(sealed.run, reason, open=True)


def _run(folder: Path, sites: Mapping[str, Site], contract: Contract) -> JudgedRun | Message:
    """Return a judged run, or why it decides nothing."""
    try:
        evidence = read_evidence(folder.resolve())
        if evidence is None:
            return Message("acceptance-unsealed")
        run = evidence.run()
        if why := _refusal(run, sites, contract):
            return why
        verdict = judge_run(run)
        return JudgedRun(
            plan=run.plan,
            sealed=evidence.newest.sealed,
            evidence=evidence.digest,
            verdict=verdict,
            mode_now=sites[run.plan.partition].partition.current_mode,
            kept=sealed_of(run, folder, verdict.headline().word),
            earlier=tuple(evidence.digests[:-1]),
        )
    except BadInput as error:
        mistake = error.mistakes[0]
        problem = one_line(f"{mistake.file}: {mistake.key}: {mistake.found}")
        return Message("acceptance-unreadable", problem=problem)


def _refusal(run: Run, sites: Mapping[str, Site], contract: Contract) -> Message:
    """Return why a run decides nothing in this acceptance; `NOTHING` if it can decide."""
    site = site_of(run)
    if site.name not in {each.name for each in sites.values()}:
        return Message("acceptance-site", site=site.name)
    if run.plan.partition not in sites:
        return Message("acceptance-partition", partition=run.plan.partition)
    if site.contract is None or digest_of(site.contract) != digest_of(contract):
        return Message("acceptance-contract")
    return other_state(run.plan, site.partition.origin) or NOTHING


def _gaps(asked: Question, items: Sequence[AcceptedItem]) -> list[Gap]:
    """Return what measures `items`. Only if there are any, the suites are planned."""
    return [*gaps(items, *asked.suites, asked.site)] if items else []


def _content(found: Acceptance, contract: Contract, missing: Sequence[Gap]) -> dict[str, Any]:
    """Return the content of ``acceptance.json``."""
    about = {"title": contract.title, "parties": dict(contract.parties)}
    return {
        "contract": {**about, "sha256": digest_of(contract)},
        **found.as_json(),
        "missing": [each.as_json() for each in missing],
    }


def _print(found: Acceptance, missing: Sequence[Gap]) -> None:
    """Print the items, what stands against them, what is missing, and the word last."""
    heads = (_("Item"), _("Phase"), _("Figure"), _("Limit"), _("Outcome"), _("Run"))
    rows = [
        (
            each.item.number,
            translated(each.item.phase),
            figure_text(each),
            item_limit(each),
            translated(each.outcome),
            runs_of(each),
        )
        for each in found.items
    ]
    print_table(heads, rows, width=WIDTH)
    for each in found.items:
        for note in notes(each):
            print_line(f"{each.item.number}: {note}")
    for fault in found.faults:
        state = _("stands") if fault.stands else _("measured again since")
        print_line(f"{fault.nodes}: {localized(fault.reason)} ({fault.run}, {state})")
    for limited in found.limited:
        print_line(f"{limited.run}: {localized(limited.reason)}")
    for left_out in found.left_out:
        print_line(f"{_('Left out')}: {left_out.run}: {localized(left_out.reason)}")
    for gap in missing:
        suite = gap.suite or _("no suite of the site")
        items = ", ".join(gap.items)
        print_line(f"{_('Still missing')}: {items}: {suite}, {gap_text(gap)}: {gap.command}")
    for phase in found.phases:
        met = _("{met} of {total} items met").format(met=phase.met, total=phase.total)
        word, name = translated(phase.word), translated(phase.phase)
        print_line(f"{name}: {word}, {phase.date or '–'}, {met}")
    print_line(f"{translated(found.word)}: {localized(found.text)}")

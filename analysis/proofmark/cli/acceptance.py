"""The command ``acceptance``: the contract of a site, and its judgement by the sealed runs.

It measures what the contract still needs: the suites in the order that finds faults early.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from textwrap import shorten

from pydantic import ValidationError

from proofmark.cli.inputs import inventory_of, kit_benchmarks, packages_of_kit
from proofmark.cli.output import print_json, print_line, print_table
from proofmark.common.errors import BadInput, InputError, bad_input
from proofmark.common.files import is_regular, sha256_of, write_atomic
from proofmark.common.kit import kit_folder, result_folder
from proofmark.common.message import Message, localized
from proofmark.common.printed_command import PrintedCommand, of_person, setting
from proofmark.common.processes import environment_of
from proofmark.common.progress_lines import say
from proofmark.common.text import counted, duration, one_line
from proofmark.common.translation import _, in_language, translated
from proofmark.common.trust import refuse_untrusted
from proofmark.common.yaml_models import placed
from proofmark.judge.acceptance import (
    CODES,
    Acceptance,
    AcceptedItem,
    Part,
    RunLeftOut,
    Terms,
    other_state,
)
from proofmark.judge.acceptance_gaps import Gap, Times, gaps, times_of
from proofmark.plan.kinds import added_kinds
from proofmark.plan.selection import PlannedItem, planned_items
from proofmark.plan.validation import CheckedSite, SiteChecks
from proofmark.plan.validation import validate as check_site
from proofmark.report.acceptance_page import figure_text, item_limit, notes, phase_text, runs_of
from proofmark.report.products import Made, differing, versions
from proofmark.report.statement import (
    Predicate,
    acceptance_data,
    acceptance_files,
    acceptance_name,
    made_again,
    products_of,
    runs_in,
)
from proofmark.report.words import item_text
from proofmark.runs.acceptance import OWN, RUNS, accept, new_signed, take
from proofmark.runs.evidence import evidence_files, open_evidence
from proofmark.runs.run import Run
from proofmark.runs.run_files import AcceptanceFiles, is_run, run_folders
from proofmark.runs.sealed_runs import (
    Attachment,
    SealedRun,
    Sighting,
    add_waiver,
    check,
    digest_of,
    keep,
    read_waivers,
    sealed_runs,
    signed,
)
from proofmark.site.contract_document import (
    CONTRACT,
    CheckItem,
    Contract,
    ContractItem,
    DerivedItem,
    Item,
    WitnessedItem,
    read_contract,
)
from proofmark.site.extra_vars import misnamed
from proofmark.site.groups import COMPUTE
from proofmark.site.inventory import Inventory, Site, load_sites


def acceptance(options: Namespace) -> int:
    """Check the contract of a site, judge its sealed runs by it, waive an item, or see one."""
    inventory = inventory_of(options)
    document = read_contract(inventory.folder)
    if document is None:
        mistakes = [*misnamed(inventory.folder)]
        file, accepted = f"{inventory.folder / CONTRACT}", "the contract of the site"
        raise BadInput(*mistakes or [InputError(file, "", "no such file", accepted)])
    root = result_folder(kit_folder(), "runs", options.runs)
    with in_language(options.language):
        return VERBS[options.verb](
            options, Question(inventory, document, options.limit, root, options.run)
        )


def _check(options: Namespace, asked: Question) -> int:
    """Print the suites that measure each item; refuse items that no suite can judge."""
    inventory, document = asked.inventory, asked.contract
    checked, planned = _suites(inventory, options.limit, document)
    numbers = [item.number for item in document.items]
    mistakes = [
        InputError(
            *_place(inventory, numbers.index(each.item.number), "runs"),
            f"{each.item.runs_needed} repeats on {each.partition}",
            f"at most {max(each.repeats.values())}, or more repeats: {setting('repeats', 'N')}",
        )
        for each in planned
        if each.repeats and each.too_few
    ]
    for item in document.limits.values():
        for kind in added_kinds():
            if never := kind.refused(item, document):
                where = _place(inventory, numbers.index(item.number), "value")
                mistakes.append(InputError(*where, *never))
    if mistakes or checked.mistakes:
        raise BadInput(*checked.mistakes, *mistakes)
    rows = [
        (
            each.item.number,
            each.partition,
            each.item.phase,
            f"{each.item.case} {each.item.metric}".strip(),
            item_text(each.item),
            _measures(each),
        )
        for each in planned
    ]
    print_table(("item", "partition", "phase", "figure", "limit", "suites (repeats)"), rows)
    if not all(map(_decided, planned)):
        for partition, refusals in checked.refused.items():
            for each in refusals:
                print_line(f"refused: {partition}: {each.line()}")
    decided = {item.number: "waits for a suite that can run" for item in document.items}
    decided |= {each.item.number: _DECIDES[type(each.item)] for each in planned if _decided(each)}
    counts = Counter(decided.values())
    shown = ", ".join(f"{n} {text}" for text, n in counts.items())
    print_line(f"{counted(len(decided), 'item')}: {shown}")
    return 0


_DECIDES: dict[type[Item], str] = {
    ContractItem: "by planned figures",
    CheckItem: "by reports of nodes",
    WitnessedItem: "by a party that sees it",
    DerivedItem: "by other items",
}
"""What decides each kind of item."""


def _decided(each: PlannedItem) -> bool:
    return bool(each.repeats) or not isinstance(each.item, ContractItem)


def _place(inventory: Inventory, item: int, key: str) -> tuple[str, str]:
    """Return the file of the contract with the line of `key` of an item, and the whole key."""
    file = inventory.folder / CONTRACT
    return placed([file], ["items", item, key])[0] or f"{file}", f"items.{item}.{key}"


def _measures(each: PlannedItem) -> str:
    """Return what decides an item: suites, what a party sees, or other items."""
    if isinstance(each.item, CheckItem):
        return "every suite"
    if isinstance(each.item, WitnessedItem):
        return "acceptance witness"
    if isinstance(each.item, DerivedItem):
        return f"items {', '.join(each.item.items)}"
    return ", ".join(f"{suite} ({n})" for suite, n in each.repeats.items()) or "–"


def _suites(
    inventory: Inventory, limit: str, document: Contract
) -> tuple[CheckedSite, list[PlannedItem]]:
    """Return the plans of a site, and the suites of each item that can run there.

    Those that only look come last.
    """
    # They import numerics and plug-ins, which the other verbs need not.
    from proofmark.jobs.job_request import job_mistakes

    benchmarks = kit_benchmarks()
    checks = SiteChecks(facts={}, packages=packages_of_kit, jobs=job_mistakes)
    checked = check_site(inventory, limit, benchmarks, checks)
    checked.plans.sort(key=lambda plan: not benchmarks.suite(plan.suite).measures_all)
    items = [*planned_items(document, checked.plans, benchmarks)]
    able = {(each.partition, each.suite) for each in checked.plans}
    for name, found in checked.refused.items():
        able -= {(name, each.suite) for each in found}
    checked.plans[:] = [each for each in checked.plans if (each.partition, each.suite) in able]
    planned = []
    for each in items:
        repeats = {suite: n for suite, n in each.repeats.items() if (each.partition, suite) in able}
        planned.append(replace(each, repeats=repeats))
    return checked, planned


def _stated(options: Namespace, numbers: Sequence[str]) -> str:
    """Return what a party states about an item.

    Raises:
        BadInput: it states or signs nothing, or is about none of the items with these numbers.
    """
    if not options.key:
        raise bad_input(options.verb, "", "no --key", "--item N --by NAME --key FILE")
    reason = one_line(options.reason)
    stated = {"item": options.item, "by": options.by, "reason": reason}
    if empty := [name for name, text in stated.items() if not text.strip()]:
        raise bad_input(f"--{empty[0]}", "", "nothing", "a text")
    if options.item not in numbers:
        raise bad_input("--item", "", options.item, f"an item: {', '.join(numbers) or 'none'}")
    return reason


def _witness(options: Namespace, asked: Question) -> int:
    """Sign what was seen of a witnessed item, and keep the attached files beside the contract."""
    folder, document = asked.inventory.folder, asked.contract
    items = [item.number for item in document.items if isinstance(item, WitnessedItem)]
    reason = _stated(options, items)
    attachments = []
    for path in options.attach:
        if not path.is_file():
            raise bad_input("--attach", "", f"{path}", "a file")
        try:
            attachments.append(Attachment(name=path.name, sha256=sha256_of(path)))
        except ValidationError:
            accepted = "a name of letters, digits, '.', '_' and '-'"
            raise bad_input("--attach", "", f"{path}", accepted) from None
    sighting = Sighting(
        item=options.item,
        contract=digest_of(document),
        outcome="FAIL" if options.missed else "PASS",
        by=options.by,
        time=datetime.now(UTC),
        reason=reason,
        attachments=attachments,
    )
    sighting = signed(sighting, options.key)
    check(sighting, document, "--by and --key")
    for path, attached in zip(options.attach, attachments, strict=True):
        target = folder / attached.path
        target.parent.mkdir(exist_ok=True)
        shutil.copyfile(path, target)
    add_waiver(folder, sighting)
    # This is what a person states. Only `judge` knows whether the roles accept it.
    print_line(f"signed: item {sighting.item}, {sighting.outcome}, {sighting.by}: {sighting.text}")
    return 0


def _waive(options: Namespace, asked: Question) -> int:
    """Waive an item that is not met now, with the signature of a signer of the contract."""
    document = asked.contract
    reason = _stated(options, [item.number for item in document.items])
    of_item = [each for each in asked.answer().items if each.item.number == options.item]
    missed = [each for each in of_item if each.can_be_waived and not each.waived]
    if not missed:
        words = ", ".join(each.outcome if not each.waived else "waived" for each in of_item)
        accepted = "a measured item that is not met; what is INVALID needs another measurement"
        raise bad_input("--item", "", f"{options.item}: {words or 'of no partition'}", accepted)
    for each in missed:
        waiver = signed(each.waiver(document, options.by, reason), options.key)
        check(waiver, document, "--by and --key")
        add_waiver(asked.inventory.folder, waiver)
        now = each.with_waivers([*each.waivers, waiver], document)
        lacking = f"; lacks the signature of {', '.join(now.unsigned)}" if now.unsigned else ""
        print_line(
            f"{'signed' if lacking else 'waived'}: item {waiver.item}, {waiver.outcome}, "
            f"by {waiver.by} on {waiver.date}: {waiver.reason}{lacking}"
        )
    return 0


WIDTH = 100
"""The length of the lines of the table."""
_LONGEST = 28
"""Characters of a figure in it; the page has the whole."""


@dataclass(frozen=True)
class Question:
    """An acceptance that is judged.

    Attributes:
        limit: a partition, or hosts of it; `COMPUTE` for all partitions.
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
        """The folder of the page, beside the runs: one for each set of partitions."""
        named = [each.partition_name for each in self.sites]
        every = self if self.limit == COMPUTE else replace(self, limit=COMPUTE)
        whole = named == [each.partition_name for each in every.sites]
        return self.root / acceptance_name(self.inventory.folder.name, [] if whole else named)

    @cached_property
    def sites(self) -> list[Site]:
        """The partitions that the contract has an item for; all if it has none for them.

        Each has all of its hosts in ``partition_hosts``.

        Raises:
            BadInput: the inventory is wrong, or the limit selects no host.
        """
        sites = load_sites(self.inventory, self.limit)
        of_items = {item.system for item in self.contract.items}
        needed = [each for each in sites if of_items & {each.partition_name, None}]
        return needed or sites

    @cached_property
    def suites(self) -> tuple[Sequence[PlannedItem], Times]:
        """The suites that measure each item, and the expected times of those that can run."""
        checked, planned = _suites(self.inventory, self.limit, self.contract)
        for mistake in checked.mistakes:
            say(f"proofmark: {mistake}")
        return planned, times_of(checked.plans)

    @cached_property
    def terms(self) -> Terms:
        """What the acceptance needs besides its runs."""
        parts = {
            each.partition_name: Part(
                hosts=each.partition_hosts or each.hosts, mode=each.partition.current_mode
            )
            for each in self.sites
        }
        folder = self.inventory.folder
        signed_texts = read_waivers(folder, self.contract)
        return Terms(folder.name, self.contract, parts, signed_texts.waivers, signed_texts.seen)

    def answer(self) -> Acceptance:
        """Return the acceptance by the runs that there are now."""
        runs, left_out = self.sealed_runs()
        judged = []
        for run in runs:
            try:
                judged.append(self.terms.judged(run))
            except BadInput as error:
                if self.named:
                    raise
                left_out.append(RunLeftOut(run.id, _unreadable(error)))
        return self.terms.acceptance(judged, left_out)

    def sealed_runs(self) -> tuple[list[Run], list[RunLeftOut]]:
        """Return the sealed runs that can decide, and those that cannot, with the reason.

        They are the runs below the folder, and those that this user knows to be sealed.

        Raises:
            BadInput: a run of `named` cannot decide, or the state of the site is damaged.
        """
        runs: dict[str, Run] = {}
        left_out = []
        known = [
            each
            for each in sealed_runs(self.terms.site)
            if each.contract == digest_of(self.contract) and each.partition in self.terms.partitions
        ]
        elsewhere = [each.folder for each in known if is_run(each.folder)]
        beside = [self.root] if self.root.is_dir() else []
        for folder in self.named or run_folders([*beside, *elsewhere]):
            found = _run(folder, self.terms)
            if isinstance(found, Message):
                left = RunLeftOut(folder.name, found)
            elif (other := runs.setdefault(found.id, found)) is found:
                continue
            else:
                runs[found.id], left = _one_of(other, found)
            if self.named:
                accepted = "a sealed run of this site with its contract, measured on it"
                raise bad_input("--run", "", f"{folder}: {left.reason}", accepted)
            if left.reason.code != "acceptance-site":  # the folder has the runs of all sites
                left_out.append(left)
        for each in known:
            if each.run not in runs or each.evidence not in runs[each.run].archives:
                left_out.append(_lacking(each, named=bool(self.named)))
        return [*runs.values()], left_out


def _shown(options: Namespace, asked: Question, found: Acceptance) -> int:
    """Print the items of an acceptance and write its page; return the exit code of its word."""
    missing = _gaps(asked, found.open_items)
    folder = options.output or asked.folder
    page = AcceptanceFiles(folder).page
    if not options.check:
        for run in found.runs:
            keep(run.kept, run.earlier)
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in acceptance_files(found, asked.terms).items():
            write_atomic(folder / name, text)
    if options.json:
        gaps_json = {"missing": [each.as_json() for each in missing]}
        print_json(acceptance_data(found, asked.terms) | gaps_json)
    else:
        _print(found, missing)
        print_line(f"{page}")
    return CODES[found.word]


def _sign(options: Namespace, asked: Question) -> int:
    """Sign the page of an acceptance that is what its runs give, with their evidence.

    Raises:
        BadInput: the page is not what the runs give, no run decides, another user can change a
            file, or ssh-keygen refuses.
    """
    if not options.key:
        raise bad_input("sign", "", "no --key", "--key FILE")
    folder = asked.folder.resolve()
    refuse_untrusted(folder, OWN)
    runs, left_out = asked.sealed_runs()
    if not runs:
        raise bad_input(folder, "", "no run that decides", "a sealed run with this contract")
    with new_signed(folder) as new:
        for run in runs:
            for path in evidence_files(run.products.folder):
                take(path, new / RUNS / run.id / path.relative_to(run.products.folder))
        for each in asked.terms.seen:
            for attached in each.attachments:
                path = asked.inventory.folder / attached.path
                if not is_regular(path) or sha256_of(path) != attached.sha256:
                    raise bad_input(path, "", "another content", f"the file that {each.by} signed")
                take(path, new / attached.path)
        draft = Predicate(
            kind="acceptance",
            id=asked.folder.name,
            site=asked.terms.site,
            partitions=dict(asked.terms.partitions),
            left_out=left_out,
            waivers=list(asked.terms.waivers),
            seen=list(asked.terms.seen),
            made=Made(written=datetime.now(UTC), language=options.language, versions=versions()),
        )
        predicate = made_again(runs_in(new, draft.kind), draft, new)
        if [*differing(new, products_of(new), folder)]:
            judge = PrintedCommand(
                "proofmark", "acceptance", "judge", of_person(asked.site, "SITE", "-i")
            )
            accepted = f"what `{judge}` writes"
            raise bad_input(AcceptanceFiles(folder).page, "", "not what its runs give", accepted)
        print_line(f"{accept(new, predicate.model_dump(mode='json'), options.key)}")
        print_line(localized(predicate.line))
    return 0


def _measure(options: Namespace, asked: Question) -> int:
    """Run the suites that the contract still needs, then judge.

    It stops after a suite that misses an item. What an earlier run missed is measured again.
    A suite is one call of the playbook, which continues an unfinished run of the same plan.

    Raises:
        BadInput: the nodes of a partition are not real, or as of an answer.
    """
    if not options.playbook:
        accepted = "`ansible-playbook acceptance.yml -i SITE -l PARTITION`, which uses this verb"
        raise bad_input("measure", "", "no --playbook", accepted)
    for site in asked.sites:
        if why := other_state(site.partition.origin):
            one = setting("suite", "SUITE")
            accepted = f"a measured partition; else {one} measures one suite"
            raise bad_input(site.facts, "partition.origin", localized(why), accepted)
    found, measured = asked.answer(), set[tuple[str, str]]()
    earlier, failed = {run.id for run in found.runs}, 0
    while not (failed or found.misses({run.id for run in found.runs} - earlier)):
        items = (*found.open_items, *found.missed_items)
        if not items and found.word == "FAIL":
            items = found.items  # the nodes with a fault are measured again
        wanted = [each for each in _gaps(asked, items) if each.suite]
        left = [each for each in wanted if (each.partition, each.suite) not in measured]
        if not left:
            break
        if not measured:
            for each in left:
                named, takes = ", ".join(each.items), duration(each.seconds)
                say(f"acceptance: {each.suite}, {takes}: items {named}")
        measured.add((left[0].partition, left[0].suite))
        before = {run.evidence for run in found.runs}
        repeats = max(each.repeats for each in left if each.suite == left[0].suite)
        play = _play(options.playbook, left[0].suite, repeats)
        code = subprocess.run(play, check=False, env=environment_of("ansible")).returncode
        found = asked.answer()
        # A play that failed without new evidence measured nothing: its own message says why.
        failed = code if before == {run.evidence for run in found.runs} else 0
    return _shown(options, asked, found) or failed


VERBS: Mapping[str, Callable[[Namespace, Question], int]] = {
    "check": _check,
    "judge": lambda options, asked: _shown(options, asked, asked.answer()),
    "measure": _measure,
    "sign": _sign,
    "waive": _waive,
    "witness": _witness,
}


def _play(given: Sequence[str], suite: str, repeats: int) -> list[str]:
    """Return the command line of the playbook for a suite.

    Args:
        given: the command line without a suite. Its own number of repeats follows, and so counts.
        repeats: of each step; 0 for those of the suite.
    """
    more = ["-e", f"repeats={repeats}"] if repeats else []
    play = f"{Path(sys.executable).parent / 'ansible-playbook'}"
    return [play, *more, *given, "-e", f"suite={suite}"]


def _one_of(first: Run, second: Run) -> tuple[Run, RunLeftOut]:
    """Return which of two folders of a run decides, and the other one, which is left out."""
    newer, older = (second, first) if first.archives[0] in second.archives else (first, second)
    place = older.products.folder
    if older.archives[0] in newer.archives:
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


def _run(folder: Path, terms: Terms) -> Run | Message:
    """Return the sealed run, or the reason why it cannot decide the acceptance."""
    try:
        run = open_evidence(folder)
        if run is None:
            return Message("acceptance-unsealed")
        return terms.refuses(run) or run
    except BadInput as error:
        return _unreadable(error)


def _unreadable(error: BadInput) -> Message:
    mistake = error.mistakes[0]
    problem = ": ".join(filter(None, (mistake.file, mistake.key, mistake.found)))
    return Message("acceptance-unreadable", problem=one_line(problem))


def _gaps(asked: Question, items: Sequence[AcceptedItem]) -> list[Gap]:
    """Return what measures `items`. Only if there are any, the suites are planned."""
    return [*gaps(items, *asked.suites, asked.site)] if items else []


def _print(found: Acceptance, missing: Sequence[Gap]) -> None:
    """Print the items, what stands against them, what is missing, and the word last."""
    heads = (_("Item"), _("Phase"), _("Figure"), _("Limit"), _("Outcome"), _("Run"))
    rows = [
        (
            each.item.number,
            translated(each.item.phase),
            shorten(figure_text(each), _LONGEST, placeholder=" …"),
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
        how = f"{gap.suite}, {duration(gap.seconds)}: {gap.command}"
        line = f"{_('Still missing')}: {', '.join(gap.items)}: "
        print_line(line + (how if gap.suite else _("no suite of the site")))
    for phase in found.phases:
        met = _("{met} of {total} items met").format(met=phase.met, total=phase.total)
        print_line(f"{translated(phase.phase)}: {phase_text(phase)}, {phase.date or '–'}, {met}")
    print_line(f"{translated(found.word)}: {localized(found.text)}")

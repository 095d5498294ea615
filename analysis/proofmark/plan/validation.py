"""Finds all mistakes in a site, and in the references of the cases, without access to nodes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

from proofmark.cases.case import Case
from proofmark.cases.loading import with_line
from proofmark.cases.reference import Reference
from proofmark.cases.suite import Benchmarks
from proofmark.common.errors import BadInput, InputError, NothingToRun, nearest, refuse
from proofmark.common.expressions import names_in, render
from proofmark.common.grouping import gathered
from proofmark.common.kit import DEFAULT_SUITE
from proofmark.common.yaml_models import shown
from proofmark.plan.expansion import (
    all_suites,
    idle_limits,
    limit_mistakes,
    located,
    make_plan,
    members_at,
)
from proofmark.plan.lacking import (
    Available,
    Lacked,
    Packages,
    Refusal,
    available_at,
    lacking,
    lacking_mistakes,
    refusal,
)
from proofmark.plan.placement import PlacementError
from proofmark.plan.plan import Plan
from proofmark.plan.selection import (
    cases_of,
    figures_of_plan,
    selecting_suites,
    selection,
    selection_mistakes,
)
from proofmark.plan.step import COUNTED
from proofmark.site.contract_document import ContractItem
from proofmark.site.groups import COMPUTE
from proofmark.site.hardware import NODE, StatedNode
from proofmark.site.inventory import Inventory, Site, read_sites
from proofmark.site.machines import Machine, Machines, machines_of
from proofmark.site.node.probe_text import unread_lines
from proofmark.site.partition import Partition


def sites_in(inventories: Path) -> tuple[list[Site], list[InputError]]:
    """Return the partitions of all inventories below a folder, and the mistakes in the others."""
    sites, mistakes = list[Site](), list[InputError]()
    for folder in sorted(inventories.iterdir()):
        try:
            read, wrong = read_sites(folder, COMPUTE)
            sites += read
            mistakes += wrong
        except BadInput as error:
            mistakes += error.mistakes
    return sites, mistakes


def system_mistakes(
    benchmarks: Benchmarks, sites: Sequence[Site], wrong: Sequence[InputError]
) -> list[InputError]:
    """Return the mistakes in references that select no figure of their own system.

    A system is a real partition with a stated topology. No node is probed.

    Args:
        sites: the partitions of all inventories.
        wrong: the mistakes because of which a partition is not one of `sites`.
    """
    named: dict[str, list[_Named]] = {}
    for name, case in benchmarks.cases.items():
        for index, reference in enumerate(case.references):
            if reference.system is not None:
                named.setdefault(reference.system, []).append((name, index, reference))
    declared = gathered(
        (site.partition_name, site)
        for site in sites
        if site.partition.origin == "measured" and site.partition.node.topology
    )
    mistakes = [*wrong] if named.keys() - declared.keys() else []
    for system, references in named.items():
        if system in declared:
            mistakes += _mistakes_on(declared[system], references, benchmarks)
            continue
        found = f"{system!r}, which no inventory declares{nearest(system, declared)}"
        accepted = "a partition with node.topology in inventory/"
        mistakes += (
            InputError(_file(benchmarks, case), f"references.{index}.system", found, accepted)
            for case, index, _ in references
        )
    return mistakes


_Named = tuple[str, int, Reference]
"""A case, the index of one of its references, and the reference."""


def _file(benchmarks: Benchmarks, case: str) -> str:
    return str(benchmarks.folder / f"{case}.yml")


def _mistakes_on(
    sites: Sequence[Site], references: Sequence[_Named], benchmarks: Benchmarks
) -> list[InputError]:
    """Return the mistakes of the references that select no figure of any of `sites`."""
    remaining = {(case, index): list[InputError]() for case, index, _ in references}
    cases = {name for case, _, reference in references for name in cases_of(reference, case)}
    for site in sites:
        machines, _ = machines_of(site)
        suites = all_suites(benchmarks, cases, site, machines)
        for case, index, reference in references:
            if (case, index) not in remaining:
                continue
            file, key = _file(benchmarks, case), f"references.{index}"
            mistakes = list(selection_mistakes(file, key, reference, case, suites, benchmarks))
            if mistakes:
                remaining[case, index] += mistakes
            else:
                del remaining[case, index]
    return [mistake for mistakes in remaining.values() for mistake in mistakes]


NOT_HERE = "not in this suite"


def described(reference: Reference, case: str) -> str:
    """Return the figures of a limit in words: ``stream triad (memory=ddr, mode a2a-flat)``."""
    words = [f"{name}={value}" for name, value in reference.where.items()]
    words += [f"mode {reference.mode}"] if reference.mode else []
    words += [f"system {reference.system}"] if reference.system else []
    return f"{case} {reference.metric}" + (f" ({', '.join(words)})" if words else "")


def without_figures(
    plan: Plan, benchmarks: Benchmarks, site: Site, machines: Machines
) -> Iterator[str]:
    """Yield a line for each limit of `site` that judges no figure of `plan`."""
    idle = []
    figures = figures_of_plan(plan, benchmarks)
    for limit in site.items.values():
        selected = selection(limit, limit.case, figures)
        if not selected.steps:
            idle.append(limit)
        elif not selected.comparable:
            against = limit.against
            measured = f"{against.case or limit.case} {against.metric}" if against else ""
            about = described(limit, limit.case)
            yield f"not evaluated in this suite: limit {about}: no step measures {measured}"
    cases = set[str]().union(*(cases_of(limit, limit.case) for limit in idle))
    suites = all_suites(benchmarks, cases, site, machines)
    for limit in idle:
        of = selecting_suites(limit, limit.case, suites)
        yield f"{NOT_HERE}: limit {described(limit, limit.case)}, of {', '.join(of)}"


def by_suite(
    limits: Iterable[ContractItem], plans: Sequence[Plan], benchmarks: Benchmarks
) -> list[str]:
    """Return a line for each limit: the suites of `plans` of one partition with its figures."""
    lines, limits = [], [*limits]
    cases = set[str]().union(*(cases_of(limit, limit.case) for limit in limits))
    of_suite = {plan.suite: figures_of_plan(plan, benchmarks, cases) for plan in plans}
    for limit in limits:
        found = {
            suite: bool(selection(limit, limit.case, figures).comparable)
            for suite, figures in of_suite.items()
        }
        inside = ", ".join(suite for suite, judges in found.items() if judges) or "no suite"
        outside = ", ".join(suite for suite, judges in found.items() if not judges) or "–"
        lines.append(f"{described(limit, limit.case)}: in {inside}; {NOT_HERE}: {outside}")
    return lines


Check = Callable[[Site], object]
"""Raises `BadInput` if a fact of the site is wrong."""
JobMistakes = Callable[[Site, Sequence[Plan]], Iterable[InputError]]
"""Returns what keeps the jobs of the plans of a site from running."""
PROVIDER_KEYS = frozenset({"partition.environment", "partition.provision_from"})
"""The facts that select the packages of a site. If one is wrong, the packages are not known."""


@dataclass(frozen=True)
class SiteChecks:
    """The checks of a site that need its providers, its scheduler or this machine.

    Attributes:
        facts: further checks by the fact that they check, a dotted key of the partition.
        jobs: what keeps the jobs of a site from running.
    """

    facts: Mapping[str, Check]
    packages: Packages
    jobs: JobMistakes


class CheckedSite(NamedTuple):
    """A checked site.

    Attributes:
        sites: the partitions without a mistake in their facts.
        plans: the plan of every suite on every partition.
        limits: a line for each contract limit, by partition: the suites in which it judges figures.
        lacks: for each of `plans`, what the origin of the programs of the partition lacks.
        refused: the suites that the origin of their partition does not suffice for, by partition.
        not_here: a line for each suite that has no step for a partition, with the reasons.
        unread: a line for each optional fact of a probed node that cannot be read.
    """

    sites: list[Site]
    plans: list[Plan]
    mistakes: list[InputError]
    limits: dict[str, list[str]]
    lacks: list[tuple[Lacked, ...]]
    refused: dict[str, list[Refusal]]
    not_here: list[str]
    unread: list[str]


def validate(
    inventory: Path | Inventory,
    limit: str,
    benchmarks: Benchmarks,
    checks: SiteChecks,
    suite: str | None = None,
    repeats: int | None = None,
) -> CheckedSite:
    """Return the plan of each suite on each partition under `limit`, and all mistakes.

    Args:
        limit: pattern of hosts, as in Ansible's ``-l``.
        suite: the only suite; None for those that are listed. The origin of the programs must lack
            nothing of this suite, or of the default suite.
        repeats: how often each step runs; None: as often as its suite states.

    Raises:
        BadInput: there is no suite `suite`.
    """
    named = [suite] if suite and benchmarks.suite(suite) else []
    broken: list[Site] = []
    try:
        sites, site_mistakes = read_sites(inventory, limit, broken=broken)
    except BadInput as error:
        return CheckedSite([], [], [*error.mistakes], {}, [], {}, [], [])
    mistakes = [*site_mistakes]
    if not sites and not mistakes:
        mistakes.append(InputError("-l", "", f"{limit!r}: no host", "hosts of a partition"))
    wrong_keys = {each.key for each in site_mistakes}
    plans = []
    limits = {}
    lacks: list[tuple[Lacked, ...]] = []
    refused = {}
    not_here: list[str] = []
    unread: list[str] = []
    for site in [*sites, *broken]:
        found = list(_wrong_facts(site, benchmarks, checks.facts))
        known: Available | None = None
        if PROVIDER_KEYS.isdisjoint(wrong_keys | {each.key for each in found}):
            known, package_mistakes = available_at(site, checks.packages)
            found += package_mistakes
        whole = any(site is each for each in sites)
        machines, more = _machines(site, whole=whole)
        wrong_facts = broken_rules(benchmarks, site, machines, known)
        found += [*more, *wrong_facts]
        facts: dict[str, str] = {}
        for each in machines.values():
            facts.update(each.unread)
        unread += (f"{site.partition_name}: {line}" for line in unread_lines(facts))
        known_machines = machines if whole else {}
        # An item of a contract, or a rehearsal, may use a suite that nobody else runs.
        every = site.contract or site.partition.origin != "measured"
        suites = named or [*(benchmarks.suites if every else benchmarks.listed())]
        plans_of_site, more, idle = _plans(site, benchmarks, suites, known_machines, repeats)
        found += () if wrong_facts else more  # a case that computes with a wrong fact is right
        not_here += (f"{site.partition_name}: {each.key}: {each.accepted}" for each in idle)
        found += lacking_mistakes(site, plans_of_site, known, suite)
        found += checks.jobs(site, plans_of_site) if plans_of_site else ()
        mistakes += (located(site, mistake) for mistake in found)
        plans += plans_of_site
        lacks += (lacking(made.packages(), known) for made in plans_of_site)
        refusals = (refusal(made.suite, made.packages(), site, known) for made in plans_of_site)
        refused[site.partition_name] = [each for each in refusals if each]
        if not mistakes:
            lines = by_suite(site.items.values(), plans_of_site, benchmarks)
            limits[site.partition_name] = lines
    all_mistakes = list(dict.fromkeys(mistakes))
    return CheckedSite(sites, plans, all_mistakes, limits, lacks, refused, not_here, unread)


def refuse_wrong_facts(site: Site, benchmarks: Benchmarks, checks: Mapping[str, Check]) -> None:
    """Refuse a site with facts that `validate` names without a plan.

    Raises:
        BadInput: it has each of them, with file and line.
    """
    refuse(located(site, each) for each in _wrong_facts(site, benchmarks, checks))


def _wrong_facts(
    site: Site, benchmarks: Benchmarks, checks: Mapping[str, Check]
) -> Iterator[InputError]:
    for key, check in checks.items():
        try:
            check(site)
        except BadInput as error:
            for each in error.mistakes:
                yield InputError("", f"partition.{key}", each.found, each.accepted)
    yield from _duplicates(site)
    yield from preinstalled_mistakes(benchmarks, site)
    yield from _unread_facts(benchmarks, site)
    yield from _of_nothing(site)
    yield from limit_mistakes(benchmarks, site)


def _duplicates(site: Site) -> Iterator[InputError]:
    """Yield a mistake for file systems with one name or path: a step would write to a wrong one."""
    for key in ("name", "path"):
        values = [str(getattr(each, key)) for each in site.partition.file_systems]
        if twice := sorted({value for value in values if values.count(value) > 1}):
            found = f"{key} {', '.join(twice)} twice"
            yield InputError("", "partition.file_systems", found, "each once")


def _unread_facts(benchmarks: Benchmarks, site: Site) -> Iterator[InputError]:
    """Yield the facts that no case reads although a case reads one of nearly the same name."""
    read: set[str] = set()
    for case in benchmarks.cases.values() if site.partition.facts else ():
        read |= case.used_names() | case.facts.keys() | case.defaults.keys()
    for fact in sorted(site.partition.facts.keys() - read):
        if close := get_close_matches(fact, read, 1, 0.8):
            found = f"a fact that no case reads, did you mean {close[0]!r}?"
            yield InputError("", f"partition.facts.{fact}", found, "a name in the cases")


def _of_nothing(site: Site) -> Iterator[InputError]:
    """Yield the keys of ``sources`` and ``assumed`` that nothing of the partition has."""
    partition = site.partition
    for part in ("sources", "assumed"):
        for key in getattr(partition.node, part):
            known = [*StatedNode.model_fields, *Partition.model_fields, *partition.facts]
            if key not in known:
                found = f"a fact that nothing has{nearest(key, known)}"
                accepted = "a key of partition.node, of partition or of partition.facts"
                yield InputError("", f"partition.{NODE}.{part}.{key}", found, accepted)


def _machines(site: Site, *, whole: bool) -> tuple[dict[str, Machine], list[InputError]]:
    """Return the machine of the site in each mode, or the mistakes in their declarations.

    A site that is not `whole` lacks wrong facts: its topology is read only if it is stated.
    """
    if not whole and not site.partition.node.topology:
        return {}, []
    of_modes, mistakes = {}, list[InputError]()
    try:
        machines, _ = machines_of(site)
    except BadInput as error:
        return {}, [*error.mistakes]
    for mode in site.partition.modes:
        try:
            of_modes[mode] = machines(mode)
        except BadInput as error:
            mistakes += error.mistakes
    return ({}, mistakes) if mistakes else (of_modes, [])


def _plans(
    site: Site,
    benchmarks: Benchmarks,
    suites: Collection[str],
    machines: Mapping[str, Machine],
    repeats: int | None,
) -> tuple[list[Plan], list[InputError], list[InputError]]:
    """Return the plans of `suites`, the mistakes in facts that only a plan finds, and idle suites.

    An idle suite has no step that the partition can run, or one whose ranks its nodes do not hold.
    This is a mistake if it is the only suite, and for ranks also if it is the default suite.
    Without `machines`, the machine in each mode, there are no plans.
    """
    plans, mistakes, idle = list[Plan](), list[InputError](), list[InputError]()
    if not machines:
        return plans, mistakes, idle
    unlimited = site.model_copy(update={"contract": None})  # each plan would check the limits again
    machine = machines.__getitem__
    for suite in suites:
        try:
            # The only suite must have a step; `make_plan` states why it has none.
            if len(suites) == 1 or members_at(benchmarks, suite, site):
                made = make_plan(benchmarks, suite, unlimited, machine, repeats, digest=False)
                plans.append(made)
        except NothingToRun as error:
            (idle if len(suites) > 1 else mistakes).extend(error.mistakes)
        except PlacementError as error:
            # Other nodes hold its ranks. It is no mistake of the site, and the others are planned.
            if len(suites) == 1 or suite == DEFAULT_SUITE:
                mistakes += error.mistakes
            else:
                idle += (InputError(each.file, suite, "", f"{each}") for each in error.mistakes)
        except BadInput as error:
            mistakes += error.mistakes
    try:
        mistakes += idle_limits(benchmarks, site, machine)
    except BadInput as error:  # the topology has other cores than are stated
        mistakes += error.mistakes
    return plans, mistakes, idle


def broken_rules(
    benchmarks: Benchmarks,
    site: Site,
    machines: Mapping[str, Machine],
    packages: Collection[str] | None,
) -> list[InputError]:
    """Return the mistakes in facts of the partition on which cases have a condition, in each mode.

    All facts are accepted if nothing is measured on real nodes. An inventory without a topology is
    used on different machines: there only the cases whose package is in `packages` count.
    """
    partition, found = site.partition, list[InputError]()
    stated = bool(partition.node.topology) or packages is None
    for name, case in benchmarks.cases.items() if partition.origin == "measured" else ():
        if stated or case.package in (packages or ()):
            file = f"{benchmarks.folder / name}.yml"
            for fact in case.facts.keys() & partition.facts.keys():
                for machine in machines.values():
                    found += _broken_rule(file, case, fact, site, machine)
    return found


def _broken_rule(
    file: str, case: Case, fact: str, site: Site, machine: Machine
) -> Iterator[InputError]:
    names, key = {**machine.symbols, **site.partition.facts}, f"facts.{fact}"
    for holds, text in case.facts[fact].items():
        try:
            for label in names_in(holds) & case.labels.keys():
                names[label] = render(case.labels[label], names, file=file, key=f"labels.{label}")
            right = render(holds, names, file=file, key=key)
        except BadInput:  # a text in place of a number
            right = False
        if not right:
            accepted = render(text, names, file=file, key=key)
            yield InputError("", f"partition.{key}", shown(site.partition.facts[fact]), accepted)


def unprovided(benchmarks: Benchmarks, known: Mapping[str, Collection[str]]) -> list[InputError]:
    """Return the packages and programs of cases that no environment and no site provides.

    Args:
        known: the programs by package; empty if the programs of a package are not listed.
    """
    mistakes = []
    for name, case in benchmarks.cases.items():
        programs = known.get(case.package) or (case.program,)
        for key, word, words in (
            ("package", case.package, known),
            ("program", case.program, programs),
        ):
            if case.launch != COUNTED and word not in words and "{" not in word:
                found = f"{word!r}, which nothing provides{nearest(word, words)}"
                accepted = ", ".join(sorted(words))
                mistakes.append(InputError(_file(benchmarks, name), key, found, accepted))
    return [*map(with_line, mistakes)]


def preinstalled_mistakes(benchmarks: Benchmarks, site: Site) -> Iterator[InputError]:
    """Yield the names in ``partition.preinstalled`` that no case has: packages and programs."""
    programs = gathered((case.package, case.program) for case in benchmarks.cases.values())
    for package, entry in site.partition.preinstalled.items():
        key = f"partition.preinstalled.{package}"
        if package not in programs:
            found = f"a package that no case uses{nearest(package, programs)}"
            yield InputError("", key, found, ", ".join(sorted(programs)))
            continue
        known = {*programs[package]}
        if any("{" in program for program in known):
            continue  # The names depend on the parameters of the steps.
        for program in sorted(entry.programs.keys() - known):
            found = f"a program that no case uses{nearest(program, known)}"
            yield InputError("", f"{key}.programs.{program}", found, ", ".join(sorted(known)))

"""What the origin of the programs lacks for a suite; the nearest suite that works.

docs/design/cases.md has the reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from proofmark.cases.suite import Benchmarks
from proofmark.cases.vocabulary import MPI, ROMIO
from proofmark.common.errors import BadInput, InputError
from proofmark.common.kit import DEFAULT_SUITE
from proofmark.plan.expansion import make_plan
from proofmark.plan.plan import Plan, Step
from proofmark.site.inventory import Site
from proofmark.site.machines import Machines

Available = Mapping[str, Collection[str] | None]
"""The programs that an origin has, by package; None if it has every program of the package. `MPI`
is among them if the parts of the MPI are known."""
Packages = Callable[[Site], Available | None]
"""Returns what the origin of a site has, or None if that is not known. It raises `BadInput` if the
origin cannot have programs there."""
KEY = "partition.provision_from"


class Code(StrEnum):
    """Why a suite is refused before anything is built."""

    SUITE_LACKS_PROGRAMS = "SUITE_LACKS_PROGRAMS"
    """The origin does not have programs that steps of the suite start."""
    ORIGIN_HAS_NO_PROGRAMS = "ORIGIN_HAS_NO_PROGRAMS"
    """The environment of the partition does not have the files of the origin. A reason that the
    provider names by a code of its own keeps that code."""


@dataclass(frozen=True)
class Lacked:
    """A package that an origin lacks, or `programs` that it lacks of a package that it has."""

    package: str
    programs: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the package, or its programs."""
        return f"{', '.join(self.programs)} of {self.package}" if self.programs else self.package


@dataclass(frozen=True)
class Refusal:
    """Why the programs of a partition do not suffice for a suite.

    Attributes:
        nearest: the suite with the most cases in common that lacks nothing; empty if there is none,
            and None if the other suites were not planned.
    """

    suite: str
    origin: str
    lacks: tuple[Lacked, ...]
    has: tuple[str, ...]
    environment: str
    nearest: str | None = None

    def line(self) -> str:
        """Return the refusal in short, for a list of suites."""
        nearest = f"; the nearest suite that works is {self.nearest}" if self.nearest else ""
        code = Code.SUITE_LACKS_PROGRAMS
        return f"{self.suite}: {code}: {self.origin!r} lacks {in_words(self.lacks)}{nearest}"

    def mistake(self) -> InputError:
        """Return the mistake in the facts of the partition, without a file."""
        has = ", ".join(self.has) or "no package"
        found = f"{self.origin!r}, which has {has}: {self.suite} lacks {in_words(self.lacks)}"
        works = "`proofmark check` lists the suites that work"
        if self.nearest is not None:
            works = f"the nearest suite that works is {self.nearest}"
            works = works if self.nearest else "no suite works with this origin"
        accepted = f"the packages of the suite ({works})"
        return InputError("", KEY, found, accepted, Code.SUITE_LACKS_PROGRAMS)


def in_words(lacks: Iterable[Lacked]) -> str:
    """Return what is lacking as a list."""
    return ", ".join(map(str, lacks))


def available_at(site: Site, packages: Packages) -> tuple[Available | None, list[InputError]]:
    """Return what the origin of `site` has, and the mistakes because of which it has nothing."""
    try:
        return packages(site), []
    except BadInput as error:
        name = site.partition.provision_from
        return None, [
            replace(
                each,
                file="",
                key=KEY,
                found=": ".join(filter(None, (f"{name!r}", each.file, each.key, each.found))),
                code=each.code or Code.ORIGIN_HAS_NO_PROGRAMS,
            )
            for each in error.mistakes
        ]


def lacking(
    needed: Mapping[str, Collection[str]], available: Available | None
) -> tuple[Lacked, ...]:
    """Return what `available` lacks of `needed`; nothing if it is not known.

    Args:
        needed: the programs of a plan by package (`proofmark.plan.plan.Plan.packages`).
    """
    found = []
    if available is None:
        return ()
    for package, programs in sorted(needed.items()):
        known = available.get(package)
        if package not in available:
            found.append(Lacked(package))
        elif known is not None and (missing := sorted(set(programs).difference(known))):
            found.append(Lacked(package, tuple(missing)))
    return tuple(found)


def lost_steps(plan: Plan, available: Available | None) -> list[Step]:
    """Return the steps that `plan` loses because the MPI has no ROMIO, which alone reads hints.

    Nothing is returned if nobody looked at the MPI: a probe does before the run.
    """
    parts = (available or {}).get(MPI)
    return [] if parts is None or ROMIO in parts else plan.hinted()


def refusal(
    plan: Plan,
    plans: Iterable[Plan],
    site: Site,
    available: Available | None,
    benchmarks: Benchmarks,
) -> Refusal | None:
    """Return why the origin of `site` does not suffice for `plan`; None if it does.

    Args:
        plans: the plans of all suites of the partition, among which the nearest one is chosen.
    """
    lacks = lacking(plan.packages(), available)
    if not lacks:
        return None
    return Refusal(
        plan.suite,
        site.partition.provision_from,
        lacks,
        tuple(sorted(set(available or ()) - {MPI})),
        site.partition.environment,
        nearest_suite(plan, offered_suites(plans, site, benchmarks), available),
    )


def offered_suites(plans: Iterable[Plan], site: Site, benchmarks: Benchmarks) -> list[Plan]:
    """Return the plans of the suites that `site` is offered: a real machine none for practice."""
    real = site.partition.origin == "measured"
    return [
        each for each in plans if not (real and benchmarks.suite(each.suite).kind == "practice")
    ]


def nearest_suite(plan: Plan, plans: Iterable[Plan], available: Available | None) -> str:
    """Return the suite of `plans` that lacks nothing and is most like `plan`; "" if there is none.

    Suites are alike if they have the same cases: the share of the cases of both that both have.
    """
    cases = {step.case for step in plan.steps()}

    def common(other: Plan) -> float:
        theirs = {step.case for step in other.steps()}
        return len(cases & theirs) / len(cases | theirs)

    others = [each for each in plans if each.suite != plan.suite]
    works = [each for each in others if not lacking(each.packages(), available)]
    return max(works, key=common).suite if works else ""


def lacking_mistakes(
    site: Site,
    plans: Sequence[Plan],
    available: Available | None,
    asked: str | None,
    benchmarks: Benchmarks,
) -> Iterator[InputError]:
    """Yield a mistake if the origin of `site` lacks programs of the suite that would run.

    Args:
        asked: the suite that the user names. None is the default suite, or any suite if the
            partition cannot run a step of that.
    """
    wanted = [plan for plan in plans if plan.suite == (asked or DEFAULT_SUITE)]
    if not wanted and plans:
        wanted = [min(plans, key=lambda plan: len(lacking(plan.packages(), available)))]
    for plan in wanted:
        if found := refusal(plan, plans, site, available, benchmarks):
            yield found.mistake()


def refuse_lacking(
    plan: Plan, benchmarks: Benchmarks, site: Site, machines: Machines, packages: Packages
) -> None:
    """Refuse a plan whose programs the origin of `site` lacks, before anything is built.

    Raises:
        BadInput: the message names what is lacking, and the nearest suite that works.
    """
    available, mistakes = available_at(site, packages)
    if not mistakes and lacking(plan.packages(), available):
        plans = plans_of_suites(benchmarks, site, machines)
        found = refusal(plan, plans, site, available, benchmarks)
        mistakes = [found.mistake()] if found else []
    if mistakes:
        raise BadInput(*(replace(mistake, file=f"{site.facts}") for mistake in mistakes))


def refuse_install(
    suite: str, needed: Mapping[str, Collection[str]], site: Site, packages: Packages
) -> None:
    """Refuse to install `needed`, the programs of a run of `suite`, if the origin lacks some.

    Raises:
        BadInput: as `refuse_lacking`, without the nearest suite.
    """
    available, mistakes = available_at(site, packages)
    if lacks := lacking(needed, available):
        has = tuple(sorted(set(available or ()) - {MPI}))
        origin, environment = site.partition.provision_from, site.partition.environment
        mistakes.append(Refusal(suite, origin, lacks, has, environment).mistake())
    if mistakes:
        raise BadInput(*(replace(mistake, file=f"{site.facts}") for mistake in mistakes))


def plans_of_suites(benchmarks: Benchmarks, site: Site, machines: Machines) -> Iterator[Plan]:
    """Yield the plan of each suite that the partition of `site` can run."""
    for suite in benchmarks.suites:
        try:
            yield make_plan(benchmarks, suite, site, machines, digest=False)
        except BadInput:
            continue

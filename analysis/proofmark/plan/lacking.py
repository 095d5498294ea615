"""What the origin of the programs lacks for a suite.

docs/design/cases.md has the reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from proofmark.common.errors import BadInput, InputError, refuse
from proofmark.common.kit import DEFAULT_SUITE
from proofmark.plan.plan import Plan
from proofmark.site.inventory import Site

Available = Mapping[str, Collection[str] | None]
"""The programs that an origin has, by package; None if it has every program of the package."""
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
    """Why the programs of a partition do not suffice for `suite`; `has` are its packages."""

    suite: str
    origin: str
    lacks: tuple[Lacked, ...]
    has: tuple[str, ...]

    def line(self) -> str:
        """Return the refusal in short, for a list of suites."""
        code = Code.SUITE_LACKS_PROGRAMS
        return f"{self.suite}: {code}: {self.origin!r} lacks {in_words(self.lacks)}"

    def mistake(self) -> InputError:
        """Return the mistake in the facts of the partition, without a file."""
        has = ", ".join(self.has) or "no package"
        found = f"{self.origin!r}, which has {has}: {self.suite} lacks {in_words(self.lacks)}"
        accepted = "the packages of the suite (`proofmark check` lists the suites that work)"
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


def refusal(
    suite: str, needed: Mapping[str, Collection[str]], site: Site, available: Available | None
) -> Refusal | None:
    """Return why the origin of `site` does not suffice for a suite; None if it does.

    Args:
        needed: see `lacking`.
    """
    lacks = lacking(needed, available)
    has = tuple(sorted(available or ()))
    return Refusal(suite, site.partition.provision_from, lacks, has) if lacks else None


def lacking_mistakes(
    site: Site, plans: Sequence[Plan], available: Available | None, asked: str | None
) -> Iterator[InputError]:
    """Yield a mistake if the origin of `site` lacks programs of the suite that would run.

    Args:
        plans: the plans of `site`, one for each suite that was checked.
        asked: the suite that a person named; None: the one that a play without a suite runs, or
            else the nearest to it.
    """
    wanted = [plan for plan in plans if plan.suite == (asked or DEFAULT_SUITE)]
    if not wanted and plans:
        wanted = [min(plans, key=lambda plan: len(lacking(plan.packages(), available)))]
    for plan in wanted:
        if found := refusal(plan.suite, plan.packages(), site, available):
            yield found.mistake()


def refuse_lacking(
    suite: str, needed: Mapping[str, Collection[str]], site: Site, packages: Packages
) -> None:
    """Refuse a suite whose programs the origin of `site` lacks, before anything is built.

    Args:
        needed: see `lacking`.

    Raises:
        BadInput: the origin lacks some, or cannot have programs there.
    """
    available, mistakes = available_at(site, packages)
    if found := refusal(suite, needed, site, available):
        mistakes.append(found.mistake())
    refuse(replace(mistake, file=f"{site.facts}") for mistake in mistakes)

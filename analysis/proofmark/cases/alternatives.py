"""The alternative of a suite for an origin of programs (docs/design/cases.md)."""

from __future__ import annotations

from collections.abc import Collection

from proofmark.cases.case import Case
from proofmark.cases.suite import Alternative, Benchmarks


def members_from(
    benchmarks: Benchmarks, suite: str, origin: str, named: Collection[str] = ()
) -> dict[str, Case]:
    """Return the cases of `suite` that run with the programs of `origin`, by id.

    Args:
        benchmarks: all cases and suites.
        suite: the name of a suite.
        origin: the value of ``partition.provision_from``.
        named: the packages that the inventory names (``partition.preinstalled``), if they are those
            of the origin.

    Raises:
        BadInput: there is no such suite.
    """
    chosen = alternative(benchmarks, suite, origin, named)
    others: set[str] = set()
    for each in benchmarks.suite(suite).alternatives:
        if each is not chosen:
            others.update(each.cases)
    others.difference_update(chosen.cases if chosen else ())
    members = benchmarks.members(suite)
    return {name: case for name, case in members.items() if name not in others}


def alternative(
    benchmarks: Benchmarks, suite: str, origin: str, named: Collection[str] = ()
) -> Alternative | None:
    """Return the alternative of `suite` for the programs of `origin`; None if it has none.

    If the inventory names packages and they do not suffice for the alternative of the origin,
    another one is returned for which they suffice. For the arguments see `members_from`.
    """
    alternatives = benchmarks.suite(suite).alternatives
    usual = next(
        (each for each in alternatives if origin in each.origins or not each.origins), None
    )
    if usual is None or not named:
        return usual
    by_preference = [usual, *alternatives]
    fitting = (each for each in by_preference if _packages(benchmarks, each) <= set(named))
    return next(fitting, usual)


def _packages(benchmarks: Benchmarks, alternative: Alternative) -> set[str]:
    cases = benchmarks.cases
    return {cases[name].package for name in alternative.cases if name in cases}

"""Rules for the facts of a site: those of the cases, and the packages that the inventory names."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from proofmark.cases.models import Benchmarks, Case
from proofmark.common.errors import InputError, nearest
from proofmark.common.expressions import names_in, render
from proofmark.site.inventory import Site
from proofmark.site.machine import Machine


def fact_mistakes(
    benchmarks: Benchmarks, site: Site, machine: Machine, packages: Collection[str] | None
) -> Iterator[InputError]:
    """Yield the mistakes in facts of the partition on which cases have a condition (`FactRule`).

    Virtual nodes and twins measure no speed, so all facts are accepted. An inventory with
    discovered hardware is used on different machines: there only the cases whose package is in
    `packages` count.

    Raises:
        BadInput: a condition cannot be computed.
    """
    partition = site.partition
    if partition.origin != "measured":
        return
    for name, case in benchmarks.cases.items():
        elsewhere = packages is not None and case.package not in packages
        if partition.hardware == "discovered" and elsewhere:
            continue
        for fact in case.facts.keys() & partition.facts.keys():
            yield from _broken_rule(f"{benchmarks.folder / name}.yml", case, fact, site, machine)


def _broken_rule(
    file: str, case: Case, fact: str, site: Site, machine: Machine
) -> Iterator[InputError]:
    rule, key = case.facts[fact], f"facts.{fact}"
    names = {**machine.symbols, **site.partition.facts}
    for label in names_in(rule.holds) & case.labels.keys():
        names[label] = render(case.labels[label], names, file=file, key=f"labels.{label}")
    if not render(rule.holds, names, file=file, key=key):
        accepted = render(rule.accepted, names, file=file, key=key)
        yield InputError("", f"partition.{key}", f"{site.partition.facts[fact]}", accepted)


def preinstalled_mistakes(benchmarks: Benchmarks, site: Site) -> Iterator[InputError]:
    """Yield the names in ``partition.preinstalled`` that no case has: packages and programs."""
    programs: dict[str, set[str]] = {}
    for case in benchmarks.cases.values():
        programs.setdefault(case.package, set()).add(case.program)
    for package, entry in site.partition.preinstalled.items():
        key = f"partition.preinstalled.{package}"
        if package not in programs:
            found = f"a package that no case uses{nearest(package, programs)}"
            yield InputError("", key, found, ", ".join(sorted(programs)))
            continue
        known = programs[package]
        if any("{" in program for program in known):
            continue  # The names depend on the parameters of the steps.
        for program in sorted(entry.programs.keys() - known):
            found = f"a program that no case uses{nearest(program, known)}"
            yield InputError("", f"{key}.programs.{program}", found, ", ".join(sorted(known)))

"""Which contract limits judge figures of a suite, and which are for other suites."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from proofmark.cases.reference import Reference
from proofmark.cases.suite import Benchmarks
from proofmark.plan.expansion import all_suites
from proofmark.plan.plan import Plan
from proofmark.plan.selection import cases_of, selecting_suites, selection
from proofmark.site.contract_document import ContractItem
from proofmark.site.inventory import Site
from proofmark.site.machine import Machines

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
    """Yield a line for each limit of `site` that judges no figure of `plan`.

    Args:
        plan: the plan of one suite of the partition.
        benchmarks: all cases and suites.
        site: the partition.
        machines: its machine, or a function from a mode to the machine in this mode.
    """
    idle: list[ContractItem] = []
    for limit in site.items.values():
        selected = selection(limit, limit.case, plan, benchmarks)
        if not selected.steps:
            idle.append(limit)
        elif not selected.comparable:
            against = limit.against
            measured = f"{against.case or limit.case} {against.metric}" if against else ""
            about = described(limit, limit.case)
            yield f"not evaluated in this suite: limit {about}: no step measures {measured}"
    cases = set()
    for limit in idle:
        cases.update(cases_of(limit, limit.case))
    suites = all_suites(benchmarks, cases, site, machines)
    for limit in idle:
        of = selecting_suites(limit, limit.case, suites, benchmarks)
        yield f"{NOT_HERE}: limit {described(limit, limit.case)}, of {', '.join(of)}"


def by_suite(
    limits: Iterable[ContractItem], plans: Sequence[Plan], benchmarks: Benchmarks
) -> list[str]:
    """Return a line for each limit: the suites of `plans` of one partition with its figures."""
    lines = []
    for limit in limits:
        found = {
            plan.suite: bool(selection(limit, limit.case, plan, benchmarks).comparable)
            for plan in plans
        }
        inside = ", ".join(suite for suite, judges in found.items() if judges) or "no suite"
        outside = ", ".join(suite for suite, judges in found.items() if not judges) or "–"
        lines.append(f"{described(limit, limit.case)}: in {inside}; {NOT_HERE}: {outside}")
    return lines

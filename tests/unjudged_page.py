"""Writes the table of figures that the shipped sites cannot judge into docs/tested.md.

``python -m tests.unjudged_page`` writes it. A test compares the page with the plans. The sites of
this machine are left out, because their hardware is that of the machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from tests.fixtures.shipped import SHIPPED, shipped_benchmarks, shipped_site
from tests.folders import ROOT

from proofmark.common.errors import NothingToRun
from proofmark.judge.foreseen import unjudged_of
from proofmark.plan.expansion import make_plan
from proofmark.plan.plan import Plan
from proofmark.site.machines import machines_of

PAGE = ROOT / "docs" / "tested.md"
BEGIN = "<!-- tests/unjudged_page.py writes the lines to the next heading -->\n"
HEAD = "| figure and reason | sites: suites |\n|---|---|\n"
DECLARED = [each for each in SHIPPED if not each[0].startswith("local")]


@cache
def plans(inventory: str, partition: str) -> list[Plan]:
    """Return the plan of each suite that a partition of the checkout can run."""
    site, found = shipped_site(inventory, partition), []
    for suite in shipped_benchmarks().suites:
        try:
            made = make_plan(shipped_benchmarks(), suite, site, machines_of(site)[0], digest=False)
        except NothingToRun:
            continue
        found.append(made)
    return found


def lines(inventory: str, partition: str) -> dict[str, list[str]]:
    """Return each figure of a partition that stays unjudged, with its suites."""
    site = shipped_site(inventory, partition)
    machines, probe = machines_of(site)
    model = site.partition.node.cpu_model or "discovered"
    found: dict[str, list[str]] = {}
    for plan in plans(inventory, partition):
        for each in unjudged_of(plan, shipped_benchmarks(), site, machines, probe):
            text = f"{each.message}".replace(model, "the processor")
            text = text.replace(f"a node of {partition}", "a node")
            found.setdefault(text, []).append(plan.suite)
    return found


def name_of(inventory: str, partition: str) -> str:
    """Return the name of a partition in the table."""
    short = inventory == partition or inventory.startswith("example-")
    return inventory if short else f"{inventory} {partition}"


def table() -> str:
    """Return the table of all shipped sites with declared hardware."""
    rows: dict[str, dict[str, list[str]]] = {}
    for each in DECLARED:
        for text, suites in lines(*each).items():
            rows.setdefault(text, {}).setdefault(", ".join(suites), []).append(name_of(*each))
    return HEAD + "".join(f"| {text} | {_where(of)} |\n" for text, of in sorted(rows.items()))


def _where(suites: dict[str, list[str]]) -> str:
    def parts() -> Iterator[str]:
        for names, sites in suites.items():
            yield f"{', '.join(sites)}: {names}"

    return "; ".join(parts())


def page() -> str:
    """Return the text of the page with the table of now."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{rest[rest.index('## ') :]}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

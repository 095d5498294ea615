"""Writes the generated part of docs/suites.md, from the suites, the cases and the plans.

``python -m tests.suites_page`` writes it. A test compares the page with the plans.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from tests.fixtures.shipped import shipped_benchmarks, shipped_site
from tests.folders import ROOT

from proofmark.common.errors import NothingToRun
from proofmark.common.text import duration, size
from proofmark.plan.expansion import make_plan
from proofmark.plan.plan import Totals
from proofmark.site.inventory import Site
from proofmark.site.machines import machines_of

PAGE = ROOT / "docs" / "suites.md"
BEGIN = "<!-- `python -m tests.suites_page` writes all lines below -->\n"
WIDTH = 128


@dataclass(frozen=True)
class Example:
    """A partition of an inventory whose plans give the costs."""

    inventory: str
    partition: str

    @property
    def nodes(self) -> int:
        """The number of its nodes."""
        return len(_site(self).hosts)

    @property
    def title(self) -> str:
        """Its column in the table."""
        return f"{self.nodes:,} nodes"

    def costs(self, suite: str) -> str:
        """Return the cells of one row: time, node-hours and the most bytes in scratch."""
        try:
            totals = self.totals(suite)
        except NothingToRun:  # a suite of a twin
            return "– | – | –"
        hours = f"{totals.node_hours:,.1f}"
        most = size(totals.scratch_peak_bytes) if totals.scratch_peak_bytes else "–"
        return f"{duration(totals.wall_s)} | {hours} | {most}"

    def totals(self, suite: str) -> Totals:
        """Return the cost of a suite."""
        site = _site(self)
        machines, _ = machines_of(site)
        return make_plan(shipped_benchmarks(), suite, site, machines).totals


SMALL = Example("example-xeon", "xeon")
LARGE = Example("nurion", "knl")


@cache
def _site(example: Example) -> Site:
    return shipped_site(example.inventory, example.partition)


def table(examples: Sequence[Example]) -> Iterator[str]:
    """Yield the lines of the table of costs."""
    titles = " | ".join(f"{each.title}: time | node-hours | most in scratch" for each in examples)
    yield f"| suite | {titles} |"
    yield "|---|" + "---|---:|---:|" * len(examples)
    for suite in by_name():
        costs = " | ".join(each.costs(suite) for each in examples)
        yield f"| [{suite}](#{suite}) | {costs} |"


def by_name() -> list[str]:
    """Return the suites of an acceptance first, then those that run by their names."""
    suites = shipped_benchmarks().suites
    practice = {name for name, suite in suites.items() if suite.kind == "practice"}
    return sorted(suites, key=lambda name: (not suites[name].listed, name in practice))


def sections() -> Iterator[str]:
    """Yield the lines about each suite."""
    for name in by_name():
        suite = shipped_benchmarks().suite(name)
        repeats = f" Each step runs {suite.repeats} times." if suite.repeats > 1 else ""
        yield f"\n## {name}\n"
        yield from _wrapped(f"{suite.title}.{repeats}")
        yield ""
        yield from _kept(name)
        if suite.kind == "sanity":
            yield "- **Verdict:** floors and peers suffice for exit code 0: NO FAULT FOUND."
        yield from _wrapped(f"- **Cases:** {_listed(_common(name))}")
        for each in suite.alternatives:
            origins = ", ".join(f"`{origin}`" for origin in each.origins)
            of = f"from {origins}" if origins else "from another origin"
            yield from _wrapped(f"- **With {each.title}** ({of}): {_listed(each.cases)}")


def _kept(suite: str) -> list[str]:
    """Return the lines of the page about what a suite finds, and when it is used.

    They are written by hand, and a new suite gets empty ones.
    """
    text = PAGE.read_text(encoding="utf-8").partition(f"\n## {suite}\n")[2].partition("\n## ")[0]
    found = re.search(r"^- \*\*Finds:\*\*(.|\n)*?(?=^- \*\*(?!Use it))", text, re.MULTILINE)
    return found[0].splitlines() if found else ["- **Finds:**", "- **Use it:**"]


def _common(suite: str) -> list[str]:
    """Return the cases of a suite that run with all origins of programs."""
    alternatives = shipped_benchmarks().suite(suite).alternatives
    others = {case for each in alternatives for case in each.cases}
    return [case for case in shipped_benchmarks().members(suite) if case not in others]


def _listed(cases: Iterable[str]) -> str:
    return ", ".join(f"`{case}`" for case in cases)


def _wrapped(text: str) -> list[str]:
    indent = "  " if text.startswith("- ") else ""
    return textwrap.wrap(text, WIDTH, subsequent_indent=indent, break_on_hyphens=False)


def written() -> str:
    """Return the generated part of the page."""
    return "\n".join(["", *table([SMALL, LARGE]), *sections()]) + "\n"


def main() -> None:
    """Write the page."""
    head = PAGE.read_text(encoding="utf-8").partition(BEGIN)[0]
    PAGE.write_text(head + BEGIN + written(), encoding="utf-8")


if __name__ == "__main__":
    main()

"""Counts the mass of each room and optional package, and holds it: a ratchet that only goes down.

``python -m tests.mass`` writes the counts of the checkout into ``tests/mass.yml``. A count that
rises needs ``--reason "room: why"``, which stands in the row until the count is as low again. The
sum of the rooms never rises, not even with a reason.

A line is a line of a file of Python. A node is a node of `ast.walk`: dense writing saves lines, but
no nodes.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from tests.fixtures.shipped import shipped_benchmarks
from tests.folders import PACKAGE, ROOT
from tests.key_pages import PAGES

from proofmark.cli.parser import OF_PERSONS
from proofmark.site.extra_vars import call_variables

TABLE = ROOT / "tests" / "mass.yml"
CORE = "sum of the rooms"
SURFACE = "surface"
HEAD = """\
# The mass of each room and optional package, and the public surface: `python -m tests.mass`.
# `lowest` has the smallest counts so far. A count above it has a reason: not the sum.
"""

Counts = dict[str, int]


@dataclass
class Row:
    """The counts of one room, package, or of the surface.

    Attributes:
        lowest: the smallest counts of all commits.
        reason: why a count is above its lowest one; empty if none is.
    """

    now: Counts
    lowest: Counts
    reason: str = ""

    def higher(self) -> list[str]:
        """Return the names of the counts above their lowest ones."""
        return [name for name, count in self.now.items() if count > self.lowest.get(name, count)]


@dataclass
class Table:
    """The rows by the name of a room, as ``judge`` or ``packages/twin``."""

    rows: dict[str, Row] = field(default_factory=dict)

    def mistakes(self, counted: Mapping[str, Counts]) -> list[str]:
        """Return what is wrong with the table for a checkout with the counts `counted`."""
        found = []
        for name in sorted({*counted, *self.rows}):
            row = self.rows.get(name)
            if row is None or row.now != counted.get(name):
                has = row.now if row else "no row"
                found.append(f"{name}: the table has {has}, the checkout {counted.get(name)}")
                continue
            higher = row.higher()
            if higher and name == CORE:
                found.append(f"{name}: {', '.join(higher)} never rise")
            if higher and not row.reason:
                found.append(f"{name}: {', '.join(higher)} rose without a reason")
        return found

    def updated(self, counted: Mapping[str, Counts], reasons: Mapping[str, str]) -> Table:
        """Return the table with the counts of now, and with further `reasons` by row."""
        rows = {}
        for name, now in counted.items():
            old = self.rows.get(name, Row(now, now))
            lowest = {key: min(count, old.lowest.get(key, count)) for key, count in now.items()}
            row = Row(now, lowest, reasons.get(name, old.reason))
            if not row.higher():
                row.reason = ""
            rows[name] = row
        return Table(rows)


def mass_of(folder: Path) -> Counts:
    """Return the modules, lines and nodes of syntax of all Python files in `folder`."""
    counts = {"modules": 0, "lines": 0, "nodes": 0}
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        counts["modules"] += 1
        counts["lines"] += len(text.splitlines())
        counts["nodes"] += sum(1 for _ in ast.walk(ast.parse(text)))
    return counts


def surface() -> Counts:
    """Return the sizes of what a user can meet."""
    keys = []
    for page in PAGES:
        keys.append(len(re.findall(r"^\| `", page.text(), re.MULTILINE)))
    return {
        "commands": len(OF_PERSONS),
        "variables": len(call_variables()),
        "case keys": keys[0],
        "site keys": keys[1],
        "suites": len(shipped_benchmarks().listed()),
        "pages": len([*(ROOT / "docs").glob("*.md"), *(ROOT / "docs/design").glob("*.md")]),
    }


def counted() -> dict[str, Counts]:
    """Return the counts of the checkout, by row of the table."""
    found = {}
    total = dict.fromkeys(("modules", "lines", "nodes"), 0)
    for folder in sorted(each for each in PACKAGE.iterdir() if each.is_dir()):
        if folder.name in ("packages", "__pycache__"):
            continue
        found[folder.name] = mass_of(folder)
        for name, count in found[folder.name].items():
            total[name] += count
    for init in sorted((PACKAGE / "packages").glob("*/__init__.py")):
        found[f"packages/{init.parent.name}"] = mass_of(init.parent)
    return {**found, CORE: total, SURFACE: surface()}


def read(path: Path = TABLE) -> Table:
    """Return the table in `path`."""
    rows = yaml.safe_load(path.read_text(encoding="utf-8")) if path.exists() else {}
    return Table({name: Row(**row) for name, row in rows.items()})


def write(table: Table, path: Path = TABLE) -> None:
    """Write `table` to `path`."""
    lines = [HEAD]
    for name, row in table.rows.items():
        lines.append(f"{name}:\n")
        for key, counts in (("now", row.now), ("lowest", row.lowest)):
            text = ", ".join(f"{each}: {count}" for each, count in counts.items())
            lines.append(f"  {key}: {{{text}}}\n")
        if row.reason:
            lines.append(f"  reason: {json.dumps(row.reason, ensure_ascii=False)}\n")
    path.write_text("".join(lines), encoding="utf-8")


def main(words: list[str]) -> int:
    """Write the table; return 1 if it is refused."""
    parser = argparse.ArgumentParser(prog="python -m tests.mass")
    parser.add_argument("--reason", action="append", default=[], metavar="ROOM: WHY")
    reasons = {}
    for each in parser.parse_args(words).reason:
        name, _, why = each.partition(": ")
        reasons[name] = why
    now = counted()
    table = read().updated(now, reasons)
    mistakes = table.mistakes(now)
    print("\n".join(mistakes) or f"{TABLE.relative_to(ROOT)}: written")
    if not mistakes:
        write(table)
    return int(bool(mistakes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

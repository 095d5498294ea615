"""Reference runs: folders of runs that an earlier version of the kit measured and judged.

``python -m tests.reference check`` reads and judges each of them again. It compares every record
and every value of the verdict with the stored ones.
``python -m tests.reference add NAME RUN`` adds a run. The run must not contain confidential data.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import re
import sys
import tarfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
from tests.folders import DATA

from proofmark.judge.diagnosis.bad_nodes import as_csv, rma
from proofmark.judge.judging import read_and_judge
from proofmark.judge.verdict import write_verdict
from proofmark.packages.twin.smpi import unpack
from proofmark.records.parquet_table import table
from proofmark.runs.nodes import nodes_of
from proofmark.runs.run import open_run

FOLDER = DATA / "runs"
ENDING = ".tar.xz"
NOT_COMPARED = {
    *("figures", "lock", "manifest.json", "report.html"),
    *("SHA256SUMS", "trace.log"),
}
"""Names in the folder of a run that an archive does not contain."""
SAME = 1e-12
"""Largest relative difference of equal numbers: libraries may sum in another order."""
REWORDED = {
    "nothing that its fellows do not have as well: the node itself": (
        "the node itself: its reported properties are those of its peers"
    ),
    " spreads off; ": " spreads from the median; at most ",
    " are accepted": " spreads are accepted",
    "not even one that fails altogether stands out": (
        "even a node that fails completely would not be detected"
    ),
    ",not told,": ",not reported,",
}
"""New phrases of texts by their old phrases; the facts are the same."""
EXPECTED = {
    r".*/(reason|likely|problem)_(code|fields): new": "a reason has a code and its values",
    r".*: reworded": "the same facts in plain English",
    r"/.*/(node|host|name|hosts?|nodes(/\d+)?): 'vm' before, 'localhost' after": (
        "docs/design/nodes.md: a node has the name of the inventory"
    ),
    r"/verdict\.json/results/\d+/confidence: new": (
        "docs/design/statistics.md: an interval has its confidence"
    ),
    r"/verdict\.json/(results/\d+/)?single_runs?: new": (
        "docs/design/cases.md: a single run is labelled"
    ),
    r"/verdict\.json/(results/\d+/)?degraded: new": (
        "docs/design/cases.md: a run without nodes is labelled"
    ),
    r"/verdict\.json/slowdowns: gone": "docs/burnin.md: a run without a load has no slowdowns",
    r"/verdict\.json/claims: gone": "docs/verdict.md: claims only on the systems of the papers",
    r"/verdict\.json/links: new": "docs/packages/fabric.md: the slow elements of the fabric",
    r"/verdict\.json/file_systems: new": "docs/packages/fabric.md: the causes in the file system",
    r"/verdict\.json/fleet/figures/\d+/hardware: '(.*)' before, '\1; distance \w+' after": (
        "docs/packages/fabric.md: pairs are compared with pairs of the same distance"
    ),
    r"/verdict\.json/fleet/figures/\d+/members: new": (
        "docs/packages/fabric.md: storage targets are compared"
    ),
    r"/verdict\.json/fleet/figures/\d+/(noise: new|detectable: .*)": (
        "docs/design/statistics.md: the stated power is right within 10 %"
    ),
    r"/verdict\.json/fleet/figures/\d+/power: gone": "the drop that is detected is stated alone",
    r"/verdict\.json/storage_targets: new": "docs/packages/fabric.md: slow storage targets",
    r"/verdict\.json/over_time: new": "docs/design/validity.md: the end is compared with the start",
    r"/verdict\.json/over_time: gone": "docs/burnin.md: a run of less than an hour is not compared",
    r"/verdict\.json/(faults|fleet/nodes/\d+/loss): new": (
        "docs/design/statistics.md: lost packets are a fault"
    ),
    r"/verdict\.json/fleet/nodes/\d+/known: new": (
        "docs/verdict.md: parts that were bought, hardware errors, too good"
    ),
    r"/verdict\.json/(fleet/nodes/\d+/figures|results)/\d+/(shown_by|retest_reason): new": (
        "docs/verdict.md: undisturbed executions confirm a failure"
    ),
    r"/verdict\.json/retest/(steps: 0 entries before, 1 after|command: '' before, .*)": (
        "docs/verdict.md: undisturbed executions confirm a failure"
    ),
    r"/verdict\.json/(counts/FAIL: (2 before, 1|1 before, 0)|fleet/figures/\d+/flagged: 2 entries "
    r"before, 1|results/\d+/(verdict|references/\d+/outcome): 'FAIL' before, 'UNJUDGED') after": (
        "docs/verdict.md: a FAIL needs repeats that agree"
    ),
    r"/verdict\.json/results/\d+/(references/\d+/)?reason: '.*' before, "
    r"'.*, but its repeats do not prove it: measure it again.*' after": (
        "docs/verdict.md: a FAIL needs repeats that agree"
    ),
    r"/verdict\.json/fleet/nodes/1/(node: 'knl0023' before, 'knl0001'|worst: -0\.0701\d+ before, "
    r"0\.0|figures: 1 entries before, 0) after": (
        "docs/verdict.md: a FAIL needs repeats that agree"
    ),
    r"/verdict\.json/(fleet/figures/\d+/limit: 987\.\d+ before, 980|results/\d+/references/\d+/("
    r"at_least: 0\.98\d+ before, 0\.98|source: '(.*) 1\.8 % (.*)' before, '\3 2 % \4' after)).*": (
        "docs/verdict.md: a difference of like nodes is material from 2 % on"
    ),
    r"/verdict\.json/results/\d+/retest: False before, True after": (
        "docs/verdict.md: undisturbed executions confirm a failure"
    ),
    r"(/verdict\.json/fleet/nodes|/rma\.csv): 2 entries before, 6[01] after": (
        "docs/verdict.md: one boot id or serial number on several nodes"
    ),
    r"(/verdict\.json/fleet/nodes/\d+/likely|/rma\.csv/\d+): .*are one machine.*": (
        "docs/verdict.md: one boot id or serial number on several nodes"
    ),
    r"/verdict\.json/fleet/nodes/\d+/retest: True before, False after": (
        "docs/verdict.md: one boot id or serial number on several nodes"
    ),
    r"/verdict\.json/(added|disturbed): new": "docs/verdict.md: no picking",
    r"/verdict\.json/results/\d+/interval/[01]: .*": (
        "docs/design/statistics.md: the interval is rank-based"
    ),
    r"/verdict\.json/(unmet|rehearsed|limits): new": (
        "docs/design/statistics.md: what must be judged"
    ),
    r"/verdict\.json/fleet/nodes/\d+/digits: new": (
        "docs/design/statistics.md: like nodes compute the same digits"
    ),
    r"/verdict\.json/counts/(PASS|UNJUDGED): .*": "docs/design/statistics.md: peers do not accept",
    r"/verdict\.json/results/\d+/(verdict|references/\d+/outcome): "
    r"'PASS' before, 'UNJUDGED' after": "docs/design/statistics.md: peers do not accept",
    r"/verdict\.json/results/\d+/(?:references/\d+/)?reason: '(.*)' before, "
    r"'like its peers: \1' after": "docs/design/statistics.md: peers do not accept",
    r"/verdict\.json/(headline|results/\d+/references/\d+/visible): new": (
        "docs/verdict.md: what judged, and the change that would be seen"
    ),
    r"/verdict\.json/results/\d+/references/\d+/kind: "
    r"('derived' before, 'floor'|'fleet' before, 'peers') after": (
        "docs/verdict.md: the kinds of limits"
    ),
    r"/verdict\.json/results/\d+/(?:references/\d+/)?reason: '([^;]*)((?:; .*)?)' before, "
    r"'\1: only a floor, below which something is broken(\2|; .*)' after": (
        "docs/verdict.md: a floor makes no PASS"
    ),
    r"/verdict\.json/.*: '(\d+ like )nodes\b.*' before, '\1pairs\b.*' after": (
        "docs/verdict.md: a like node that is a pair is called a pair"
    ),
    r"/verdict\.json/claims/\d+/sentence: 'measured on (.*)' before, "
    r"'the figures are of \1' after": "docs/packages/twin.md: the figures may be predicted",
}
"""Differences that a decision caused: a pattern of the whole line, and the decision."""
MOST = 20
"""The number of differences of a run that are printed."""


@dataclass(frozen=True)
class Comparison:
    """The comparison of the values of a run with its stored values.

    Attributes:
        name: the name of the archive.
        values: the number of values that were compared.
        differences: one line for each unexpected difference.
        expected: the number of differences that a decision caused, by decision.
    """

    name: str
    values: int
    differences: tuple[str, ...]
    expected: Mapping[str, int]


def archives() -> list[Path]:
    """Return the archives of all reference runs."""
    return sorted(FOLDER.glob(f"*{ENDING}"))


def compare(archive: Path) -> Comparison:
    """Read and judge the run of `archive`; compare its records and its verdict with its files."""
    with TemporaryDirectory(prefix="proofmark-reference-") as folder:
        unpack(archive, Path(folder))
        (path,) = Path(folder).iterdir()
        run = open_run(path)
        records, verdict = read_and_judge(run)
        facts = {host: node.newest for host, node in nodes_of(run).items() if node.jobs}
        text = io.StringIO()
        write_verdict(text, verdict)
        before = _values(path)
        after = {
            "records.parquet": table(records).to_dicts(),
            "verdict.json": json.loads(text.getvalue()),
            "rma.csv": as_csv(rma(verdict.bad.nodes, facts)).splitlines(),
        }
    unexpected, expected = separate(differences(before, after))
    name = archive.name.removesuffix(ENDING)
    return Comparison(name, count(before), tuple(unexpected), expected)


def separate(lines: Iterable[str]) -> tuple[list[str], Counter[str]]:
    """Return the unexpected differences, and the number of the expected ones by decision."""
    unexpected: list[str] = []
    expected: Counter[str] = Counter()
    for line in lines:
        decisions = (name for pattern, name in EXPECTED.items() if re.fullmatch(pattern, line))
        if decision := next(decisions, ""):
            expected[decision] += 1
        else:
            unexpected.append(line)
    return unexpected, expected


def _values(run: Path) -> dict[str, Any]:
    """Return the stored records and the stored verdict of `run`.

    A key without a value and no key are the same: an optional package has no key without its data.
    """
    verdict = json.loads((run / "verdict.json").read_text(encoding="utf-8"))
    return {
        "records.parquet": pl.read_parquet(run / "records.parquet").to_dicts(),
        "verdict.json": {key: value for key, value in verdict.items() if value is not None},
        "rma.csv": (run / "rma.csv").read_text(encoding="utf-8").splitlines(),
    }


def count(value: object) -> int:
    """Return the number of numbers, strings and empty values in `value`."""
    if isinstance(value, dict):
        return sum(count(each) for each in value.values())
    if isinstance(value, list):
        return sum(count(each) for each in value)
    return 1


def differences(before: object, after: object, place: str = "") -> Iterator[str]:
    """Yield a line for each value that differs between `before` and `after`."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in [*before, *(key for key in after if key not in before)]:
            if key not in after or key not in before:
                yield f"{place}/{key}: {'gone' if key in before else 'new'}"
            else:
                yield from differences(before[key], after[key], f"{place}/{key}")
    elif isinstance(before, list) and isinstance(after, list):
        if len(before) != len(after):
            yield f"{place}: {len(before)} entries before, {len(after)} after"
        for number, (old, new) in enumerate(zip(before, after, strict=False)):
            yield from differences(old, new, f"{place}/{number}")
    elif isinstance(before, str) and before != after and _reworded(before) == after:
        yield f"{place}: reworded"
    elif not _same(before, after):
        yield f"{place}: {before!r} before, {after!r} after"


def _reworded(text: str) -> str:
    for old, new in REWORDED.items():
        text = text.replace(old, new)
    return text


def _same(before: object, after: object) -> bool:
    if isinstance(before, float) and isinstance(after, float):
        return math.isclose(before, after, rel_tol=SAME) or (
            math.isnan(before) and math.isnan(after)
        )
    return type(before) is type(after) and before == after


def add(name: str, run: Path) -> Path:
    """Write the archive `name` of `run` and return it; the same files give the same bytes."""
    archive = FOLDER / f"{name}{ENDING}"
    folder = run.resolve()

    def normalised(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        inside = Path(entry.name).relative_to(folder.name).parts
        if inside and inside[0] in NOT_COMPARED:
            return None
        if entry.isdir():
            entry.mode = 0o755  # every user unpacks and reads it
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        entry.mtime = 0
        return entry

    with tarfile.open(archive, "w:xz", preset=9) as tar:
        tar.add(folder, arcname=folder.name, filter=normalised)
    return archive


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 if there is no unexpected difference, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.reference", description=__doc__)
    verbs = parser.add_subparsers(required=True)
    checking = verbs.add_parser("check", help="compare every reference run")
    checking.set_defaults(run=_check)
    adding = verbs.add_parser("add", help="make a run a reference run")
    adding.add_argument("name", metavar="NAME")
    adding.add_argument("folder", metavar="RUN", type=Path)
    adding.set_defaults(run=_add)
    options = parser.parse_args(arguments)
    code: int = options.run(options)
    return code


def _check(_: argparse.Namespace) -> int:
    results = [compare(archive) for archive in archives()]
    for result in results:
        print(f"{result.name}: {result.values} values, {len(result.differences)} differences")
        for line in result.differences[:MOST]:
            print(f"  {line}")
        for decision, number in result.expected.items():
            print(f"  expected: {number}, {decision}")
    return 1 if any(result.differences for result in results) else 0


def _add(options: argparse.Namespace) -> int:
    archive = add(options.name, options.folder)
    print(f"{archive}: {archive.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())

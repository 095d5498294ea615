"""The same command by the kit and by hand, in turn: the effect of the kit on measurements."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import yaml
from rich.table import Table
from tests.folders import ROOT
from tests.roles.kit import make_kit

from proofmark.cases.case import Case
from proofmark.cases.reader.engine import read_output
from proofmark.common.files import read_json
from proofmark.jobs.job_request import BatchQueue
from proofmark.jobs.scripts import Scripts, write_scripts
from proofmark.jobs.step_script import LaunchSite
from proofmark.runs.run import Run, benchmarks_of, open_run, site_of
from proofmark.software.software import Software

SUITE = "bench"
CASES: dict[str, dict[str, Any]] = {
    "hpcc": {"sweep": {"blas_kernel": "right", "memory_share": 0.001}, "let": {"n": 1536}},
    "imb-pingpong": {},
}


@dataclass(frozen=True)
class Figure:
    """A figure that one run of a case prints once."""

    case: str
    metric: str
    bytes: int | None = None

    @property
    def name(self) -> str:
        return f"{self.case} {self.metric}" + (f" {self.bytes} B" if self.bytes else "")


FIGURES = (
    Figure("hpcc", "dgemm_star"),
    Figure("hpcc", "dgemm_single"),
    Figure("imb-pingpong", "t_avg", 8),
    Figure("imb-pingpong", "bandwidth", 4 << 20),
)


def compare(run: Run, wanted: Sequence[Figure], pairs: int) -> Table:
    """Run each step of `run` `pairs` times by the kit and by hand; the order alternates."""
    table = Table(
        "figure", "kit", "hand", "unit", "kit ÷ hand", "least – most", "hand ÷ hand", box=None
    )
    for step in run.plan.steps():
        case = benchmarks_of(run).case(step.case)
        place = run.folder / "workdir/steps" / step.id
        figures = [figure for figure in wanted if figure.case == step.case]
        ways = (
            partial(_by_kit, place, step.output),
            partial(_by_hand, place, step.output, list(step.inputs)),
        )
        outputs: tuple[list[str], list[str]] = [], []
        for number in range(pairs):
            for way in (0, 1) if number % 2 else (1, 0):
                outputs[way].append(ways[way]())
        for figure in figures:
            kit, hand = ([_value(case, figure, text) for text in each] for each in outputs)
            _row(table, figure, case.metrics[figure.metric].unit, kit, hand)
    return table


def prepared(folder: Path) -> Run:
    """Provide the programs as an acceptance does, and write the steps; return the run."""
    folder.mkdir()
    kit = make_kit(folder)
    (ROOT / ".provision").mkdir(exist_ok=True)
    (kit.folder / ".provision").symlink_to(ROOT / ".provision")
    for name in ("requirements", "environments"):
        shutil.copytree(ROOT / name, kit.folder / name, dirs_exist_ok=True)
    shutil.rmtree(kit.folder / "benchmarks")
    (kit.folder / "benchmarks").mkdir()
    for name, use in CASES.items():
        source = ROOT / "benchmarks" / f"{name}.yml"
        data = yaml.safe_load(source.read_text(encoding="utf-8"))
        data |= {"suites": {SUITE: use}, "references": []}
        _write(kit.folder / "benchmarks" / source.name, data)
    _write(kit.folder / "benchmarks" / "suites.yml", {"suites": {SUITE: {"title": "Pairs"}}})
    kit.partition(**_facts())
    played = kit.play("playbooks/plan.yml", "playbooks/build.yml", "-e", f"suite={SUITE}")
    if played.code:
        raise SystemExit(played.output)
    run = open_run(kit.run())
    software = read_json(run.folder / "software.json", Software)
    partition = site_of(run).partition
    scratch = Path(partition.scratch.path)
    made = Scripts(LaunchSite(software), scratch, BatchQueue(partition.scheduler))
    write_scripts(run.folder, run.plan, made)
    return run


def _facts() -> dict[str, Any]:
    """Return the facts of the local site, which the expressions of the cases name."""
    path = ROOT / "inventory/local/group_vars/local/partition.yml"
    partition = yaml.safe_load(path.read_text(encoding="utf-8"))["partition"]
    return {"facts": partition.get("facts", {})}


def _write(path: Path, data: dict[str, Any]) -> None:
    path.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")


def _by_kit(place: Path, output: str) -> str:
    subprocess.run(["sh", place / "run.sh"], check=True, stdin=subprocess.DEVNULL)
    newest = max(place.glob("execution-*"), key=lambda path: (path / "rc").stat().st_mtime_ns)
    return (newest / output).read_text(encoding="utf-8")


def _by_hand(place: Path, output: str, inputs: list[str]) -> str:
    """Run the launch command of the step's script, without the rest of the kit."""
    script = (place / "run.sh").read_text(encoding="utf-8")
    launch = script.partition("launch() {\n")[2].partition("\n}\n")[0]
    hand = place.with_name("by-hand")
    shutil.rmtree(hand, ignore_errors=True)
    hand.mkdir()
    for name in inputs:
        shutil.copy(place / name, hand)
    command = launch.replace('sh "$HERE/run.sh" --rank ', "")
    with (hand / "stdout").open("w") as stdout, (hand / "stderr").open("w") as stderr:
        subprocess.run(
            ["sh", "-c", command],
            cwd=hand,
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
        )
    return (hand / output).read_text(encoding="utf-8")


def _value(case: Case, figure: Figure, text: str) -> float:
    (value,) = [
        reading.value
        for reading in read_output(case.reader(), figure.case, text)
        if reading.metric == figure.metric
        and reading.valid
        and reading.value is not None
        and figure.bytes in (None, reading.parameters.get("bytes"))
    ]
    return value


def _row(table: Table, figure: Figure, unit: str, kit: list[float], hand: list[float]) -> None:
    ratios = [one / other for one, other in zip(kit, hand, strict=True)]
    variation = [later / earlier for earlier, later in pairwise(hand)] or [1.0]
    table.add_row(
        figure.name,
        f"{median(kit):.4g}",
        f"{median(hand):.4g}",
        unit,
        f"{median(ratios):.3f}",
        f"{min(ratios):.3f} – {max(ratios):.3f}",
        f"{min(variation):.3f} – {max(variation):.3f}",
    )

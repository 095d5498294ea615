"""What the kit itself costs: ``make bench``. Prints figures, asserts none.

(a) wall time of a step beyond its program's own, over trivial steps of one job;
(b) a program started by the kit against the same command by hand, paired in turn.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from proofmark.plan import Step
from proofmark.reader import read_output
from proofmark.runs import Run, benchmarks_of, open_run

ROOT = Path(__file__).parents[2]
STEPS = 60
PAIRS = 5
COMPARED: dict[str, list[tuple[str, int | None]]] = {
    "imb-pingpong": [("t_avg", 0), ("bandwidth", 1 << 22)],
    "hpcc": [("dgemm_star", None)],
}
"""Metric and message size in bytes by case."""


def main() -> None:
    """Run both measurements and print them."""
    table = Table("what", "median", "spread", "unit", box=None)
    table.add_row(*trivial_steps())
    run = newest_run()
    if run is None:
        print("no run with these cases yet: make acceptance first, for (b)", file=sys.stderr)
    else:
        for row in pairs(run):
            table.add_row(*row)
    Console(width=120).print(table)


def trivial_steps() -> tuple[str, str, str, str]:
    """Time steps that run ``true``, one after the other in one job."""
    body = (ROOT / "analysis/proofmark/shell/step.sh").read_text()
    loop = (ROOT / "analysis/proofmark/shell/job.sh").read_text()
    launch = 'launch() {\nexec sh "$HERE/run.sh" --rank true\n}\n'
    head = f"STEP=x\nTIMEOUT=9\nSCRATCH=\nINPUTS=\nMADE=\n{launch}"
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        names = [f"{number:04d}" for number in range(STEPS + 1)]
        for name in names:
            (folder / "steps" / name).mkdir(parents=True)
            (folder / "steps" / name / "run.sh").write_text(f"#!/bin/sh\n{head}{body}")
        (folder / "jobs/1").mkdir(parents=True)
        (folder / "probe.sh").write_text("")
        job = folder / "jobs/1/job.sh"
        job.write_text(f"RUN={folder}\nJOB=1\nSTEPS='{' '.join(names)}'\n{loop}")
        subprocess.run(["sh", str(job)], check=True, stdin=subprocess.DEVNULL)
        ends = [(folder / "steps" / name / "rc").stat().st_mtime for name in names]
    each = [1000 * (after - before) for before, after in pairwise(ends)]
    own = 1000 * median(spawn_time() for _ in range(STEPS))
    beyond = [took - own for took in each]
    return (
        f"(a) a step beyond its program, {STEPS} steps",
        f"{median(beyond):.1f}",
        f"{min(beyond):.1f} … {max(beyond):.1f}",
        "ms",
    )


def spawn_time() -> float:
    """Return the wall time in seconds of starting and ending ``true``."""
    began = time.perf_counter()
    subprocess.run(["true"], check=True)
    return time.perf_counter() - began


def newest_run() -> Run | None:
    """Return the newest run whose steps can be repeated here."""
    for folder in sorted((ROOT / "runs").glob("*Z-*"), reverse=True):
        run = open_run(folder)
        cases = {step.case for step in run.plan.steps()}
        if set(COMPARED) <= cases and (folder / "steps").exists():
            return run
    return None


def pairs(run: Run) -> list[tuple[str, str, str, str]]:
    """Run the last step of each compared case by the kit and by hand, in turn."""
    benchmarks = benchmarks_of(run)
    rows = []
    for name, metrics in COMPARED.items():
        step = [step for step in run.plan.steps() if step.case == name][-1]
        reader = benchmarks.case(name).reader()
        ratios: dict[tuple[str, int | None], list[float]] = {metric: [] for metric in metrics}
        for _ in range(PAIRS):
            texts = [once(run, step, by_hand=False), once(run, step, by_hand=True)]
            kit, hand = ([*read_output(reader, name, text)] for text in texts)
            for metric, size in metrics:
                values = [
                    reading.value
                    for readings in (kit, hand)
                    for reading in readings
                    if reading.metric == metric
                    and (size is None or reading.parameters.get("bytes") == size)
                ]
                by_kit, direct = values
                if by_kit is not None and direct:
                    ratios[metric, size].append(by_kit / direct)
        rows += [row(name, metric, size, found) for (metric, size), found in ratios.items()]
    return rows


def row(
    case: str, metric: str, size: int | None, found: Sequence[float]
) -> tuple[str, str, str, str]:
    """Return one line of the table: the ratio kit ÷ hand and its spread."""
    at = "" if size is None else f" at {size} bytes"
    name = f"(b) {case} {metric}{at}, {len(found)} pairs"
    return name, f"{median(found):.3f}", f"{min(found):.3f} … {max(found):.3f}", "kit ÷ by hand"


def once(run: Run, step: Step, *, by_hand: bool) -> str:
    """Run `step` in a folder of its own and return its output."""
    script = (run.folder / "steps" / step.id / "run.sh").read_text()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for name in step.inputs:
            (folder / name).write_text((run.folder / "steps" / step.id / name).read_text())
        if by_hand:
            body = script.partition("launch() {\n")[2].partition("\n}\n")[0]
            script = body.replace('sh "$HERE/run.sh" --rank ', "")
        (folder / "run.sh").write_text(script)
        command = ["sh", str(folder / "run.sh")]
        with (folder / "said").open("w") as said:
            subprocess.run(command, cwd=folder, stdout=said, stderr=said, check=True)
        output = step.output if not (by_hand and step.output == "stdout") else "said"
        return (folder / output).read_text()


if __name__ == "__main__":
    main()

"""Costs and error rates of the trends: ``python -m tests.bench.trend``.

The cost of 250 to 2,000 runs of one machine with 100 figures is measured in processes of their own.
The trials draw normal noise with a coefficient of variation of 1 % for 100 figures of 10 families:

- ``steady``: no figure changes. In at most 5 % of the trials any change may be reported.
- ``fall``: one figure falls by 5 %. In at least 95 % of the trials of 24 and more runs it is found
  with its date. Otherwise the exit code is 1.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from tests.fixtures.past_runs import Value, write_past_run

from proofmark.cli.main import main as proofmark
from proofmark.judge.fleet.critical_values import FAMILY_LEVEL
from proofmark.packages.history.change_points import LevelSeries, courses

RUNS = (250, 500, 1000, 2000)
ENOUGH = 24
"""With fewer runs, fewer falls can be found."""
MOST_WRONG, LEAST_RIGHT = 0.05, 0.95
FIGURES, FAMILIES, NOISE = 100, 10, 0.01
LENGTHS = (6, 12, 24, 60)
AFTER = 5
"""Runs after the planted fall, at most half of all runs."""


def write_runs(folder: Path, count: int) -> None:
    """Write `count` runs with noise."""
    rng = np.random.default_rng(count)
    for number in range(count):
        factors = np.exp(rng.normal(0, NOISE, FIGURES))
        figures = [
            Value(f"rate{place}", (100 * factor, 101 * factor))
            for place, factor in enumerate(factors.tolist())
        ]
        write_past_run(folder, number, figures)


def series(rng: np.random.Generator, length: int, fall: bool) -> list[LevelSeries]:
    """Return the figures of one trial; with `fall` the first one falls by 5 %."""
    logs = rng.normal(0, NOISE, (FIGURES, length))
    if fall:
        logs[0, place(length) :] += np.log(0.95)
    days = np.arange(length, dtype=np.float64)
    return [LevelSeries(days, row, number % FAMILIES) for number, row in enumerate(logs)]


def place(length: int) -> int:
    """Return the first run after the planted fall."""
    return length - min(AFTER, length // 2)


def shares(length: int, trials: int) -> tuple[float, float]:
    """Return the share of steady trials with a change, and of falls that are found and dated."""
    rng = np.random.default_rng(length)
    wrong = right = 0
    for _ in range(trials):
        found = courses(series(rng, length, fall=False), FAMILY_LEVEL)
        wrong += any(each.steps or each.slope for each in found)
        steps = courses(series(rng, length, fall=True), FAMILY_LEVEL)[0].steps
        right += any(each.earliest <= place(length) <= each.latest for each in steps)
    return wrong / trials, right / trials


def cost(count: int) -> str:
    """Return the time and memory of the command for `count` runs, in a process of its own."""
    with TemporaryDirectory(prefix="proofmark-") as folder:
        write_runs(Path(folder), count)
        command = [sys.executable, "-m", "tests.bench.trend", "--measure", folder]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return f"{count} runs: {done.stdout.splitlines()[-1]}"


def measure(folder: str) -> None:
    """Run the command and print what it used."""
    begin = time.perf_counter()
    if code := proofmark(["trend", folder]):
        raise SystemExit(code)
    seconds = time.perf_counter() - begin
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu = sum(each.ru_utime + each.ru_stime for each in used)
    page = (Path(folder) / "trend.html").stat().st_size
    memory = used[0].ru_maxrss / 1024
    print(f"{seconds:.1f} s, {cpu:.1f} s CPU, {memory:.0f} MiB, page {page / 2**20:.2f} MiB")


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the costs and the error rates; exit 1 if a rate is not accepted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--runs", type=int, nargs="*", default=RUNS)
    parser.add_argument("--measure", metavar="FOLDER", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.measure:
        measure(options.measure)
        return
    for count in options.runs:
        print(cost(count), flush=True)
    accepted = True
    for length in LENGTHS:
        wrong, right = shares(length, options.trials)
        print(f"{length} runs: {100 * wrong:.1f} % with a false change, {100 * right:.1f} % found")
        accepted &= wrong <= MOST_WRONG and (length < ENOUGH or right >= LEAST_RIGHT)
    if not accepted:
        raise SystemExit(1)


if __name__ == "__main__":
    main()

"""What the kit itself costs, and whether it changes what it measures: ``make bench``.

Absolute numbers are printed, never asserted: they belong to the machine.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from rich.console import Console
from tests.bench.acceptance import measure, told
from tests.bench.bmc import by_the_kit, emulated
from tests.bench.overhead import GOAL_MS, beyond_the_program
from tests.bench.pairs import compare


def main() -> None:
    options = argparse.ArgumentParser(prog="make bench", description=__doc__.partition(":")[0])
    options.add_argument("--steps", type=int, default=100, help="trivial steps (default: 100)")
    options.add_argument(
        "--pairs", type=int, default=7, help="runs by kit and by hand each; 0: none"
    )
    options.add_argument("--bmcs", type=int, default=1000, help="emulated BMCs; 0: none")
    options.add_argument("--nodes", type=int, default=8437, help="of an acceptance; 0: none")
    chosen = options.parse_args()
    console = Console(width=110)
    with tempfile.TemporaryDirectory(prefix="proofmark-bench-") as folder:
        console.print(beyond_the_program(Path(folder), chosen.steps))
        console.print(f"The goal is a median below {GOAL_MS} ms on an idle machine.\n")
        if chosen.bmcs:
            with emulated(chosen.bmcs, 0.0) as room:
                cost = by_the_kit(room, 256)
            console.print(
                f"{cost.bmcs} BMCs read, staged and reset, {cost.failed} failed: "
                f"{cost.wall_s:.1f} s, {cost.cpu_ms_each:.1f} ms of CPU each, "
                f"{cost.memory_mb:.0f} MB at most (python -m tests.bench.bmc has more ways)\n"
            )
        if chosen.nodes:
            console.print(f"{told(measure(chosen.nodes))}\n")
        if chosen.pairs:
            console.print(compare(Path(folder), chosen.pairs))
            console.print(
                "Ratios are kit ÷ hand of runs that followed each other; the last column is what\n"
                "the machine does by itself: each run by hand ÷ the one before it."
            )


main()

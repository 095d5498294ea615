"""What the kit itself costs, and whether it changes what it measures: ``make bench``.

Absolute numbers are printed, never asserted: they belong to the machine.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from rich.console import Console
from tests.bench.overhead import GOAL_MS, beyond_the_program
from tests.bench.pairs import compare


def main() -> None:
    options = argparse.ArgumentParser(prog="make bench", description=__doc__.partition(":")[0])
    options.add_argument("--steps", type=int, default=100, help="trivial steps (default: 100)")
    options.add_argument(
        "--pairs", type=int, default=7, help="runs by kit and by hand each; 0: none"
    )
    chosen = options.parse_args()
    console = Console(width=110)
    with tempfile.TemporaryDirectory(prefix="proofmark-bench-") as folder:
        console.print(beyond_the_program(Path(folder), chosen.steps))
        console.print(f"The goal is a median below {GOAL_MS} ms on an idle machine.\n")
        if chosen.pairs:
            console.print(compare(Path(folder), chosen.pairs))
            console.print(
                "Ratios are kit ÷ hand of runs that followed each other; the last column is what\n"
                "the machine does by itself: each run by hand ÷ the one before it."
            )


main()

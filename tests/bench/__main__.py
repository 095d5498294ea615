"""The overhead of the kit, and its effect on measurements: ``make bench``.

Absolute numbers are printed and never asserted, because they depend on the machine.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from tests.bench import scale
from tests.bench.acceptance import measure, sentence
from tests.bench.bmc import by_the_kit, emulated
from tests.bench.overhead import GOAL_MS, beyond_the_program
from tests.bench.pairs import FIGURES, compare, prepared


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the chosen measurements; each fails if what it measures failed."""
    options = argparse.ArgumentParser(prog="make bench", description=__doc__.partition(":")[0])
    options.add_argument("--steps", type=int, default=100, help="trivial steps (default: 100)")
    options.add_argument(
        "--pairs", type=int, default=7, help="number of runs by kit and by hand; 0: none"
    )
    options.add_argument("--bmcs", type=int, default=1000, help="emulated BMCs; 0: none")
    options.add_argument(
        "--nodes", type=int, default=8437, help="number of nodes of an acceptance; 0: none"
    )
    options.add_argument(
        "--scale", type=int, default=2000, help="number of nodes of a run that is judged; 0: none"
    )
    chosen = options.parse_args(arguments)
    console = Console(width=110)
    with tempfile.TemporaryDirectory(prefix="proofmark-bench-") as folder:
        console.print(beyond_the_program(Path(folder), chosen.steps))
        console.print(f"The median should be below {GOAL_MS} ms on an idle machine.\n")
        if chosen.bmcs:
            with emulated(chosen.bmcs, 0.0) as room:
                cost = by_the_kit(room, 256)
            console.print(
                f"{cost.bmcs} BMCs read, staged and reset: "
                f"{cost.wall_s:.1f} s, {cost.cpu_ms_each:.1f} ms of CPU each, "
                f"{cost.memory_mb:.0f} MB at most\n"
            )
        if chosen.nodes:
            console.print(f"{sentence(measure(chosen.nodes))}\n")
        if chosen.scale:
            console.print(f"A run of {chosen.scale} nodes, parsed, judged and reported:")
            scale.main([folder, str(chosen.scale)])
        if chosen.pairs:
            console.print(compare(prepared(Path(folder) / "pairs"), FIGURES, chosen.pairs))
            console.print(
                "The ratios are kit ÷ hand of consecutive runs. The last column is the\n"
                "variation of the machine: each run by hand ÷ the one before it."
            )


if __name__ == "__main__":
    main()

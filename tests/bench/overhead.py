"""The overhead of a step: its wall time without that of the program."""

from __future__ import annotations

import subprocess
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles

from rich.table import Table
from tests.fixtures.kit import Kit, carried_out, execution, make_kit, steps_of

GOAL_MS = 30
STAMP = "date +%s%N"
"""The program: it prints the time in nanoseconds and does nothing else."""


def beyond_the_program(folder: Path, steps: int) -> Table:
    """Run `steps` steps without work, and the same program as often in a plain loop."""
    kit = make_kit(folder / "trivial")
    program = kit.program(STAMP)
    loop = 'i=0; while [ "$i" -lt "$2" ]; do "$1" || exit; i=$((i + 1)); done'
    plain = subprocess.run(
        ["sh", "-c", loop, "sh", program, str(steps)], capture_output=True, text=True, check=True
    )
    program_ms = _intervals_ms(plain.stdout.split())
    table = Table("wall time per step", "median ms", "middle half ms", "most ms", "steps", box=None)
    _row(table, "the program alone", program_ms)
    for name, cost in (
        ("overhead of the step", {"seconds": 1}),
        ("overhead, with a scratch folder", {"seconds": 1, "bytes": 1}),
    ):
        taken = _intervals_ms(_stamps(kit, steps, cost))
        _row(table, name, [step_ms - median(program_ms) for step_ms in taken])
    return table


def _stamps(kit: Kit, steps: int, cost: dict[str, int]) -> list[str]:
    kit.case(sweep={"size": f"{{upto({steps})}}"}, cost=cost)
    run = carried_out(kit.run(run_id="-".join(cost)))  # two runs of one second would have one id
    return [(execution(step) / "stdout").read_text(encoding="utf-8") for step in steps_of(run)]


def _intervals_ms(stamps: list[str]) -> list[float]:
    return [(int(later) - int(earlier)) / 1e6 for earlier, later in pairwise(stamps)]


def _row(table: Table, name: str, times: list[float]) -> None:
    low, _, high = quantiles(times, n=4)
    cells = (f"{median(times):.1f}", f"{low:.1f} – {high:.1f}", f"{max(times):.1f}")
    table.add_row(name, *cells, str(len(times) + 1))

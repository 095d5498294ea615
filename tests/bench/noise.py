"""The suite `quick` on a quiet machine and beside a process that occupies one core.

  python -m tests.bench.noise --runs 5           no other process: each run should end with 0
  python -m tests.bench.noise --runs 5 --hog     beside a process: no run may have a FAIL

One line for each run: the exit code of the verdict, the counts, the number of disturbed executions,
and the largest value of each quantity. The thresholds were derived from such values
(docs/design/disturbance.md).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table
from tests.roles.kit import make_real_kit

from proofmark.runs.noise_file import NodeNoise, read_noise

QUANTITIES: dict[str, Callable[[NodeNoise], float]] = {
    "ranks": lambda node: node.share,
    "steal": lambda node: node.worst_steal_s / node.seconds,
    "others": lambda node: node.others_s / (node.seconds * node.cpus),
    "delay": lambda node: node.worst_delay_s / node.rank_seconds,
    "burst": lambda node: node.burst,
}
"""The values that the thresholds of `Stability` bound; of the ranks the least value is shown."""


@contextmanager
def hog(wanted: bool) -> Iterator[None]:
    """Occupy one core with a process, if `wanted`."""
    command = ["sh", "-c", "while :; do :; done"]
    process = subprocess.Popen(command) if wanted else None
    try:
        yield
    finally:
        if process:
            process.kill()
            process.wait()


def samples(run: Path) -> list[NodeNoise]:
    """Return the samples of all executions of half a second and longer."""
    folders = (path.parent for path in run.glob("steps/**/noise.json"))
    nodes = (node for folder in folders for node in read_noise(os.fspath(folder)))
    return [node for node in nodes if node.seconds >= 0.5 and node.rank_seconds > 0]


def reasons(results: Iterable[Mapping[str, str]]) -> Counter[tuple[str, str]]:
    """Return the number of results that are FAIL or INVALID, by verdict and reason."""
    words = ("FAIL", "INVALID")
    return Counter(
        (each["verdict"], each["reason"]) for each in results if each["verdict"] in words
    )


def main() -> None:
    """Run, and print one line for each run."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=5)
    options.add_argument("--hog", action="store_true", help="beside a process on one core")
    chosen = options.parse_args()
    console = Console(width=120)
    table = Table("run", "exit", "PASS", "FAIL", "INVALID", "UNJUDGED", "disturbed", *QUANTITIES)
    proofmark = str(Path(sys.executable).with_name("proofmark"))
    with tempfile.TemporaryDirectory(prefix="proofmark-noise-") as folder:
        kit = make_real_kit(Path(folder))
        for number in range(chosen.runs):
            with hog(chosen.hog):
                played = kit.play("acceptance.yml", "-e", "fresh=true")
            done = subprocess.run(
                [proofmark, "verdict", "runs/latest-local"],
                cwd=kit.folder,
                capture_output=True,
                text=True,
                check=False,
            )
            verdict, nodes = kit.verdict(), samples(kit.run())
            worst = (
                (min if name == "ranks" else max)(map(value, nodes), default=float("nan"))
                for name, value in QUANTITIES.items()
            )
            code = f"{done.returncode} (play {played.code})"
            print(f"run {number + 1} of {chosen.runs}: exit code {code}", file=sys.stderr)
            for (word, reason), count in reasons(verdict["results"]).most_common(5):
                print(f"  {count} {word}: {reason}", file=sys.stderr)
            table.add_row(
                str(number + 1),
                code,
                *(str(verdict["counts"][word]) for word in ("PASS", "FAIL", "INVALID", "UNJUDGED")),
                str(len(list(kit.run().glob("steps/**/disturbed")))),
                *(f"{value:.1%}" for value in worst),
            )
    console.print(table)


if __name__ == "__main__":
    main()

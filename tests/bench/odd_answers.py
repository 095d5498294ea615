"""Mode changes while BMCs send odd answers: ``python -m tests.bench.odd_answers ANSWERS SEED``.

Nodes enter modes and are restored while a seeded generator changes the answers of their BMCs. Then
the answers are whole again, and one restore must return every node. Otherwise the exit code is 1.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.emulators.bmc.machine import DEFAULTS
from tests.emulators.bmc.mutations import Mutations
from tests.emulators.bmc.rollouts import MODES, EmulatedSite, FileSlurm, path_with
from tests.emulators.bmc.server import Emulator, Timing

from proofmark.machine.bmc import client
from proofmark.machine.modes.drains import ModeResult
from proofmark.machine.outcome import Outcome
from proofmark.machine.schedulers import slurm

TIMEOUT_S = 0.5
"""The time limit of a request while answers are changed."""
COUNTS = ("changed", "outcomes")
SHARES = (0.01, 0.03, 0.1, 0.3)
"""The share of changed answers; it changes, so that some nodes fail early and others late."""


@dataclass
class Report:
    """What happened while the answers were changed, and after it.

    Attributes:
        changed: the number of changed answers of each kind.
        outcomes: the number of nodes of all mode changes and restores, by outcome.
        raised: the exceptions that ended a command.
        caught: the texts of exceptions that only the last net of `fan_out` caught.
        unprintable: the texts with control characters.
        longest_s: the longest operation on one BMC.
        limit_s: its time limit.
        left: the nodes that the last restore did not return, with the reason.
        seconds: the duration of all.
    """

    changed: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    raised: list[str] = field(default_factory=list)
    caught: list[str] = field(default_factory=list)
    unprintable: list[str] = field(default_factory=list)
    longest_s: float = 0.0
    limit_s: float = 0.0
    left: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    def take(self, results: dict[str, ModeResult]) -> None:
        """Count the outcomes of one command."""
        for result in results.values():
            self.outcomes[result.outcome] += 1
            if not result.text.isprintable():
                self.unprintable.append(result.text)
            if result.outcome is Outcome.UNEXPECTED and _is_exception(result.text):
                self.caught.append(result.text)


def soak(
    folder: Path,
    *,
    bmcs: int,
    answers: int,
    seed: int,
    say: Callable[[str], object],
    shares: Sequence[float] = SHARES,
) -> Report:
    """Change `answers` answers of `bmcs` BMCs during mode changes; then restore."""
    report, dice, begin = Report(), random.Random(seed), time.monotonic()
    names = [f"n{number}" for number in range(1, bmcs + 1)]
    mutations = Mutations(seed, answers, slow_s=TIMEOUT_S)
    with Emulator(names, folder, timing=Timing()) as emulator:
        (folder / "run").mkdir()
        site = EmulatedSite(emulator, FileSlurm(folder / "bin"), folder / "run")
        emulator.mutations = mutations
        report.limit_s = TIMEOUT_S * client.REQUESTS_OF_AN_OPERATION
        with timed_operations(report):
            while mutations.left > 0:
                mutations.share = dice.choice(shares)
                rollout = site.rollout(timeout_s=TIMEOUT_S, max_failures=bmcs, boot_timeout_s=20)
                try:
                    if dice.random() < 0.3:
                        report.take(rollout.restore())
                    else:
                        report.take(rollout.enter(names, site.target(dice.choice(list(MODES)))))
                except Exception as error:
                    report.raised.append(f"{type(error).__name__}: {error}")
                say(f"{mutations.left} answers left")
        report.unprintable += [line for line in site.lines if not line.isprintable()]
        emulator.mutations = None
        last = site.rollout().restore()
        report.left = {node: f"{each.outcome} {each.text}" for node, each in last.items()}
        for node, machine in emulator.machines.items():
            home = machine.current == DEFAULTS["knl"] and not machine.pending
            if home and node not in site.slurm.drained and report.left.get(node, "OK ") == "OK ":
                report.left.pop(node, None)
            else:
                report.left.setdefault(node, f"{machine.current} {machine.pending}")
    report.changed, report.seconds = mutations.counts, time.monotonic() - begin
    return report


@contextmanager
def timed_operations(report: Report) -> Iterator[None]:
    """Measure the longest operation on a BMC."""
    plain = client.ConnectionPool.connection

    @contextmanager
    def timed(pool: client.ConnectionPool, address: str) -> Iterator[client.RedfishConnection]:
        begin = time.monotonic()
        try:
            with plain(pool, address) as bmc:
                yield bmc
        finally:
            report.longest_s = max(report.longest_s, time.monotonic() - begin)

    client.ConnectionPool.connection = timed  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        client.ConnectionPool.connection = plain  # type: ignore[method-assign]


def _is_exception(text: str) -> bool:
    name = text.partition(":")[0]
    return name.isidentifier() and name.endswith(("Error", "Exception"))


def mistakes(report: Report) -> list[str]:
    """Return what must not happen: exceptions, unprintable texts, nodes that did not return."""
    left = [f"{node}: {text}" for node, text in report.left.items()]
    return [*report.raised, *report.caught, *map(repr, report.unprintable), *left]


def main(answers: int, seed: int, bmcs: int = 20) -> None:
    vars(slurm)["folded"] = ",".join  # the emulated scontrol reads no ranges
    client.FIRST_PAUSE_S = 0.01
    with tempfile.TemporaryDirectory(prefix="proofmark-odd-") as folder:
        os.environ["PATH"] = path_with(Path(folder) / "bin")
        report = soak(Path(folder), bmcs=bmcs, answers=answers, seed=seed, say=_progress)
    for name, value in vars(report).items():
        shown = {f"{key}": count for key, count in value.most_common()} if name in COUNTS else value
        print(f"{name}: {shown}")
    if found := mistakes(report):
        raise SystemExit("\n".join(found))


def _progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))

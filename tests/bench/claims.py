"""How often each claim holds on simulated sweeps: ``python -m tests.bench.claims``.

Each trial draws new noise for every repeat of every figure of a sweep. Three kinds of trials are
counted:

- `without`: the data have no effect. A claim about an effect may hold in 5 % of them.
- `with`: the data have the effect of the paper. A claim must hold in 95 % of them.
- `noisy`: as `with`, but the noise is larger than the tolerance of a claim of equality. The claim
  may hold in 5 % of them.

The noise is normal on the logarithm; its standard deviation is the coefficient of variation.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context

import numpy as np
import polars as pl
from rich.console import Console
from rich.table import Table
from tests.fixtures import sweeps as data
from tests.fixtures.sweeps import Files, Layout, Machine, Placing, Sheet

from proofmark.packages.papers.all_claims import CLAIMS, answers
from proofmark.packages.papers.claim import NodeHardware as Facts

REPEATS, TRIALS = 3, 200
MOST_WITHOUT, LEAST_WITH = 0.05, 0.95
"""Accepted shares of trials in which a claim holds."""

KNL, SKL, SMALL, P595 = (Machine(cores, 0.0, 0, 1) for cores in (68, 40, 16, 64))
NOTHING = Placing(alone=1.0, copy_after=1.0, after=1.0, end=1.0)
EQUAL_FILES = Files(
    acc=1.0,
    unbal={"A": 1.0, "B": 1.0, "C": 1.0},
    small_blocks=1.0,
    a_gains=0.0,
    b_gains=0.0,
    c_gains=0.0,
    growth=0.0,
)
EQUAL_TIMES = Layout({"": 0.0}, within=0.0, beyond=0.0, grows=False, sizes=False)


@dataclass(frozen=True)
class Subject:
    """A claim, and the sweeps for its trials.

    Attributes:
        noise: the coefficient of variation of one repeat.
        true: returns the sweep with the effect of the paper.
        none: returns the sweep without an effect; None for a claim that has no effect.
        tolerance: of a claim with a part about equality; None for others.
        cores: of the simulated node.
    """

    noise: float
    true: Callable[[], Sheet]
    none: Callable[[], Sheet] | None
    tolerance: float | None = None
    cores: int = 68


def _flat_hpl(_: int) -> float:
    return 0.58


def _flat_stream(_: int, __: int) -> float:
    return 1.0


def _each_as_alone(_: int, __: int) -> float:
    return 1.0


def _equal_networks() -> Sheet:
    return data.pairs_of_processes(SMALL, same=1, between=1, hops=1, new_network=870)


def _equal_nodes() -> Sheet:
    sheets = (
        data.hpl_knl(KNL, part=0.595 * 3072 / 3046.4),
        data.hpl_skl(KNL, data.skl_share(0.595, 0.5)),
        data.stream_knl(KNL, ddr=177.2, mcdram=177.2),
        data.stream_skl(SKL),
    )
    return Sheet(KNL, [row for sheet in sheets for row in sheet.rows])


def _no_cliff(system: str) -> Sheet:
    cliffs = {"knl": {"ddr": 64e9, "mcdram": 16e9}, "skl": {"ddr": 95e9}}[system]
    return data.ior(KNL, system, 16 if system == "knl" else 10, cliffs, 1.0)


def _bt_io() -> Sheet:
    return data.bt_io(P595)


def _collectives() -> Sheet:
    return data.collectives(P595)


def _no_files() -> Sheet:
    return data.bt_io(P595, EQUAL_FILES)


def _no_times() -> Sheet:
    return data.collectives(P595, EQUAL_TIMES)


def _no_placing() -> Sheet:
    return data.placements(KNL, NOTHING)


def _networks() -> Sheet:
    return data.pairs_of_processes(SMALL)


SUBJECTS: Mapping[str, Subject] = {
    "C1.1": Subject(0.02, lambda: data.hpl_knl(KNL), None, 0.10),
    "C1.2": Subject(0.02, lambda: data.hpl_knl(KNL), lambda: data.hpl_knl(KNL, snc2=1, snc4=1)),
    "C1.3": Subject(
        0.02, lambda: data.hpl_skl(KNL), lambda: data.hpl_skl(KNL, _flat_hpl), 0.15, 40
    ),
    "C1.4": Subject(0.02, lambda: data.stream_knl(KNL), None, 0.10),
    "C1.5": Subject(
        0.02,
        lambda: data.stream_skl(SKL),
        lambda: data.stream_skl(SKL, shape=_flat_stream),
        0.10,
        40,
    ),
    "C1.6": Subject(0.10, lambda: data.ior_knl(KNL), lambda: _no_cliff("knl")),
    "C1.7": Subject(0.10, lambda: data.ior_skl(KNL), lambda: _no_cliff("skl"), None, 40),
    "C1.8": Subject(0.02, lambda: data.both_nodes(KNL), _equal_nodes),
    "C2.1": Subject(0.02, lambda: data.placements(KNL), _no_placing),
    "C2.2": Subject(0.02, lambda: data.placements(KNL), _no_placing, 0.10),
    "C2.3": Subject(0.02, lambda: data.placements(KNL), _no_placing, 0.10),
    "C2.4": Subject(
        0.02,
        lambda: data.two_threads_a_core(KNL),
        lambda: data.two_threads_a_core(KNL, to=1.0, end=1.0, flat=True),
    ),
    "C3.1": Subject(0.03, _networks, _equal_networks, 0.20, 16),
    "C3.2": Subject(0.03, _networks, _equal_networks, 0.15, 16),
    "C3.3": Subject(
        0.03,
        lambda: data.contention(SMALL, "tachyon1"),
        lambda: data.contention(SMALL, "tachyon1", share=_each_as_alone),
        0.25,
        16,
    ),
    "C3.4": Subject(0.03, _networks, _equal_networks, None, 16),
    "C4.1": Subject(0.08, _bt_io, None, 0.10, 64),
    "C4.2": Subject(0.08, _bt_io, _no_files, 0.10, 64),
    "C4.3": Subject(0.08, _bt_io, _no_files, None, 64),
    "C4.4": Subject(0.08, _bt_io, _no_files, None, 64),
    "C5.1": Subject(0.10, _collectives, _no_times, None, 64),
    "C5.2": Subject(0.10, _collectives, _no_times, None, 64),
    "C5.3": Subject(0.10, _collectives, _no_times, None, 64),
    "C5.4": Subject(0.10, _collectives, _no_times, None, 64),
}
"""The trials of each claim, with the noise that is usual for its benchmark."""


@dataclass(frozen=True)
class Row:
    """The number of trials in which a claim holds, by the kind and the noise of the trials."""

    claim: str
    kind: str
    noise: float
    held: int
    trials: int

    @property
    def accepted(self) -> bool:
        """Return whether the share is accepted."""
        share = self.held / self.trials
        return share >= LEAST_WITH if self.kind == "with" else share <= MOST_WITHOUT


def rows(
    names: Collection[str], trials: int, *, factors: Sequence[float] = (1.0,), seed: int = 1
) -> Iterator[Row]:
    """Yield the counts of each claim.

    Args:
        names: ids of claims.
        trials: number of trials of each kind.
        factors: the trials without an effect are repeated with the noise times each factor.
        seed: of the noise.
    """
    for name in names:
        subject = SUBJECTS[name]
        for factor in factors if subject.none else ():
            yield count(name, "without", subject.noise * factor, trials, seed)
        yield count(name, "with", subject.noise, trials, seed)
        if subject.tolerance is not None:
            yield count(name, "noisy", 1.5 * subject.tolerance, trials, seed)


def count(name: str, kind: str, noise: float, trials: int, seed: int = 1) -> Row:
    """Return the number of trials of a kind in which the claim `name` holds."""
    subject = SUBJECTS[name]
    table = _sweep(subject.none if kind == "without" and subject.none else subject.true)
    wanted = [claim for claim in CLAIMS if claim.id == name and {*claim.systems} <= _systems(table)]
    cores = subject.cores
    peak = cores * data.KNL_GFLOPS_A_CORE
    facts = {
        "knl": Facts(68, 34, peak),
        "skl": Facts(40, 0, data.SKL_NODE_GFLOPS),
        **{system: Facts(cores) for system in ("tachyon1", "tachyon2", "p595")},
    }
    held = 0
    generator = np.random.default_rng([seed, sum(name.encode()), int(1e6 * noise)])
    exact = table.get_column("value").to_numpy()
    for _ in range(trials):
        values = exact * np.exp(noise * generator.standard_normal(len(exact)))
        measured = table.with_columns(value=pl.Series(values))
        held += all(answer.word == "holds" for answer in answers(measured, facts, wanted))
    return Row(name, kind, noise, held, trials)


@cache
def _sweep(make: Callable[[], Sheet]) -> pl.DataFrame:
    """Return the sweep of `make` without noise; it has each figure once for each repeat."""
    table = make().table()
    repeats = [table.with_columns(repeat=pl.lit(number + 1)) for number in range(REPEATS)]
    return pl.concat(repeats)


def _systems(table: pl.DataFrame) -> set[str]:
    return {*table.get_column("system").to_list()}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table; exit 1 if a share is not accepted."""
    options = argparse.ArgumentParser(prog="python -m tests.bench.claims", description=__doc__)
    options.formatter_class = argparse.RawDescriptionHelpFormatter
    options.add_argument("--trials", type=int, default=TRIALS)
    options.add_argument("--claims", nargs="*", default=sorted(SUBJECTS), metavar="ID")
    options.add_argument(
        "--factors", nargs="*", type=float, default=[1.0, 4.0], help="of the noise without effect"
    )
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--processes", type=int, default=1)
    chosen = options.parse_args(arguments)
    shown = Table("claim", "data", "CV of a repeat", "holds in", "accepted", "")
    wrong = False
    # A fork of a process with threads, as those of polars, can wait for ever.
    with ProcessPoolExecutor(chosen.processes, get_context("spawn")) as pool:
        waiting = [
            pool.submit(_listed, name, chosen.trials, tuple(chosen.factors), chosen.seed)
            for name in chosen.claims
        ]
        for each in (row for rows_of in waiting for row in rows_of.result()):
            limit = f"≥ {LEAST_WITH:.0%}" if each.kind == "with" else f"≤ {MOST_WITHOUT:.0%}"
            share = f"{each.held} of {each.trials}"
            mark = "" if each.accepted else "NO"
            shown.add_row(each.claim, each.kind, f"{each.noise:.1%}", share, limit, mark)
            wrong |= not each.accepted
    Console(width=90).print(shown)
    if wrong:
        raise SystemExit(1)


def _listed(name: str, trials: int, factors: tuple[float, ...], seed: int) -> list[Row]:
    return list(rows([name], trials, factors=factors, seed=seed))


if __name__ == "__main__":
    main()

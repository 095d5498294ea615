"""Each claim on data for which it holds, on contrary data, and on incomplete sweeps."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.fixtures import sweeps as data
from tests.fixtures.kit import examples
from tests.fixtures.sweeps import Files, Layout, Machine, Placing, Sheet

from proofmark.packages.papers import p5
from proofmark.packages.papers.all_claims import CLAIMS, answers
from proofmark.packages.papers.claim import Answer, Claim, Values, steepest_fall
from proofmark.packages.papers.claim import NodeHardware as Facts

Make = Callable[[Machine], Sheet]

MACHINES = st.builds(
    Machine,
    cores=st.integers(12, 60).map(lambda half: 2 * half),
    noise=st.floats(0, 0.012),
    seed=st.integers(0, 10_000),
)
SMALL = st.builds(
    Machine,
    cores=st.integers(4, 12),
    noise=st.floats(0, 0.02),
    seed=st.integers(0, 10_000),
)
NODE_OF_PROCESSES = st.builds(
    Machine,
    cores=st.sampled_from([16, 32, 64, 128]),
    noise=st.floats(0, 0.02),
    seed=st.integers(0, 10_000),
)


def facts(machine: Machine) -> dict[str, Facts]:
    """Return the hardware of the simulated nodes."""
    peak = machine.cores * data.KNL_GFLOPS_A_CORE
    return {
        "knl": Facts(machine.cores, machine.tiles, peak),
        "skl": Facts(machine.cores, 0, data.SKL_NODE_GFLOPS),
        "tachyon1": Facts(machine.cores),
        "tachyon2": Facts(machine.cores),
        "p595": Facts(machine.cores),
    }


def answer_to(claim: str, records: pl.DataFrame, machine: Machine) -> Answer:
    """Return the answer to a claim from the measured records."""
    chosen = [each for each in CLAIMS if each.id == claim]
    systems = set(records.get_column("system"))
    return next(
        answer
        for answer in answers(records, facts(machine), chosen)
        if answer.origin == "measured" and systems >= set(answer.claim.systems)
    )


def of(system: str) -> Make:
    return lambda m: data.contention(m, system)


TRUE: dict[str, tuple[Make, Any]] = {
    "C1.1": (data.hpl_knl, MACHINES),
    "C1.2": (data.hpl_knl, MACHINES),
    "C1.3": (data.hpl_skl, MACHINES),
    "C1.4": (data.stream_knl, MACHINES),
    "C1.5": (data.stream_skl, MACHINES),
    "C1.6": (data.ior_knl, MACHINES),
    "C1.7": (data.ior_skl, MACHINES),
    "C2.1": (data.placements, MACHINES),
    "C2.2": (data.placements, MACHINES),
    "C2.3": (data.placements, MACHINES),
    "C2.4": (data.two_threads_a_core, MACHINES),
    "C3.1": (data.pairs_of_processes, SMALL),
    "C3.2": (data.pairs_of_processes, SMALL),
    "C3.3": (of("tachyon2"), SMALL),
    "C3.4": (data.pairs_of_processes, SMALL),
    "C4.1": (data.bt_io, NODE_OF_PROCESSES),
    "C4.2": (data.bt_io, NODE_OF_PROCESSES),
    "C4.3": (data.bt_io, NODE_OF_PROCESSES),
    "C4.4": (data.bt_io, NODE_OF_PROCESSES),
    "C5.1": (data.collectives, NODE_OF_PROCESSES),
    "C5.2": (data.collectives, NODE_OF_PROCESSES),
    "C5.3": (data.collectives, NODE_OF_PROCESSES),
    "C5.4": (data.collectives, NODE_OF_PROCESSES),
}
"""Data for which each claim holds, with machines. C1.8 has another test: it needs two systems."""

FALSE: list[tuple[str, str, Make]] = [
    ("C1.1", "less", lambda m: data.hpl_knl(m, part=0.45)),
    ("C1.1", "more", lambda m: data.hpl_knl(m, part=0.75)),
    ("C1.2", "SNC-2 as good", lambda m: data.hpl_knl(m, snc2=0.97)),
    ("C1.2", "SNC-4 not the worst", lambda m: data.hpl_knl(m, snc2=0.45, snc4=0.65)),
    ("C1.3", "rising", lambda m: data.hpl_skl(m, data.skl_share(0.53, 0.64))),
    ("C1.3", "too good", lambda m: data.hpl_skl(m, data.skl_share(0.85, 0.72))),
    ("C1.3", "at once", lambda m: data.hpl_skl(m, lambda n: 0.66 if n < 9 else 0.5)),
    ("C1.4", "slow MCDRAM", lambda m: data.stream_knl(m, mcdram=260.0)),
    ("C1.4", "slow DDR4", lambda m: data.stream_knl(m, ddr=65.0)),
    ("C1.4", "modes differ", lambda m: data.stream_knl(m, quadrant=0.7)),
    ("C1.5", "slow", lambda m: data.stream_skl(m, best=130.0)),
    ("C1.5", "linear", lambda m: data.stream_skl(m, shape=lambda t, cores: t / cores)),
    ("C1.6", "no fall", lambda m: data.ior_knl(m, depth=0.95)),
    ("C1.6", "DDR4 elsewhere", lambda m: data.ior_knl(m, ddr=200e9)),
    ("C1.6", "MCDRAM elsewhere", lambda m: data.ior_knl(m, mcdram=3e9)),
    ("C1.7", "no fall", lambda m: data.ior_skl(m, depth=0.95)),
    ("C1.7", "elsewhere", lambda m: data.ior_skl(m, cliff=30e9)),
    ("C2.1", "close is better", lambda m: data.placements(m, Placing(alone=0.8))),
    ("C2.2", "no dip", lambda m: data.placements(m, Placing(after=1.3, copy_after=1.3))),
    ("C2.2", "ends apart", lambda m: data.placements(m, Placing(end=0.75))),
    ("C2.3", "Copy not most", lambda m: data.placements(m, Placing(copy_after=1.0, after=0.95))),
    ("C2.3", "Copy meets early", lambda m: data.placements(m, Placing(meets=0.56))),
    ("C2.3", "Scale falls", lambda m: data.placements(m, Placing(scale_falls=True))),
    ("C2.3", "Add goes lower", lambda m: data.placements(m, Placing(after=0.8, copy_after=0.6))),
    ("C2.4", "no fall", lambda m: data.two_threads_a_core(m, to=1.0, end=0.97)),
    ("C2.4", "ends above", lambda m: data.two_threads_a_core(m, end=1.1)),
    ("C2.4", "ends far below", lambda m: data.two_threads_a_core(m, end=0.65)),
    ("C2.4", "rises nowhere", lambda m: data.two_threads_a_core(m, flat=True)),
    ("C3.1", "same socket", lambda m: data.pairs_of_processes(m, same=2.4)),
    ("C3.1", "between", lambda m: data.pairs_of_processes(m, between=4.5)),
    ("C3.2", "hops matter", lambda m: data.pairs_of_processes(m, hops=0.6)),
    ("C3.2", "none on the new", lambda m: data.pairs_of_processes(m, same=2.4, between=2.4)),
    ("C3.3", "each as alone", lambda m: data.contention(m, "tachyon2", share=lambda i, n: 1.0)),
    (
        "C3.3",
        "unfair",
        lambda m: data.contention(
            m, "tachyon2", share=lambda i, n: 1 / n if n == 1 else 0.9 if i == 1 else 0.1 / (n - 1)
        ),
    ),
    ("C3.4", "worse network", lambda m: data.pairs_of_processes(m, new_network=300.0)),
    ("C4.1", "ACC is slow", lambda m: data.bt_io(m, Files(acc=1.4))),
    ("C4.2", "A gains", lambda m: data.bt_io(m, Files(a_gains=0.6))),
    ("C4.2", "C does not", lambda m: data.bt_io(m, Files(c_gains=0.0))),
    ("C4.3", "A most", lambda m: data.bt_io(m, Files(unbal={"A": 1.4, "B": 1.2, "C": 1.05}))),
    ("C4.3", "UNBAL wins", lambda m: data.bt_io(m, Files(unbal={"A": 1.0, "B": 0.9, "C": 0.7}))),
    ("C4.4", "small blocks win", lambda m: data.bt_io(m, Files(small_blocks=0.8))),
    ("C5.1", "distributed wins", lambda m: data.collectives(m, Layout({"": -0.1}))),
    (
        "C5.1",
        "for two",
        lambda m: data.collectives(m, Layout({"Bcast": -0.1, "Alltoall": -0.1})),
    ),
    (
        "C5.2",
        "inside matters more",
        lambda m: data.collectives(m, Layout({"": 0.9}, within=0.2, beyond=0.1)),
    ),
    ("C5.2", "for one", lambda m: data.collectives(m, Layout({"Allgather": 2.5}))),
    ("C5.2", "balanced wins", lambda m: data.collectives(m, Layout(within=-0.5, beyond=-0.1))),
    ("C5.3", "large above", lambda m: data.collectives(m, Layout(beyond=1.1))),
    ("C5.3", "nowhere large", lambda m: data.collectives(m, Layout(within=0.02, beyond=0.0))),
    ("C5.4", "no worse", lambda m: data.collectives(m, Layout(grows=False))),
]

DROPPED: Mapping[str, Mapping[str, Any]] = {
    "C1.1": {"mode": "a2a-flat", "nodes": 4},
    "C1.2": {"mode": "snc4-flat", "placement": "unfitted", "nodes": 8},
    "C1.3": {"nodes": 16},
    "C1.4": {"memory": "mcdram", "mode": "a2a-flat", "threads": 7},
    "C1.5": {"threads": 11},
    "C1.6": {"memory": "mcdram", "block_bytes": 2**30, "metric": "read"},
    "C1.7": {"block_bytes": 2**33, "layout": "file-per-process", "metric": "write"},
    "C2.1": {"threads": 5, "metric": "scale", "placement": "spread"},
    "C2.2": {"threads": 9, "metric": "add", "memory": "ddr"},
    "C2.3": {"threads": 3, "metric": "copy"},
    "C2.4": {"threads": 24, "metric": "triad", "memory": "mcdram"},
    "C3.1": {"placement": "2-hop", "bytes": 4096},
    "C3.2": {"system": "tachyon2", "placement": "same-socket", "bytes": 1},
    "C3.3": {"pairs": 3, "pair": 2},
    "C3.4": {"distance": "line-card", "bytes": 1048576},
    "C4.1": {"class": "B", "placement": "BAL-DIST", "ranks": 64},
    "C4.2": {"class": "C", "ranks": 576},
    "C4.3": {"class": "A", "placement": "UNBAL-ACC", "ranks": 16},
    "C4.4": {"class": "C", "fs_block_bytes": 524288, "ranks": 4},
    "C5.1": {"benchmark": "Allgather", "ranks": 32, "placement": "BA", "bytes": 256},
    "C5.2": {"benchmark": "Alltoallv", "ranks": 1024, "placement": "UD", "bytes": 1},
    "C5.3": {"benchmark": "Bcast", "ranks": 128, "placement": "BD"},
    "C5.4": {"benchmark": "Alltoall", "ranks": 2, "placement": "UA", "bytes": 1048576},
}
EXACT: p5.Means = {name: dict.fromkeys(means, 0.0) for name, means in data.table_2().items()}
"""Intervals of the means of table 2 that have no width."""
FEW = examples(0.08)
"""Few examples, because each is a complete sweep of a paper."""


@pytest.mark.parametrize("claim", TRUE)
@FEW
@given(sample=st.data())
def test_a_claim_holds_on_data_as_in_the_paper(claim: str, sample: st.DataObject) -> None:
    make, machines = TRUE[claim]
    machine = sample.draw(machines)
    answer = answer_to(claim, make(machine).table(), machine)
    assert answer.word == "holds", answer.sentence
    assert answer.numbers
    assert answer.sentence


@pytest.mark.parametrize(
    ("claim", "make"), [pytest.param(c, f, id=f"{c}-{n}") for c, n, f in FALSE]
)
@FEW
@given(sample=st.data())
def test_a_claim_does_not_hold_on_contrary_data(
    claim: str, make: Make, sample: st.DataObject
) -> None:
    machine = sample.draw(TRUE[claim][1])
    answer = answer_to(claim, make(machine).table(), machine)
    assert answer.word == "does not hold", answer.sentence
    assert answer.numbers


def test_least_and_greatest_times_decide_no_claim() -> None:
    """The papers have mean times; the other times of IMB are contrary to them."""
    machine = Machine(64)
    contrary = Layout({"": -0.5}, within=-0.5, beyond=-0.5)
    others = data.collectives(machine, contrary, {"t_min": 0.9, "t_max": 1.2})
    table = pl.concat([data.collectives(machine).table(), others.table()])
    words = {claim: answer_to(claim, table, machine).word for claim in TRUE if claim > "C5"}
    assert words == dict.fromkeys(("C5.1", "C5.2", "C5.3", "C5.4"), "holds")


def test_each_claim_has_data_of_all_kinds() -> None:
    ids = {claim.id for claim in CLAIMS}
    assert ids == {*TRUE, "C1.8"} == {*(name for name, _, _ in FALSE), "C1.8"} == {*DROPPED, "C1.8"}


@pytest.mark.parametrize(
    ("claim", "loss"),
    [
        *((claim, "missing") for claim in DROPPED),
        *(("C1.5", loss) for loss in ("invalid", "other origin", "other unit", "zero")),
    ],
)
def test_a_claim_cannot_be_told_from_an_incomplete_sweep(claim: str, loss: str) -> None:
    machine = Machine(cores=24 if claim < "C3" else 8 if claim < "C4" else 64)
    sheet = TRUE[claim][0](machine)
    wanted = DROPPED[claim]
    lost = [
        row
        for row in sheet.rows
        if wanted.items() <= {**row, **json.loads(row["parameters"])}.items()
    ]
    assert lost
    if loss == "missing":
        sheet.rows = [row for row in sheet.rows if row not in lost]
    changes: dict[str, dict[str, Any]] = {
        "missing": {},
        "invalid": {"valid": False},
        "other origin": {"origin": "emulated"},
        "other unit": {"unit": "furlongs"},
        "zero": {"value": 0.0},
    }
    for row in lost:
        row |= changes[loss]
    answer = answer_to(claim, sheet.table(), machine)
    assert answer.word == "cannot be told"
    assert answer.missing
    assert "points of" in answer.sentence


@pytest.mark.core("the package works")
@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{claim.id}-{claim.systems[0]}")
def test_an_answer_names_the_measured_system_and_the_system_of_the_claim(claim: Claim) -> None:
    sheet = data.stream_skl(Machine(8))
    for row in sheet.rows:
        row["system"] = "elsewhere"
    (answer,) = answers(sheet.table(), claims=[claim])
    assert answer.word == "cannot be told"
    assert "the figures are of elsewhere" in answer.sentence
    assert answer.elsewhere
    assert claim.systems[0] in answer.sentence


def test_no_claim_can_be_told_from_an_empty_table() -> None:
    empty = data.hpl_skl(Machine(8)).table().clear()
    assert {answer.word for answer in answers(empty)} == {"cannot be told"}


C18: dict[str, dict[str, float]] = {
    "holds": {},
    "slow SKL": {"skl": 0.5},
    "slow MCDRAM": {"mcdram": 120.0},
}


@pytest.mark.parametrize("how", C18)
@FEW
@given(noise=st.floats(0, 0.01), seed=st.integers(0, 10_000))
def test_a_claim_of_two_systems_needs_both(how: str, noise: float, seed: int) -> None:
    """C1.8 is a claim of KNL and SKL."""
    table = data.both_nodes(Machine(68, noise, seed), **C18[how]).table()
    claim = next(each for each in CLAIMS if each.id == "C1.8")
    (answer,) = answers(table, claims=[claim])
    assert answer.word == ("holds" if how == "holds" else "does not hold"), answer.sentence
    (alone,) = answers(table.filter(pl.col("system") == "knl"), claims=[claim])
    assert (alone.word, alone.missing) == ("cannot be told", ("figures of skl",))
    fewer_threads = ~pl.col("parameters").str.contains('"threads": 68')
    (incomplete,) = answers(table.filter(fewer_threads), claims=[claim])
    assert incomplete.word == "cannot be told"


@FEW
@given(machine=MACHINES, at=st.integers(6, 110))
def test_the_drop_with_spread_is_searched_over_all_threads(machine: Machine, at: int) -> None:
    """C2.2 holds only if the drop is behind the tiles; its place is a number of the answer."""
    # With fewer threads, the gain of each further thread is larger than the drop.
    assume(0.4 * machine.cores < at < 0.85 * machine.cores)
    table = data.placements(machine, Placing(dip_at=at)).table()
    answer = answer_to("C2.2", table, machine)
    assert answer.word == ("holds" if at == machine.tiles + 1 else "does not hold")
    assert answer.numbers["ddr_triad_fall_at"] == at


@FEW
@given(machine=MACHINES, off=st.integers(-8, 8))
def test_the_drop_with_close_is_searched_over_all_threads(machine: Machine, off: int) -> None:
    """C2.4 holds only if the drop is behind the cores; its place is a number of the answer."""
    last = machine.cores + off
    answer = answer_to("C2.4", data.two_threads_a_core(machine, at=last).table(), machine)
    assert answer.word == ("holds" if off == 0 else "does not hold"), answer.sentence
    assert answer.numbers["mcdram_copy_fall_at"] == last + 1


@FEW
@given(machine=MACHINES, doubling=st.integers(2, 13), depth=st.floats(0.1, 0.5))
def test_the_end_of_the_page_cache_is_searched_over_all_sizes(
    machine: Machine, doubling: int, depth: float
) -> None:
    """C1.7 holds only if the fall is near 100 GB. It is put behind 10 blocks of 4, 8, … MiB."""
    last = 10 * 2**20 * 2**doubling
    answer = answer_to(
        "C1.7", data.ior_skl(machine, cliff=1.01 * last, depth=depth).table(), machine
    )
    # The last size before the fall is 40 or 80 GiB: the fall is just under 100 GB, or across it.
    assert answer.word == ("holds" if doubling in (12, 13) else "does not hold"), answer.sentence
    for key in ("read_file-per-process", "write_single-shared-file"):
        assert answer.numbers[f"{key}_ddr_from_gb"] == pytest.approx(last / 1e9)


@given(
    st.lists(st.floats(1, 1000), min_size=2, max_size=40),
    st.floats(0.05, 0.6),
    st.data(),
)
def test_the_fall_of_a_flat_line_with_a_step_is_the_step(
    level: list[float], depth: float, sample: st.DataObject
) -> None:
    """At any level, place and depth of the step."""
    place = sample.draw(st.integers(1, len(level) - 1))
    line = [(float(x), level[0] * (1 if x < place else depth)) for x in range(len(level))]
    fall = steepest_fall(line, 3)
    assert (fall.before, fall.after) == (place - 1, place)
    assert fall.ratio == pytest.approx(depth)


def test_a_single_point_has_no_fall() -> None:
    with pytest.raises(ValueError, match="two points"):
        steepest_fall([(1.0, 1.0)], 3)


@pytest.mark.parametrize("decide", [p5.adjacent_is_better, p5.nodes_matter_more])
def test_the_claims_hold_on_table_2_of_the_paper(decide: Callable[..., Any]) -> None:
    assert decide(data.table_2(), EXACT).holds is True


@pytest.mark.parametrize("decide", [p5.adjacent_is_better, p5.nodes_matter_more])
def test_wide_intervals_hide_table_2_of_the_paper(decide: Callable[..., Any]) -> None:
    wide = {name: dict.fromkeys(means, 0.5) for name, means in EXACT.items()}
    assert decide(data.table_2(), wide).holds is None


@pytest.mark.parametrize("decide", [p5.adjacent_is_better, p5.nodes_matter_more])
def test_the_claims_do_not_hold_on_a_contrary_table(decide: Callable[..., Any]) -> None:
    """The table of the paper with exchanged columns and signs."""
    contrary = {
        name: {
            ("BD", "BA"): -means["BA", "UA"],
            ("UD", "UA"): -means["BD", "UD"],
            ("BA", "UA"): means["UD", "UA"] / 9,
            ("BD", "UD"): -means["BD", "BA"],
        }
        for name, means in data.table_2().items()
    }
    assert decide(contrary, EXACT).holds is False


def test_the_means_of_table_2_are_over_all_points() -> None:
    """Table 2 has the means of the relative differences of times at each point."""
    times: Values = {
        ("BD", 2, 1): 3.0,
        ("BA", 2, 1): 2.0,
        ("UD", 2, 1): 2.0,
        ("UA", 2, 1): 1.0,
        ("BD", 4, 1): 1.0,
        ("BA", 4, 1): 2.0,
        ("UD", 4, 1): 4.0,
        ("UA", 4, 1): 1.0,
        ("UA", 8, 1): 9.0,
    }
    means = p5.means_of({"Bcast": times})["Bcast"]
    assert means["BD", "BA"] == pytest.approx((0.5 - 0.5) / 2)
    assert means["UD", "UA"] == pytest.approx((1.0 + 3.0) / 2)
    assert means["BA", "UA"] == pytest.approx((1.0 + 1.0) / 2)
    assert means["BD", "UD"] == pytest.approx((0.5 - 0.75) / 2)

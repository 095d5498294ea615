"""Claims on predicted figures: the sweep of a simulation, and claims that it cannot answer."""

from __future__ import annotations

import json
from collections.abc import Callable

import polars as pl

from proofmark.packages.papers.all_claims import CLAIMS, answers
from proofmark.packages.papers.claim import PAPERS, Answer
from proofmark.packages.papers.p3 import INSIDE, LARGEST, SUM_OF_PAIRS
from proofmark.packages.papers.p3 import SIZES as SIZES_OF_P3
from proofmark.packages.papers.p5 import (
    COLLECTIVES,
    FILLED,
    PLACEMENTS,
    RANKS_OF_TWIN,
    largest_of_twin,
)

Time = Callable[[str, int, int], float]
"""The time of an operation from placement, ranks and bytes."""


def records(time: Time, origin: str = "predicted") -> pl.DataFrame:
    """Return the records of the suite ``twin-p5``.

    IMB reduces floats: the smallest message of Allreduce has 4 bytes. If the ranks fill all nodes,
    two of the placements repeat the others.
    """
    rows = [
        {
            "system": "p595",
            "origin": origin,
            "case": "imb-collectives",
            "benchmark": collective,
            "metric": "t_avg",
            "unit": "usec",
            "mode": "current",
            "placement": placement,
            "environment_hash": "",
            "parameters": json.dumps({"ranks": ranks, "bytes": 2**power}),
            "value": time(placement, ranks, 2**power),
            "valid": True,
        }
        for collective in COLLECTIVES
        for placement in PLACEMENTS
        for ranks in RANKS_OF_TWIN
        for power in range(2 if collective == "Allreduce" else 0, 17)
        if 2**power <= largest_of_twin(ranks)
        if placement in FILLED or ranks < RANKS_OF_TWIN[-1]
    ]
    return pl.DataFrame(rows)


def like_the_paper(placement: str, ranks: int, size: int) -> float:
    """Filled nodes win up to one node's worth; distributed ranks are a little slower."""
    balanced = 3.0 if placement[0] == "B" and ranks <= 64 else 1.1 if placement[0] == "B" else 1.0
    inside = 1.05 if placement[1] == "D" else 1.0
    return balanced * inside * ranks * (1 + size / 16)


def answer(table: pl.DataFrame, claim: str) -> Answer:
    (found,) = [each for each in answers(table) if each.claim.id == claim]
    return found


def test_the_claims_of_p5_are_answered_from_the_points_of_the_simulation() -> None:
    table = records(like_the_paper)
    words = {name: answer(table, name).word for name in ("C5.1", "C5.2", "C5.3", "C5.4")}
    assert words == dict.fromkeys(words, "holds")
    assert "a simulation has no noise" in answer(table, "C5.1").sentence
    assert "of 256 B takes" in answer(table, "C5.4").sentence
    assert "on 64, 3856 × or more from 1 B to 64.0 KiB" in answer(table, "C5.4").sentence


def test_times_that_grow_only_with_the_ranks_are_not_enough() -> None:
    """With many ranks the latency is most of the time of a short message, but not of a long one."""

    def flat_up_to(size: int) -> pl.DataFrame:
        return records(lambda placement, ranks, bytes_: ranks * (1 + max(bytes_, size) / 16))

    assert answer(flat_up_to(512), "C5.4").word == "holds"
    assert answer(flat_up_to(65536), "C5.4").word == "does not hold"


def test_other_figures_answer_otherwise() -> None:
    flat = records(lambda placement, ranks, size: 1.0 + ranks)
    assert answer(flat, "C5.2").word == "does not hold"
    assert answer(flat, "C5.3").word == "does not hold"


def test_all_ranks_of_all_nodes_compare_no_placements() -> None:
    """Each placement uses the same cores with 1,024 ranks: their times must not count."""

    def odd(placement: str, ranks: int, size: int) -> float:
        factor = 1000.0 if ranks == RANKS_OF_TWIN[-1] and placement == "UA" else 1.0
        return factor * like_the_paper(placement, ranks, size)

    assert answer(records(odd), "C5.2").numbers == answer(records(like_the_paper), "C5.2").numbers


def test_a_missing_point_is_named() -> None:
    table = records(like_the_paper).filter(~pl.col("parameters").str.contains('"ranks": 512'))
    found = answer(table, "C5.1")
    assert found.word == "cannot be told"
    assert "ranks 512" in found.missing[0]
    assert "ranks: 4, 16, 64, 128, 256, 512;" in found.missing[0]


def test_measured_figures_need_the_whole_sweep() -> None:
    assert answer(records(like_the_paper, "measured"), "C5.1").word == "cannot be told"


def test_claims_about_other_parts_cannot_be_told_from_a_twin() -> None:
    table = records(like_the_paper).with_columns(pl.lit("knl").alias("system"))
    (found,) = [each for each in answers(table) if each.claim.id == "C1.1"]
    assert found.sentence == "no suite of a twin has its sweep"
    rows = [table.with_columns(pl.lit(name).alias("system")) for name in ("tachyon1", "tachyon2")]
    (repeated,) = [each for each in answers(pl.concat(rows)) if each.claim.id == "C3.1"]
    assert repeated.sentence.endswith("the rates of copies and links of both systems")
    answered = {claim.id for claim in CLAIMS if claim.of_twin}
    assert answered == {"C3.2", "C3.3", "C5.1", "C5.2", "C5.3", "C5.4"}


BEST = {
    "tachyon1": {"same-socket": 2560.0, "other-socket": 2400.0, "2-hop": 2300.0},
    "tachyon2": {"same-socket": 11000.0, "other-socket": 5000.0},
}
"""Rates like those of the paper: the first system has little difference, the second a clear one."""


def osu(system: str, case: str, value: float, **traits: str | int) -> dict[str, object]:
    """Return a record of a rate on a twin of `system`."""
    parameters = {name: each for name, each in traits.items() if name in ("bytes", "pairs")}
    return {
        "system": system,
        "origin": "predicted",
        "case": case,
        "benchmark": SUM_OF_PAIRS if case == "osu-mbw-mr" else "Bandwidth",
        "metric": "bandwidth",
        "unit": "MB/s",
        "mode": "current",
        "placement": traits["placement"],
        "environment_hash": "",
        "parameters": json.dumps(parameters),
        "value": value,
        "valid": True,
    }


def inside(best: dict[str, dict[str, float]]) -> pl.DataFrame:
    """Return the rates inside the nodes of both systems; they grow with the size."""
    return pl.DataFrame(
        osu(system, "osu-bw", rate * size / (size + 1000), placement=place, bytes=size)
        for system, rates in best.items()
        for place, rate in rates.items()
        for size in SIZES_OF_P3
    )


def pairs(total: Callable[[int], float], system: str = "tachyon1") -> pl.DataFrame:
    """Return the sum of all pairs between two nodes, for each number of pairs.

    With small messages it grows with the pairs: they must not count.
    """
    return pl.DataFrame(
        osu(system, "osu-mbw-mr", value, placement="other-node", bytes=size, pairs=number)
        for number in range(1, PAPERS[system].cores + 1)
        for size, value in ((1, 2.0 * number), (LARGEST, total(number)))
    )


def answer_of(table: pl.DataFrame, claim: str, system: str) -> Answer:
    (found,) = [
        each for each in answers(table) if (each.claim.id, each.claim.systems) == (claim, (system,))
    ]
    return found


def test_the_rates_inside_nodes_are_compared_on_both_twins() -> None:
    found = answer(inside(BEST), "C3.2")
    assert found.word == "holds"
    assert found.sentence.endswith("the time of a cache line, and that of a link between sockets")
    slow = BEST | {"tachyon1": BEST["tachyon1"] | {"2-hop": 1900.0}}
    assert answer(inside(slow), "C3.2").word == "does not hold"
    alike = BEST | {"tachyon2": dict.fromkeys(INSIDE["tachyon2"], 5000.0)}
    assert answer(inside(alike), "C3.2").word == "does not hold"


def test_a_place_inside_the_node_that_is_missing_is_named() -> None:
    found = answer(inside(BEST).filter(pl.col("placement") != "2-hop"), "C3.2")
    assert found.word == "cannot be told"
    assert "placement 2-hop" in found.missing[0]


def test_absolute_rates_of_a_twin_answer_nothing() -> None:
    table = inside(BEST)
    for claim in ("C3.1", "C3.4"):
        assert answer(table, claim).word == "cannot be told"


def test_the_sum_of_the_pairs_of_a_twin_gives_their_mean_share() -> None:
    found = answer_of(pairs(lambda number: 2000.0 - number), "C3.3", "tachyon1")
    assert found.word == "holds"
    assert "the mean of the pairs is within 25 % of its share" in found.sentence
    grows = answer_of(pairs(lambda number: 300.0 * number), "C3.3", "tachyon1")
    assert grows.word == "does not hold"


def test_each_number_of_pairs_is_needed() -> None:
    table = pairs(lambda number: 4000.0, "tachyon2")
    assert answer_of(table, "C3.3", "tachyon2").word == "holds"
    found = answer_of(table[:-1], "C3.3", "tachyon2")
    assert found.word == "cannot be told"
    assert "pairs 8" in found.missing[0]

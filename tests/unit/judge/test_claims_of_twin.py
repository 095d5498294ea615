"""Claims on predicted figures: the sweep of a simulation, and claims that it cannot answer."""

from __future__ import annotations

import json
from collections.abc import Callable

import polars as pl

from proofmark.judge.claims import CLAIMS, answers
from proofmark.judge.claims.model import Answer
from proofmark.judge.claims.p5 import (
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
    assert {claim.id for claim in CLAIMS if claim.of_twin} == {"C5.1", "C5.2", "C5.3", "C5.4"}

"""The claims of papers P1 … P5, checked on records; the paper's module states each.

A claim answers ``holds``, ``does not hold`` or ``cannot be told``, the last only where its minimum
sweep is not all there. A new claim is an entry in its paper's module.
"""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from proofmark.judge.claims import p1_compute, p1_io, p2, p3, p4, p5
from proofmark.judge.claims.model import PAPERS, Answer, Claim, Machines, Word
from proofmark.judge.claims.series import Figures, lacking, origins

CLAIMS: tuple[Claim, ...] = tuple(
    sorted(
        (
            *p1_compute.CLAIMS,
            *p1_io.CLAIMS,
            *p2.CLAIMS,
            *p3.CLAIMS,
            *p4.CLAIMS,
            *p5.CLAIMS,
        ),
        key=lambda claim: claim.id,
    )
)
"""All claims, by id."""


def answers(
    records: pl.DataFrame, machines: Machines | None = None, claims: Iterable[Claim] = CLAIMS
) -> list[Answer]:
    """Answer every claim on the valid records of each origin.

    Args:
        records: with the columns of records.parquet.
        machines: by system, where they are not those of the papers.
        claims: which.
    """
    known = {**PAPERS, **(machines or {})}
    found: list[Answer] = []
    for origin in origins(records) or [""]:
        figures = Figures(records, origin)
        measured = sorted(
            records.filter(pl.col("origin") == origin).get_column("system").unique().to_list()
        )
        found += [_answer(claim, figures, origin, measured, known) for claim in claims]
    return found


def _answer(
    claim: Claim, figures: Figures, origin: str, measured: list[str], machines: Machines
) -> Answer:
    absent = [system for system in claim.systems if system not in measured]
    if absent:
        where, whose = ", ".join(measured) or "no system", " and ".join(claim.systems)
        sentence = f"measured on {where}; the claim is of {whose}"
        lacks = tuple(f"figures of {system}" for system in absent)
        return Answer(claim, origin, "cannot be told", sentence, missing=lacks)
    needs = claim.needs(machines)
    values = [figures.of(need) for need in needs]
    missing = [lacking(need, each) for need, each in zip(needs, values, strict=True)]
    if any(missing):
        lacks = tuple(filter(None, missing))
        return Answer(claim, origin, "cannot be told", f"missing: {lacks[0]}", missing=lacks)
    decision = claim.decide(values, machines)
    word: Word = "holds" if decision.holds else "does not hold"
    return Answer(claim, origin, word, decision.sentence, decision.numbers)

"""The claims of papers P1 … P5, checked on records; each paper has a module of its claims.

The answer to a claim is ``holds``, ``does not hold`` or ``cannot be told``. The last is given only
if a part of its minimum sweep is missing. A new claim is an entry in the module of its paper.
"""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from proofmark.judge.claims import p1_compute, p1_io, p2, p3, p4, p5
from proofmark.judge.claims.model import PAPERS, Answer, Claim, Machines, Word
from proofmark.judge.claims.series import Figures, missing_points, origins

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
    """Return the answer to every claim from the valid records of each origin.

    Args:
        records: a table with the columns of records.parquet.
        machines: by system; for other systems those of the papers are used.
        claims: the claims to answer.
    """
    known = {**PAPERS, **(machines or {})}
    given: list[Answer] = []
    for origin in origins(records) or [""]:
        figures = Figures(records, origin)
        measured = sorted(
            records.filter(pl.col("origin") == origin).get_column("system").unique().to_list()
        )
        given += [_answer(claim, figures, origin, measured, known) for claim in claims]
    return given


def _answer(
    claim: Claim, figures: Figures, origin: str, measured: list[str], machines: Machines
) -> Answer:
    absent = [system for system in claim.systems if system not in measured]
    if absent:
        where, wanted = ", ".join(measured) or "no system", " and ".join(claim.systems)
        sentence = f"measured on {where}; the claim is of {wanted}"
        gaps = tuple(f"figures of {system}" for system in absent)
        return Answer(claim, origin, "cannot be told", sentence, missing=gaps)
    needs = claim.needs(machines)
    values = [figures.of(need) for need in needs]
    missing = [missing_points(need, of_need) for need, of_need in zip(needs, values, strict=True)]
    if any(missing):
        gaps = tuple(filter(None, missing))
        return Answer(claim, origin, "cannot be told", f"missing: {gaps[0]}", missing=gaps)
    decision = claim.decide(values, machines)
    word: Word = "holds" if decision.holds else "does not hold"
    return Answer(claim, origin, word, decision.sentence, decision.numbers)

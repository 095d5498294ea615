"""The claims of papers P1 … P5, checked on records; each paper has a module of its claims.

The answer to a claim is ``holds``, ``does not hold`` or ``cannot be told``. The last is given if a
part of its minimum sweep is missing, or if the noise of the repeats can explain what was measured.
A new claim is an entry in the module of its paper.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl

from proofmark.common.message import Message
from proofmark.packages.papers import p1, p2, p3, p4, p5
from proofmark.packages.papers.claim import (
    PAPERS,
    Answer,
    Claim,
    ClaimDecision,
    ClaimFigures,
    Machines,
    Noise,
    Word,
    missing_points,
    origins,
)
from proofmark.site.partition import PREDICTED

CLAIMS: tuple[Claim, ...] = tuple(
    sorted(
        (
            *p1.CLAIMS,
            *p2.CLAIMS,
            *p3.CLAIMS,
            *p4.CLAIMS,
            *p5.CLAIMS,
        ),
        key=lambda claim: claim.id,
    )
)
"""All claims, by id."""
NOT_SIMULATED = "no suite of a twin has its sweep"


def answers(
    records: pl.DataFrame, machines: Machines | None = None, claims: Iterable[Claim] = CLAIMS
) -> list[Answer]:
    """Return the answer to every claim from the valid records of each origin.

    Args:
        records: a table with the columns of records.parquet.
        machines: by system; for other systems those of the papers are used.
    """
    known = {**PAPERS, **(machines or {})}
    given: list[Answer] = []
    for origin in origins(records) or [""]:
        figures = ClaimFigures(records, origin)
        of_origin = records.lazy().filter(pl.col("origin") == origin)
        measured = sorted(of_origin.select("system").unique().collect().to_series().to_list())
        given += [_answer(claim, figures, origin, measured, known) for claim in claims]
    return given


def _answer(
    claim: Claim, figures: ClaimFigures, origin: str, measured: list[str], machines: Machines
) -> Answer:
    absent = [system for system in claim.systems if system not in measured]
    if absent:
        where, wanted = ", ".join(measured) or "no system", " and ".join(claim.systems)
        elsewhere = Message("claim-elsewhere", systems=where, wanted=wanted)
        gaps = tuple(Message("claim-figures", system=system) for system in absent)
        return Answer(claim, origin, "cannot be told", elsewhere, missing=gaps, elsewhere=True)
    predicted = origin == PREDICTED
    if predicted and claim.of_twin is None:
        sentence = f"a prediction would only repeat an input of the model: {claim.input_of_twin}"
        return Answer(
            claim, origin, "cannot be told", sentence if claim.input_of_twin else NOT_SIMULATED
        )
    needs = claim.of_twin(machines) if predicted and claim.of_twin else claim.needs(machines)
    measured_points = [figures.of(need) for need in needs]
    missing = [
        missing_points(need, of_need.values)
        for need, of_need in zip(needs, measured_points, strict=True)
    ]
    if any(missing):
        gaps = tuple(filter(None, missing))
        first = Message("claim-missing", text=gaps[0])
        return Answer(claim, origin, "cannot be told", first, missing=gaps)
    decide = (claim.decide_of_twin if predicted else None) or claim.decide
    decision = decide(measured_points, machines)
    noises = [each.noise for each in measured_points]
    word, note = _predicted(claim, decision) if predicted else _word(decision, noises)
    numbers = {**decision.numbers, "noise": max(noise.deviation for noise in noises)}
    return Answer(claim, origin, word, f"{decision.sentence}. {note}", numbers)


def _predicted(claim: Claim, decision: ClaimDecision) -> tuple[Word, str]:
    """Return the answer of a simulation, and sentences about its noise and its origin."""
    note = "Predicted by a model: a simulation has no noise, but an error"
    if claim.follows_from:
        note = f"{note}. It follows from {claim.follows_from}"
    return "holds" if decision.holds else "does not hold", note


def _word(decision: ClaimDecision, noises: Sequence[Noise]) -> tuple[Word, str]:
    """Return the answer, and a sentence about the noise."""
    if not all(noise.freedom for noise in noises):
        note = "Figures were measured once, so their noise is not known: repeat the suite"
        return "cannot be told", note
    worst = max(noises, key=lambda noise: noise.deviation)
    note = (
        f"Repeats vary by {100 * worst.deviation:.2g} % (at least {worst.repeats} of each figure)"
    )
    if decision.holds is None:
        return "cannot be told", f"{note}, which hides the answer"
    return "holds" if decision.holds else "does not hold", note

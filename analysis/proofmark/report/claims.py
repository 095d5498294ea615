"""What the figures of a run say to the claims of the papers: information, never a verdict."""

from __future__ import annotations

from collections.abc import Sequence

from proofmark.judge.claims.model import WORDS, Answer
from proofmark.report.page import TITLED, Block, Cell, Fold, Link, Section, Table, table
from proofmark.report.text import count

ELSEWHERE = "measured on "
"""How the answer begins where the claim is of another system."""


def section(answers: Sequence[Answer]) -> Section:
    """Return the claims on the run's system, and folded those on other systems."""
    own = [answer for answer in answers if not _elsewhere(answer)]
    other = [answer for answer in answers if _elsewhere(answer)]
    tallies = [(word, sum(answer.word == word for answer in own)) for word in WORDS]
    told = ", ".join(f"{word}: {amount}" for word, amount in tallies if amount)
    paragraphs = (
        "Statements of the papers, checked on the valid figures of this run. They are facts of "
        "the papers' systems: what does not hold is news, no fault of this machine.",
        f"{count(len(own), 'claim')} of this system: {told}."
        if own
        else "No paper has a claim on this system.",
    )
    tables = (_table("Claims on this system", own),) if own else ()
    folds = (
        (Fold(f"{count(len(other), 'claim')} on other systems", Block(items=_items(other))),)
        if other
        else ()
    )
    links = (Link("claims.json", "claims.json, with every number that decided"),)
    return Section(
        "claims",
        "Claims of the papers",
        (Block(paragraphs=paragraphs, tables=tables, folds=folds, links=links),),
    )


def _elsewhere(answer: Answer) -> bool:
    return answer.sentence.startswith(ELSEWHERE)


def _items(answers: Sequence[Answer]) -> tuple[str, ...]:
    return tuple(
        f"{answer.claim.id}: {answer.claim.statement} ({' and '.join(answer.claim.systems)})"
        for answer in answers
    )


def _table(caption: str, answers: Sequence[Answer]) -> Table:
    rows = [
        (
            Cell(answer.claim.id, "strong"),
            Cell(answer.claim.statement, "reason"),
            Cell(answer.word, f"word {answer.word.replace(' ', '-')}"),
            Cell(answer.sentence, "reason", details=answer.missing[1:]),
        )
        for answer in answers
    ]
    return table(
        caption, ("Claim", "The paper says", "Answer", "What was found"), rows, kind=TITLED
    )

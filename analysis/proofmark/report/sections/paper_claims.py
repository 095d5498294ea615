"""The claims of the papers, checked on the figures of a run: information, not a verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from proofmark.common.message import localized
from proofmark.common.translation import _, translated
from proofmark.judge.claims import WORDS, Answer
from proofmark.report.page import Block, Cell, PageLink, Section, Table, titled
from proofmark.report.words import count


def sections(answers: Sequence[Answer]) -> Iterator[Section]:
    """Yield the section with the claims on the run's system, if there are any."""
    checked = [answer for answer in answers if not answer.elsewhere]
    if not checked:
        return
    tallies = [(word, sum(answer.word == word for answer in checked)) for word in WORDS]
    counts = ", ".join(f"{translated(word)}: {amount}" for word, amount in tallies if amount)
    paragraphs = (
        _(
            "Statements of the papers, checked on the valid figures of this run. They are facts "
            "about the papers' systems: a claim that does not hold is not a fault of this "
            "machine. A claim cannot be told if its sweep is incomplete, or if the noise of the "
            "repeats hides it."
        ),
        _("{claims} on this system: {counts}.").format(
            claims=count(len(checked), "claim"), counts=counts
        ),
    )
    tables = (_table(_("Claims on this system"), checked),)
    links = (PageLink("claims.json", _("claims.json, with every value that was compared")),)
    yield Section(
        "claims",
        _("Claims of the papers"),
        (Block(paragraphs=paragraphs, tables=tables, links=links),),
    )


def _table(caption: str, answers: Sequence[Answer]) -> Table:
    rows = [
        (
            Cell(answer.claim.id, "strong"),
            Cell(translated(answer.claim.statement), "reason"),
            Cell(translated(answer.word), f"word {answer.word.replace(' ', '-')}"),
            Cell(
                localized(answer.sentence),
                "reason",
                details=tuple(map(localized, answer.missing[1:])),
            ),
        )
        for answer in answers
    ]
    return titled(
        caption,
        (_("Claim"), _("Statement of the paper"), _("Answer"), _("Result of this run")),
        rows,
    )

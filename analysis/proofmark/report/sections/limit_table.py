"""The table of limits: how many figures each limit judged."""

from __future__ import annotations

from collections.abc import Iterator

from proofmark.common.sentences import localized
from proofmark.common.translation import _, translated
from proofmark.judge.limit_outcomes import LimitOutcome
from proofmark.report.accepted import accepted_text, open_bounds_text, reference_text
from proofmark.report.page import Block, Cell, listed, numeric, titled
from proofmark.report.run_data import RunData
from proofmark.report.words import count, pairs

NUMBER = "number"


def blocks(run_data: RunData) -> Iterator[Block]:
    """Yield the table of the contract limits and of the references that are for the suite."""
    counts = run_data.verdict.limits
    if not counts:
        return
    caption = _("Figures judged by each limit")
    idle = sum(each.steps > 0 and not each.judged for each in counts)
    explanation = _(
        "A limit judges the figures that it selects and that are valid. A limit of another suite "
        "is not in this suite and has no effect."
    )
    notes = [explanation]
    if idle:
        notes.append(
            _("{limits} of this suite judged no figure.").format(limits=count(idle, "limit"))
        )
    if basis := run_data.verdict.hardware.basis:
        notes.append(f"{localized(basis)}.")
    columns = (
        _("Limit"),
        _("Accepted"),
        numeric(_("Judged")),
        numeric(_("PASS")),
        numeric(_("FAIL")),
        numeric(_("UNJUDGED")),
        numeric(_("INVALID")),
        _("Source"),
    )
    rows: list[tuple[Cell | str, ...]] = [
        (
            _name(each),
            accepted(each),
            _judged(each),
            *(str(each.outcomes.get(word, 0)) for word in ("PASS", "FAIL", "UNJUDGED")),
            str(each.invalid),
            f"{translated(each.reference.kind)}: {each.reference.source}",
        )
        for each in counts
    ]
    yield Block(
        titles=(caption,),
        paragraphs=tuple(notes),
        tables=(titled(caption, columns, rows),),
    )


def idle(run_data: RunData) -> Iterator[Block]:
    """Yield the contract limits of this suite that judged no figure."""
    items = tuple(
        _("{limit}: {unjudged} UNJUDGED, {invalid} INVALID").format(
            limit=_text(each),
            unjudged=count(sum(each.outcomes.values()), "figure"),
            invalid=count(each.invalid, "figure"),
        )
        for each in run_data.verdict.limits
        if each.reference.kind == "contract" and each.steps and not each.judged
    )
    if items:
        yield listed(_("Contract limits that judged no figure"), items)


def _text(each: LimitOutcome) -> str:
    name = _name(each)
    return f"{' '.join((name.text, *name.details))} ({each.reference.source})"


def _name(each: LimitOutcome) -> Cell:
    reference = each.reference
    mode = _("mode {mode}").format(mode=reference.mode) if reference.mode else ""
    system = _("system {system}").format(system=reference.system) if reference.system else ""
    details = ", ".join(filter(None, (mode, system, pairs(reference.where))))
    return Cell(f"{each.case} {reference.metric}", "strong", tuple(filter(None, (details,))))


def accepted(each: LimitOutcome) -> str:
    """Return the figures that a limit accepted in words: ``at least 0.9 × 85 GB/s``.

    They are those of its judgements: nodes with other processors can have other tolerances.
    """
    of = reference_text(each.reference, each.case)
    if not each.accepted:
        return open_bounds_text(of)
    return "; ".join(dict.fromkeys(accepted_text(bounds, of) for bounds in each.accepted))


def _judged(each: LimitOutcome) -> Cell:
    """Return the number of judged figures; 0 looks like the verdict UNJUDGED."""
    if each.judged:
        return Cell(str(each.judged), NUMBER)
    if not each.steps:
        return Cell("0", NUMBER, details=(_("not in this suite"),))
    return Cell("0", "word UNJUDGED", details=(_("no figure was judged"),))

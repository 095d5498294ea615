"""The table of limits, with how many figures each judged, and a row for each contract item."""

from __future__ import annotations

from collections.abc import Iterator

from proofmark.common.message import localized
from proofmark.common.nodesets import folded
from proofmark.common.translation import N_, _, translated
from proofmark.judge.acceptance import MOST_REASONS
from proofmark.judge.limit_outcomes import LimitOutcome
from proofmark.judge.node_checks import CheckOutcome
from proofmark.report.page import Block, Cell, Section, listed, numeric, titled
from proofmark.report.run_data import RunData
from proofmark.report.words import (
    accepted_text,
    check_text,
    count,
    number,
    open_bounds_text,
    pairs,
    reference_text,
    visible,
)

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
            accepted_of(each),
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


def accepted_of(each: LimitOutcome) -> str:
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


_PHASES = (N_("functionality"), N_("performance"), N_("stability"))  # for the catalogue


def sections(run_data: RunData) -> tuple[Section, ...]:
    """Return the section; nothing for a site without a contract."""
    document = run_data.site.contract
    if document is None:
        return ()
    planned = [each for each in run_data.verdict.contract if each.item]
    checks = run_data.verdict.checks
    others = len(document.items) - len(planned) - len(checks)
    columns = (_("Item"), _("Phase"), _("Limit"), _("Figure"), _("Outcome"), _("Evidence"))
    caption = _("Items of the contract")
    parties = "; ".join(f"{role}: {name}" for role, name in document.parties.items())
    notes = [visible(f"{document.title}. {parties}.")]
    if others:
        notes.append(_("{count} further items are for other suites.").format(count=others))
    rows = [*map(_checked, checks), *map(_row, planned)]
    shown = titled(caption, columns, rows)
    block = Block(titles=(caption,), paragraphs=tuple(notes), tables=(shown,))
    return (Section("contract", _("Contract"), (block,)),)


def _checked(each: CheckOutcome) -> tuple[Cell | str, ...]:
    """Return the row of a functional item."""
    item, (met, total) = each.item, each.nodes
    text = (visible(item.text), *([_("minor")] if item.severity == "minor" else []))
    reasons: dict[str, list[str]] = {}
    for figure in each.figures:
        if figure.outcome != "PASS":
            reasons.setdefault(localized(figure.reason), []).append(figure.node)
    lines = [f"{folded(nodes)}: {why}" for why, nodes in reasons.items()]
    return (
        Cell(item.number, "strong", details=text),
        translated(item.phase),
        check_text(item),
        Cell(_("{met} of {total} nodes meet it").format(met=met, total=total)),
        Cell(translated(each.outcome), f"word {each.outcome}", details=tuple(lines[:MOST_REASONS])),
        Cell(item.metric, "code"),
    )


def _row(each: LimitOutcome) -> tuple[Cell | str, ...]:
    item, worst = each.item, each.worst
    assert item is not None  # the caller takes items only
    text = (visible(item.text), *([_("minor")] if item.severity == "minor" else []))
    if worst is None:
        accepted, measured, evidence = accepted_of(each), _("not compared"), "–"
    else:
        accepted = accepted_text(worst.accepted, unit=worst.unit)
        measured = f"{number(worst.value)} {worst.unit}"
        evidence = f"{worst.step}, {worst.node}"
    details = []
    # The nodes of INVALID figures are not among them: their number would say too much.
    if each.nodes[1] > 1 and each.outcome in ("PASS", "FAIL"):
        met, total = each.nodes
        details.append(_("{met} of {total} nodes meet it").format(met=met, total=total))
    waiver = each.waiver
    why = (
        _("waived by {by} on {date}: {reason}").format(
            by=visible(waiver.by), date=waiver.date, reason=visible(waiver.reason)
        )
        if waiver
        else ""
    )
    return (
        Cell(item.number, "strong", details=text),
        translated(item.phase),
        accepted,
        Cell(measured, details=tuple(details)),
        Cell(translated(each.outcome), f"word {each.outcome}", details=(why,) if why else ()),
        Cell(evidence, "code"),
    )

"""The report section with one row for each item of the contract."""

from __future__ import annotations

from proofmark.common.nodesets import folded
from proofmark.common.sentences import localized
from proofmark.common.translation import N_, _, translated
from proofmark.judge.acceptance import MOST_REASONS
from proofmark.judge.limit_outcomes import LimitOutcome
from proofmark.judge.node_checks import CheckOutcome
from proofmark.report.accepted import accepted_text, check_text
from proofmark.report.page import Block, Cell, Section, titled
from proofmark.report.run_data import RunData
from proofmark.report.sections.limit_table import accepted as accepted_of
from proofmark.report.words import number, visible

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

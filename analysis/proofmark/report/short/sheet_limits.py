"""The limits of the contract in the summary: accepted values, measured value, outcome."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from proofmark.common.translation import _, translated
from proofmark.judge.limit_outcomes import LimitOutcome
from proofmark.judge.worst_figures import WorstFigure
from proofmark.report.accepted import accepted_text
from proofmark.report.run_data import RunData
from proofmark.report.sections.limit_table import accepted
from proofmark.report.short.sheet import Allowance, SheetColumn, SheetPart, clipped
from proofmark.report.words import number, pairs, visible

_ORDER = ("FAIL", "INVALID", "UNJUDGED", "PASS")


def limit_rows(run_data: RunData) -> list[LimitOutcome]:
    """Return the contract limits of this suite: FAIL first, then INVALID, UNJUDGED and PASS."""
    return sorted(run_data.verdict.contract, key=lambda each: _ORDER.index(each.outcome))


def limits_part(run_data: RunData, allowance: Allowance) -> SheetPart:
    """Return the table of the contract limits, the worst first."""
    rows = limit_rows(run_data)
    shown = rows[: allowance.limits]
    several = len(run_data.nodes) > 1
    return SheetPart(
        "limits",
        _("Limits of the contract"),
        (
            SheetColumn(_("Limit"), 31),
            SheetColumn(_("Accepted"), 19),
            SheetColumn(_("Worst measured figure"), 25),
            SheetColumn(_("Figures"), 14),
            SheetColumn(_("Outcome"), 11, "word"),
        ),
        tuple(_row(row, allowance.characters, several=several) for row in shown),
        notes=tuple(_notes(run_data, rows)),
        rest=_rest(rows, len(shown)),
    )


def _row(row: LimitOutcome, most: int, *, several: bool) -> tuple[str, ...]:
    reference, worst = row.reference, row.worst
    mode = _("mode {mode}").format(mode=reference.mode) if reference.mode else ""
    where = ", ".join(filter(None, (mode, pairs(reference.where))))
    name = f"{row.case} {reference.metric}"
    if row.item:
        name, where = f"{row.item.number} {visible(row.item.text)}", ""
    return (
        clipped(f"{name}, {where}" if where else name, most),
        clipped(_accepted(row), most // 2),
        clipped(_measured(worst, several=several), most // 2),
        clipped(_waived(row) or _figures(row), most // 2),
        row.outcome,
    )


def _waived(row: LimitOutcome) -> str:
    waiver = row.waiver
    if waiver is None:
        return ""
    return _("waived by {by}, {date}").format(by=visible(waiver.by), date=waiver.date)


def _accepted(row: LimitOutcome) -> str:
    """Return the bounds in the unit of the measured figure; as ratios if nothing was measured."""
    worst = row.worst
    return accepted_text(worst.accepted, unit=worst.unit) if worst else accepted(row)


def _measured(worst: WorstFigure | None, *, several: bool) -> str:
    if worst is None:
        return _("not compared")
    value = f"{number(worst.value)} {worst.unit}"
    return _("{value} on {node}").format(value=value, node=worst.node) if several else value


def _figures(row: LimitOutcome) -> str:
    """Return the number of figures by outcome: ``12 PASS, 1 FAIL``."""
    counts = {**row.outcomes, "INVALID": row.invalid}
    return _amounts({word: counts.get(word, 0) for word in reversed(_ORDER)}) or _("none")


def _notes(run_data: RunData, rows: Sequence[LimitOutcome]) -> Iterator[str]:
    limits = run_data.site.items
    if not limits:
        yield _("The inventory states no limit of a contract for this partition.")
    elif not rows:
        yield _("None of the {count} limits is for this suite.").format(count=len(limits))
    elif left := len(limits) - len(rows):
        yield _("{count} further limits are for other suites.").format(count=left)
    if others := _other_references(run_data):
        yield _("Figures judged by other references: {list}.").format(list=others)


def _other_references(run_data: RunData) -> str:
    """Return the number of figures by outcome, for each kind of reference but the contract."""
    kinds: dict[str, dict[str, int]] = {}
    for judgements in run_data.verdict.results.answers.values():
        for each in judgements:
            if each.kind != "contract" and each.outcome in ("PASS", "FAIL"):
                outcomes = kinds.setdefault(each.kind, {"PASS": 0, "FAIL": 0})
                outcomes[each.outcome] += 1
    return "; ".join(
        f"{translated(kind)} {_amounts(outcomes)}" for kind, outcomes in sorted(kinds.items())
    )


def _rest(rows: Sequence[LimitOutcome], shown: int) -> tuple[str, ...]:
    left = rows[shown:]
    if not left:
        return ()
    listed = _amounts({word: sum(row.outcome == word for row in left) for word in _ORDER})
    text = _("{count} more limits ({list}): report.html, part Judged figures.")
    return (text.format(count=len(left), list=listed),)


def _amounts(counts: Mapping[str, int]) -> str:
    """Return the numbers of verdicts that are not 0: ``12 PASS, 1 FAIL``."""
    text = _("{count} {verdict}")
    return ", ".join(
        text.format(count=amount, verdict=translated(word))
        for word, amount in counts.items()
        if amount
    )

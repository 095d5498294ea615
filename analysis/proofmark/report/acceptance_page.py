"""The page of an acceptance: what the parties sign, on A4 or Letter, and then the runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from proofmark.common.grouping import gathered
from proofmark.common.message import localized
from proofmark.common.nodesets import folded
from proofmark.common.text import percent
from proofmark.common.translation import _, translated
from proofmark.judge.acceptance import (
    Acceptance,
    AcceptedItem,
    AcceptedPhase,
    Terms,
    nodes_by_value,
)
from proofmark.report.page import Block, Cell, Cells, Section, Table, numeric, titled
from proofmark.report.render import page
from proofmark.report.sections.figure_tables import verdict_cell
from proofmark.report.sections.signed_sheets import signature_table
from proofmark.report.words import accepted_text, item_details, item_text, number, pairs, visible
from proofmark.runs.run_files import AcceptanceFiles
from proofmark.runs.sealed_runs import digest_of


@dataclass(frozen=True)
class AcceptanceView:
    """The contents of the page for its template; `digest` is on each sheet."""

    word: str
    title: str
    sentence: str
    about: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    digest: str
    kit: str
    footer: str


def acceptance_page(found: Acceptance, terms: Terms, digest: str) -> str:
    """Return the page as HTML. It needs no script, no server and no network.

    Args:
        digest: the SHA-256 of ``acceptance.json``, in hexadecimal digits.
    """
    contract = terms.contract
    nodes = (
        f"{name}: {folded(part.hosts)}" + (f" ({part.mode})" if part.mode else "")
        for name, part in terms.partitions.items()
    )
    parties = "; ".join(f"{role}: {name}" for role, name in contract.parties.items())
    dates = [each.date for each in found.runs]
    about = (
        (_("Contract"), f"{visible(contract.title)} (SHA-256 {digest_of(contract)})"),
        (_("Parties"), visible(parties)),
        (_("Nodes"), visible("; ".join(nodes))),
        (_("Dates"), " – ".join(dict.fromkeys([dates[-1], dates[0]])) if dates else "–"),
    )
    rows = [
        (
            Cell(translated(each.phase), "strong"),
            Cell(phase_text(each), f"word {each.word}"),
            each.date or "–",
            _("{met} of {total} items met").format(met=each.met, total=each.total),
        )
        for each in found.phases
    ]
    columns = (
        *(_("Item"), _("Phase"), _("Partition"), numeric(_("Figure")), numeric(_("Limit"))),
        *(numeric(_("Visible change")), _("Outcome"), _("Evidence")),
    )
    tables: list[tuple[str, str, list[Table]]] = [
        (
            "phases",
            _("Phases"),
            [titled(_("Phases"), (_("Phase"), _("Outcome"), _("Date"), _("Items")), rows)],
        ),
        (
            "items",
            _("Items of the contract"),
            [titled(_("Items of the contract"), columns, [_row(each) for each in found.items])],
        ),
        ("accepted", _("What was accepted"), [*_configuration(found)]),
        ("faults", _("Nodes with a fault"), [_faults(found)] if found.faults else []),
        ("signatures", _("Signatures"), [signature_table(contract)]),
        ("runs", _("Runs"), [*_runs(found)]),
    ]
    view = AcceptanceView(
        word=found.word,
        title=_("Acceptance of {system}").format(system=found.site),
        sentence=f"{localized(found.text)}.",
        about=about,
        sections=tuple(
            Section(name, title, (Block(tables=tuple(shown)),))
            for name, title, shown in tables
            if shown
        ),
        digest=f"{AcceptanceFiles.data.path}: SHA-256 {digest}",
        kit=_("Proofmark acceptance"),
        footer=_("Everything here is in acceptance.json, SHA-256 {digest}.").format(digest=digest),
    )
    return page("acceptance.html", view, "style.css", "acceptance.css")


def figure_text(each: AcceptedItem) -> str:
    """Return what the runs show of an item: the worst value, or what a node has; – for nothing."""
    shown = each.shown
    if shown.value is None:
        return visible(shown.found) if shown.found else "–"
    return f"{number(shown.value)} {shown.unit}".rstrip()


def item_limit(each: AcceptedItem) -> str:
    """Return the limit of an item, in the unit of its figure if there is one."""
    shown = each.shown
    if not shown.accepted.known:
        return item_text(each.item)
    return accepted_text(shown.accepted, unit=shown.unit)


def runs_of(each: AcceptedItem) -> str:
    """Return the runs that decide about an item; – for none."""
    return ", ".join(part.run for part in each.evidence) or "–"


def notes(each: AcceptedItem) -> Iterator[str]:
    """Yield why an item has its outcome, its waiver, and what other runs found."""
    yield from map(localized, each.reasons)
    yield from map(translated, each.advice)
    signed = _("{by} signed a waiver on {date}: {reason}")
    waived = _("waived by {by} on {date}: {reason}")
    for waiver in each.waivers:
        yield (signed if each.unsigned else waived).format(
            by=visible(waiver.by), date=waiver.date, reason=visible(waiver.reason)
        )
    if each.waivers and each.unsigned:
        yield _("the waiver lacks the signature of {names}").format(names=", ".join(each.unsigned))
    texts = (
        _("{outcome} before: {run}, {date}, {nodes}"),
        _("{outcome} later: {run}, {date}, {nodes}; the earlier figures decide"),
    )
    for other in each.others:
        about = {"run": other.run, "date": other.date, "nodes": other.nodes}
        yield texts[other.later].format(outcome=translated(other.outcome), **about)


def phase_text(phase: AcceptedPhase) -> str:
    """Return the word of a phase, which says how much of it was waived."""
    word = translated(phase.word)
    if not phase.waived:
        return word
    return _("{word} with {count} waived").format(word=word, count=phase.waived)


def _row(each: AcceptedItem) -> Cells:
    item, (met, total) = each.item, each.nodes
    text = item_details(item)
    what = " ".join(filter(None, (item.case, item.metric, pairs(item.where))))
    shown = [_("{met} of {total} nodes meet it").format(met=met, total=total)] if total > 1 else []
    evidence = [
        line
        for part in each.evidence
        for line in (
            f"{part.run} ({part.date})",
            ": ".join(filter(None, (", ".join(part.steps), part.nodes))),
        )
        if line
    ]
    return (
        Cell(item.number, "strong", details=(*text, what)),
        translated(item.phase),
        each.partition,
        Cell(figure_text(each), "number", details=tuple(shown)),
        item_limit(each),
        "–" if each.visible is None else f"{percent(each.visible)} %",
        Cell(translated(each.outcome), f"word {each.outcome}", details=tuple(notes(each))),
        Cell(evidence[0] if evidence else "–", details=tuple(evidence[1:])),
    )


def _configuration(found: Acceptance) -> Iterator[Table]:
    """Yield what the newest runs show of the nodes and of the software of each partition."""
    for partition, now in found.configurations.items():
        rows = [
            (visible(name), visible(value), nodes)
            for name, of_name in nodes_by_value(now).items()
            for value, nodes in of_name.items()
        ]
        yield titled(partition, (_("Part"), _("Value"), _("Nodes")), rows)


def _faults(found: Acceptance) -> Table:
    rows = [
        (
            Cell(each.nodes, "strong"),
            localized(each.reason),
            f"{each.run} ({each.date})",
            _("stands") if each.stands else _("measured again since"),
        )
        for each in found.faults
    ]
    columns = (_("Node"), _("Reason"), _("Run"), _("State"))
    return titled(_("Nodes with a fault"), columns, rows)


def _runs(found: Acceptance) -> Iterator[Table]:
    limits = gathered((limited.run, localized(limited.reason)) for limited in found.limited)
    rows = [
        (
            Cell(each.id, "strong", details=(each.evidence, *limits.get(each.id, ()))),
            each.plan.partition,
            each.plan.suite,
            f"{each.sealed:%Y-%m-%d %H:%M UTC}",
            verdict_cell(each.word),
        )
        for each in found.runs
    ]
    columns = (f"{_('Run')}, SHA-256", _("Partition"), _("Suite"), _("Sealed"), _("Verdict"))
    yield titled(_("Runs"), columns, rows)
    left_out = [(Cell(each.run, "strong"), localized(each.reason)) for each in found.left_out]
    if left_out:
        yield titled(_("Left out"), (_("Left out"), _("Reason")), left_out)

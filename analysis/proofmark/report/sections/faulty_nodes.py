"""The bad nodes with their causes, and slow storage targets."""

from __future__ import annotations

from collections.abc import Iterator

from proofmark.common.files import is_regular, sha256_of
from proofmark.common.message import localized
from proofmark.common.nodesets import folded
from proofmark.common.translation import N_, _, translated
from proofmark.judge.diagnosis.bad_nodes import BadNode, SlowFigure
from proofmark.judge.fleet.populations import LIKE_TARGETS
from proofmark.judge.next_steps import node_advice
from proofmark.report.page import (
    Block,
    Cell,
    PageLink,
    Section,
    numeric,
    tabled,
    titled,
)
from proofmark.report.run_data import RunData
from proofmark.report.words import count, number, pairs
from proofmark.runs.attempts import numbered_execution

MOST_FIGURES = 3
REST = N_("The complete list is in verdict.json.")


def sections(run_data: RunData) -> tuple[Section, ...]:
    """Return the section; nothing for a run on a single node."""
    bad = run_data.verdict.bad
    if bad.measured < 2:
        return ()
    blocks = (*_nodes(run_data), *_links(run_data), *_causes(run_data), *_drift(run_data))
    return (Section("bad-nodes", _("Bad nodes"), blocks),)


def _nodes(run_data: RunData) -> Iterator[Block]:
    bad = run_data.verdict.bad
    if not bad.nodes:
        compared = run_data.verdict.compared()
        none = _("None of {nodes} deviates by more than chance explains.").format(
            nodes=count(compared, "node")
        )
        others = _("Measured and not compared: {nodes}.").format(
            nodes=count(bad.measured - compared, "node")
        )
        yield Block(paragraphs=(none, others) if bad.measured > compared else (none,))
        return
    rows = [
        (
            Cell(node.host, "strong"),
            (_percent(node.worst) if node.slow else "–"),
            Cell(
                localized(node.likely),
                "reason",
                details=tuple(localized(cause.message) for cause in node.causes[1:3]),
            ),
            _figures(run_data, node),
            Cell(f"{node_advice(node)[1]}.", "reason"),
        )
        for node in bad.nodes
    ]
    columns = (
        _("Node"),
        numeric(_("Deviation")),
        _("Likely cause"),
        _("Evidence"),
        _("Action"),
    )
    caption = _("{bad} of {all}").format(
        bad=count(len(bad.nodes), "bad node"), all=run_data.verdict.compared()
    )
    yield Block(
        titles=(caption,),
        tables=(titled(caption, columns, rows, rest=translated(REST)),),
        links=(PageLink("rma.csv", _("rma.csv, the list for the vendor")),),
    )


def _percent(fraction: float) -> str:
    return f"{100 * fraction:+.1f} %".replace("-", "−")


def _figures(run_data: RunData, node: BadNode) -> Cell:
    shown = [f"{each.record.case}: {localized(each.reason)}" for each in node.digits[:MOST_FIGURES]]
    shown += [_figure(slow) for slow in node.slow[:MOST_FIGURES]]
    if len(node.slow) > MOST_FIGURES:
        shown.append(
            _("and {figures}").format(figures=count(len(node.slow) - MOST_FIGURES, "more figure"))
        )
    links = []
    for result in (*node.digits, *(slow.result for slow in node.slow))[:1]:
        files, record = run_data.run.files, result.record
        output = numbered_execution(files.step(record.step), record.attempt).stdout
        links.append(PageLink(files.link(output), "stdout"))
        if is_regular(output):
            shown.append(f"stdout: SHA-256 {sha256_of(output)}")
    details = tuple(shown[1:])
    return Cell(shown[0] if shown else _("error counters"), details=details, links=tuple(links))


def _figure(slow: SlowFigure) -> str:
    record = slow.result.record
    setting = pairs(record.parameters)
    value = f"{number(record.value)} {record.unit} ({_percent(slow.deviation)})"
    return f"{slow.name} {value}" + (f", {setting}" if setting else "")


def _links(run_data: RunData) -> Iterator[Block]:
    if links := run_data.verdict.bad.links:
        rows = [
            (Cell(pair, "strong"), _percent(slow.deviation), _figure(slow)) for pair, slow in links
        ]
        columns = (_("Nodes"), numeric(_("Deviation")), _("Evidence"))
        caption = _("Slow links between nodes that are not bad")
        yield tabled(caption, columns, rows)


def _causes(run_data: RunData) -> Iterator[Block]:
    bad = run_data.verdict.bad
    if not bad.causes:
        return
    rows = [
        (
            Cell(f"{translated(cause.trait)} {cause.value}", "strong"),
            _("{bad} of {all}").format(bad=cause.bad, all=cause.nodes),
            _("{bad} of {all}").format(bad=cause.all_bad, all=cause.all_nodes),
            f"{cause.p:.1g}",
            folded(cause.members),
        )
        for cause in bad.causes
    ]
    columns = (
        _("Property"),
        numeric(_("Bad nodes with it")),
        numeric(_("Bad nodes in total")),
        numeric(_("p-value")),
        _("Bad nodes"),
    )
    caption = _("Properties that bad nodes share")
    method = _(
        "Fisher's exact test, corrected for the number of properties that were tested. Properties "
        "that occur on the same nodes, such as a rack and its firmware, cannot be distinguished."
    )
    yield tabled(caption, columns, rows, method, rest=translated(REST))


def _drift(run_data: RunData) -> Iterator[Block]:
    rows = []
    for drift in run_data.verdict.bad.drift:
        rows += [
            (
                Cell(translated(drift.trait), "strong"),
                f"{drift.usual} ({count(drift.nodes, 'node')})",
                value,
                folded(hosts),
            )
            for value, hosts in drift.values
        ]
    if rows:
        caption = _("Settings in which the nodes differ")
        columns = (_("Setting"), _("Usual"), _("Other"), _("Nodes"))
        yield tabled(caption, columns, rows, rest=translated(REST))


def target_sections(run_data: RunData) -> tuple[Section, ...]:
    """Return the section; nothing for a run that compared no storage targets."""
    compared = [
        figure.fleet_limit.nodes
        for figure in run_data.verdict.fleet.figures
        if figure.members == LIKE_TARGETS
    ]
    if not compared:
        return ()
    slow = run_data.verdict.storage.targets
    if not slow:
        text = _("None of {targets} is slower than chance explains.").format(
            targets=count(max(compared), "storage target")
        )
        return (Section("storage-targets", _("Storage targets"), (Block(paragraphs=(text,)),)),)
    rows = []
    for target in slow:
        shown = [
            f"{each.record.metric} {number(each.record.value)} {each.record.unit}: "
            f"{localized(each.reason)}"
            for each in target.results[:MOST_FIGURES]
        ]
        rows.append(
            (
                Cell(str(target.target), "strong"),
                target.file_system,
                f"{target.ratio:.2g}",
                Cell(shown[0], "reason", details=tuple(shown[1:])),
            )
        )
    columns = (
        _("Storage target"),
        _("File system"),
        numeric(_("Worst figure ÷ median")),
        _("Evidence"),
    )
    caption = _("{slow} of {all}").format(
        slow=count(len(slow), "slow storage target"), all=max(compared)
    )
    block = tabled(caption, columns, rows)
    return (Section("storage-targets", _("Storage targets"), (block,)),)

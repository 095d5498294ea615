"""The bad nodes: name, how far off, likely cause; then what the comparison is able to find."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

from proofmark.judge.diagnosis.bad_nodes import BadNode, Slow
from proofmark.judge.fleet.fleet import FleetFigure
from proofmark.report.page import TITLED, Block, Cell, Column, Fold, Link, Section, table
from proofmark.report.run_data import RunData
from proofmark.report.text import count, folded, number, pairs

MOST_FIGURES = 3
REST = "All stand in verdict.json."


def sections(material: RunData) -> tuple[Section, ...]:
    """Return the section; none of a run on a single node."""
    bad = material.verdict.bad
    if bad.asked < 2:
        return ()
    blocks = (
        *_nodes(material),
        *_links(material),
        *_causes(material),
        *_drift(material),
        *_able(material),
    )
    return (Section("bad-nodes", "Bad nodes", tuple(blocks)),)


def _nodes(material: RunData) -> Iterator[Block]:
    bad = material.verdict.bad
    if not bad.nodes:
        said = f"None of {count(bad.asked, 'node')} is off by more than chance allows."
        yield Block(paragraphs=(said,))
        return
    rows = [
        (
            Cell(node.host, "strong"),
            _far(node),
            Cell(node.likely, "reason", details=tuple(map(str, node.causes[1:3]))),
            _figures(material, node),
            "measure again first" if node.retest else "for the vendor",
        )
        for node in bad.nodes
    ]
    columns = ("Node", Column("Off", "number"), "Likely cause", "By", "What to do")
    caption = f"{count(len(bad.nodes), 'bad node')} of {bad.asked}"
    yield Block(
        titles=(caption,),
        tables=(table(caption, columns, rows, kind=TITLED, rest=REST),),
        links=(Link("rma.csv", "the list for the vendor: rma.csv"),),
    )


def _far(node: BadNode) -> str:
    return _percent(node.worst) if node.slow else "–"


def _percent(part: float) -> str:
    return f"{100 * part:+.1f} %".replace("-", "−")


def _figures(material: RunData, node: BadNode) -> Cell:
    shown = [_figure(slow) for slow in node.slow[:MOST_FIGURES]]
    if len(node.slow) > MOST_FIGURES:
        shown.append(f"and {count(len(node.slow) - MOST_FIGURES, 'more figure')}")
    links = tuple(
        Link(f"steps/{step}/stdout", "stdout")
        for step in dict.fromkeys(slow.result.record.step for slow in node.slow[:1])
    )
    for link in links:
        path = material.run.folder / link.path
        if path.is_file():
            shown.append(f"stdout: SHA-256 {sha256(path.read_bytes()).hexdigest()}")
    return Cell(shown[0] if shown else "its counters", details=tuple(shown[1:]), links=links)


def _figure(slow: Slow) -> str:
    record = slow.result.record
    setting = pairs(record.parameters)
    value = f"{number(record.value)} {record.unit} ({_percent(slow.deviation)})"
    return f"{slow.name} {value}" + (f", {setting}" if setting else "")


def _links(material: RunData) -> Iterator[Block]:
    if links := material.verdict.bad.links:
        rows = [
            (Cell(pair, "strong"), _percent(slow.deviation), _figure(slow)) for pair, slow in links
        ]
        columns = ("Between", Column("Off", "number"), "By")
        caption = "Slow links between nodes that are sound by themselves"
        yield Block(titles=(caption,), tables=(table(caption, columns, rows, kind=TITLED),))


def _causes(material: RunData) -> Iterator[Block]:
    bad = material.verdict.bad
    if not bad.causes:
        return
    rows = [
        (
            Cell(f"{cause.trait} {cause.value}", "strong"),
            f"{cause.bad} of {cause.nodes}",
            f"{cause.all_bad} of {cause.all_nodes}",
            f"{cause.p:.1g}",
            folded(list(cause.members)),
        )
        for cause in bad.causes
    ]
    columns = (
        "Shared",
        Column("Bad there", "number"),
        Column("Bad in all", "number"),
        Column("By chance", "number"),
        "Bad nodes",
    )
    caption = "What the bad nodes have in common"
    said = (
        "Fisher's exact test, corrected for the number of things that were looked at. Things that "
        "go together, such as a rack and its firmware, cannot be told apart."
    )
    yield Block(
        titles=(caption,),
        paragraphs=(said,),
        tables=(table(caption, columns, rows, kind=TITLED, rest=REST),),
    )


def _drift(material: RunData) -> Iterator[Block]:
    rows = [
        (
            Cell(each.trait, "strong"),
            f"{each.usual} ({count(each.nodes, 'node')})",
            value,
            folded(list(hosts)),
        )
        for each in material.verdict.bad.drift
        for value, hosts in each.values
    ]
    if rows:
        caption = "Settings in which the nodes differ"
        columns = ("Setting", "Usual", "Other", "Nodes")
        listed = table(caption, columns, rows, kind=TITLED, rest=REST)
        yield Block(titles=(caption,), tables=(listed,))


def _able(material: RunData) -> Iterator[Block]:
    """Say what the comparison can find: a test without power is no clean bill."""
    fleet = material.verdict.fleet
    if not fleet.figures:
        return
    rows = [_power(figure) for figure in fleet.figures]
    columns = (
        "Figure",
        Column("Nodes", "number"),
        Column("Median", "number"),
        Column("Spread", "number"),
        Column("Limit", "number"),
        Column("Found in 95 of 100", "number"),
        Column("−3 %", "number"),
        Column("−5 %", "number"),
        Column("−10 %", "number"),
    )
    caption = "What the comparison of like nodes is able to find"
    said = (
        f"On a healthy machine anything at all is flagged in {100 * fleet.level:g} of 100 runs. "
        "The last columns are the probability that a node so much worse is found."
    )
    shown = table(caption, columns, rows, kind="dense", rest=REST)
    fold = Fold(f"Show {count(len(rows), 'figure')}", Block(tables=(shown,)), "long")
    yield Block(titles=(caption,), paragraphs=(said,), folds=(fold,))


def _power(figure: FleetFigure) -> tuple[Cell | str, ...]:
    record, stick = figure.record, figure.fleet_limit
    words = filter(None, (record.case, record.benchmark, record.metric))
    details = ", ".join(filter(None, (record.placement, pairs(record.parameters), figure.kind)))
    name = Cell(" ".join(dict.fromkeys(words)), "strong", details=(details,))
    if stick.limit is None:
        return (name, str(stick.nodes), number(stick.centre), "–", stick.powerless, *["–"] * 4)
    return (
        name,
        str(stick.nodes),
        f"{number(stick.centre)} {record.unit}",
        f"{100 * stick.spread:.2g} %",
        number(stick.limit),
        f"{100 * stick.detectable:.2g} %",
        *(f"{100 * stick.power_at(drop):.0f} %" for drop in (0.03, 0.05, 0.10)),
    )

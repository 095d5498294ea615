"""The evidence against a node, a link and a storage target, with the numbers that are shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fixtures.finished import written_verdict
from tests.fixtures.fleet import fleet_run

from proofmark.common.files import sha256_of
from proofmark.judge.diagnosis.bad_nodes import BadNode, BadNodes, Cause, Drift, SlowFigure
from proofmark.judge.diagnosis.storage_faults import SlowTarget
from proofmark.judge.fleet.populations import LIKE_TARGETS
from proofmark.report.page import Cell, Row, Table
from proofmark.report.run_data import RunData, gather
from proofmark.report.sections.faulty_nodes import sections, target_sections

RATES = {f"n{number:02}": (100.0 + number, 101.0 + number) for number in range(12)}
SLOW = "fake FAKE rate 50.25 MB/s"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> RunData:
    """The contents of a run with one bad node."""
    run = fleet_run(tmp_path_factory.mktemp("bad"), RATES | {"n05": (50.0, 50.5)}, more=1)
    return gather(run, written_verdict(run))


def tables(data: RunData, change: Callable[[BadNodes], BadNodes]) -> list[Table]:
    """Return the tables about the bad nodes after a change of them."""
    changed = replace(data, verdict=replace(data.verdict, bad=change(data.verdict.bad)))
    return [table for made in sections(changed) for each in made.blocks for table in each.tables]


def row_of(data: RunData, change: Callable[[BadNode], BadNode]) -> Row:
    (table,) = tables(data, lambda bad: replace(bad, nodes=tuple(map(change, bad.nodes))))
    (row,) = table.rows
    return row


def evidence(data: RunData, change: Callable[[BadNode], BadNode]) -> Cell:
    return row_of(data, change).cells[2].cell


def output(data: RunData) -> Path:
    (node,) = data.verdict.bad.nodes
    record = node.results[0].record
    return data.run.folder / f"workdir/steps/{record.step}/execution-{record.attempt}/stdout"


@pytest.mark.parametrize(("figures", "more"), [(1, 0), (3, 0), (4, 1), (5, 2)])
def test_three_slow_figures_of_a_node_are_named(data: RunData, figures: int, more: int) -> None:
    def change(node: BadNode) -> BadNode:
        slow = [replace(each, deviation=-0.5) for each in node.slow[:1]]
        return replace(node, slow=tuple(slow * figures))

    text = f"{SLOW} (−50.0 %), size\u00a01"
    rest = [f"and {more} more figure{'s' * (more > 1)}"] * bool(more)
    digest = f"stdout: SHA-256 {sha256_of(output(data))}"
    cell = evidence(data, change)
    assert [cell.text, *cell.details] == [text] * min(3, figures) + [*rest, digest]
    (link,) = cell.links
    assert (data.run.folder / link.path, link.text) == (output(data), "stdout")
    assert row_of(data, change).cells[0].cell.text == "−50.0 %"


def test_a_node_with_wrong_digits_is_named_by_its_first_ones(data: RunData) -> None:
    def change(node: BadNode) -> BadNode:
        return replace(node, digits=(node.slow[0].result,) * 4, slow=())

    cell, row = evidence(data, change), row_of(data, change)
    assert cell.text.startswith("fake: ")
    assert cell.details[:2] == (cell.text, cell.text)
    assert len(cell.details) == 3 and cell.details[2].startswith("stdout: SHA-256 ")
    assert (row.head.cell.text, row.cells[0].cell.text) == ("n05", "–")


def test_a_node_without_a_figure_has_counters(data: RunData) -> None:
    cell = evidence(data, lambda node: replace(node, slow=()))
    assert (cell.text, cell.details, cell.links) == ("error counters", (), ())


def test_an_output_that_was_removed_has_a_link_and_no_digest(tmp_path: Path) -> None:
    run = fleet_run(tmp_path, RATES | {"n05": (50.0, 50.5)}, more=1)
    data = gather(run, written_verdict(run))
    output(data).unlink()
    cell = evidence(data, lambda node: node)
    assert len(cell.links) == 1 and not any("SHA-256" in each for each in cell.details)


def test_the_first_cause_is_the_likely_one_and_two_more_are_named(data: RunData) -> None:
    causes = tuple(Cause("rack", f"r{n}", 2, 3, 4, 12, 0.01 * n, ()) for n in range(1, 5))
    likely = row_of(data, lambda node: replace(node, causes=causes)).cells[1].cell
    assert likely.text == f"{causes[0].message}"
    assert likely.details == tuple(f"{each.message}" for each in causes[1:3])


@pytest.mark.parametrize("measured", [1, 2])
def test_a_run_on_a_single_node_has_no_bad_node(data: RunData, measured: int) -> None:
    found = tables(data, lambda bad: replace(bad, measured=measured))
    assert bool(found) is (measured > 1)


def test_links_causes_and_settings_have_their_tables(data: RunData) -> None:
    (node,) = data.verdict.bad.nodes
    slow = SlowFigure(node.slow[0].result, 0.125)
    changed = replace(
        data.verdict.bad,
        links=(("n01-n02", slow),),
        causes=(Cause("rack", "r1", 2, 3, 4, 12, 0.01234, ("n01", "n02")),),
        drift=(Drift("bios", "3.1", 1, (("2.9", ("n01", "n02")), ("3.0", ("n03",)))),),
    )
    nodes, *others = tables(data, lambda bad: changed)
    assert nodes.caption == "1 bad node of 12"
    shown = {
        table.caption: [
            [row.head.cell.text, *(each.cell.text for each in row.cells)] for row in table.rows
        ]
        for table in others
    }
    assert shown == {
        "Slow links between nodes that are not bad": [
            ["n01-n02", "+12.5 %", f"{SLOW} (+12.5 %), size\u00a01"]
        ],
        "Properties that bad nodes share": [
            ["rack r1", "2 of 3", "4 of 12", "0.01", "n[01-02]"],
        ],
        "Settings in which the nodes differ": [
            ["bios", "3.1 (1 node)", "2.9", "n[01-02]"],
            ["bios", "3.1 (1 node)", "3.0", "n03"],
        ],
    }
    assert all(each.notes == () and each.kind == "titled" for each in others)


def test_slow_storage_targets_are_named_with_three_figures(data: RunData) -> None:
    assert target_sections(data) == ()
    figures = data.verdict.fleet.figures
    assert figures
    sizes = (5, 8, 6)
    compared = [
        replace(each, members=LIKE_TARGETS, fleet_limit=replace(each.fleet_limit, nodes=size))
        for each, size in zip([*figures] * 3, sizes, strict=False)
    ]
    fleet = replace(data.verdict.fleet, figures=tuple(compared))
    results = replace(data.verdict.results, fleet=fleet)
    verdict = replace(data.verdict, results=results)
    (sound,) = target_sections(replace(data, verdict=verdict))
    assert sound.blocks[0].paragraphs == (
        "None of 8 storage targets is slower than chance explains.",
    )
    (node,) = data.verdict.bad.nodes
    result = node.slow[0].result
    targets = tuple(SlowTarget(3, "/scratch", (result,) * many, 8) for many in (1, 4))
    storage = replace(verdict.storage, targets=targets)
    (made,) = target_sections(replace(data, verdict=replace(verdict, storage=storage)))
    ((table,),) = (each.tables for each in made.blocks)
    assert (made.id, table.caption) == ("storage-targets", "2 slow storage targets of 8")
    reason = f"rate 50.25 MB/s: {result.reason}"
    for row, more in zip(table.rows, (0, 2), strict=True):
        file_system, ratio, figure = (each.cell for each in row.cells)
        assert (row.head.cell.text, file_system.text) == ("3", "/scratch")
        assert ratio.text == f"{targets[0].ratio:.2g}"
        assert (figure.text, figure.details) == (reason, (reason,) * more)

"""Each cell of the pages that are signed is read back, and is what the JSON has."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fixtures.cells import Tables, assert_acceptance, assert_report, text
from tests.fixtures.finished import written_verdict
from tests.fixtures.fleet import fleet_run
from tests.fixtures.kit import item
from tests.fixtures.report_run import page_of
from tests.reference import archives
from tests.stories import of_reference, reference
from tests.unit.judge.test_acceptance import (
    BAD,
    GOOD,
    Machine,
    accepted,
    every,
    machine,  # noqa: F401
    with_fault,
)
from tests.unit.judge.test_acceptance import item as agreed

from proofmark.common.message import Message
from proofmark.judge.acceptance import Acceptance, RunLeftOut, Terms
from proofmark.report.acceptance_page import acceptance_page
from proofmark.site.contract_document import Contract


def page_and_json(found: Acceptance) -> tuple[str, str]:
    """Return the page of an acceptance, and the content of its JSON."""
    document = Contract(
        title="T", parties={"buyer": "B"}, items=[each.item for each in found.items]
    )
    content = json.dumps(found.as_json())
    return acceptance_page(found, Terms("here", document, {}), "0" * 64), content


def test_an_acceptance_with_each_word(machine: Machine) -> None:  # noqa: F811
    """Met, missed, INVALID, not measured, waived and minor items; faults that stand or do not."""
    items = (
        agreed("1"),
        agreed("2", value=600),
        agreed("3", value=600, severity="minor"),
        agreed("4", metric="other"),
        agreed("5", value=300, where={"size": 1}),
        agreed("6", value=600, phase="functionality"),
    )
    runs = [
        machine.run(3, {"n1": GOOD, "n2": None}, *items, planned=("n1", "n2")),
        machine.run(2, every(GOOD), *items),
        machine.run(1, every(BAD), *items),
    ]
    runs[1] = replace(runs[1], verdict=with_fault(runs[1].verdict, "n3"))
    runs[2] = replace(runs[2], verdict=with_fault(runs[2].verdict, "n1"))
    found = accepted(runs, *items, left_out=[RunLeftOut("odd", Message("acceptance-unsealed"))])
    assert {each.outcome for each in found.items} >= {"FAIL", "INVALID", "UNJUDGED"}
    assert {each.stands for each in found.faults} == {True, False}
    document = Contract(title="T", parties={"buyer": "B"}, items=list(items))
    waived = found.items[1].waiver(document, "ida@buyer", "a cable is ordered")
    with_waiver = replace(found.items[1], waivers=(waived,))
    found = replace(found, items=(found.items[0], with_waiver, *found.items[2:]))
    page, stored = page_and_json(found)
    assert assert_acceptance(page, stored) >= 12
    rows = Tables(page).named("Items of the contract")
    settings = [" ".join(f"{pair[0]} {pair[1]}" for pair in each.where.items()) for each in items]
    assert [row["Item"][-1] for row in rows] == [
        " ".join(filter(None, (each.case, each.metric, where)))
        for each, where in zip(items, settings, strict=True)
    ]
    assert any(settings)


def test_an_acceptance_that_passes_with_its_visible_change(machine: Machine) -> None:  # noqa: F811
    """The control of the words: like nodes show the noise."""
    limit = agreed("1", value=200)
    found = accepted([machine.run(1, every(GOOD, n2=235.0, n3=240.0, n4=220.0), limit)], limit)
    assert found.word == "PASS"
    (each,) = found.items
    assert each.visible
    assert_acceptance(*page_and_json(found))


RATES = {f"n{number:02}": [100.0 + number, 101.0 + number, 99.5 + number] for number in range(12)}


def test_a_run_with_each_word(tmp_path: Path) -> None:
    rates = RATES | {
        "n03": [60.0, 60.5, 61.0],
        "n05": [107.0, 60.0, 61.0],
        "n07": [85.0, 86.0, 87.5],
    }
    limits = [item(case="fake", metric="rate", value=90, unit="MB/s", at_least=1, number="1")]
    floor = {"metric": "rate", "kind": "floor", "source": "s", "value": 50, "unit": "MB/s"}
    case = {"references": [{**floor, "at_least": 1.0, "at_most": 9.0}]}
    run = fleet_run(tmp_path, rates, items=limits, case=case, more=2)
    verdict = written_verdict(run)
    assert {word for word, count in verdict.counts.items() if count} == {"PASS", "FAIL", "UNJUDGED"}
    page = page_of(run, verdict)
    assert assert_report(page, json.loads(run.files.verdict.read_text(encoding="utf-8"))) > 40
    tables = Tables(page)
    rows = [row for name in tables.rows if "bad node" in name for row in tables.named(name)]
    assert [row["Node"] for row in rows] == [(each.host,) for each in verdict.bad.nodes] != []
    for row, node in zip(rows, verdict.bad.nodes, strict=True):
        causes = (node.likely, *(cause.message for cause in node.causes[1:3]))
        assert row["Likely cause"] == tuple(text(f"{cause}") for cause in causes)
        shown = f"{100 * node.worst:+.1f} %" if node.slow else "\N{EN DASH}"
        assert row["Deviation"] == (shown.replace("-", "\N{MINUS SIGN}"),)


@pytest.mark.parametrize("archive", archives(), ids=lambda path: path.name.partition(".")[0])
def test_a_reference_run(archive: Path, tmp_path: Path) -> None:
    """See also `tests.stories`, which writes the text."""
    page, stored, text = reference(archive, tmp_path)
    assert assert_report(page, json.loads(stored)) > 20
    assert text.splitlines() == of_reference(archive).read_text(encoding="utf-8").splitlines()

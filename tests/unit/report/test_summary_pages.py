"""The sheets that are signed: the first ones of the printed page, with digest and signatures."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fixtures.finished import seal, written_verdict
from tests.fixtures.fleet import fleet_run
from tests.fixtures.kit import item
from tests.fixtures.pages import plain
from tests.fixtures.report_run import made_run, reported, troubled_run

from proofmark.cli.main import main
from proofmark.judge import next_steps as advice
from proofmark.judge.judging import read_and_judge
from proofmark.judge.next_steps import NextStep
from proofmark.judge.results import Again
from proofmark.report.run_data import gather
from proofmark.report.sections.signed_sheets import exceptions, next_steps, signatures
from proofmark.runs.run import Run

RATES = {f"n{number}": (100.0, 100.5, 101.0) for number in range(1, 9)}
LIMIT = item(case="fake", metric="rate", value=90, unit="MB/s", at_least=1, text="the rate")


def signed_sheets_run(folder: Path) -> Run:
    """Return a run with a contract, sealed, and its page."""
    made = fleet_run(folder, RATES, more=2, items=(LIMIT,))
    seal(made.folder)
    assert main(["report", str(made.folder)]) == 0
    return made


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return a run with one fault of each kind, and its page."""
    made = troubled_run(tmp_path_factory.mktemp("troubled"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1795000000")
        assert main(["report", str(made.folder)]) == 0
    return made


@pytest.fixture(scope="module")
def accepted(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return a run with a contract, sealed, and its page."""
    return signed_sheets_run(tmp_path_factory.mktemp("accepted"))


def test_what_is_signed_stands_before_the_details(accepted: Run) -> None:
    text = accepted.files.report.read_text(encoding="utf-8")
    parts = ("contract", "key-figures", "signatures", "attention", "all")
    places = [text.index(f'id="{part}"') for part in parts]
    assert places == sorted(places)
    signed = text[places[2] : places[3]]
    assert signed.count("<tr") > 3 and "Place, date" in signed
    assert len(re.findall("[0-9a-f]{64}", signed)) >= 5
    assert "#attention { break-before: page; }" in text


def test_each_sheet_has_its_number_and_the_digest_of_the_evidence(accepted: Run) -> None:
    text = accepted.files.report.read_text(encoding="utf-8")
    newest = max((accepted.folder / "evidence").glob("*.tar"))
    digest = hashlib.sha256(newest.read_bytes()).hexdigest()
    assert f'@page {{ @bottom-left {{ content: "SHA-256 {digest}"; }} }}' in text
    assert 'content: counter(page) " / " counter(pages)' in text


def test_without_a_contract_there_is_nothing_to_sign(tmp_path: Path) -> None:
    _verdict, page = reported(fleet_run(tmp_path, RATES, more=2))
    assert 'id="signatures"' not in page and 'id="exceptions"' not in page


def test_a_contract_without_an_item_for_this_suite_is_not_signed(accepted: Run) -> None:
    """The control has a limit of the contract, and its digests."""
    data = gather(accepted, read_and_judge(accepted)[1])
    (made,) = signatures(data, accepted.products)
    ((_, digests),) = (block.tables for block in made.blocks)
    names = [row.head.cell.text for row in digests.rows]
    files = ["verdict.json", "records.parquet", "plan.json", "inputs/site.json"]
    assert names == [*files, "Steps of the plan", "Programs"]
    other = replace(data, verdict=replace(data.verdict, limits=()))
    assert (data.site.contract is not None) and not other.verdict.contract
    assert signatures(other, accepted.products) == ()


def test_the_page_has_the_verdict_and_the_limit(run: Run) -> None:
    text = plain(run.files.report.read_text(encoding="utf-8"))
    for wanted in ("INVALID", "imb-pingpong", "9000 Mbytes/sec", "FAIL", run.id):
        assert wanted in text


def test_each_fail_and_invalid_has_a_next_step(run: Run) -> None:
    data = gather(run, written_verdict(run))
    steps = next_steps(data)
    words = {step.word for step in steps}
    assert {"FAIL", "INVALID"} <= words
    counts = data.verdict.counts
    for word in ("FAIL", "INVALID"):
        assert sum(step.figures for step in steps if step.word == word) == counts[word]
    again = [each.command.splitlines() for each in steps if " rerun " in each.command]
    assert again and {tuple(lines[1:]) for lines in again} == {(f"proofmark report runs/{run.id}",)}
    assert all(lines[0].startswith(f"proofmark rerun runs/{run.id} ") for lines in again)
    page = run.files.report.read_text(encoding="utf-8")
    assert page.index('id="next"') < page.index('id="attention"')


def test_the_exceptions_are_those_of_the_run(tmp_path: Path) -> None:
    """One virtual node, one without provenance, two with one repeat; each on its own row."""
    rates: dict[str, float | tuple[float, ...]] = {**RATES, "n4": 100.0, "n5": 100.5}
    virtual = {"n3": {"machine: none": "machine: kvm"}}
    made = fleet_run(tmp_path, rates, items=(LIMIT,), changes=virtual)
    data = gather(made, written_verdict(made))
    rows = {(text, where) for _, text, where in exceptions(replace(data, nodes=data.nodes[:-1]))}
    assert ("Virtual nodes: another machine decides on their speed", "n3") in rows
    assert ("1 of 8 nodes without provenance", "") in rows
    assert ("Figures that were measured once, with unknown noise: 2", "") in rows
    assert not any("without provenance" in text for _, text, _ in exceptions(data))


@pytest.mark.parametrize(
    ("again", "words"),
    [
        (Again.NOTHING, ()),
        (Again.CONTINUE, ("ansible-playbook acceptance.yml", "run_id=")),
        (Again.FRESH, ("ansible-playbook acceptance.yml", "fresh=true")),
        (Again.REPEATS, ("fresh=true", "repeats=")),
        (Again.RESTORE, ("restore",)),
        (Again.COMPARE, ("proofmark init", "--diff")),
    ],
)
def test_each_advice_has_its_command(
    accepted: Run, monkeypatch: pytest.MonkeyPatch, again: Again, words: tuple[str, ...]
) -> None:
    given = NextStep("FAIL", "a problem", "n1", "do this", again=again)
    monkeypatch.setattr(advice, "next_steps", lambda _verdict: (given,))
    (step,) = next_steps(gather(accepted, read_and_judge(accepted)[1]))
    assert step.action == "do this."
    assert bool(step.command) is bool(words)
    assert all(word in step.command for word in words)
    assert ("run_id=" in step.command) is (again in (Again.CONTINUE, Again.RESTORE))


def test_a_run_without_problems_has_no_next_step(tmp_path: Path) -> None:
    made = made_run(tmp_path)
    assert next_steps(gather(made, written_verdict(made))) == ()


def test_a_slow_node_is_named_with_its_step(tmp_path: Path) -> None:
    rates = {f"n{number:02d}": 100.0 + number % 3 for number in range(1, 13)}
    made = fleet_run(tmp_path, {**rates, "n07": 60.0})
    (step,) = next_steps(gather(made, written_verdict(made)))
    assert (step.word, step.nodes) == ("FAIL", "n07")
    assert "/n07" in step.command

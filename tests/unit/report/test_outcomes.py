"""What the page and the terminal say for each outcome of a run of eight nodes."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.cells import Tables, assert_report
from tests.fixtures.fleet import fleet_run
from tests.fixtures.kit import item
from tests.fixtures.pages import plain
from tests.fixtures.report_run import reported

from proofmark.judge.ending import ending
from proofmark.judge.verdict import WORDS, Verdict
from proofmark.runs.run import Run

SLOW, CUT = (50.0, 50.1, 50.2), "size 1\nrate 100\n"
"""The rates of a slow node, and an output without its end."""
RATES: dict[str, Sequence[float]] = {
    f"n{number}": (100.0 + more, 100.5 + more, 100.2 + more)
    for number, more in enumerate((1, 6, 3, 8, 2, 7, 4, 5), start=1)
}
BOUND = {"metric": "rate", "value": 90, "unit": "MB/s", "at_least": 1}
LIMIT = {"case": "fake", **BOUND}
RATE = item(**LIMIT, text="the rate", source="annex 1")
POWER = item(
    **{**LIMIT, "metric": "node_power", "unit": "W", "at_least": None, "at_most": 1},
    text="the power",
)
"""An item without a row in any output."""
FLOOR = {**BOUND, "kind": "floor", "source": "a data sheet"}


@dataclass(frozen=True)
class Outcome:
    """A run, and what must be said of it.

    Attributes:
        run: arguments of `fleet_run`.
        word: of the verdict.
        code: the exit code.
        sentence: the reason of the verdict.
        counts: of PASS, FAIL, INVALID and UNJUDGED figures.
        steps: verdict, nodes, begin of the advice and command of each next step.
        items: number, measured value and outcome of each item of the contract.
        limits: accepted figures, and the counts of each limit: judged, PASS, FAIL, UNJUDGED,
            INVALID.
        issues: verdict, node and begin of the reason of each figure in the list of issues.
        vendor: the nodes in rma.csv.
    """

    run: Mapping[str, Any]
    word: str
    code: int
    sentence: str
    counts: tuple[int, int, int, int]
    steps: tuple[tuple[str, str, str, str], ...] = ()
    items: tuple[tuple[str, str, str], ...] = ()
    limits: tuple[tuple[str, ...], ...] = ()
    issues: tuple[tuple[str, str, str], ...] = ()
    vendor: tuple[str, ...] = ()


def outputs(*cut: str) -> dict[str, list[str]]:
    """Return the outputs of `RATES`; those of the nodes `cut` have no end."""
    return {
        host: [CUT if host in cut else f"{CUT.replace('100', f'{rate}')}END\n" for rate in rates]
        for host, rates in RATES.items()
    }


SEND = ("Send rma.csv to the vendor. ", "proofmark rerun runs/r 0001-fake/")
READ = ("Read stdout and stderr of the step. ", "proofmark rerun runs/r 0001-fake/")
NO_END = "no line 'END'"
ADD = ("UNJUDGED", "–", "Add items to contract.yml", "ansible-playbook acceptance.yml ")
OTHER = ("UNJUDGED", "–", "Read the reason: another ", "ansible-playbook acceptance.yml ")
OUTCOMES = {
    "pass": Outcome(
        {"items": [RATE]},
        "PASS",
        0,
        "1 of 1 contract limits; ",
        (8, 0, 0, 0),
        items=(("1", "101.2 MB/s", "PASS"),),
        limits=(("at least 1 × 90 MB/s", "8", "8", "0", "0", "0"),),
    ),
    "fail": Outcome(
        {"items": [RATE], "rates": {**RATES, "n4": SLOW}},
        "FAIL",
        1,
        "0 of 1 contract limits; ",
        (7, 1, 0, 0),
        steps=(("FAIL", "n4", SEND[0], f"{SEND[1]}n4"),),
        items=(("1", "50.10 MB/s", "FAIL"),),
        limits=(("at least 1 × 90 MB/s", "8", "7", "1", "0", "0"),),
        issues=(("FAIL", "n4", "0.557 × the contract figure (90 MB/s) is not at least 1"),),
        vendor=("n4",),
    ),
    "invalid": Outcome(
        {"items": [RATE], "outputs": outputs("n4")},
        "INVALID",
        2,
        "0 of 1 contract limits; ",
        (7, 0, 1, 0),
        steps=(("INVALID", "n4", READ[0], f"{READ[1]}n4"),),
        items=(("1", "101.2 MB/s", "INVALID"),),
        limits=(("at least 1 × 90 MB/s", "7", "7", "0", "0", "1"),),
        issues=(("INVALID", "n4", NO_END),),
    ),
    "fail and invalid": Outcome(
        {
            "items": [RATE],
            "outputs": {**outputs("n4"), "n5": [f"{CUT.replace('100', '50')}END\n"] * 3},
        },
        "INVALID",
        2,
        "0 of 1 contract limits; ",
        (6, 1, 1, 0),
        steps=(
            ("FAIL", "n5", SEND[0], f"{SEND[1]}n5"),
            ("INVALID", "n4", READ[0], f"{READ[1]}n4"),
        ),
        items=(("1", "50 MB/s", "FAIL"),),
        limits=(("at least 1 × 90 MB/s", "7", "6", "1", "0", "1"),),
        issues=(("FAIL", "n5", "0.556 × the contract figure"), ("INVALID", "n4", NO_END)),
        vendor=("n5",),
    ),
    "an item without a figure": Outcome(
        {"items": [RATE, POWER]},
        "UNJUDGED",
        4,
        "1 of 2 contract limits; ",
        (8, 0, 0, 0),
        steps=(OTHER,),
        items=(("1", "101.2 MB/s", "PASS"), ("2", "not compared", "UNJUDGED")),
        limits=(
            ("at least 1 × 90 MB/s", "8", "8", "0", "0", "0"),
            ("at most 1 × 90 W", "0 no figure was judged", "0", "0", "0", "0"),
        ),
    ),
    "a floor": Outcome(
        {"case": {"references": [FLOOR]}},
        "NO FAULT FOUND",
        4,
        "1 of 1 floors; ",
        (0, 0, 0, 8),
        steps=(ADD,),
        limits=(("at least 1 × 90 MB/s", "8", "0", "0", "8", "0"),),
    ),
    "a missed floor": Outcome(
        {"case": {"references": [FLOOR]}, "rates": {**RATES, "n4": SLOW}},
        "FAIL",
        1,
        "0 of 1 floors; ",
        (0, 1, 0, 7),
        steps=(("FAIL", "n4", SEND[0], f"{SEND[1]}n4"),),
        limits=(("at least 1 × 90 MB/s", "8", "0", "1", "7", "0"),),
        issues=(("FAIL", "n4", "0.557 × "),),
        vendor=("n4",),
    ),
    "nothing to compare with": Outcome(
        {},
        "NO FAULT FOUND",
        4,
        "0 of 8 figures like their peers; no contract, ",
        (0, 0, 0, 8),
        steps=(ADD,),
    ),
}
Said = tuple[Outcome, Run, Verdict, str]


@pytest.fixture(scope="module", params=OUTCOMES)
def said(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Said:
    """An outcome; its run, verdict and page."""
    outcome = OUTCOMES[request.param]
    folder: Path = tmp_path_factory.mktemp("outcome")
    run = fleet_run(folder, **{"rates": RATES, "run_id": "r", "more": 2, **outcome.run})
    return outcome, run, *reported(run)


def test_each_form_has_the_same_word_and_the_same_counts(said: Said) -> None:
    outcome, _, verdict, page = said
    assert verdict.exit_code() == outcome.code
    assert tuple(verdict.counts[word] for word in WORDS) == outcome.counts
    head = plain(page).partition("</header>")[0]
    lines = ending(verdict, "report.html", "runs/r")
    assert f">{outcome.word}<" in head
    assert lines[0].startswith(f"{outcome.word}: ")
    assert outcome.sentence in head
    counts = [f"{count} {word}" for word, count in zip(WORDS, outcome.counts, strict=True)]
    assert ", ".join(counts) in lines[0]
    assert ", ".join(counts) in head


def test_each_failure_has_its_next_step(said: Said) -> None:
    outcome, _, verdict, page = said
    rows = Tables(page).of("What to do now")
    assert ('id="next"' in page) is bool(outcome.steps)
    assert [(row[0], row[2]) for row in rows] == [step[:2] for step in outcome.steps]
    for row, (*_, advice, command) in zip(rows, outcome.steps, strict=True):
        assert row[3].startswith(advice)
        assert row[4].startswith(command)
    for step in {ADD, OTHER}.intersection(outcome.steps):
        assert step[2] in ending(verdict, "report.html", "runs/r")[-1]


def test_each_item_of_the_contract_has_its_outcome(said: Said) -> None:
    outcome, _, _, page = said
    rows = Tables(page).of("Items of the contract")
    assert ('id="contract"' in page) is bool(outcome.items)
    assert [row[0].split()[0] for row in rows] == [number for number, _, _ in outcome.items]
    for row, (_, measured, word) in zip(rows, outcome.items, strict=True):
        assert row[3].startswith(measured)
        assert row[4] == word
        # The nodes of INVALID figures would be left out of the number.
        assert ("nodes meet it" in row[3]) is (word in ("PASS", "FAIL"))


def test_each_limit_has_its_bounds_and_its_counts(said: Said) -> None:
    outcome, _, _, page = said
    rows = Tables(page).of("Figures judged by each limit")
    assert tuple(row[1:7] for row in rows) == outcome.limits


def test_the_issues_are_the_figures_that_are_no_measurement_or_outside(said: Said) -> None:
    outcome, run, _, page = said
    rows = Tables(page).of("Figures that are FAIL or INVALID")
    assert [(row[0], row[2]) for row in rows] == [issue[:2] for issue in outcome.issues]
    for row, (_, node, reason) in zip(rows, outcome.issues, strict=True):
        assert row[4].startswith(reason)
        assert row[5].startswith(f"0001-fake/{node}")
        assert f'href="workdir/steps/0001-fake/{node}/execution-' in page
    listed = csv.DictReader(run.files.vendor_list.read_text(encoding="utf-8").splitlines())
    assert tuple(row["node"] for row in listed) == outcome.vendor
    assert ("None." in plain(page)) is (outcome.word in ("PASS", "NO FAULT FOUND"))
    assert ("Required, but not judged" in page) is (outcome.word == "UNJUDGED")


def test_each_figure_of_the_page_has_its_verdict(said: Said) -> None:
    """No figure is left out, whatever its verdict is."""
    outcome, _, _, page = said
    tables = [rows for caption, rows in Tables(page).rows.items() if "All figures" in caption]
    words = [row[0] for rows in tables for row in rows[1:]]
    assert tuple(words.count(word) for word in WORDS) == outcome.counts


def test_each_cell_is_what_the_json_has(said: Said) -> None:
    _, run, _, page = said
    stored = json.loads(run.files.verdict.read_text(encoding="utf-8"))
    assert assert_report(page, stored) >= len(stored["results"])


def test_the_nodes_that_were_compared_are_counted(said: Said) -> None:
    outcome, _, _, page = said
    invalid = outcome.counts[WORDS.index("INVALID")]
    compared = 8 - invalid
    if not outcome.vendor:
        assert f"None of {compared} nodes deviates" in page
    assert ("Measured and not compared: 1 node." in page) is bool(invalid and not outcome.vendor)

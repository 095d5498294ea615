"""The report counts the figures that each limit judged."""

from __future__ import annotations

from dataclasses import replace
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.fixtures.kit import item
from tests.fixtures.report_run import Outputs, made_run, reported

from proofmark.judge.baseline import KIND
from proofmark.judge.verdict import Verdict
from proofmark.report.run_data import gather
from proofmark.report.sections import figure_tables, main_figures
from proofmark.report.sections.main_figures import key_rows
from proofmark.runs.run import Run
from proofmark.site.contract_document import ContractItem

PINGPONG: dict[str, Any] = {
    "case": "imb-pingpong",
    "metric": "bandwidth",
    "source": "tender",
    "value": 1,
    "unit": "Mbytes/sec",
    "at_least": 1.0,
}


def limit(**changes: Any) -> ContractItem:
    return item(**{**PINGPONG, **changes})


LIMITS = [
    limit(where={"bytes": 1048576}),
    limit(where={"bytes": 1048576}, value=10**9),  # fails, and looks like the first
    limit(source="every size"),
    limit(source="of no row", where={"bytes": 12345}),
    limit(source="of another suite", case="stream", metric="triad"),
    limit(
        source="unmeasured",
        value=None,
        unit=None,
        against={"metric": "bandwidth", "where": {"bytes": 7}},
    ),
]


def cut(outputs: Outputs) -> None:
    """Make the output of PingPong INVALID."""
    name = next(name for name in outputs if name.endswith("imb-pingpong"))
    text = outputs[name]["stdout"]
    outputs[name] = {"stdout": text[: text.rindex("# All processes entering")]}


Counted = tuple[Run, Verdict, str]


@pytest.fixture(scope="module")
def valid(tmp_path_factory: pytest.TempPathFactory) -> Counted:
    """A run with valid figures for `LIMITS`, its verdict and its page."""
    run = made_run(tmp_path_factory.mktemp("valid"), limits=LIMITS)
    return run, *reported(run)


def table_of(run: Run, verdict: Verdict) -> dict[str, tuple[str, ...]]:
    """Return the numbers of each contract limit in the table of limits, by its source."""
    section = figure_tables.judged_section(gather(run, verdict))
    tables = [table for block in section.blocks for table in block.tables]
    (wanted,) = (table for table in tables if table.caption == "Figures judged by each limit")
    numbers: dict[str, tuple[str, ...]] = {}
    for row in wanted.rows:
        *cells, source = (item.cell for item in row.cells)
        assert row.head.label == "Limit"
        numbers.setdefault(source.text, tuple(cell.text for cell in cells))
    return numbers


def test_the_table_counts_the_figures_of_each_limit(valid: Counted) -> None:
    """The control: limits that judge figures."""
    numbers = table_of(*valid[:2])
    assert numbers["contract: tender"] == ("at least 1 × 1 Mbytes/sec", "1", "1", "0", "0", "0")
    judged = int(numbers["contract: every size"][1])
    assert judged > 20
    # A message of no bytes has the rate 0.
    assert numbers["contract: every size"][2:] == (str(judged - 1), "1", "0", "0")
    sources = [source.partition(":")[0] for source in numbers]
    assert sources[0] == "contract"
    assert "floor" in sources, "the references of the cases of the suite are in the table"


def test_like_limits_are_counted_one_by_one(valid: Counted) -> None:
    assert [dict(each.outcomes) for each in valid[1].limits[:2]] == [{"PASS": 1}, {"FAIL": 1}]


@pytest.mark.fault("limit-judges-nothing")
def test_a_limit_that_judged_no_figure_is_shown(valid: Counted) -> None:
    _, verdict, text = valid
    counts = verdict.limits
    no_row, other_suite, unmeasured = counts[3 : len(LIMITS)]
    assert (no_row.steps, no_row.judged) == (1, 0)
    assert (other_suite.steps, other_suite.judged) == (0, 0)
    assert (unmeasured.steps, unmeasured.judged) == (1, 0)
    assert unmeasured.outcomes["UNJUDGED"] > 20
    page = unescape(text)
    shown = '<td role="cell" data-label="Judged" class="word UNJUDGED"><span>0</span>'
    idle = [each for each in counts if each.steps and not each.judged]
    assert page.count(f"{shown}<small>no figure was judged</small>") == len(idle) >= 2
    assert page.count("not in this suite</small>") == 1


@pytest.mark.fault("limit-judges-nothing")
def test_invalid_figures_are_not_judged(tmp_path: Path) -> None:
    run = made_run(tmp_path, limits=LIMITS, change=cut)
    verdict, _ = reported(run)
    counts = verdict.limits
    every = counts[2]
    assert (every.judged, len(every.invalid) > 20) == (0, True)
    no_row = counts[3]
    assert (no_row.judged, len(no_row.invalid)) == (0, 0)
    of_every = table_of(run, verdict)["contract: every size"]
    assert of_every[1:] == ("0", "0", "0", "0", f"{len(every.invalid)}")
    rows = [each for each in key_rows(gather(run, verdict)) if each.figure.outcome == "INVALID"]
    assert {(each.key, each.middle, each.share) for each in rows} == {
        ("bandwidth", None, None),
        ("latency", None, None),
    }
    assert all(each.nodes > 1 and each.figure.record for each in rows)


def test_a_figure_that_the_accepted_runs_fail_is_in_the_table(valid: Counted) -> None:
    run, verdict, _ = valid
    answers = {
        figure: tuple(replace(each, kind=KIND) if each.outcome == "FAIL" else each for each in of)
        for figure, of in verdict.results.answers.items()
    }
    failed = sum(each.outcome == "FAIL" for of in answers.values() for each in of)
    changed = replace(verdict, results=replace(verdict.results, answers=answers))
    section = figure_tables.judged_section(gather(run, changed))
    tables = [table for block in section.blocks for table in block.tables]
    (wanted,) = (table for table in tables if table.caption == "Figures with a reference")
    sources = [row.cells[-1].cell.text for row in wanted.rows]
    assert sum(source.startswith(f"{KIND}: ") for source in sources) == failed > 0


def test_the_key_figure_of_latencies_is_the_least(valid: Counted) -> None:
    run, verdict, _ = valid
    sweeps: dict[tuple[str, str, str], list[float]] = {}
    for each in verdict.results:
        about, value = each.record, each.record.value
        if value is not None:
            sweeps.setdefault((about.case, about.metric, about.placement), []).append(value)
    latencies = [row.middle for row in key_rows(gather(run, verdict)) if row.key == "latency"]
    assert latencies and {*latencies} <= {min(of) for of in sweeps.values() if len(of) > 1}


def test_a_point_has_the_rank_of_the_first_kind_that_judges_it() -> None:
    first, second, third, *_ = main_figures._KINDS
    of_place: Any = ([(third, 1.0), (first, None)], [(first, 1.0)], [(second, 0.5), ("other", 1.0)])
    answers = {
        place: tuple(SimpleNamespace(kind=kind, ratio=ratio) for kind, ratio in of)
        for place, of in enumerate(of_place)
    }
    aggregates = SimpleNamespace(measurand=np.array([4, 5, 4]))
    results = SimpleNamespace(aggregates=aggregates, answers=answers)
    data: Any = SimpleNamespace(verdict=SimpleNamespace(results=results))
    ranks = [main_figures._rank(measurand, data) for measurand in (4, 5, 6)]
    assert ranks == [1, 0, len(main_figures._KINDS)]

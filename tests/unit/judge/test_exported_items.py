"""The figures of a baseline as items of a contract."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.fixtures.kit import FAKE

from proofmark.cases.case import Case
from proofmark.cases.suite import Benchmarks
from proofmark.common.errors import BadInput
from proofmark.judge.baseline_files import contract_items
from proofmark.site.accepted_baseline import COLUMNS, AcceptedRun, Baseline
from proofmark.site.contract_document import Contract, ContractItem


def items(*rows: dict[str, Any], label: str = "", **case: Any) -> list[dict[str, Any]]:
    """Return the items of a baseline with the figures `rows` of a case with the keys `case`."""
    run = AcceptedRun(
        run="first",
        accepted=datetime(2026, 1, 2, tzinfo=UTC),
        signer="ida@buyer",
        checksums="1",
        verdict="PASS",
    )
    baseline = Baseline(
        name="accepted",
        site="here",
        partition="local",
        origin="measured",
        label=label,
        runs=(run,),
        nodes=(),
        figures="1",
    )
    usual = {
        **{"run": "first", "case": "fake", "benchmark": "FAKE", "metric": "rate", "unit": "MB/s"},
        **{"origin": "measured", "mode": "current", "placement": "close", "program": "plain"},
        **{"parameters": '{"size": 1}', "node": "n-1", "kind": "", "value": 100.0},
    }
    figures = pl.DataFrame([{**usual, **row} for row in rows], schema=dict(COLUMNS))
    cases = {"fake": Case.model_validate({**FAKE, **case})}
    return contract_items(baseline, figures, Benchmarks(folder=Path(), cases=cases, suites={}))


def test_an_item_has_the_median_of_the_nodes_and_no_name_of_them() -> None:
    found = items({}, {"value": 102.0}, {"node": "n-2", "value": 90.0}, {"node": "n-3"})
    (item,) = found
    assert item == {
        **{"number": "accepted-1", "text": "fake: how fast", "case": "fake", "metric": "rate"},
        **{"source": "baseline accepted, accepted 2026-01-02", "where": {}},
        **{"value": 100.0, "unit": "MB/s", "at_least": pytest.approx(0.9)},
    }
    assert not any(name in json.dumps(item) for name in ("n-1", "n-2", "n-3"))
    Contract.model_validate({"title": "another", "parties": {"buyer": "us"}, "items": found})


@pytest.mark.parametrize(
    ("better", "unit", "limit"),
    [
        ("higher", "MB/s", {"at_least": pytest.approx(0.9)}),
        ("lower", "s", {"at_most": pytest.approx(1.1)}),
        ("lower", "us", {"at_most": pytest.approx(1.15)}),
    ],
)
def test_an_item_may_be_worse_by_a_material_change_and_at_most_by_15_percent(
    better: str, unit: str, limit: dict[str, float]
) -> None:
    """A latency may change by 20 % before it matters; a contract accepts less."""
    rate = {**FAKE["metrics"]["rate"], "better": better, "unit": unit}
    (item,) = items({"unit": unit}, label="the vendor", metrics={"rate": rate})
    bounds = {key: item[key] for key in ("at_least", "at_most") if key in item}
    assert bounds == limit
    assert item["source"] == "the vendor, baseline accepted, accepted 2026-01-02"


def test_where_has_what_differs_between_the_figures_of_a_metric() -> None:
    other = {"parameters": '{"size": 2}', "value": 50.0}
    found = items({}, other, {**other, "mode": "flat", "value": 60.0})
    wanted = [({"size": 1}, "current"), ({"size": 2}, "current"), ({"size": 2}, "flat")]
    assert [(each["where"], each["mode"]) for each in found] == wanted
    assert [each["value"] for each in found] == [100.0, 50.0, 60.0]


@pytest.mark.parametrize(
    ("traits", "where"),
    [
        ({"solve": "short"}, {"solve": "short"}),
        ({"solve": "steady"}, {}),
        ({"measured": "together"}, {"measured": "together"}),
        ({"measured": "alone"}, {}),
    ],
)
def test_an_item_selects_the_figure_that_it_is_made_from(
    traits: dict[str, str], where: dict[str, str]
) -> None:
    """A quick HPL has a short solve. An item without ``solve`` selects only steady ones."""
    rate = {**FAKE["metrics"]["rate"], "judged_with": {"solve": "steady"}}
    case: dict[str, Any] = {"labels": {"solve": "{'steady'}"}, "metrics": {"rate": rate}}
    (item,) = items({"parameters": json.dumps({"size": 1, **traits})}, **case)
    assert item["where"] == where
    reference = ContractItem.model_validate(item)
    assert reference.accepts({"size": 1, **traits}, {"solve": "steady"})


@pytest.mark.parametrize(
    ("case", "row"),
    [
        ({}, {"case": "gone"}),
        ({}, {"metric": "gone"}),
        ({"writes": {"bytes": 1000}}, {}),
        ({}, {"parameters": '{"distance": "leaf"}'}),
        ({}, {"parameters": '{"rail": "mlx5_0:1"}'}),
    ],
)
def test_a_figure_of_a_part_of_the_site_is_no_item(
    case: dict[str, Any], row: dict[str, Any]
) -> None:
    with pytest.raises(BadInput, match="none for another site"):
        items(row, **case)
    assert len(items({"node": "other"})) == 1

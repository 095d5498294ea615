"""The head of the report: each fact about a run, with the numbers at which its words change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.fixtures.finished import written_verdict
from tests.fixtures.fleet import fleet_run

from proofmark import __version__
from proofmark.judge.coverage import Degraded
from proofmark.report.run_data import RunData, gather
from proofmark.report.summary import summary, when
from proofmark.runs.nodes import Node

RATES = {f"n{number:02}": (100.0 + number, 101.0 + number) for number in range(12)}
KIND = "Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz, 2 sockets, 40 cores, 186.9 GiB"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> RunData:
    """The contents of a run with one bad node."""
    run = fleet_run(tmp_path_factory.mktemp("head"), RATES | {"n05": (50.0, 50.5)}, more=1)
    return gather(run, written_verdict(run), datetime(2031, 2, 3, 4, 5, 6, tzinfo=UTC))


def about(data: RunData) -> dict[str, str]:
    return dict(summary(data).about)


def with_model(node: Node, model: str, virtual: str | None = None) -> Node:
    """Return a node with another processor."""
    jobs = []
    for job in node.jobs:
        facts = job.provenance.facts.model_copy(update={"cpu_model": model, "virtual": virtual})
        provenance = job.provenance.model_copy(update={"facts": facts})
        jobs.append(job.model_copy(update={"provenance": provenance}))
    return node.model_copy(update={"jobs": tuple(jobs)})


def test_the_facts_of_a_run_stand_in_their_order(data: RunData) -> None:
    assert about(data) == {
        "Machine": f"12 × {KIND}",
        "Site": "here, partition local, 12 nodes",
        "Suite": "quick – Quick",
        "Coverage": "12 of 12 nodes, 24 of 24 steps measured, no figure measured twice",
        "Bad nodes": "n05 (1 of 12, the worst first)",
        "Measured": "no step has recorded its time",
        "Origin": "measured on the machine itself",
        "Run": "fleet",
        "Report": f"written 2031-02-03 04:05 UTC by Proofmark {__version__}",
    }


def test_three_kinds_of_nodes_are_named_the_most_frequent_first(data: RunData) -> None:
    def machines(*models: str) -> str:
        nodes = [*data.nodes]
        for place, model in enumerate(models):
            nodes[place] = with_model(nodes[place], model)
        return about(replace(data, nodes=nodes))["Machine"].replace(KIND.partition(",")[2], "")

    name = KIND.partition(",")[0]
    assert machines("b", "b", "c") == f"9 × {name},; 2 × b,; 1 × c,"
    assert machines("b", "b", "c", "d") == f"8 × {name},; 2 × b,; 1 × c,; 1 more kind of node"
    assert machines(*"bbcde").endswith("; 1 × c,; 2 more kinds of node")


def test_a_single_node_has_no_number(data: RunData) -> None:
    (node, *_) = data.nodes
    assert about(replace(data, nodes=[node]))["Machine"] == KIND
    virtual = with_model(node, "b", "kvm")
    rest = KIND.partition(",")[2]
    assert about(replace(data, nodes=[virtual]))["Machine"] == f"b,{rest}, virtual (kvm)"
    assert about(replace(data, nodes=[]))["Machine"] == "unknown: no provenance was collected"


def test_a_node_whose_jobs_left_no_report_is_not_on_the_page(data: RunData) -> None:
    first, second, *_ = data.nodes
    given = {each.host: each for each in (first.model_copy(update={"jobs": ()}), second)}
    assert gather(data.run, data.verdict, None, given).nodes == [second]


@pytest.mark.parametrize(
    ("nodes", "shown"),
    [
        (0, "none of 12"),
        (12, f"{', '.join(['n05'] * 12)} (12 of 12, the worst first)"),
        (13, f"{', '.join(['n05'] * 12)} and 1 more (13 of 12, the worst first)"),
    ],
)
def test_twelve_bad_nodes_are_named(data: RunData, nodes: int, shown: str) -> None:
    (bad,) = data.verdict.bad.nodes
    assert not bad.retest
    changed = replace(data.verdict.bad, nodes=(bad,) * nodes)
    assert about(replace(data, verdict=replace(data.verdict, bad=changed)))["Bad nodes"] == shown
    one = replace(data.verdict, bad=replace(changed, measured=1))
    assert "Bad nodes" not in about(replace(data, verdict=one))
    two = replace(data.verdict, bad=replace(changed, measured=2))
    assert "Bad nodes" in about(replace(data, verdict=two))


@pytest.mark.parametrize(
    ("missing", "shown"),
    [((), "10001 of 12 nodes"), (("n12", "n13"), "10001 of 12 nodes; without n[12-13]")],
)
def test_a_run_that_lacks_nodes_names_them(
    data: RunData, missing: Sequence[str], shown: str
) -> None:
    lacking = replace(data.verdict, degraded=Degraded(10_001, 12, tuple(missing)))
    found = about(replace(data, verdict=lacking))["Degraded"]
    assert found.replace("\u202f", "") == shown
    assert [*about(replace(data, verdict=lacking))][3:6] == ["Coverage", "Degraded", "Bad nodes"]


def test_the_times_of_a_run_are_in_words(data: RunData) -> None:
    start = datetime(2026, 11, 21, 23, 0, tzinfo=UTC)
    later = replace(data, started=start, ended=start + timedelta(hours=2))
    assert when(later) == "2026-11-21 23:00 UTC to 2026-11-22 01:00 UTC (2 h 00 min)"
    unknown = "no step has recorded its time"
    assert when(replace(later, started=None)) == when(replace(later, ended=None)) == unknown


def test_figures_that_were_measured_twice_are_counted(data: RunData) -> None:
    coverage = replace(data.verdict.coverage, duplicate=1)
    twice = about(replace(data, verdict=replace(data.verdict, coverage=coverage)))["Coverage"]
    assert twice == "12 of 12 nodes, 24 of 24 steps measured, 1 figure measured twice"

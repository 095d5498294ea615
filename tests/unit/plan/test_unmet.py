"""Conditions of cases in words."""

from __future__ import annotations

import re

import pytest
from tests.fixtures.shipped import shipped_benchmarks
from tests.folders import ROOT

from proofmark.cli.main import main
from proofmark.plan.suite_steps import unmet

SYMBOLS = {
    "nodes": 1,
    "cores": 1,
    "domain_cores": [1],
    "domain_threads": 1,
    "numa": 1,
    "provision_from": "system",
    "threaded_blas": 0,
    "memory_test": 0,
    "layout_axes": [],
    "sockets": 1,
    "memory_bytes": 1,
    "stream_array_size": 1,
    "node_parts": [],
    "rail_count": 0,
    "storage_targets": [],
}


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("{nodes >= 2}", "the number of nodes is 1, and at least 2 is needed"),
        (
            "{nodes >= 2 and provision_from != 'system'}",
            "the number of nodes is 1, and at least 2 is needed; "
            "partition.provision_from is system, and another value is needed",
        ),
        (
            "{nodes >= 1 and provision_from == 'twin'}",
            "partition.provision_from is system, and twin is needed",
        ),
        ("{memory_test == 1}", "facts.memory_test is 0, and 1 is needed"),
        (
            "{'stripe_count' in layout_axes}",
            "the layout that the file system of scratch can set has no stripe_count",
        ),
        (
            "{storage_targets != []}",
            "partition.scratch.storage_targets is empty, and another value is needed",
        ),
        (
            "{cores * 2 > 4 or nodes > 1}",
            "the case is not for this: the number of cores is 1, the number of nodes is 1",
        ),
    ],
)
def test_the_parts_that_do_not_hold(condition: str, words: str) -> None:
    assert unmet(condition, SYMBOLS, "case.yml") == words


def test_each_condition_of_the_kit_has_words() -> None:
    uses = [
        use
        for case in shipped_benchmarks().cases.values()
        for of_suite in case.suites.values()
        for use in of_suite
        if use.when
    ]
    assert len(uses) > 20
    for use in uses:
        words = unmet(use.when or "", SYMBOLS, "case.yml")
        assert not re.search(r"[{}]|==|>=|!=|\bin\b \w+_axes", words), words


def test_validate_prints_no_expression(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "-i", f"{ROOT / 'inventory/local'}"]) == 0
    printed = capsys.readouterr().out
    assert "not here: local: links: imb-congestion: the number of nodes is 1" in printed
    assert not re.search(r"[{}]", printed)

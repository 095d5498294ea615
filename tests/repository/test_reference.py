"""The reference runs have the same records and verdicts as when they were measured."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest
from tests.reference import ENDING, archives, compare, count, differences, separate


@pytest.mark.parametrize("archive", archives(), ids=lambda path: path.name.removesuffix(ENDING))
def test_no_value_of_a_reference_run_differs(archive: Path) -> None:
    result = compare(archive)
    assert result.values > 100
    assert result.differences == ()


def test_the_reference_runs_contain_every_verdict() -> None:
    """A comparison of runs with only PASS would compare little."""
    assert archives()
    words: set[str] = set()
    for archive in archives():
        words |= verdicts(archive)
    assert words == {"PASS", "FAIL", "INVALID", "UNJUDGED"}


def verdicts(archive: Path) -> set[str]:
    """Return the words of the verdicts in the run of `archive`."""
    with tarfile.open(archive) as tar:
        name = next(name for name in tar.getnames() if name.endswith("/verdict.json"))
        file = tar.extractfile(name)
        assert file
        document = json.load(file)
    return {result["verdict"] for result in document["results"]}


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ({"a": 1.0}, {"a": 1.1}, "/a: 1.0 before, 1.1 after"),
        ({"a": 1}, {"a": True}, "/a: 1 before, True after"),
        ({"a": None}, {"a": 0.0}, "/a: None before, 0.0 after"),
        ({"a": "PASS"}, {"a": "FAIL"}, "/a: 'PASS' before, 'FAIL' after"),
        ({"a": 1}, {}, "/a: gone"),
        ({}, {"a": 1}, "/a: new"),
        ([1, 2], [1], ": 2 entries before, 1 after"),
        ({"a": [1, 2]}, {"a": [1, 3]}, "/a/1: 2 before, 3 after"),
    ],
)
def test_a_value_that_differs_is_named(before: object, after: object, sentence: str) -> None:
    assert list(differences(before, after)) == [sentence]
    assert list(differences(before, before)) == []


def test_only_differences_by_a_decision_are_expected() -> None:
    given = [
        "/verdict.json/results/3/confidence: new",
        "/verdict.json/results/3/interval/0: 1.0 before, 0.9 after",
        "/verdict.json/results/3/interval: None before, [1.0, 2.0] after",
        "/verdict.json/results/3/value: 1.0 before, 2.0 after",
    ]
    unexpected, expected = separate(given)
    assert unexpected == given[2:]
    assert sum(expected.values()) == 2


def test_another_order_of_a_sum_is_no_difference() -> None:
    assert list(differences([0.1 + 0.2 + 0.3], [0.3 + 0.2 + 0.1])) == []
    assert list(differences([float("nan")], [float("nan")])) == []
    assert count({"a": [1, 2], "b": {"c": None}}) == 3

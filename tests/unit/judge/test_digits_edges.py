"""Tests the comparison of the digits of like nodes with boundary values."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fixtures.finished import written_verdict
from tests.unit.judge.test_digits import HOSTS, WRONG, hpl_run, outputs

from proofmark.common.message import Message
from proofmark.judge.fleet.digits import Digits, digits_of
from proofmark.judge.references.judgement import Judgement
from proofmark.judge.verdict import Verdict


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], Digits(0, None, 0, 0, 0, False)),
        ([(1, 2)], Digits(1, None, 0, 1, 0, False)),
        ([(1, 1), (2, 2)], Digits(2, None, 0, 2, 2, False)),
        ([(1,), (2,), (1,), (2,)], Digits(4, None, 0, 0, 0, False)),
        ([(1, 1), (1, 1), (2, 3), (2, 3)], Digits(4, None, 0, 4, 2, False)),
        ([(1, 1), (1, 1), (1, 1), (2, 3)], Digits(4, 1, 3, 4, 3, True)),
        ([(1, 1), (1,), (1,), (2, 3)], Digits(4, 1, 3, 2, 1, False)),
        ([(2, 2), (1,), (1,)], Digits(3, 1, 2, 1, 1, False)),
        ([(2, 2), (3,), (1,), (1,), (1,), (1, 1)], Digits(6, 1, 4, 2, 2, True)),
        ([(0.0, 0.0), (0.0,)], Digits(2, 0.0, 2, 1, 1, True)),
    ],
)
def test_the_counts(values: list[tuple[float, ...]], expected: Digits) -> None:
    assert digits_of(dict(enumerate(values))) == expected


def answers(verdict: Verdict) -> dict[str, list[Judgement]]:
    """Return the distinct judgements of the residuals by node."""
    found: dict[str, list[Judgement]] = {}
    for result in verdict.about(lambda record: record.metric == "residual"):
        of_node = found.setdefault(result.record.node, [])
        of_node += [each for each in result.references if each not in of_node]
    return found


SOURCE = "5 like nodes"
LIKE = "like its peers: the digits of"


def test_digits_are_compared_without_a_ratio_or_a_limit(tmp_path: Path) -> None:
    found = answers(written_verdict(hpl_run(tmp_path, outputs(2, {}))))
    assert found.keys() == set(HOSTS)
    for judgements in found.values():
        for each in judgements:
            reason = Message("digits-alike", agreeing=5, nodes=5)
            assert each == Judgement(
                "peers", SOURCE, "UNJUDGED", reason, each.value, None, None, None
            )
            assert each.value is not None


def test_wrong_digits_are_listed_once_and_counted(tmp_path: Path) -> None:
    other = "1.73580231e-03"
    run = hpl_run(tmp_path, outputs(4, {"n001": {0: WRONG, 1: WRONG, 3: other}}))
    found = answers(written_verdict(run))
    (wrong,) = [each for each in found["n001"] if each.outcome == "FAIL"]
    reason = Message(
        "digits-wrong",
        **{"runs": 3, "executions": 4, "agreeing": 4, "nodes": 5, "constant": 4, "repeated": 5},
        values="0.00173580131, 0.00173580231",
        digits="0.00173580031",
    )
    assert wrong == Judgement(
        "peers",
        SOURCE,
        "FAIL",
        reason,
        0.00173580031,
        None,
        None,
        None,
    )
    like = {each.reason for node in HOSTS if node != "n001" for each in found[node]}
    assert like == {f"{LIKE} 5 of {SOURCE}", f"{LIKE} 4 of {SOURCE}"}

"""Silent data corruption: a node whose HPL computes other digits than its peers is named."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.finished import written_verdict
from tests.fixtures.fleet import fleet_run
from tests.fixtures.report_run import page_of
from tests.folders import BENCHMARKS

from proofmark.common.message import Message
from proofmark.judge.fleet.fleet import Digits, digits_of
from proofmark.judge.references.judgement import PEERS, Judgement
from proofmark.judge.verdict import Verdict
from proofmark.runs.run import Run

REAL = (BENCHMARKS / "samples/hpl-2.3_N2048-6144_NB128-192_P1Q2.txt").read_text(encoding="utf-8")
RIGHT, WRONG = "1.73580031e-03", "1.73580131e-03"
HOSTS = tuple(f"n{number:03d}" for number in range(5))


def hpl_run(folder: Path, outputs: Mapping[str, Sequence[str]]) -> Run:
    """Write a run in which each host executed HPL; the outputs are real ones."""
    hpl = yaml.safe_load((BENCHMARKS / "hpl.yml").read_text(encoding="utf-8"))
    metrics: dict[str, Any] = hpl["metrics"]
    for metric in ("rmax", "time"):
        metrics[metric]["bound"] = "universal"
    case = {"read": hpl["read"], "metrics": metrics}
    return fleet_run(folder, dict.fromkeys(outputs, 1.0), case=case, outputs=outputs)


def outputs(repeats: int, changed: Mapping[str, Mapping[int, str]]) -> dict[str, list[str]]:
    """Return the real output for each repeat of each host; `changed` has other residuals."""
    assert REAL.count(RIGHT) == 1
    return {
        host: [
            _rates(number).replace(RIGHT, changed.get(host, {}).get(repeat, RIGHT))
            for repeat in range(repeats)
        ]
        for number, host in enumerate(HOSTS)
    }


def _rates(number: int) -> str:
    """Return the output with rates that differ from those of other nodes in the last digit."""
    return re.sub(r"(?m)(?<=\.\d{3})\d(?=e[+-]\d\d$)", f"{number}", REAL)


def residuals(verdict: Verdict) -> dict[str, set[str]]:
    """Return the verdicts of the residuals by node."""
    words: dict[str, set[str]] = {}
    for result in verdict.about(lambda record: record.metric == "residual"):
        words.setdefault(result.record.node, set()).add(result.verdict)
    return words


@pytest.mark.fault("hpl-digit-changed")
@pytest.mark.parametrize("where", [{0: WRONG, 1: WRONG, 2: WRONG}, {1: WRONG}])
def test_a_node_with_another_digit_is_named(tmp_path: Path, where: dict[int, str]) -> None:
    """One digit of a real output of one node, in all repeats or in one."""
    run = hpl_run(tmp_path, outputs(3, {"n003": where}))
    verdict = written_verdict(run)
    assert [node.host for node in verdict.bad.nodes] == ["n003"]
    assert residuals(verdict)["n003"] == {"FAIL", "UNJUDGED"}
    assert verdict.exit_code() == 1
    (node,) = verdict.bad.nodes
    assert not node.retest
    (wrong,) = node.digits
    assert f"in {len(where)} of 3 executions: 0.00173580131" in wrong.reason
    written = json.loads(run.files.verdict.read_text())["fleet"]["nodes"]
    assert written[0]["digits"][0]["why"] == wrong.reason
    (row,) = csv.DictReader(run.files.vendor_list.read_text().splitlines())
    assert row["node"] == "n003"
    assert "wrong digits" in row["evidence"]
    page = page_of(run, verdict)
    assert "wrong computation" in page
    assert "0.00173580131" in page


@pytest.mark.parametrize("changed", [{}, {"n003": {1: WRONG}}])
def test_the_headline_counts_the_rows_of_the_table(
    tmp_path: Path, changed: dict[str, dict[int, str]]
) -> None:
    """The table has a row for each judgement; words and ends of their codes name the same."""
    verdict = written_verdict(hpl_run(tmp_path, outputs(3, changed)))
    rows = [each for result in verdict.results for each in result.references]
    peers = [each for each in rows if each.kind == PEERS]
    alike = sum(each.reason.main_code.endswith("-alike") for each in peers)
    failed = sum(each.outcome == "FAIL" for each in peers)
    assert failed == len(changed)
    counted = verdict.kinds[PEERS]
    assert (counted.total, counted.met, counted.failed) == (len(peers), alike, failed)


def test_nodes_with_the_same_digits_are_not_named(tmp_path: Path) -> None:
    verdict = written_verdict(hpl_run(tmp_path, outputs(3, {})))
    assert not verdict.bad.nodes
    assert residuals(verdict) == {host: {"UNJUDGED"} for host in HOSTS}
    result = next(verdict.about(lambda record: record.metric == "residual"))
    assert result.reason == "like its peers: the digits of 5 of 5 like nodes"


@pytest.mark.fault("hpl-not-reproducible")
@pytest.mark.parametrize("kind", ["repeats differ", "one repeat", "no majority"])
def test_no_node_is_named_without_a_proof(tmp_path: Path, kind: str) -> None:
    if kind == "repeats differ":  # most nodes agree in no two executions
        ends = {host: {0: f"1.7358{number}031e-03"} for number, host in enumerate(HOSTS)}
        texts = outputs(2, ends)
    elif kind == "one repeat":
        texts = outputs(1, {"n003": {0: WRONG}})
    else:
        halves = {0: WRONG, 1: WRONG}
        third = {0: "1.73580099e-03", 1: "1.73580099e-03"}
        texts = outputs(2, {"n000": halves, "n001": halves, "n002": third})
    verdict = written_verdict(hpl_run(tmp_path, texts))
    assert not verdict.bad.nodes
    assert {word for words in residuals(verdict).values() for word in words} == {"UNJUDGED"}
    reasons = {
        result.reason for result in verdict.about(lambda record: record.metric == "residual")
    }
    wanted = {
        "repeats differ": "no digits are those of most",
        "one repeat": "does not prove that the program is reproducible; 4 of 5 like nodes agree",
        "no majority": "no digits are those of most",
    }
    assert any(wanted[kind] in reason for reason in reasons), reasons


def test_a_residual_is_not_compared_as_a_speed(tmp_path: Path) -> None:
    verdict = written_verdict(hpl_run(tmp_path, outputs(2, {})))
    assert {figure.record.metric for figure in verdict.fleet.figures} == {"rmax", "time"}


@given(
    st.lists(st.lists(st.sampled_from([1.0, 2.0]), min_size=1, max_size=3), min_size=2, max_size=9)
)
def test_the_shared_digits_are_those_of_a_majority(values: list[list[float]]) -> None:
    digits = digits_of({number: tuple(each) for number, each in enumerate(values)})
    alike = [each for each in values if len({*each}) == 1]
    holders = [each for each in alike if each[0] == digits.value]
    assert digits.agreeing == len(holders)
    assert (digits.value is None) == all(
        2 * sum(each[0] == value for each in alike) <= len(values) for value in (1.0, 2.0)
    )
    if digits.proven:
        assert any(len(each) > 1 for each in holders)


@pytest.mark.parametrize(
    ("values", "proven"),
    [
        ([(1, 1), (1,), (1,), (2,)], True),
        ([(1,), (1,), (1,), (2,)], False),
        ([(1, 1), (1, 1), (1, 1), (2, 1)], True),
        ([(1, 2), (1,), (1,), (1,)], False),
        ([(1, 1), (1,), (1,), (1, 2)], False),
        ([(2, 2), (1,), (1,), (1,)], False),
    ],
)
def test_most_repeated_nodes_must_repeat_their_digits(
    values: list[tuple[float, ...]], proven: bool
) -> None:
    assert digits_of(dict(enumerate(values))).proven is proven


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

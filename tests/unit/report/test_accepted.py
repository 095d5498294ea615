"""The accepted figures of a limit: every table shows the bounds that judged."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures import report_run
from tests.fixtures.finished import written_verdict
from tests.fixtures.kit import known_case, local_site
from tests.fixtures.probes import node_facts
from tests.fixtures.report_run import made_run
from tests.unit.judge.test_verdict import record, reference

from proofmark.cases.reference import Reference
from proofmark.cases.suite import Benchmarks
from proofmark.judge.evidence import Evidence
from proofmark.judge.judging import judge
from proofmark.judge.limit_outcomes import LimitOutcome
from proofmark.judge.references import derived, figure_comparison
from proofmark.judge.references.derived import Build
from proofmark.judge.verdict import Verdict
from proofmark.packages.papers.series import samples_of
from proofmark.plan.plan import Plan
from proofmark.records.columns import Records
from proofmark.report.sections.figure_tables import accepted_of
from proofmark.report.words import accepted_text, limit_text
from proofmark.site.contract_document import ContractItem
from proofmark.site.partition import JudgeExpected

TYPICAL = Reference(metric="rate", kind="expected", source="s", rule="typical_hpl")


known = known_case(sweep={"size": [1, 2, 3, 4]})


def judged(
    known: tuple[Plan, Benchmarks],
    wanted: Reference,
    *nodes: tuple[str, float],
    tolerance: float | None = None,
    **evidence: Any,
) -> Verdict:
    """Judge one figure of each node by one reference of the case, or by one limit."""
    plan, benchmarks = known
    limits = [wanted] if isinstance(wanted, ContractItem) else []
    case = benchmarks.cases["fake"].model_copy(update={"references": [] if limits else [wanted]})
    changed = benchmarks.model_copy(update={"cases": {"fake": case}})
    unit = "GFlop/s" if wanted.rule else "MB/s"
    records = [
        record(node=node, value=value, unit=unit, parameters={"size": 1, "threads": 40})
        for node, value in nodes
    ]
    expected = JudgeExpected(tolerance=tolerance)
    return judge(
        Evidence(
            "r", plan, Records.of(records), changed, limits, judge_expected=expected, **evidence
        )
    )


def only(verdict: Verdict) -> LimitOutcome:
    (limit,) = verdict.limits
    return limit


def test_a_limit_shows_the_tolerance_of_the_site(known: tuple[Plan, Benchmarks]) -> None:
    """It said 0.9, and 0.7 judged."""
    wanted = reference(value=1827.8, unit="MB/s")
    of_source = judged(known, wanted, ("n1", 1400))
    assert of_source.counts["UNJUDGED"] == 1, "one repeat does not show the miss"
    assert accepted_of(only(of_source)) == "at least 0.9 × 1828 MB/s"
    of_site = judged(known, wanted, ("n1", 1400), tolerance=0.3)
    assert of_site.counts["PASS"] == 1
    assert accepted_of(only(of_site)) == "at least 0.7 × 1828 MB/s"
    both = judged(known, reference(at_most=1.1), ("n1", 100), tolerance=0.3)
    assert accepted_of(only(both)) == "at least 0.7 × 100, at most 1.3 × 100"


def test_a_limit_without_a_figure_shows_what_would_judge(known: tuple[Plan, Benchmarks]) -> None:
    verdict = judged(known, reference(where={"size": 2}), ("n1", 100), tolerance=0.25)
    assert only(verdict).judged == 0
    assert accepted_of(only(verdict)) == "at least 0.75 × 100"
    unmeasured = judged(known, TYPICAL.model_copy(update={"where": {"size": 2}}), ("n1", 100))
    assert accepted_of(only(unmeasured)) == "at least (1 - tolerance) × typical_hpl"


@pytest.mark.parametrize("tolerance", [None, 0.3])
def test_a_typical_value_shows_the_tolerances_that_judged(
    known: tuple[Plan, Benchmarks], tolerance: float | None
) -> None:
    """The cell was empty for each typical value."""
    nodes = {"n1": node_facts("skl-2x6148", virtual=None)}
    verdict = judged(
        known,
        TYPICAL,
        ("n1", 2000.0),
        tolerance=tolerance,
        facts=nodes,
        builds={"fake": Build("mkl")},
    )
    (judgement,) = verdict.results[0].references
    assert judgement.evaluated
    shown = accepted_of(only(verdict))
    assert shown == accepted_text(judgement.bounds, "typical_hpl")
    assert shown.startswith("at least 0.7 ×" if tolerance else "at least 0.")


def test_two_processors_can_have_two_tolerances(
    known: tuple[Plan, Benchmarks], monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = {name: node_facts("skl-2x6148", virtual=None) for name in ("n1", "n2")}
    nodes["n2"] = nodes["n2"].model_copy(update={"hostname": "n2", "stepping": 7})

    def value_of(rule: Any, setting: derived.Setting, parameters: Any) -> derived.TypicalValue:
        tolerance = 0.2 if setting.nodes[0].stepping == 7 else 0.1
        return derived.TypicalValue(1000.0, "a guide", tolerance, ())

    monkeypatch.setattr(figure_comparison, "value_of_rule", value_of)
    verdict = judged(known, TYPICAL, ("n1", 950.0), ("n2", 850.0), facts=nodes)
    assert verdict.counts["PASS"] == 2
    assert accepted_of(only(verdict)) == "at least 0.9 × typical_hpl; at least 0.8 × typical_hpl"


def test_a_reason_names_its_own_node_of_one_kind(known: tuple[Plan, Benchmarks]) -> None:
    """The inventory can have other names than the nodes themselves."""
    nodes = {f"n{n}": node_facts("live-kvm-zen3", hostname=f"rack{n}") for n in (1, 2)}
    wanted = Reference(metric="rate", kind="floor", source="s", rule="rpeak_nominal", at_least=0.5)
    verdict = judged(known, wanted, ("n1", 950.0), ("n2", 950.0), facts=nodes)
    named = {}
    for result in verdict.results:
        (reason,) = (each.reason for each in result.references if each.kind == "floor")
        named[result.record.node] = {each.fields.get("node") for each in reason.nested()} - {None}
    assert named == {"n1": {"rack1"}, "n2": {"rack2"}}


def test_another_figure_is_named_as_it_is_compared(known: tuple[Plan, Benchmarks]) -> None:
    against = {"metric": "rate", "where": {"size": 2}, "times": "{threads}"}
    wanted = reference(value=None, against=against, kind="floor")
    shown = "at least 0.9 × fake rate at size 2 × threads"
    assert accepted_of(only(judged(known, wanted, ("n1", 100)))) == shown


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"value": 320, "unit": "GB/s", "at_least": 0.9}, "≥ 288 GB/s"),
        ({"value": 320, "unit": "GB/s", "at_least": 0.9, "at_most": 2}, "≥ 288 GB/s, ≤ 640 GB/s"),
        ({"value": 320, "at_most": 0.5}, "≤ 160"),
        ({"rule": "rpeak_nominal", "at_least": 0.6}, "at least 0.6 × rpeak_nominal"),
        (
            {"against": {"metric": "copy", "case": "stream", "times": 2}, "at_least": 0.6},
            "at least 0.6 × stream copy × 2",
        ),
    ],
)
def test_an_item_of_a_contract_has_the_same_text(changes: dict[str, Any], text: str) -> None:
    item = {"number": "1", "text": "t", "case": "fake", "metric": "rate"}
    assert limit_text(ContractItem.model_validate({**item, **changes})) == text


def test_a_plot_marks_both_bounds(known: tuple[Plan, Benchmarks]) -> None:
    """Of two bounds only the least was drawn."""
    (sample,) = samples_of(judged(known, reference(at_most=1.1), ("n1", 100)).results)
    assert [kind for kind, _ in sample.limits] == ["expected", "expected"]
    assert [bound for _, bound in sample.limits] == pytest.approx([90, 110])


@pytest.mark.parametrize("expected", [JudgeExpected(), JudgeExpected(tolerance=0.3)])
def test_the_tables_of_a_page_show_the_same_bounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expected: JudgeExpected
) -> None:
    monkeypatch.setattr(report_run, "local_site", partial(local_site, expected=expected))
    verdict = written_verdict(made_run(tmp_path))
    shown = {each.of: accepted_of(each) for each in verdict.limits}
    assert all(shown.values())
    ratios = {text.partition(" ×")[0] for text in shown.values()}
    for result in verdict.results:
        for judgement in result.references:
            if judgement.kind in ("floor", "expected") and judgement.evaluated:
                assert accepted_text(judgement.bounds).partition(",")[0] in ratios

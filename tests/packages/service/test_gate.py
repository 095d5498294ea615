"""The decisions of a gate: which nodes of a run return to service."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.fleet import fleet_run

from proofmark.cases.suite import Required
from proofmark.judge.confidence import too_noisy
from proofmark.judge.judging import judge_run
from proofmark.packages.service.gate_decisions import (
    ANY,
    LONGEST,
    NOT_JUDGED,
    NOT_MEASURED,
    TOO_NOISY,
    Decision,
    Failure,
    GateEvidence,
    NodeFigure,
    decide,
    evidence_of,
    vendor_entry,
)
from proofmark.runs.run import Run

NODES = ["n1", "n2", "n3", "n4"]
nodes = st.sampled_from(NODES)
failures = st.builds(
    Failure, st.lists(nodes, min_size=1, unique=True).map(tuple), st.text(min_size=1, max_size=400)
)
A, RMAX, RATE = NodeFigure("a", "x"), NodeFigure("hpl", "rmax"), NodeFigure("osu-bw", "rate")
metrics = st.dictionaries(st.sampled_from([A, RMAX]), st.booleans(), min_size=1)
evidences = st.builds(
    GateEvidence,
    failed=st.dictionaries(nodes, st.text(min_size=1)),
    faulty=st.frozensets(nodes),
    failures=st.lists(failures, max_size=4),
    judged=st.dictionaries(nodes, metrics),
)


@given(evidences, st.booleans())
def test_each_node_gets_one_decision_and_only_a_measured_node_is_resumed(
    evidence: GateEvidence, accept: bool
) -> None:
    decisions = decide(evidence, NODES, accept_unjudged=accept)
    assert list(decisions) == NODES
    for node, decision in decisions.items():
        assert len(decision.reason) <= LONGEST
        assert decision.reason.isprintable()
        assert (decision.standing == "accepted") == (decision.action == "resume")
        if decision.action == "resume":
            assert node in evidence.judged
            assert node not in evidence.failed
            assert not decision.fault
            assert not any(each.nodes == (node,) for each in evidence.failures)
            assert accept or all(evidence.judged[node].values())


@given(evidences)
def test_a_failure_of_several_nodes_keeps_at_least_one_of_them(evidence: GateEvidence) -> None:
    decisions = decide(evidence, NODES, accept_unjudged=True)
    for failure in evidence.failures:
        assert any(decisions[node].action == "keep" for node in failure.nodes)


@given(evidences, failures)
def test_a_further_own_failure_of_a_node_never_resumes_it(
    evidence: GateEvidence, failure: Failure
) -> None:
    (node, *_) = failure.nodes
    more = GateEvidence(
        evidence.failed,
        evidence.faulty,
        [*evidence.failures, Failure((node,), "bad")],
        evidence.judged,
    )
    assert decide(more, NODES)[node].action == "keep"


def test_a_node_that_lacks_a_step_waits_unless_it_failed() -> None:
    judged = {node: {A: True} for node in NODES}
    missing = Failure(("n1",), "not measured", missing=True)
    waiting = GateEvidence(failures=[missing, Failure(("n2",), "FAIL rate")], judged=judged)
    standings = {node: each.standing for node, each in decide(waiting, NODES).items()}
    assert standings == {"n1": "waiting", "n2": "failed", "n3": "accepted", "n4": "accepted"}
    both = GateEvidence(failures=[missing, Failure(("n1",), "FAIL rate")], judged=judged)
    assert decide(both, ["n1"])["n1"] == Decision("keep", "FAIL rate")
    assert decide(both, ["n1"])["n1"].standing == "failed"


def test_a_bad_node_does_not_hold_the_good_ones() -> None:
    judged = {node: {A: True} for node in NODES}
    link = Failure(("n1", "n2"), "FAIL link")
    alone = GateEvidence(failures=[link, Failure(("n2",), "FAIL rate")], judged=judged)
    kept = {node for node, each in decide(alone, NODES).items() if each.action == "keep"}
    assert kept == {"n2"}
    both = GateEvidence(failures=[link], judged=judged)
    kept = {node for node, each in decide(both, NODES).items() if each.action == "keep"}
    assert kept == {"n1", "n2"}, "it is not known which end is bad"


@pytest.mark.parametrize(("accept", "action"), [(False, "keep"), (True, "resume")])
def test_a_node_that_was_not_judged_is_kept_unless_that_is_accepted(
    accept: bool, action: str
) -> None:
    evidence = GateEvidence(judged={"n1": {RMAX: False}}, not_planned={"n1": [RATE]})
    decision = decide(evidence, ["n1"], accept_unjudged=accept)["n1"]
    assert decision.action == action
    assert "hpl rmax" in decision.reason
    assert ("not measured: osu-bw rate" in decision.reason) == accept
    assert decide(evidence, ["n9"])["n9"] == Decision("keep", NOT_MEASURED)


RATES = {f"n{number}": 100.0 + number / 10 for number in range(1, 9)}
REFERENCE = [
    {
        "metric": "rate",
        "kind": "contract",
        "value": 90,
        "unit": "MB/s",
        "at_least": 0.9,
        "source": "test",
    }
]
REQUIRED = [Required(case="fake", metrics=["rate"])]


def decisions_of(run: Run, required: list[Required] = REQUIRED) -> dict[str, Decision]:
    evidence = evidence_of(judge_run(run), run.plan, required)
    return decide(evidence, run.plan.nodes())


def judged_run(folder: Path, rates: Mapping[str, float | list[float]], **facts: Any) -> Run:
    folder.mkdir(exist_ok=True)
    return fleet_run(folder, rates, case={"references": REFERENCE}, **facts)


@pytest.mark.core("the package works")
def test_the_slow_node_of_a_run_is_kept_and_the_others_are_resumed(tmp_path: Path) -> None:
    run = judged_run(tmp_path, RATES | {"n3": [50.0, 50.0]})
    decisions = decisions_of(run)
    assert {n for n, each in decisions.items() if each.action == "keep"} == {"n3"}
    assert decisions["n3"].fault
    assert decisions["n3"].reason.startswith("fake FAKE rate -")
    assert decisions["n1"].reason == "passed: 1 required metrics judged"
    serial, _, evidence = vendor_entry(judge_run(run), "n3", None)
    assert serial == "not reported"
    assert "fake FAKE rate 50 MB/s" in evidence


@pytest.mark.fault("disturbed-repeat")
@pytest.mark.parametrize("values", [50.0, [50.0, 100.0]])
def test_a_node_whose_failure_no_second_execution_shows_is_kept_but_not_for_the_vendor(
    tmp_path: Path, values: float | list[float]
) -> None:
    decision = decisions_of(judged_run(tmp_path, RATES | {"n3": values}))["n3"]
    assert (decision.action, decision.fault) == ("keep", False)


@pytest.mark.parametrize("accept", [False, True])
@pytest.mark.parametrize("alone", [True, False])
def test_a_required_figure_that_failed_with_a_bad_partner_was_judged(
    accept: bool, alone: bool
) -> None:
    """n1 failed by itself. The figure that n1 and n2 measured together FAILED as well."""
    bandwidth, triad = NodeFigure("osu-bw", "bandwidth"), NodeFigure("stream", "triad")
    link = Failure(("n1", "n2"), "FAIL osu-bw bandwidth: too slow", bandwidth)
    own = [Failure(("n1",), "FAIL stream triad: too slow", triad)] if alone else []
    required = {bandwidth: False, triad: True}
    evidence = GateEvidence(failures=[link, *own], judged={"n1": required, "n2": required})
    decision = decide(evidence, ["n1", "n2"], accept_unjudged=accept)["n2"]
    assert (decision.action, decision.fault) == ("keep", False)
    assert "not judged" not in decision.reason
    assert "FAIL osu-bw bandwidth: too slow" in decision.reason
    assert not alone or decision.reason.startswith("measured with n1, which failed: ")


def test_the_failed_figure_of_a_pair_is_that_of_a_required_metric_with_its_part() -> None:
    link = Failure(("n1", "n2"), "FAIL", NodeFigure("osu-bw", "bandwidth"))
    own = Failure(("n1",), "FAIL alone")
    for metric, kept in (
        (NodeFigure("osu-bw", "bandwidth", ("distance leaf",)), True),
        (NodeFigure("osu-bw", "bandwidths"), False),
        (NodeFigure("osu", "bandwidth"), False),
        (NodeFigure("osu-bw", ""), False),
    ):
        evidence = GateEvidence(failures=[link, own], judged={"n2": {metric: False}})
        reason = decide(evidence, ["n2"])["n2"].reason
        assert reason.startswith("measured with n1") is kept
        assert reason.startswith("not judged") is not kept


def test_a_run_of_one_slow_node_keeps_it_with_evidence(tmp_path: Path) -> None:
    """A run of one node names no bad nodes."""
    run = judged_run(tmp_path, {"n1": [50.0, 50.0]})
    decision = decisions_of(run)["n1"]
    assert (decision.action, decision.fault) == ("keep", True)
    assert decision.reason.startswith("FAIL fake FAKE rate: ")
    assert "fake FAKE rate: " in vendor_entry(judge_run(run), "n1", None)[2]
    good = judged_run(tmp_path / "good", {"n1": 100.0})
    assert decisions_of(good)["n1"].action == "resume"


@pytest.mark.parametrize("required", [REQUIRED, []])
def test_like_nodes_without_a_reference_are_not_judged(
    tmp_path: Path, required: list[Required]
) -> None:
    decisions = decisions_of(fleet_run(tmp_path, RATES), required)
    assert {each.action for each in decisions.values()} == {"keep"}
    assert decisions["n1"].reason.startswith("not judged: no baseline and no limit for ")
    assert not decisions["n1"].fault


def test_emulated_nodes_only_have_to_be_valid_and_like_their_peers(tmp_path: Path) -> None:
    run = fleet_run(tmp_path, RATES | {"n3": 50.0}, partition={"origin": "emulated"})
    decisions = decisions_of(run)
    assert {n for n, each in decisions.items() if each.action == "keep"} == {"n3"}


@pytest.mark.fault("gate-job-failed")
def test_a_node_without_a_record_or_with_a_damaged_one_is_kept(tmp_path: Path) -> None:
    run = judged_run(tmp_path, RATES)
    (folder,) = run.folder.glob("workdir/steps/*/n5")
    rmtree(folder)
    (output,) = run.folder.glob("workdir/steps/*/n4/execution-1/stdout")
    output.write_text("damaged")
    decisions = decisions_of(run)
    assert {n for n, each in decisions.items() if each.action == "keep"} == {"n4", "n5"}
    assert decisions["n5"].reason.endswith("not measured")
    assert decisions["n4"].reason.startswith("INVALID fake rate: ")
    assert not decisions["n4"].fault


def evidence(run: Run, *required: Required) -> GateEvidence:
    return evidence_of(judge_run(run), run.plan, required)


def required(**where: str | int) -> Required:
    return Required(case="fake", metrics=["rate"], where=where)


FAKE, AX, BY = NodeFigure("fake", "rate"), NodeFigure("a", "x"), NodeFigure("b", "y")
CZ = NodeFigure("c", "z")


class TestDecisions:
    def test_a_reason_has_at_most_three_hundred_characters(self) -> None:
        assert LONGEST == 300
        for length, kept in ((300, 300), (301, 300)):
            reason = decide(GateEvidence(failed={"n1": "x" * length}), ["n1"])["n1"].reason
            assert len(reason) == kept
            assert reason.endswith("…") is (length > 300)

    def test_a_step_has_no_metric_and_excuses_no_required_figure(self) -> None:
        """A failure of a step is of no metric: the required figure was not judged."""
        step = Failure(("n1", "n2"), "not measured: 0001")
        own = Failure(("n1",), "FAIL")
        judged = {"n1": {NodeFigure("a", "b"): True}, "n2": {NodeFigure("a", "b"): False}}
        reason = decide(GateEvidence(failures=[step, own], judged=judged), ["n2"])["n2"].reason
        assert step.metric is None
        assert reason == f"{NOT_JUDGED} a b"

    def test_the_failure_of_a_pair_excuses_only_its_members(self) -> None:
        """n3 was not in the pair. Its required figure was not judged."""
        pair = Failure(("n1", "n2"), "FAIL osu", NodeFigure("osu", "bw"))
        own = Failure(("n1",), "FAIL alone")
        judged = {node: {NodeFigure("osu", "bw"): False} for node in ("n1", "n2", "n3")}
        decisions = decide(GateEvidence(failures=[pair, own], judged=judged), ["n2", "n3"])
        assert decisions["n2"].reason == "measured with n1, which failed: FAIL osu"
        assert decisions["n3"].reason == f"{NOT_JUDGED} osu bw"

    def test_the_judged_metrics_are_counted(self) -> None:
        judged = {
            "n1": {
                AX: True,
                BY: True,
                CZ: False,
            }
        }
        given = GateEvidence(judged=judged, not_planned={"n1": [NodeFigure("d", "w")]})
        assert decide(given, ["n1"], accept_unjudged=True)["n1"] == Decision(
            "resume",
            "passed: 2 required metrics judged; accepted although not judged: c z; "
            "not measured: d w",
        )
        assert decide(given, ["n1"])["n1"] == Decision("keep", f"{NOT_JUDGED} c z")

    def test_a_noisy_metric_states_what_is_needed_unless_it_is_accepted(self) -> None:
        judged, needed = {"n1": {AX: False, BY: False}}, too_noisy(0.2, 0.1, 9)
        given = GateEvidence(judged=judged, noise={"n1": {AX: needed}})
        assert decide(given, ["n1"])["n1"].reason == f"{TOO_NOISY}: a x: {needed}"
        assert decide(given, ["n1"], accept_unjudged=True)["n1"].action == "resume"
        calm = GateEvidence(
            judged={"n1": {AX: True}},
            noise={"n1": {AX: needed}},
        )
        assert decide(calm, ["n1"])["n1"].action == "resume", "another figure of it was judged"

    def test_a_fault_is_for_the_vendor_and_noise_is_not(self) -> None:
        given = GateEvidence(failed={"n1": "slow", "n2": "slow"}, faulty=frozenset({"n1"}))
        decisions = decide(given, ["n1", "n2"])
        assert [decisions[node].fault for node in ("n1", "n2")] == [True, False]


class TestEvidence:
    def test_a_step_without_a_record_is_a_failure_of_its_node_alone(self, tmp_path: Path) -> None:
        run = judged_run(tmp_path, RATES)
        (folder,) = run.folder.glob("workdir/steps/*/n5")
        rmtree(folder)
        (step,) = run.plan.steps()
        (missing,) = evidence(run, required()).failures
        assert (missing.nodes, missing.reason, missing.metric) == (
            ("n5",),
            f"not measured: {step.id}",
            None,
        )

    def test_a_step_of_the_job_without_a_record_is_a_failure_of_all_its_nodes(
        self, tmp_path: Path
    ) -> None:
        run = judged_run(tmp_path, {"n1": 100.0})
        (step,) = run.plan.steps()
        for folder in run.folder.glob("workdir/steps/*/*execution-*"):
            rmtree(folder)
        found = evidence(run, required())
        assert [each.nodes for each in found.failures] == [tuple(step.nodes)]
        assert found.judged == {"n1": {FAKE: False}}

    def test_sound_steps_are_no_failure(self, tmp_path: Path) -> None:
        found = evidence(judged_run(tmp_path, RATES), required())
        assert [*found.failures] == []
        assert found.judged == {node: {FAKE: True} for node in RATES}
        assert not found.not_planned and not found.noise and not found.failed
        assert found.faulty == frozenset()

    @pytest.mark.parametrize(
        ("where", "judged"), [({"size": 1}, True), ({"size": 2}, False), ({"other": 1}, False)]
    )
    def test_only_figures_with_the_required_traits_count(
        self, tmp_path: Path, where: Mapping[str, int], judged: bool
    ) -> None:
        found = evidence(judged_run(tmp_path, RATES), required(**where))
        assert found.judged == {node: {FAKE: judged} for node in RATES}

    def test_a_required_metric_without_a_step_is_listed(self, tmp_path: Path) -> None:
        more = Required(case="other", metrics=["a", "b"])
        found = evidence(judged_run(tmp_path, RATES), required(), more)
        assert found.not_planned == {
            node: [NodeFigure("other", "a"), NodeFigure("other", "b")] for node in RATES
        }
        assert found.judged == {node: {FAKE: True} for node in RATES}

    def test_a_metric_that_no_output_has_is_not_judged(self, tmp_path: Path) -> None:
        found = evidence(judged_run(tmp_path, RATES), Required(case="fake", metrics=["rates"]))
        assert found.judged == {node: {NodeFigure("fake", "rates"): False} for node in RATES}

    def test_without_required_metrics_one_passed_figure_is_enough(self, tmp_path: Path) -> None:
        found = evidence(judged_run(tmp_path, RATES))
        assert found.judged == {node: {ANY: True} for node in RATES}
        alone = fleet_run(_made(tmp_path / "b"), RATES)
        assert evidence(alone).judged == {node: {ANY: False} for node in RATES}

    def test_a_failed_figure_has_its_metric_and_its_verdict(self, tmp_path: Path) -> None:
        run = judged_run(tmp_path, RATES | {"n3": [50.0, 50.0]})
        found = evidence(run, required())
        (failure,) = found.failures
        assert (failure.nodes, failure.metric) == (("n3",), FAKE)
        assert failure.reason.startswith("FAIL fake FAKE rate: ")
        assert found.faulty == frozenset({"n3"})

    def test_the_figure_of_a_failure_within_its_noise_is_not_for_the_vendor(
        self, tmp_path: Path
    ) -> None:
        run = judged_run(tmp_path, {"n1": [70.0, 90.0]})
        found = evidence(run, required())
        assert [each.nodes for each in found.failures] == [("n1",)]
        assert found.faulty == frozenset()

    def test_the_entry_of_the_vendor_has_three_figures_at_most(self, tmp_path: Path) -> None:
        run = judged_run(tmp_path, {"n1": [50.0, 50.0]})
        serial, slots, text = vendor_entry(judge_run(run), "n1", None)
        assert (serial, slots) == ("not reported", "")
        assert text.count("fake FAKE rate: ") == 1
        assert vendor_entry(judge_run(run), "n9", None)[2] == ""


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_the_reference_is_that_of_the_fleet() -> None:
    """The control of this module: 100 MB/s and more keep the limit, 50 MB/s do not."""
    assert 90 * REFERENCE[0]["at_least"] < min(RATES.values())  # type: ignore[operator]

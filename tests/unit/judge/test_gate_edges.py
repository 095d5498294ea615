"""The evidence of a gate, one condition at a time: missing steps, ``where``, parts and partners."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from shutil import rmtree

import pytest
from tests.fixtures.fleet import fleet_run
from tests.unit.judge.test_gate import RATES, REFERENCE, judged_run

from proofmark.cases.suite import Required
from proofmark.judge.gate.gate_decisions import (
    LONGEST,
    NOT_JUDGED,
    TOO_NOISY,
    Decision,
    Failure,
    GateEvidence,
    NodeFigure,
    decide,
)
from proofmark.judge.gate.gate_evidence import ANY, evidence_of, vendor_entry
from proofmark.judge.judging import judge_run
from proofmark.judge.power import too_noisy
from proofmark.runs.run import Run


def evidence(run: Run, *required: Required) -> GateEvidence:
    return evidence_of(judge_run(run), run.plan, required)


def required(**where: str | int) -> Required:
    return Required(case="fake", metrics=["rate"], where=where)


RATE, AX, BY = NodeFigure("fake", "rate"), NodeFigure("a", "x"), NodeFigure("b", "y")
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
        (folder,) = run.folder.glob("steps/*/n5")
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
        for folder in run.folder.glob("steps/*/*execution-*"):
            rmtree(folder)
        found = evidence(run, required())
        assert [each.nodes for each in found.failures] == [tuple(step.nodes)]
        assert found.judged == {"n1": {RATE: False}}

    def test_sound_steps_are_no_failure(self, tmp_path: Path) -> None:
        found = evidence(judged_run(tmp_path, RATES), required())
        assert [*found.failures] == []
        assert found.judged == {node: {RATE: True} for node in RATES}
        assert not found.not_planned and not found.noise and not found.failed
        assert found.faulty == frozenset()

    @pytest.mark.parametrize(
        ("where", "judged"), [({"size": 1}, True), ({"size": 2}, False), ({"other": 1}, False)]
    )
    def test_only_figures_with_the_required_traits_count(
        self, tmp_path: Path, where: Mapping[str, int], judged: bool
    ) -> None:
        found = evidence(judged_run(tmp_path, RATES), required(**where))
        assert found.judged == {node: {RATE: judged} for node in RATES}

    def test_a_required_metric_without_a_step_is_listed(self, tmp_path: Path) -> None:
        more = Required(case="other", metrics=["a", "b"])
        found = evidence(judged_run(tmp_path, RATES), required(), more)
        assert found.not_planned == {
            node: [NodeFigure("other", "a"), NodeFigure("other", "b")] for node in RATES
        }
        assert found.judged == {node: {RATE: True} for node in RATES}

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
        assert (failure.nodes, failure.metric) == (("n3",), RATE)
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

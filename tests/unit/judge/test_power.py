"""The power of comparisons: a stated visible change is the one that is seen in 95 of 100 cases."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.fleet import fleet_run
from tests.packages.service.test_gate import REFERENCE, decisions_of

from proofmark.common.message import Message
from proofmark.judge.confidence import (
    MOST_REPEATS,
    POWER,
    repeats_needed,
    too_noisy,
)
from proofmark.judge.fleet.critical_values import fleet_limit
from proofmark.judge.judging import judge_run

WITHIN = (0.9, 1.0, 1.1)
"""Parts of a stated change: the change that is seen in 95 of 100 cases lies between the outer."""


class TestTooNoisy:
    def test_a_visible_material_change_is_no_noise(self) -> None:
        assert not too_noisy(0.1, 0.1, math.nan)

    def test_the_reason_states_what_would_be_seen_and_what_is_needed(self) -> None:
        reason = too_noisy(0.62, 0.1, 14)
        assert reason == (
            "too noisy: a difference of up to 62 % would not be seen, 10 % is material; "
            "about 14 repeats are needed"
        )
        assert "about 1000 repeats" in too_noisy(0.62, 0.1, 1000)
        assert "about 9 runs" in too_noisy(0.62, 0.1, 9, "needs-runs")
        assert "no number of repeats up to 1000 is enough" in too_noisy(0.62, 0.1, 1001)
        assert "no number of repeats up to 1000 is enough" in too_noisy(0.62, 0.1, math.inf)
        assert "it is not known how many are needed" in too_noisy(0.62, 0.1, math.nan)

    @given(st.floats(0.1, 0.9), st.floats(1e-6, 1), st.floats(0, 1), st.integers(1, 50))
    def test_the_needed_repeats_are_the_fewest_with_the_wanted_change(
        self, ratio: float, fixed: float, own: float, repeats: int
    ) -> None:
        variance = fixed + own / repeats
        needed = float(repeats_needed(ratio, variance, own, repeats))
        wanted = ratio**2 * variance
        if math.isinf(needed):
            assert fixed >= wanted * (1 - 1e-9)
        else:
            assert fixed + own / needed <= wanted * (1 + 1e-9)
            assert needed <= 1 or fixed + own / (needed - 1) >= wanted * (1 - 1e-6)

    def test_the_noise_of_a_repeat_must_be_known(self) -> None:
        assert np.isnan(repeats_needed(0.5, 1.0, math.nan, 1))


class TestLimits:
    def test_a_noisy_pass_is_unjudged_and_a_gate_keeps_the_node(self, tmp_path: Path) -> None:
        rates = {"n1": [100.0, 95.0, 130.0], "n2": [99.0, 100.0, 101.0]}
        limit = [REFERENCE[0] | {"value": 100, "at_least": 0.99}]
        run = fleet_run(tmp_path, rates, case={"references": limit})
        words = {each.record.node: each for each in judge_run(run).results}
        assert {node: each.verdict for node, each in words.items()} == {
            "n1": "UNJUDGED",
            "n2": "PASS",
        }
        assert "too noisy: " in words["n1"].reason
        decisions = decisions_of(run)
        assert decisions["n2"].action == "resume"
        assert decisions["n1"].action == "keep"
        assert not decisions["n1"].fault
        assert decisions["n1"].reason.startswith("a required metric is too noisy to be judged: ")
        assert "about" in decisions["n1"].reason
        assert "no baseline" not in decisions["n1"].reason


class TestFleet:
    @pytest.mark.parametrize("nodes", [4, 5, 8, 12, 19, 20, 40, 132])
    def test_the_detectable_deviation_is_right_within_ten_percent(self, nodes: int) -> None:
        random = np.random.default_rng(nodes)
        found = dict.fromkeys(WITHIN, 0)
        trials = 400
        for _ in range(trials):
            values = 100 * (1 + 0.005 * random.standard_normal(nodes))
            limit = fleet_limit([*values[1:], 80.0], "higher", 1e-3)
            assert limit.limit is not None
            for part in WITHIN:
                value = 100 * (1 - part * limit.detectable + 0.005 * random.standard_normal())
                found[part] += value < limit.limit
        assert found[0.9] < POWER * trials < found[1.1]

    def test_peers_that_show_nothing_are_no_evidence(self, tmp_path: Path) -> None:
        """Four like nodes with a spread of 3 % do not show a node that is 10 % off."""
        rates = {"n1": [97.0, 97.1], "n2": [99.0, 99.1], "n3": [101.0, 101.1], "n4": [103.0, 103]}
        verdict = judge_run(fleet_run(tmp_path, rates))
        (figure,) = verdict.fleet.figures
        assert figure.fleet_limit.detectable > 0.1
        assert figure.noise.fields["needed"] == Message("needs-none", most=MOST_REPEATS), (
            "the nodes differ, not the repeats"
        )
        for each in verdict.results:
            assert "like its peers" not in each.reason
            assert "too noisy: a difference of up to" in each.reason
        assert "like its peers" not in str(verdict.as_json())

    def test_peers_whose_repeats_are_noisy_need_more_of_them(self, tmp_path: Path) -> None:
        random = np.random.default_rng(1)
        rates = {
            f"n{node:02d}": np.round(100 * (1 + 0.05 * random.standard_normal(4)), 3).tolist()
            for node in range(20)
        }
        (figure,) = judge_run(fleet_run(tmp_path, rates)).fleet.figures
        assert figure.noise.code == "noisy"
        assert 4 < figure.needed < 40

    def test_no_number_of_repeats_helps_nodes_that_differ_by_more_than_them(
        self, tmp_path: Path
    ) -> None:
        """Their levels have a spread of 6 %, and their repeats one of 5 %."""
        random = np.random.default_rng(1)
        levels = 100 * (1 + 0.06 * random.standard_normal((20, 1)))
        values = np.round(levels * (1 + 0.05 * random.standard_normal((20, 4))), 3)
        rates = {f"n{node:02d}": each.tolist() for node, each in enumerate(values)}
        (figure,) = judge_run(fleet_run(tmp_path, rates)).fleet.figures
        assert (figure.noise.code, figure.needed) == ("noisy", math.inf)

    def test_peers_that_would_show_a_material_change_are_evidence(self, tmp_path: Path) -> None:
        rates = {f"n{node:02d}": 100 + 0.01 * node for node in range(20)}
        verdict = judge_run(fleet_run(tmp_path, rates))
        assert not verdict.fleet.figures[0].noise
        assert all("like its peers" in each.reason for each in verdict.results)

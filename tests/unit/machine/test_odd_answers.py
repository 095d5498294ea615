"""Mode changes of 6 nodes while their BMCs send odd answers: a small run of the soak test."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.bench.odd_answers import mistakes, soak
from tests.emulators.bmc.mutations import Mutations
from tests.emulators.bmc.reply import Reply
from tests.emulators.bmc.rollouts import path_with

from proofmark.machine.outcome import Outcome
from proofmark.machine.schedulers import slurm


@pytest.mark.fault("bmc-odd-answers")
def test_odd_answers_affect_their_node_and_every_node_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", path_with(tmp_path / "bin"))
    monkeypatch.setattr(slurm, "folded", ",".join)
    monkeypatch.setattr("proofmark.machine.bmc.client.FIRST_PAUSE_S", 0.01)
    report = soak(tmp_path, bmcs=6, answers=60, seed=12, say=str, shares=(0.1, 0.5))
    assert report.changed.total() == 60
    assert mistakes(report) == []
    assert report.outcomes[Outcome.UNEXPECTED] and report.outcomes[Outcome.OK]
    # The limit is that of the waits; a loaded machine needs more for the rest.
    assert report.longest_s < report.limit_s + 60


def test_each_kind_of_change_is_drawn_and_differs_from_the_answer() -> None:
    mutations = Mutations(3, 2_000, share=1.0, large=1 << 20)
    reply = Reply(200, {"@odata.id": "/x", "Attributes": {"a": [1, {"b": "c"}]}})
    drawn = [mutations.pieces(reply) for _ in range(2_000)]
    assert len(mutations.counts) == 8 and mutations.left == 0
    changed = sum([piece for _, piece in pieces] != [reply.raw] for pieces in drawn)
    assert changed > 1_900  # a slow answer may be whole
    assert mutations.pieces(reply) == [(0.0, reply.raw)]


def test_the_same_seed_draws_the_same_changes() -> None:
    reply = Reply(200, {"@odata.id": "/x", "Members": [{"@odata.id": "/y"}]})
    first, second = (
        [Mutations(seed, 50, share=1.0, large=1 << 20).pieces(reply) for seed in range(50)]
        for _ in range(2)
    )
    assert first == second

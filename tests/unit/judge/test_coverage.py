"""Which planned steps were measured: single nodes, pairs, and several nodes together."""

from __future__ import annotations

import pytest
from tests.fixtures.messages import said
from tests.unit.judge.test_accepting import plan_of, step_of

from proofmark.common.message import Message
from proofmark.judge.coverage import coverage
from proofmark.plan.plan import Plan
from proofmark.runs.job_folder import StoppedJob


def folders(plan: Plan) -> set[str]:
    return {folder for step in plan.steps() for folder in step.folders()}


def test_a_complete_run() -> None:
    plan = plan_of("node")
    found = coverage(plan, folders(plan), 3, [StoppedJob("", said("stopped"))])
    assert (found.expected, found.measured, found.duplicate) == (len(folders(plan)),) * 2 + (3,)
    assert (found.missing, found.not_run, found.stopped) == ((), (), ("stopped",))


def test_nodes_and_pairs_without_a_record_are_named() -> None:
    plan, stream, pairs = plan_of("node"), step_of("stream"), step_of("osu-bw")
    unseen = {f"{stream.id}/skl0003", f"{stream.id}/skl0004", f"{pairs.id}/skl0005+skl0006"}
    found = coverage(plan, folders(plan) - unseen, 0)
    assert found.expected - found.measured == 3
    assert {each.message for each in found.missing} == {
        f"{stream.id}: skl[0003-0004]",
        f"{pairs.id}: skl[0005-0006]",
    }


def test_a_step_of_several_nodes_is_named_with_them() -> None:
    plan = plan_of("full")
    wanted = {
        nodes: next(
            step for step in plan.steps() if step.scope == "job" and len(step.nodes) == nodes
        )
        for nodes in (1, 2)
    }
    found = coverage(plan, folders(plan) - {step.id for step in wanted.values()}, 0)
    assert found.expected - found.measured == 2
    assert {each.message for each in found.missing} == {
        wanted[1].id,
        f"{wanted[2].id}: skl[0001-0002]",
    }


@pytest.mark.parametrize(("unseen", "named", "more"), [(1, 1, 0), (4, 4, 0), (5, 4, 1), (6, 4, 2)])
def test_the_first_pairs_of_a_round_are_named(
    unseen: int, named: int, more: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A round has a pair for each two nodes; four names are enough here."""
    monkeypatch.setattr("proofmark.judge.coverage.MAX_PAIRS_NAMED", 4)
    plan = plan_of("links")
    step = next(step for step in plan.steps() if step.round)
    pairs = [*step.instances()][:unseen]
    (missing,) = coverage(plan, folders(plan) - {*map(str, pairs)}, 0).missing
    fields = {"step": step.id, "nodes": ", ".join(pair.name for pair in pairs[:named])}
    if more:
        assert missing.message == Message("not-measured-pairs", **fields, count=more)
    else:
        assert missing.message == Message("not-measured-on", **fields)
    assert len(missing.nodes) == 2 * unseen

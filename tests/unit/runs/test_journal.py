"""The state of a node after the lines of its journal, and which nodes are proven in a mode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from proofmark.runs.journal import Journal, NodeHistory, unverified

Line = tuple[str, Mapping[str, Any]]
VERIFIED: Line = ("verified result", {"mode": "flat", "seen": {}})
FAILED: Line = ("fail result", {"outcome": "NO_RETURN", "text": "not back"})
RESET: Line = ("reset intent", {"boot_id": "b1"})
DRAIN = {"address": "a", "tag": "t"}


def written(folder: Path, lines: Sequence[Line]) -> Journal:
    journal = Journal(folder, "n1")
    for name, facts in lines:
        state, _, event = name.partition(" ")
        (journal.result if event == "result" else journal.intent)(state, **facts)
    return journal


def history(folder: Path, *lines: Line) -> NodeHistory:
    return written(folder, lines).history()


def test_a_verified_node_is_proven(tmp_path: Path) -> None:
    """Control: no fault is injected."""
    written(tmp_path, [FAILED, VERIFIED])
    assert unverified(tmp_path, ["n1"], "flat") == {}


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([], "not verified"),
        ([VERIFIED, FAILED], "NO_RETURN: not back"),
        ([VERIFIED, RESET], "not verified"),
        ([VERIFIED, ("stage intent", {"attributes": {}})], "not verified"),
        ([RESET, VERIFIED], "in mode flat"),
        ([VERIFIED, ("verified result", {"mode": "cache", "seen": {}})], "in mode cache"),
        ([VERIFIED, ("scratch result", {"missing": "no /scratch"})], "no scratch: no /scratch"),
        ([VERIFIED, ("scratch result", {"missing": "no /scratch"}), FAILED], "NO_RETURN: not back"),
        ([VERIFIED, FAILED, ("scratch result", {})], "NO_RETURN: not back"),
    ],
)
def test_a_node_without_proof_is_named_with_the_reason(
    tmp_path: Path, lines: list[Line], reason: str
) -> None:
    written(tmp_path, lines)
    assert unverified(tmp_path, ["n1"], "flat") == {"n1": reason}


def test_a_check_of_scratch_that_succeeds_ends_the_failure_of_the_check(tmp_path: Path) -> None:
    lines = [VERIFIED, ("scratch result", {"missing": "no /scratch"}), ("scratch result", {})]
    written(tmp_path, lines)
    assert unverified(tmp_path, ["n1"], "flat") == {}


@pytest.mark.parametrize(
    ("lines", "in_flight"),
    [
        ([RESET], "b1"),
        ([RESET, ("reset result", {})], "b1"),
        ([RESET, ("reset result", {"void": True})], ""),
        ([RESET, ("reset result", {}), ("up result", {"boot_id": "b2"})], ""),
        ([RESET, ("down result", {"said": "x"})], "b1"),
    ],
)
def test_a_reset_is_in_flight_until_another_boot_is_seen(
    tmp_path: Path, lines: list[Line], in_flight: str
) -> None:
    assert history(tmp_path, *lines).in_flight == in_flight


@pytest.mark.parametrize(
    ("lines", "drained"),
    [
        ([("drain intent", DRAIN)], True),
        ([("drain intent", DRAIN), ("open intent", {})], True),
        ([("drain intent", DRAIN), ("open intent", {}), ("open result", {})], False),
        ([("drain intent", DRAIN), ("resume intent", {}), ("resume result", {})], False),
    ],
)
def test_a_node_is_drained_until_it_was_resumed(
    tmp_path: Path, lines: list[Line], drained: bool
) -> None:
    past = history(tmp_path, *lines)
    assert (past.drained, past.to_restore) == (drained, drained)


def test_a_changed_node_is_to_be_restored_until_its_original_state_is_verified(
    tmp_path: Path,
) -> None:
    original: Line = ("original result", {"address": "a", "attributes": {"x": 1}, "seen": {}})
    assert history(tmp_path, original).to_restore
    assert history(tmp_path, original, VERIFIED).to_restore
    restored = ("verified result", {"mode": "original", "seen": {}})
    assert not history(tmp_path, original, VERIFIED, restored).to_restore
    stage: Line = ("stage intent", {"attributes": {"x": 2}})
    past = history(tmp_path, stage, ("stage result", {}))
    assert past.to_restore
    assert past.staged == (("x", 2),)

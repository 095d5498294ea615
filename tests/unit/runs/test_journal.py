"""The state of a node after the lines of its journal, and which nodes are proven in a mode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
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


SEEN = {"boot_id": "b1", "numa": 2}
TOLD: Sequence[tuple[Line, Mapping[str, Any]]] = (
    (
        ("drain intent", {"address": "a", "reasons": ["kit: r1"]}),
        {"drained": True, "address": "a", "reasons": ("kit: r1",)},
    ),
    (("fail result", {"outcome": "BUSY", "text": "jobs"}), {"failed": "BUSY: jobs"}),
    (("scratch result", {"missing": "no /scratch"}), {"no_scratch": "no /scratch"}),
    (
        ("drain result", {"address": "b", "reasons": ["kit: r1", "kit: r2"]}),
        {"failed": "", "address": "b", "reasons": ("kit: r1", "kit: r2")},
    ),
    (
        (
            "original result",
            {"address": "c", "attributes": {"x": 1}, "seen": SEEN, "serials": {"dmi": "s"}},
        ),
        {
            **{"address": "c", "original": {"x": 1}, "original_seen": SEEN},
            **{"serials": {"dmi": "s"}, "proven": {"b1": "original"}},
        },
    ),
    (
        ("stage intent", {"attributes": {"x": 2, "y": 3}, "boot_id": "b1"}),
        {"staged": (("x", 2), ("y", 3)), "unsettled": True, "staged_in": "b1"},
    ),
    (("stage result", {"task": "t1"}), {"task": "t1"}),
    (("stage result", {"void": True}), {"task": "", "unsettled": False, "staged_in": ""}),
    (("stage intent", {"boot_id": "b1"}), {"unsettled": True, "staged_in": "b1"}),
    (("stage result", {}), {"unsettled": False}),
    (("reset intent", {"boot_id": "b1"}), {"in_flight": "b1"}),
    (("reset result", {}), {}),
    (("up result", {"boot_id": "b2"}), {"in_flight": ""}),
    (
        ("verified result", {"mode": "flat", "attributes": {"x": 2}, "seen": {"boot_id": "b2"}}),
        {
            **{"mode": "flat", "mode_attributes": {"x": 2}, "mode_seen": {"boot_id": "b2"}},
            **{"boot_id": "b2", "proven": {"b1": "original", "b2": "flat"}},
        },
    ),
    (
        ("verified result", {"mode": "flat", "seen": SEEN}),
        {"mode_seen": SEEN, "boot_id": "b1", "proven": {"b1": "flat", "b2": "flat"}},
    ),
    (("scratch result", {}), {"no_scratch": ""}),
    (("reset intent", {"boot_id": "b2"}), {"in_flight": "b2", "mode": ""}),
    (("reset result", {"void": True}), {"in_flight": ""}),
    (
        ("verified result", {"mode": "cache", "seen": {}}),
        {
            **{"mode": "cache", "mode_attributes": {}, "mode_seen": {}, "boot_id": ""},
            "proven": {"b1": "flat", "b2": "flat", "": "cache"},
        },
    ),
    (
        ("stage intent", {"attributes": {"x": 1}, "boot_id": "b3"}),
        {
            **{"mode": "", "staged": (("x", 2), ("y", 3), ("x", 1))},
            **{"unsettled": True, "staged_in": "b3"},
        },
    ),
    (("stage result", {"void": True}), {"unsettled": False, "staged_in": "b1"}),
    (("open intent", {}), {}),
    (("open result", {}), {"drained": False}),
    (
        ("verified result", {"mode": "original", "seen": SEEN}),
        {
            **{"mode": "original", "mode_seen": SEEN, "boot_id": "b1"},
            "proven": {"b1": "original", "b2": "flat", "": "cache"},
        },
    ),
)
"""A journal, with what each line changes."""


def test_each_line_changes_what_it_says(tmp_path: Path) -> None:
    known = asdict(NodeHistory())
    for line, changes in TOLD:
        past = history(tmp_path, line)
        found = {name: value for name, value in asdict(past).items() if value != known[name]}
        assert found == changes, line
        known |= found
        assert past.to_restore is (past.mode != "original"), line


@pytest.mark.parametrize(
    ("boot", "mode", "awaits"),
    [("b1", "original", False), ("b1", "flat", True), ("b2", "flat", False), ("", "flat", False)],
)
def test_the_boot_of_a_change_proves_only_the_mode_before_it(
    boot: str, mode: str, awaits: bool
) -> None:
    past = NodeHistory(staged_in="b1", proven={"b1": "original"})
    assert past.awaits_boot(boot, mode) is awaits
    assert not NodeHistory().awaits_boot("", mode)

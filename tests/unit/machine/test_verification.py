"""The proof of a mode: which modes match the state that a node shows."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.emulators.bmc.machine import DEFAULTS
from tests.emulators.bmc.node import boot
from tests.emulators.bmc.rollouts import ATTRIBUTES, EXPECTED_STATES, GIB, MODES
from tests.fixtures.shells import remote_shell
from tests.folders import ROOT

from proofmark.machine.modes.transition import (
    ExpectedState,
    Observation,
    look_alikes,
    matching_modes,
    original_state,
    read_observation,
    verify_mode,
)
from proofmark.machine.node_commands import PROBE
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.runs.journal import NodeHistory
from proofmark.site.firmware import Firmware, wanted
from proofmark.site.node.topology import NumaShape


def observe(folder: Path, mode: str, *, tables: bool = True) -> Observation:
    """Return the observation of a node in `mode`, with or without SMBIOS tables."""
    firmware = Firmware(back_end="redfish", attributes=ATTRIBUTES)
    attributes = DEFAULTS["knl"] | wanted(firmware, EXPECTED_STATES[mode].settings)
    boot(folder / "n1", attributes, "knl", "SN")
    if not tables:
        (folder / "n1/sys/firmware/dmi/tables/DMI").unlink()
    script = str(ROOT / "tests/emulators/bmc/remote-shell.sh")
    text = remote_shell(["sh", script, str(folder), "{node}"], 10)("n1", PROBE)
    return read_observation(text, "n1", "knl")


@pytest.mark.parametrize("mode", MODES)
def test_each_mode_is_distinguished_from_all_others(tmp_path: Path, mode: str) -> None:
    assert matching_modes(observe(tmp_path, mode), EXPECTED_STATES) == [mode]


def test_quadrant_is_unproven_without_smbios(tmp_path: Path) -> None:
    observation = observe(tmp_path, "quadrant-flat", tables=False)
    with pytest.raises(NodeError, match="look alike without SMBIOS") as error:
        verify_mode(observation, "quadrant-flat", EXPECTED_STATES, "knl")
    assert error.value.outcome is Outcome.UNPROVEN


@pytest.mark.parametrize("mode", ["snc2-cache", "snc4-flat"])
def test_numa_domains_prove_sub_numa_modes_without_smbios(tmp_path: Path, mode: str) -> None:
    observation = observe(tmp_path, mode, tables=False)
    verify_mode(observation, mode, EXPECTED_STATES, "knl")
    assert matching_modes(observation, EXPECTED_STATES) == [mode]


def test_a_node_with_a_failed_dimm_matches_no_mode(tmp_path: Path) -> None:
    settings = observe(tmp_path, "quadrant-cache").settings
    observation = Observation("b", NumaShape([(272, 80 * GIB)]), settings, "", 0)
    with pytest.raises(NodeError, match="declared modes that match: none") as error:
        verify_mode(observation, "quadrant-cache", EXPECTED_STATES, "knl")
    assert error.value.outcome is Outcome.OTHER_MODE


def declared(*modes: str) -> dict[str, ExpectedState]:
    return {name: EXPECTED_STATES[name] for name in modes}


def shown(mode: str, *, settings: bool) -> Observation:
    """Return the observation of a node in `mode`, with or without the settings of its SMBIOS."""
    expected = EXPECTED_STATES[mode]
    seen = dict(expected.settings) if settings else {}
    return Observation("b", expected.numa_shape, seen, "", 0)


def test_an_empty_table_shows_no_setting_and_is_not_damaged() -> None:
    text = (
        "proofmark-probe 1 mode\n=== boot\n| id: b\n| clock: 1\n=== numa\n"
        "| node0 cpus: 0-271\n| node0 memory_kb: 100663296\n=== smbios\n=== end\n"
    )
    seen = read_observation(text, "n1", "knl")
    assert (seen.settings, seen.numa_shape) == ({}, NumaShape([(272, 96 * GIB)]))


@pytest.mark.parametrize(
    ("settings", "smbios", "outcome"),
    [(True, "knl", None), (False, "knl", Outcome.UNPROVEN), (False, None, None)],
)
def test_a_mode_that_looks_like_another_needs_its_smbios(
    settings: bool, smbios: str | None, outcome: Outcome | None
) -> None:
    """Only one of the modes that look alike is declared, so that no other one matches."""
    expected_states = declared("quadrant-flat", "snc4-flat")
    observation = shown("quadrant-flat", settings=settings)
    if outcome is None:
        verify_mode(observation, "quadrant-flat", expected_states, smbios)
        return
    with pytest.raises(NodeError) as error:
        verify_mode(observation, "quadrant-flat", expected_states, smbios)
    assert error.value.outcome is outcome


def test_modes_of_the_same_domains_are_unproven_without_smbios() -> None:
    with pytest.raises(NodeError, match="modes that match: quadrant-flat, a2a-flat; ") as error:
        verify_mode(
            shown("quadrant-flat", settings=False),
            "quadrant-flat",
            declared("quadrant-flat", "a2a-flat"),
            None,
        )
    assert error.value.outcome is Outcome.UNPROVEN


def test_two_names_of_the_same_state_do_not_exclude_each_other() -> None:
    expected_states = {**declared("snc4-flat"), "as-delivered": EXPECTED_STATES["snc4-flat"]}
    verify_mode(shown("snc4-flat", settings=True), "snc4-flat", expected_states, "knl")


def test_another_mode_is_named_with_the_modes_that_match() -> None:
    with pytest.raises(NodeError, match=r"not in mode snc4-flat; .*match: snc2-flat; ") as error:
        verify_mode(shown("snc2-flat", settings=True), "snc4-flat", EXPECTED_STATES, "knl")
    assert error.value.outcome is Outcome.OTHER_MODE


@pytest.mark.parametrize(
    ("original", "now", "proven"),
    [
        ("snc4-flat", "snc4-flat", True),
        ("snc4-flat", "snc2-flat", False),
        ("quadrant-flat", "a2a-flat", False),  # only SMBIOS differs
    ],
)
def test_the_original_state_is_proven_by_domains_and_smbios(
    original: str, now: str, proven: bool
) -> None:
    seen = json.loads(json.dumps(shown(original, settings=True).as_json()))
    target = original_state(NodeHistory(original={"x": 1}, original_seen=seen))
    assert target.shown_by(shown(now, settings=True)) == proven


def test_the_original_state_differs_if_only_the_domains_do() -> None:
    """A DIMM failed meanwhile."""
    seen = json.loads(json.dumps(shown("snc4-cache", settings=True).as_json()))
    target = original_state(NodeHistory(original={"x": 1}, original_seen=seen))
    lost = Observation("b", NumaShape([(272, 80 * GIB)]), seen["smbios"], "", 0)
    assert not target.shown_by(lost)
    with pytest.raises(NodeError) as error:
        target.verify(lost)
    assert error.value.outcome is Outcome.OTHER_MODE


def test_without_an_original_state_nothing_is_to_be_proven() -> None:
    assert original_state(NodeHistory()).shown_by(shown("snc4-flat", settings=True))


@pytest.mark.parametrize(
    ("settings", "smbios", "alike"),
    [
        ({"boost": "on"}, None, ["other"]),
        ({"boost": "on"}, "knl", ["other"]),
        ({"cluster": "Hemisphere"}, None, ["other"]),
        ({"cluster": "Hemisphere"}, "knl", []),
        ({}, None, []),
    ],
)
def test_modes_that_no_observation_distinguishes(
    settings: dict[str, str], smbios: str | None, alike: list[str]
) -> None:
    goal = EXPECTED_STATES["quadrant-flat"]
    other = replace(goal, settings={**goal.settings, **settings})
    snc = EXPECTED_STATES["snc4-flat"]
    states = {"quadrant-flat": goal, "other": other, "snc4-flat": snc}
    assert look_alikes("quadrant-flat", states, smbios) == alike

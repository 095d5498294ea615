"""The proof of a mode: which modes match the state that a node shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.emulators.bmc.machine import DEFAULTS
from tests.emulators.bmc.node import boot
from tests.emulators.bmc.rollouts import ATTRIBUTES, EXPECTED_STATES, GIB, MODES
from tests.folders import ROOT

from proofmark.machine.modes.verification import (
    Observation,
    matching_modes,
    read_observation,
    verify_mode,
)
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.machine.remote_shell import PROBE, RemoteShell
from proofmark.site.firmware import Firmware, wanted
from proofmark.site.node.numa import NumaShape


def observe(folder: Path, mode: str, *, tables: bool = True) -> Observation:
    """Return the observation of a node in `mode`, with or without SMBIOS tables."""
    firmware = Firmware(back_end="redfish", attributes=ATTRIBUTES)
    attributes = DEFAULTS["knl"] | wanted(firmware, EXPECTED_STATES[mode].settings)
    boot(folder / "n1", attributes, "knl", "SN")
    if not tables:
        (folder / "n1/sys/firmware/dmi/tables/DMI").unlink()
    script = str(ROOT / "tests/emulators/bmc/remote-shell.sh")
    text = RemoteShell(["sh", script, str(folder), "{node}"], 10)("n1", PROBE)
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
    observation = Observation("b", NumaShape(((272, 80 * GIB),), ()), settings, "", 0)
    with pytest.raises(NodeError, match="declared modes that match: none") as error:
        verify_mode(observation, "quadrant-cache", EXPECTED_STATES, "knl")
    assert error.value.outcome is Outcome.OTHER_MODE

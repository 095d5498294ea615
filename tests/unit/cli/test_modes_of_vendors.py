"""The commands of modes at a site with abstract settings and Dell BMCs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.emulators.bmc import node
from tests.emulators.bmc.vendor_server import VendorEmulator
from tests.fixtures.phi import Phi, phi_site

from proofmark.runs.run import Run
from proofmark.site.inventory import load_site

pytestmark = pytest.mark.rest("commands wait for the BMC of each vendor")

MODES = {
    "nps1": {"settings": {"numa_per_socket": 1, "smt": True, "turbo": True}},
    "nps1-slow": {"settings": {"numa_per_socket": 1, "smt": True, "turbo": False}},
    "nps4-st": {"settings": {"numa_per_socket": 4, "smt": False, "turbo": True}},
}
LAYOUTS = {"nps1": (1, 2), "nps1-slow": (1, 2), "nps4-st": (4, 1)}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Phi]:
    """Yield a site of two AMD nodes with iDRACs."""
    with (
        phi_site(tmp_path, monkeypatch) as phi,
        VendorEmulator("idrac-amd", phi.nodes, tmp_path / "dell", network=10) as emulator,
    ):
        dell = replace(phi, emulator=emulator)
        facts: dict[str, Any] = {"vendor": "idrac", "attributes": {}, "smbios": None}
        dell.write_inventory(bmc="127.10.0.{number + 1}", **facts)
        path = dell.inventory / "group_vars" / "phi" / "partition.yml"
        written = yaml.safe_load(path.read_text())
        written["partition"]["modes"] = {
            name: mode
            | {
                "topology": node.notation(
                    {"numa": LAYOUTS[name][0], "threads": LAYOUTS[name][1]}, "server"
                )
            }
            for name, mode in MODES.items()
        }
        written["partition"]["current_mode"] = "nps1"
        path.write_text(yaml.safe_dump(written))
        yield dell


def run_of(site: Phi) -> Run:
    """Make a run with a step of each mode on each node."""
    kit = site.kit
    sweep = {"size": [1], "nodes": 1}
    kit.case(suites={"quick": {"modes": [*MODES], "scope": "each-node", "sweep": sweep}})
    return kit.run(site=load_site(site.inventory, "phi"), run_id="acc1")


def test_modes_are_checked_entered_verified_and_restored(
    site: Phi, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of(site)
    before = dict(site.emulator.machines["n1"].current)
    assert site.main("modes", "check", run.folder, "--mode", "nps4-st") == 0
    shown = "".join(capsys.readouterr())
    assert "NumaNodesPerSocket: 1 → 4, LogicalProc: Enabled → Disabled, drain, reset" in shown
    assert site.main("modes", "verify", run.folder, "--mode", "nps1") == 0
    assert site.main("modes", "verify", run.folder, "--mode", "nps1-slow") == 1
    assert "SysProfile=PerfPerWattOptimizedDapc, ProcTurboMode=Enabled" in "".join(
        capsys.readouterr()
    )
    for mode in ("nps4-st", "nps1-slow"):
        assert site.change("enter", run, "--mode", mode) == 0
        assert site.main("modes", "verify", run.folder, "--mode", mode) == 0
    current = site.emulator.machines["n2"].current
    assert (current["SysProfile"], current["ProcTurboMode"]) == ("Custom", "Disabled")
    assert (current["NumaNodesPerSocket"], current["LogicalProc"]) == ("1", "Enabled")
    assert site.change("restore", run) == 0
    assert all(each.current == before for each in site.emulator.machines.values())

"""The vendor of a BMC, from a service root without log-in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.emulators.bmc.server import Emulator

from proofmark.machine.outcome import NodeError
from proofmark.packages.survey.collection import vendor_of

IDRAC = "Integrated Dell Remote Access Controller"
DELL = {"Vendor": "Dell", "Product": IDRAC, "Oem": {"Dell": {}}}


@pytest.mark.parametrize(
    ("root", "vendor"),
    [
        (DELL, f"Dell {IDRAC}"),
        ({"Oem": {"Hpe": {}}}, "Hpe"),  # before version 1.5 of the service root
        ({"Vendor": None, "Product": 7, "Oem": []}, ""),
        ({"Vendor": "a\nb \x1b[31m"}, "a b [31m"),
        ({"Vendor": "x" * 5000}, "x" * 100),
        ({}, ""),
    ],
)
def test_vendor_and_product_are_read(tmp_path: Path, root: dict[str, Any], vendor: str) -> None:
    with Emulator(["n1"], tmp_path, service_root=root) as emulator:
        assert vendor_of(emulator.address("n1"), emulator.port) == vendor
        (machine,) = emulator.machines.values()
        assert (machine.requests, emulator.sessions) == (1, 0)


@pytest.mark.fault("init-tool-fails")
@pytest.mark.parametrize(("fault", "reason"), [("busy", "status 503"), ("unreachable", "refused")])
def test_a_bmc_without_a_service_root_is_named(tmp_path: Path, fault: str, reason: str) -> None:
    accepted = rf"https://127\.9\.0\.2:\d+/redfish/v1/: .*{reason}"
    with (
        Emulator(["n0", "n1"], tmp_path, faults={"n1": fault}) as emulator,
        pytest.raises(NodeError, match=accepted),
    ):
        vendor_of(emulator.address("n1"), emulator.port)

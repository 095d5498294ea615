"""The checks before a machine is changed: nodes, BMCs, permission to drain, window."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.emulators.bmc.server import PASSWORD, USER, Emulator
from tests.fixtures.kit import Kit, make_kit

from proofmark.machine.bmc.credentials import Credentials
from proofmark.machine.preflight import preflight
from proofmark.site.firmware import Firmware
from proofmark.site.inventory import Site

CREDENTIALS = Credentials(USER, PASSWORD)


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    return make_kit(tmp_path / "kit")


@pytest.fixture
def emulator(tmp_path: Path) -> Iterator[Emulator]:
    with Emulator(["n1", "n2"], tmp_path / "bmc", faults={"n2": "expired"}) as emulator:
        yield emulator


def site_with(kit: Kit, **firmware: Any) -> Site:
    site = kit.site(hosts=("n1", "n2"))
    settings = Firmware.model_validate({"back_end": "manual", **firmware})
    partition = site.partition.model_copy(update={"firmware": settings})
    changes = {"partition": partition, "remote_shell": settings.remote_shell}
    return site.model_copy(update=changes)


def outcomes(kit: Kit, site: Site, window_end: datetime | None = None) -> dict[str, list[str]]:
    """Return the outcomes of the findings by the first word of their subject."""
    by_subject: dict[str, list[str]] = {}
    for finding in preflight(site, kit.plan(), CREDENTIALS, window_end, "root"):
        subject = finding.what.split(":")[0].split(" ")[0]
        by_subject.setdefault(subject, []).append(finding.outcome)
    return by_subject


def test_a_site_without_a_problem_is_ok(kit: Kit) -> None:
    end = datetime.now(UTC) + timedelta(hours=1)
    found = outcomes(kit, site_with(kit, remote_shell=["sh", "-s"]), end)
    assert found.pop("scheduler") == ["NOT_NEEDED"]  # the plan changes no mode
    assert set().union(*found.values()) == {"OK"}


@pytest.mark.parametrize(
    ("scheduler", "mode", "outcome"),
    [
        ("sge", "current", "NOT_NEEDED"),
        ("sge", "other", "CANNOT_DRAIN"),
        ("none", "other", "OK"),
    ],
)
def test_only_a_plan_that_changes_a_mode_needs_to_drain(
    kit: Kit, scheduler: str, mode: str, outcome: str
) -> None:
    site, plan = site_with(kit, remote_shell=["sh", "-s"]), kit.plan()
    partition = site.partition.model_copy(update={"scheduler": scheduler})
    site = site.model_copy(update={"partition": partition})
    groups = [group.model_copy(update={"mode": mode}) for group in plan.groups]
    plan = plan.model_copy(update={"groups": groups})
    findings = preflight(site, plan, CREDENTIALS, None, "root")
    (finding,) = (each for each in findings if each.what.startswith("scheduler:"))
    assert finding.outcome == outcome


@pytest.mark.parametrize(
    ("script", "outcome"),
    [
        ("echo Host key verification failed. >&2; exit 255", "HOST_KEY"),
        ("echo Permission denied >&2; exit 255", "LOGIN"),
        ("echo No route to host >&2; exit 255", "UNREACHABLE"),
        ("echo 1000000000; echo 0", "CLOCK_SKEW"),
        ("date +%s; echo 4711", "OTHER_UID"),
        ("echo Welcome to n2; date +%s; id -u", "UNEXPECTED"),
    ],
)
def test_a_problem_of_one_node_is_named(kit: Kit, script: str, outcome: str) -> None:
    command = ["sh", "-c", f"[ {{node}} = n1 ] && exec sh -s; {script}"]
    assert outcomes(kit, site_with(kit, remote_shell=command))["nodes"] == ["OK", outcome]


def test_the_log_in_to_each_bmc_is_checked(kit: Kit, emulator: Emulator) -> None:
    address = "127.9.0.{number + 1}"
    redfish = {"back_end": "redfish", "bmc": address, "port": emulator.port}
    site = site_with(kit, **redfish, ca=str(emulator.ca), remote_shell=["sh", "-s"])
    assert outcomes(kit, site)["BMCs"] == ["OK", "BAD_CERTIFICATE"]


def test_a_window_that_is_too_short_is_named(kit: Kit) -> None:
    site = site_with(kit, remote_shell=["sh", "-s"])
    assert outcomes(kit, site)["maintenance"] == ["NOT_TOLD"]
    assert outcomes(kit, site, datetime.now(UTC))["maintenance"] == ["TOO_SHORT"]

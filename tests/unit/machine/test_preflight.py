"""The checks before a machine is changed: nodes, BMCs, permission to drain, window."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.emulators.bmc.server import PASSWORD, USER, Emulator
from tests.emulators.bmc.vendor_server import VendorEmulator
from tests.fixtures.kit import Kit, kit_with
from tests.fixtures.stated import stated_node
from tests.folders import PROBES

from proofmark.machine import preflight as checks
from proofmark.machine.bmc.back_end import Credentials
from proofmark.machine.node_commands import CalledProgram, NodeProcess
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.machine.preflight import preflight, scheduler_findings, scratch_findings
from proofmark.machine.scheduler import Request
from proofmark.machine.schedulers.none import NoScheduler
from proofmark.plan.plan import Plan
from proofmark.site.file_systems import Scratch
from proofmark.site.firmware import Firmware
from proofmark.site.hardware import StatedNode
from proofmark.site.inventory import Site

CREDENTIALS = Credentials(USER, PASSWORD)
DASH = CalledProgram(debian="dash", needed=("step",))
UNUSABLE = {"back_end": "redfish", "bmc": "{node}-bmc", "ca": "/no/such/file"}


kit = kit_with(folder="kit")


@pytest.fixture
def emulator(tmp_path: Path) -> Iterator[Emulator]:
    with Emulator(["n1", "n2"], tmp_path / "bmc", faults={"n2": "expired"}) as emulator:
        yield emulator


def site_with_firmware(kit: Kit, **firmware: Any) -> Site:
    settings = Firmware.model_validate({"back_end": "manual", **firmware})
    site = kit.site(hosts=("n1", "n2"), firmware=settings)
    return site.model_copy(update={"remote_shell": settings.remote_shell})


def with_partition(site: Site, **changes: Any) -> Site:
    """Return `site` with other facts of its partition."""
    return site.model_copy(update={"partition": site.partition.model_copy(update=changes)})


def changing(plan: Plan, mode: str = "other") -> Plan:
    """Return `plan` with all steps in `mode`."""
    groups = [group.model_copy(update={"mode": mode}) for group in plan.groups]
    return plan.model_copy(update={"groups": groups})


def outcomes(
    kit: Kit,
    site: Site,
    window_end: datetime | None = None,
    *,
    mode: str = "current",
    user: str = "root",
) -> dict[str, list[str]]:
    """Return the outcomes of the findings by the first word of their subject."""
    by_subject: dict[str, list[str]] = {}
    for finding in preflight(site, changing(kit.plan(), mode), CREDENTIALS, window_end, user):
        subject = finding.what.split(":")[0].split(" ")[0]
        by_subject.setdefault(subject, []).append(finding.outcome)
    return by_subject


def test_a_site_without_a_problem_is_ok(kit: Kit) -> None:
    """A plan that changes no mode needs no BMC, and may have a firmware that cannot be used."""
    end = datetime.now(UTC) + timedelta(hours=1)
    assert outcomes(kit, site_with_firmware(kit, **UNUSABLE, remote_shell=["sh", "-s"]), end) == {
        "nodes": ["OK"],
        "programs": ["OK"],
        "parts": ["NOT_NEEDED"],
        "BMCs": ["NOT_NEEDED"],
        "scheduler": ["NOT_NEEDED"],
        "maintenance": ["OK"],
        "stop": ["NOT_NEEDED"],
    }


def test_a_firmware_that_cannot_be_used_is_named_and_the_other_checks_go_on(kit: Kit) -> None:
    found = outcomes(
        kit, site_with_firmware(kit, **UNUSABLE, remote_shell=["sh", "-s"]), mode="other"
    )
    assert (found["BMCs"], found["scheduler"]) == (["BAD_INPUT"], ["OK"])


@pytest.mark.parametrize(
    ("scheduler", "back_end", "mode", "outcome"),
    [
        ("sge", "manual", "current", "NOT_NEEDED"),
        ("sge", "manual", "other", "CANNOT_DRAIN"),
        ("none", "manual", "other", "OK"),
    ],
)
def test_only_a_plan_that_changes_a_mode_needs_to_drain(
    kit: Kit, scheduler: str, back_end: str, mode: str, outcome: str
) -> None:
    site = site_with_firmware(kit, back_end=back_end, remote_shell=["sh", "-s"])
    assert outcomes(kit, with_partition(site, scheduler=scheduler), mode=mode)["scheduler"] == [
        outcome
    ]


@pytest.mark.parametrize(
    ("scratch", "found"),
    [
        ({}, "OK: n1"),
        ({"type": "lustre"}, "BAD_SCRATCH: type"),
        ({"source": "mgs@tcp:/home"}, "BAD_SCRATCH: source"),
        ({"path": "/nowhere/scratch"}, "BAD_SCRATCH: no such directory, the nearest is /"),
        ({"type": "lustre", "source": "a:/b", "mount": {"point": "/n"}, "path": "/n/x"}, "NOT_NE"),
    ],
)
def test_the_scratch_folder_is_checked_on_the_nodes(
    kit: Kit, tmp_path: Path, scratch: dict[str, object], found: str
) -> None:
    site = site_with_firmware(kit, remote_shell=["sh", "-s"])
    demand = Scratch.model_validate({"path": f"{tmp_path}", **scratch})
    (finding,) = scratch_findings(with_partition(site, scratch=demand), kit.plan())
    shown = finding.text.partition("found ")[2] or f"n1 {finding.text}"
    assert f"{finding.outcome}: {shown}".startswith(found)


def test_an_odd_answer_about_the_scratch_folder_is_one_of_its_node(
    kit: Kit, tmp_path: Path
) -> None:
    shell = ["sh", "-c", "case $1 in n1) echo odd ;; *) exec sh -s ;; esac", "shell", "{node}"]
    site = site_with_firmware(kit, remote_shell=shell)
    demand = Scratch(path=f"{tmp_path}", type="lustre")
    odd, wrong = scratch_findings(with_partition(site, scratch=demand), kit.plan())
    assert (odd.outcome, odd.nodes) == ("UNEXPECTED", ("n1",))
    assert (wrong.outcome, "lustre" in wrong.text) == ("BAD_SCRATCH", True)  # of the other node


@pytest.mark.parametrize("outcome", [Outcome.UNKNOWN, Outcome.UNREACHABLE])
def test_a_permission_that_cannot_be_read_is_not_ok(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, outcome: Outcome
) -> None:
    """It is a problem only if the scheduler does not answer."""

    def missing_permission(_scheduler: NoScheduler, _node: str) -> str:
        raise NodeError(outcome, "no answer")

    monkeypatch.setattr(NoScheduler, "missing_permission", missing_permission)
    site = site_with_firmware(kit, remote_shell=["sh", "-s"])
    findings = preflight(site, changing(kit.plan()), CREDENTIALS, None, "root")
    (finding,) = (each for each in findings if each.what.startswith("scheduler:"))
    assert (finding.outcome, finding.text) == (outcome, "no answer")
    assert finding.bad == (outcome is Outcome.UNREACHABLE)


@pytest.mark.parametrize(
    ("origin", "outcome"), [("system", "TO_INSTALL"), ("preinstalled", "NO_PROGRAM")]
)
def test_a_program_that_the_build_installs_is_no_problem(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, origin: str, outcome: str
) -> None:
    monkeypatch.setattr(checks, "step_programs", lambda **_: {"no-such-program": DASH})
    site = with_partition(site_with_firmware(kit, remote_shell=["sh", "-s"]), provision_from=origin)
    assert outcomes(kit, site)["programs"] == [outcome]


def test_a_run_user_that_this_host_does_not_have_is_named(kit: Kit) -> None:
    site = site_with_firmware(kit, remote_shell=["sh", "-s"])
    assert outcomes(kit, site, user="no such user")["nodes"] == ["NO_USER"]


def test_the_program_that_stops_jobs_is_looked_for(
    kit: Kit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = with_partition(
        site_with_firmware(kit, remote_shell=["/bin/sh", "-s"]), scheduler="slurm"
    )
    monkeypatch.setenv("PATH", str(tmp_path))
    assert outcomes(kit, site)["stop"] == ["NO_STOP"]
    (tmp_path / "scancel").write_text("#!/bin/sh\n")
    (tmp_path / "scancel").chmod(0o755)
    assert outcomes(kit, site)["stop"] == ["OK"]


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
    assert outcomes(kit, site_with_firmware(kit, remote_shell=command))["nodes"] == ["OK", outcome]


def test_the_log_in_to_each_bmc_is_checked(kit: Kit, emulator: Emulator) -> None:
    address = "127.9.0.{number + 1}"
    redfish = {"back_end": "redfish", "bmc": address, "port": emulator.port}
    site = site_with_firmware(kit, **redfish, ca=str(emulator.ca), remote_shell=["sh", "-s"])
    assert outcomes(kit, site, mode="other")["BMCs"] == ["OK", "BAD_CERTIFICATE"]
    assert outcomes(kit, site)["BMCs"] == ["NOT_NEEDED"]


@pytest.mark.fault("bmc-lockdown")
def test_a_bmc_that_refuses_changes_is_named(kit: Kit, tmp_path: Path) -> None:
    faults = {"n2": "lockdown"}
    with VendorEmulator("idrac-intel", ["n1", "n2"], tmp_path / "bmc", faults=faults) as emulator:
        address = {"bmc": "127.9.0.{number + 1}", "port": emulator.port, "ca": str(emulator.ca)}
        redfish = {"back_end": "redfish", **address, "remote_shell": ["sh", "-s"]}
        site = site_with_firmware(kit, **redfish, vendor="idrac")
        assert outcomes(kit, site, mode="other")["BMCs"] == ["OK", "BLOCKED"]
        assert outcomes(kit, site, mode="current")["BMCs"] == ["NOT_NEEDED"]


def test_a_window_that_is_too_short_is_named(kit: Kit) -> None:
    site = site_with_firmware(kit, remote_shell=["sh", "-s"])
    assert outcomes(kit, site)["maintenance"] == ["NOT_GIVEN"]
    assert outcomes(kit, site, datetime.now(UTC))["maintenance"] == ["TOO_SHORT"]


@pytest.mark.parametrize(
    ("count", "outcome"), [(12, "OK"), (24, "LESS_HARDWARE"), (0, "NOT_NEEDED")]
)
def test_the_parts_of_the_nodes_are_those_that_were_bought(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, count: int, outcome: str
) -> None:
    """The nodes print the probe of a real machine with 12 modules."""
    probe = (PROBES / "skl-2x6148.txt").read_text(encoding="utf-8")
    node = stated_node(memory={"modules": count}) if count else StatedNode()
    site = with_partition(kit.site(hosts=("n1", "n2")), node=node)
    silent = "=== dimms\n! dimms: needs root\n=== more\n"
    for text, expected in (
        (probe, outcome),
        (probe.replace("=== dimms\n", silent), "UNKNOWN" if count else outcome),
        ("no probe", "UNEXPECTED" if count else outcome),
    ):
        printed = {node: NodeProcess([], 0, text, "", 0.0) for node in site.hosts}
        monkeypatch.setattr(checks, "run_text", lambda *_, found=printed: (found, {}))
        (finding,) = checks._parts(site)
        assert (finding.outcome, finding.bad) == (
            expected,
            expected in ("LESS_HARDWARE", "UNEXPECTED"),
        )


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ("sbatch: error: Batch job submission failed: Invalid qos specification", "REFUSED"),
        ("allocation failure: Unable to contact slurm controller", "NO_ANSWER"),
        ("sbatch: error: Zero Bytes were transmitted or received", "NO_ANSWER"),
        ("sbatch: error: Job violates accounting/QOS policy: AssocMaxSubmitJobLimit", "NO_ANSWER"),
    ],
)
def test_only_a_final_answer_to_the_trial_of_a_job_is_a_refusal(
    kit: Kit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str, outcome: str
) -> None:
    commands = {"sinfo": "exit 0", "scontrol": "exit 0", "sbatch": f"echo '{answer}' >&2; exit 1"}
    for name, body in commands.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    site = with_partition(site_with_firmware(kit), scheduler="slurm")
    job = Request("p1", ["n1"], 60, tmp_path / "log", site.partition.queue)
    *_, found = scheduler_findings(site, [job], "root")
    assert (found.outcome, found.text.rpartition("sbatch: ")[2] != "") == (outcome, True)

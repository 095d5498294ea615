"""The commands of modes with the emulated BMC of sushy-tools, which is not of this project."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.emulators.bmc.foreign import foreign_python
from tests.emulators.bmc.server import PASSWORD, USER
from tests.fixtures.phi import FLAT, Phi, phi_site
from tests.folders import ROOT

from proofmark.runs.run import Run
from proofmark.site.inventory import load_site

pytestmark = pytest.mark.soak

TURBO = {value: {"ProcTurboMode": value} for value in ("Enabled", "Disabled")}
MODES = {
    "turbo": {"settings": {"turbo": "Enabled", "quiet": "true"}, "topology": FLAT},
    "steady": {"settings": {"turbo": "Disabled", "quiet": "false"}, "topology": FLAT},
}
ADDRESS, PORT = "127.35.0.{number + 1}", 8443


def await_port(address: str, process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        try:
            socket.create_connection((address, PORT), 1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError("the emulated BMC does not listen")


def stop(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.fixture
def site(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Phi]:
    """Yield a site of two nodes, each with a BMC of sushy-tools."""
    python = foreign_python(tmp_path_factory)
    with phi_site(tmp_path, monkeypatch) as phi, ExitStack() as stack:
        for number, node in enumerate(phi.nodes):
            folder = tmp_path / f"sushy-{node}"
            folder.mkdir()
            address = f"127.35.0.{number + 1}"
            authority = phi.emulator.authority
            certificate = authority.certificate(address)
            words: list[Any] = [folder, address, PORT, certificate, authority.key, USER, PASSWORD]
            with (folder / "log").open("w") as log:
                script = ROOT / "tests/emulators/bmc/sushy_bmc.py"
                process = subprocess.Popen(
                    [*map(str, (python, script, *words, phi.emulator.nodes / node))],
                    stdout=log,
                    stderr=log,
                    text=True,
                    start_new_session=True,
                )
            stack.callback(stop, process)
            await_port(address, process)
        write_inventory(phi)
        yield phi


def write_inventory(phi: Phi, **firmware: Any) -> None:
    facts: dict[str, Any] = {"port": PORT, "smbios": None}
    facts["attributes"] = {"turbo": TURBO, "quiet": "QuietBoot"}
    phi.write_inventory(bmc=ADDRESS, **facts | firmware)
    path = phi.inventory / "group_vars" / "phi" / "partition.yml"
    written = yaml.safe_load(path.read_text())
    written["partition"] |= {"modes": MODES, "current_mode": "turbo"}
    path.write_text(yaml.safe_dump(written))


def run_of(site: Phi) -> Run:
    sweep = {"size": [1], "nodes": 1}
    site.kit.case(suites={"quick": {"modes": [*MODES], "scope": "each-node", "sweep": sweep}})
    return site.kit.run(site=load_site(site.inventory, "phi"), run_id="acc1")


def requests_of(site: Phi) -> list[list[str]]:
    """Return what each BMC was asked to change."""
    logs = (site.folder / f"sushy-{node}" / "requests.log" for node in site.nodes)
    return [log.read_text().splitlines() if log.exists() else [] for log in logs]


def test_a_mode_is_checked_entered_verified_and_restored(
    site: Phi, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of(site)
    assert site.main("modes", "check", run.folder, "--mode", "steady") == 0
    said = "".join(capsys.readouterr())
    assert (
        "QuietBoot: True → False, ProcTurboMode: Enabled → Disabled, drain, reset, resume" in said
    )
    assert requests_of(site) == [[], []]
    assert site.main("modes", "verify", run.folder, "--mode", "steady") == 1
    assert site.change("enter", run, "--mode", "steady") == 0, "".join(capsys.readouterr())
    changed = json.dumps({"QuietBoot": False, "ProcTurboMode": "Disabled"})
    assert requests_of(site) == [[changed, "GracefulRestart"]] * 2
    assert site.main("modes", "verify", run.folder, "--mode", "steady") == 0
    assert site.main("modes", "verify", run.folder, "--mode", "turbo") == 1
    assert site.change("restore", run) == 0
    assert all(len(each) == 4 and each[-1] == "GracefulRestart" for each in requests_of(site))
    assert site.main("modes", "verify", run.folder, "--mode", "turbo") == 0
    assert site.slurm.drained == {}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"reset_type": "PowerCycle"}, "no reset type 'PowerCycle'"),
        ({"auth": "session"}, "SessionService"),
        ({"ca": None}, "BAD_CERTIFICATE"),
        ({"system": "another"}, "Systems/another: 404"),
    ],
)
def test_what_cannot_be_done_is_refused_before_a_change(
    site: Phi, capsys: pytest.CaptureFixture[str], changes: dict[str, Any], said: str
) -> None:
    run = run_of(site)
    write_inventory(site, **changes)
    assert site.main("modes", "check", run.folder, "--mode", "steady") != 0
    assert site.change("enter", run, "--mode", "steady") != 0
    assert said in "".join(capsys.readouterr())
    assert requests_of(site) == [[], []] and site.slurm.drained == {}

"""The playbook that installs and removes the timer of the nightly check."""

from __future__ import annotations

import subprocess
from pathlib import Path
from shutil import which

import pytest
from tests.roles.kit import Kit

pytestmark = pytest.mark.slow

PLAYBOOK = "playbooks/gate_timer.yml"


@pytest.mark.root
def test_systemd_accepts_the_units_and_the_removal_leaves_nothing(kit: Kit, tmp_path: Path) -> None:
    units = tmp_path / "units"
    units.mkdir()
    given = {"gate_timer_start": False, "gate_timer_folder": f"{units}"}
    kit.settings(**given)
    refused = kit.play(PLAYBOOK)
    assert refused.code != 0
    assert refused.printed("gate_node_hours: found 0; accepted: the node-hours of one night")
    assert list(units.iterdir()) == []
    budget = ("-e", "gate_node_hours=4")
    # Each argument is one execution of the playbook. The second one changes nothing.
    assert kit.play(PLAYBOOK, PLAYBOOK, *budget).recap["changed"] == 1
    files = sorted(units.iterdir())
    assert [file.name for file in files] == [
        "proofmark-gate-local-local.service",
        "proofmark-gate-local-local.timer",
    ]
    program = which("systemd-analyze")
    assert program, "the package systemd is in requirements/debian-dev.txt"
    checked = subprocess.run(
        [program, "verify", *files], capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stderr) == (0, "")
    timer = files[1].read_text()
    assert "OnCalendar=" in timer
    files[1].write_text(timer.replace("OnCalendar=", "OnCalendar=now and then "))
    checked = subprocess.run(
        [program, "verify", *files], capture_output=True, text=True, check=False
    )
    assert "Failed to parse calendar" in checked.stderr, "control: the check can fail"
    kit.settings(**given, gate_timer_state="absent")
    removed = kit.play(PLAYBOOK, PLAYBOOK)
    assert (removed.code, removed.recap["changed"]) == (0, 1), removed.output
    assert list(units.iterdir()) == []

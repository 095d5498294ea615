"""What plays of root take from commands that ran as the run user."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml
from ansible.errors import AnsibleFilterError
from plugins.action.cli import _contents
from plugins.filter.kit import FilterModule
from tests.fixtures.phi import NOBODY
from tests.folders import ROOT, let_all_enter

from proofmark.machine.programs import called
from proofmark.runs.owner import as_writer

STEP_PACKAGES = FilterModule().filters()["step_packages"]


def test_the_packages_of_steps_are_those_of_the_kit() -> None:
    """Control: no fault is injected."""
    known = {each.debian for each in called().values() if "step" in each.needed} - {""}
    assert STEP_PACKAGES(known) == sorted(known)


@pytest.mark.fault("run-user-packages")
@pytest.mark.parametrize("name", ["; touch /x", "$(id)", "netcat", "-o", "", "{{ x }}"])
def test_a_package_that_the_kit_does_not_name_is_refused(name: str) -> None:
    with pytest.raises(AnsibleFilterError, match="step_packages: found"):
        STEP_PACKAGES(["numactl", name])


def test_each_value_in_a_line_of_a_shell_is_quoted() -> None:
    """The module `script` gives its line to a shell of the user of the play."""
    for path in sorted((ROOT / "roles").rglob("tasks/*.yml")):
        for task in yaml.safe_load(path.read_text(encoding="utf-8")) or []:
            line = task.get("ansible.builtin.script", {}).get("cmd", "")
            for part in line.split("{{")[1:]:
                expression = part.partition("}}")[0]
                assert "quote" in expression or "kernels" in expression, f"{path.name}: {line}"


@pytest.mark.root
@pytest.mark.fault("run-user-link")
def test_a_change_of_a_file_of_root_behind_a_link_is_not_seen(tmp_path: Path) -> None:
    let_all_enter(tmp_path)
    secret, run = tmp_path / "secret", tmp_path / "run"
    secret.mkdir(mode=0o700)
    (secret / "rc").write_text("of root")
    run.mkdir()
    (run / "rc").write_text("of the run user")
    (run / "steps").symlink_to(secret)
    os.chown(run, NOBODY.pw_uid, NOBODY.pw_gid)
    found = _contents([f"{run}/steps/rc", f"{run}/*/rc", f"{run}/rc"])
    assert list(found) == [f"{run}/rc"]
    os.chown(run, 0, 0)
    assert len(_contents([f"{run}/steps/rc", f"{run}/rc"])) == 2, "root made the link"


@pytest.mark.root
def test_the_first_other_user_on_the_way_counts(tmp_path: Path) -> None:
    let_all_enter(tmp_path)
    inner = tmp_path / "run/of-root"
    inner.mkdir(parents=True)
    for owner, expected in ((0, 0), (NOBODY.pw_uid, NOBODY.pw_uid)):
        os.chown(inner.parent, owner, owner)
        with as_writer(inner / "missing/*"):
            assert os.geteuid() == expected
    assert os.geteuid() == 0

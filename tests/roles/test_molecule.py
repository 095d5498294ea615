"""Each role has a scenario of molecule: create, converge, converge again, verify, destroy."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.folders import ROOT
from tests.processes import running
from tests.roles.kit import LONGEST_S, processes_of

SCENARIOS = ROOT / "extensions/molecule"
ROLES = sorted(path.name for path in (ROOT / "roles").iterdir() if path.is_dir())
DONE = ("create", "converge", "idempotence", "verify", "destroy")


@pytest.fixture
def folder() -> Iterator[Path]:
    """Yield the folder of a scenario's files; afterwards no process of it may be left."""
    with tempfile.TemporaryDirectory(prefix="proofmark-molecule-") as name:
        yield Path(name)
        assert processes_of(Path(name)) == []


def test_each_role_has_a_scenario_with_a_second_run_and_a_check() -> None:
    found = {path.parent.name: path for path in SCENARIOS.glob("*/molecule.yml")}
    assert sorted(found) == ROLES
    for role, path in found.items():
        assert yaml.safe_load(path.read_text(encoding="utf-8"))["scenario"] == {"name": role}
        called = f"name: proofmark.kit.{role}\n"
        assert called in path.with_name("converge.yml").read_text(encoding="utf-8"), role
        assert "ansible.builtin.assert" in path.with_name("verify.yml").read_text(encoding="utf-8")
    shared = yaml.safe_load((SCENARIOS / "config.yml").read_text(encoding="utf-8"))
    assert [each for each in shared["scenario"]["test_sequence"] if each != "prepare"] == [*DONE]


@pytest.mark.slow
@pytest.mark.soak  # each takes ten to twenty seconds of CPU time
@pytest.mark.root
@pytest.mark.parametrize("role", ROLES)
def test_the_scenario_of_a_role(role: str, folder: Path) -> None:
    tools = Path(sys.executable).parent
    with running(
        subprocess.Popen(
            [tools / "molecule", "test", "--scenario-name", role],
            cwd=ROOT,
            env={
                **os.environ,
                "PATH": f"{tools}:{os.environ['PATH']}",
                "LC_ALL": "C.UTF-8",
                "NO_COLOR": "1",
                "MOLECULE_EPHEMERAL_DIRECTORY": f"{folder}",
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
    ) as process:
        output, _ = process.communicate(timeout=LONGEST_S)
    assert process.returncode == 0, output
    ended = re.findall(rf"^{role} > (\w+): Executed: Successful$", output, re.MULTILINE)
    assert [action for action in ended if action != "prepare"] == [*DONE], output

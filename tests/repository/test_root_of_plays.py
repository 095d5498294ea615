"""What plays take from commands."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.errors import AnsibleFilterError
from plugins.filter.kit import FilterModule
from tests.folders import ROOT
from tests.forks import tool

from proofmark.machine.node_commands import called

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


PLAY = """
- hosts: n1
  gather_facts: false
  vars:
    plan_summary: "{{ lookup('ansible.builtin.file', 'summary.json') | from_json }}"
    plan_folder: runs/a
    plan_question: {}
  tasks:
    - ansible.builtin.include_tasks: TASKS
    - ansible.builtin.debug:
        msg: "{{ plan_run | to_json }}, {{ plan_run.suite }}, {{ plan_run.modes | join }}"
"""
SUMMARY: dict[str, Any] = {
    **{"suite": "quick", "partition": "knl", "nodes": 1, "node_set": "n1", "modes": [""]},
    **{
        "packages": [],
        "step_packages": [],
        "cost": "suite: quick",
        "nodes_arrive": True,
        "only": "n1",
    },
    "representative": "n1",
}


def remembered(folder: Path, **changes: object) -> subprocess.CompletedProcess[str]:
    """Run the tasks that set facts from the output of a command."""
    inventory = {"knl": {"hosts": {"n1": {"ansible_connection": "local"}}}}
    (folder / "hosts.yml").write_text(yaml.safe_dump(inventory))
    (folder / "summary.json").write_text(json.dumps({**SUMMARY, **changes}))
    tasks = ROOT / "roles/plan/tasks/remember.yml"
    (folder / "play.yml").write_text(PLAY.replace("TASKS", f"{tasks}"))
    command = [tool("ansible-playbook"), "-i", "hosts.yml", "play.yml"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_a_play_takes_the_names_of_the_inventory(tmp_path: Path) -> None:
    """Control: no fault is injected."""
    done = remembered(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.fault("name-outside-the-inventory")
@pytest.mark.parametrize("key", ["representative", "partition"])
def test_a_name_that_the_inventory_does_not_have_is_refused(tmp_path: Path, key: str) -> None:
    proof = tmp_path / "executed"
    for name in ("evil.example", f"{{{{ lookup('pipe', 'touch {proof}') }}}}"):
        done = remembered(tmp_path, **{key: name})
        assert done.returncode != 0 and "accepted: names of the inventory" in done.stdout
    assert not proof.exists()


@pytest.mark.fault("name-outside-the-inventory")
def test_no_text_of_the_output_is_a_template(tmp_path: Path) -> None:
    proof = tmp_path / "executed"
    evil = f"{{{{ lookup('pipe', 'touch {proof}') }}}}"
    texts = {name: evil for name in ("suite", "node_set", "cost", "only")}
    lists = {name: [evil] for name in ("modes", "packages", "step_packages")}
    done = remembered(tmp_path, **texts, **lists, nodes=evil, nodes_arrive=evil)
    assert done.returncode == 0 and "touch" in done.stdout, done.stdout + done.stderr
    assert not proof.exists()

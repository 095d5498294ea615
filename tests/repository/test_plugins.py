"""The Ansible plugins without a play; tests/roles tests them in plays."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.errors import AnsibleFilterError, AnsibleLookupError
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from plugins.action.cli import _option_words
from plugins.filter.kit import probes, system_packages
from plugins.lookup.failed_nodes import failed_nodes, few_or
from plugins.lookup.nodes_to_mark import patterns
from plugins.lookup.result_folder import LookupModule
from plugins.lookup.selected_hosts import first_of
from plugins.modules import cli as documentation
from tests.folders import ROOT
from tests.forks import tool


def test_documented_options_are_those_of_the_action() -> None:
    source = ast.parse((ROOT / "plugins/action/cli.py").read_text(encoding="utf-8"))
    (spec,) = (
        keyword.value
        for node in ast.walk(source)
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "argument_spec"
    )
    assert yaml.safe_load(documentation.DOCUMENTATION)["options"] == {
        name: {**option, "description": described(name)}
        for name, option in ast.literal_eval(spec).items()
    }


def described(name: str) -> Any:
    """Return the documented description of an option, which must be text."""
    text = yaml.safe_load(documentation.DOCUMENTATION)["options"][name]["description"]
    assert all(isinstance(line, str) for line in ([text] if isinstance(text, str) else text))
    return text


def test_options_become_words_of_a_command_line() -> None:
    options = {
        "inventory": ["a", "b"],
        "limit": "local",
        "run-id": "",
        "fresh": False,
        "strict": True,
    }
    assert _option_words(options) == ["--inventory=a", "--inventory=b", "--limit=local", "--strict"]


def test_probes_have_an_output_per_package_and_the_prefixes_of_pip() -> None:
    results = [
        {"item": {"package": "fio", "prefix": ""}, "stdout": "fio of Debian"},
        {"item": {"package": "imb", "prefix": "/p/impi"}, "stdout": "imb of pip"},
        {"item": {"package": "ior"}, "stdout": "ior of Spack"},
    ]
    assert json.loads(probes(results, "facts")) == {
        "node": "facts\n",
        "packages": {
            "fio": {"output": "fio of Debian\n", "prefix": ""},
            "imb": {"output": "imb of pip\n", "prefix": "/p/impi"},
            "ior": {"output": "ior of Spack\n", "prefix": ""},
        },
    }


def test_bad_input_becomes_an_error_of_ansible() -> None:
    with pytest.raises(AnsibleFilterError, match="no package 'hpc'"):
        system_packages(["hpc"], f"{ROOT}/environments", "knl", "/p")


def test_a_python_without_the_package_is_refused_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "proofmark.api", None)
    with pytest.raises(AnsibleLookupError, match=re.escape(f"; `pip install {ROOT}`, in a ")):
        LookupModule().run([".provision"])


@pytest.mark.parametrize(
    ("failed", "written", "found"),
    [
        ({"failed_nodes": {"n2": "refused"}}, {}, {"n2": "refused"}),
        ({"failed_nodes": {}}, {}, {}),
        ({}, {"rc": 1}, {}),  # no verdict: a failure of the stage itself
        ({}, {"json": {}, "failed_nodes": {"n3": "slow"}}, {"n1": "down", "n3": "slow"}),
        ({}, {"json": {}, "failed_nodes": {"n1": "slow"}}, {"n1": "slow"}),
    ],
    ids=["task", "task-without-nodes", "no-verdict", "verdict", "verdict-before-left-out"],
)
def test_the_failed_nodes_are_those_of_the_task_or_of_the_verdict(
    failed: dict[str, Any], written: dict[str, Any], found: dict[str, str]
) -> None:
    assert failed_nodes(failed, written, {"n1": "down"}) == found


@pytest.mark.parametrize(
    ("nodes", "marked"),
    [(1, ["n1"]), (2, ["n1", "n2"]), (3, ["r"]), (0, ["r"])],
    ids=["one", "most", "too-many", "no-single-node"],
)
def test_the_representative_failed_if_not_a_few_nodes_did(nodes: int, marked: list[str]) -> None:
    failed = {f"n{number + 1}": "refused" for number in range(nodes)}
    assert list(few_or(failed, 2, {"r": "the task above"})) == marked


@pytest.mark.parametrize(
    ("failed", "selected", "hosts"),
    [
        ([], 3, ["!all"]),
        (["n2"], 3, ["compute"]),
        (["n2", "n1"], 3, ["compute"]),
        (["n2", "n1"], 4, ["n2", "n1"]),
        (["n1"], 3, ["n1"]),
    ],
    ids=["none-failed", "few-selected", "two-failed", "many-selected", "partition"],
)
def test_the_hosts_of_the_play_that_marks_nodes(
    failed: list[str], selected: int, hosts: list[str]
) -> None:
    assert patterns(failed, "n1", selected, 3) == hosts


PLAY = """
- {name: Nobody, hosts: nobody, gather_facts: false, tasks: [{ansible.builtin.debug: {msg: no}}]}
- name: Stage
  hosts: localhost
  gather_facts: false
  tasks:
    - {name: Left out, ansible.builtin.debug: {msg: left}, when: false}
    - {name: Said, ansible.builtin.debug: {msg: "TEXT"}}
    - {name: Known, ansible.builtin.set_fact: {fact: 1}}
    - {name: Wrong, ansible.builtin.assert: {that: not wrong | bool, fail_msg: it is wrong}}
"""
TEXT = "a line that is longer than eighty characters, which the format of a message would break"


@pytest.mark.parametrize("wrong", [False, True])
def test_an_acceptance_prints_stages_messages_and_failures(tmp_path: Path, wrong: bool) -> None:
    (tmp_path / "play.yml").write_text(PLAY.replace("TEXT", TEXT))
    settings = {
        "ANSIBLE_CALLBACK_PLUGINS": f"{ROOT / 'plugins' / 'callback'}",
        "ANSIBLE_STDOUT_CALLBACK": "progress",
    }
    command = [tool("ansible-playbook"), "-i", "localhost,", "-c", "local", "play.yml"]
    command += ["-e", f"wrong={wrong}".lower()]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **settings},
    )
    lines = [line for line in done.stdout.splitlines() if line]
    assert lines[:2] == ["Stage", f"    {TEXT}"], done.stdout + done.stderr
    assert "skipping" not in done.stdout and "Nobody" not in done.stdout
    assert bool(done.returncode) is wrong
    assert ("it is wrong" in done.stdout + done.stderr and "PLAY RECAP" in done.stdout) is wrong
    assert wrong or len(lines) == 2


@pytest.mark.parametrize(("host", "found"), [("n1", "n1"), ("!n1", "compute")])
def test_the_first_host_is_selected_by_its_name_if_that_is_no_pattern(
    tmp_path: Path, host: str, found: str
) -> None:
    hosts = {"all": {"children": {"compute": {"hosts": {host: None, "n2": None}}}}}
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump(hosts))
    manager = InventoryManager(loader=DataLoader(), sources=[f"{tmp_path}/hosts.yml"])
    assert first_of(manager, "compute") == [found]

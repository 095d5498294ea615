"""The Ansible plugins without a play; tests/roles tests them in plays."""

from __future__ import annotations

import ast
from typing import Any

import pytest
import yaml
from ansible.errors import AnsibleFilterError
from plugins.action.cli import _spelt
from plugins.filter.kit import cost, needs, nodes, packages, provided
from plugins.modules import cli as documentation
from tests.folders import ROOT


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


def test_options_are_spelt_as_the_command_line_wants_them() -> None:
    options = {
        "inventory": ["a", "b"],
        "limit": "local",
        "run-id": "",
        "fresh": False,
        "strict": True,
    }
    assert _spelt(options) == ["--inventory=a", "--inventory=b", "--limit=local", "--strict"]


def test_packages_of_a_plan_are_named_once() -> None:
    steps = [{"package": name} for name in ("hpcc", "fio", "hpcc")]
    plan = {"groups": [{"jobs": [{"steps": steps}]}, {"jobs": [{"steps": steps[:1]}]}]}
    assert packages(plan) == ["fio", "hpcc"]


def test_nodes_of_a_plan_count_once() -> None:
    jobs = [{"nodes": ["knl[0001-0004]"]}, {"nodes": ["knl0003", "knl0009"]}]
    assert nodes({"groups": [{"jobs": jobs[:1]}, {"jobs": jobs}]}) == 5


def test_cost_of_a_plan_is_one_line() -> None:
    totals = {
        "jobs": 2,
        "steps": 16,
        "node_hours": 0.5,
        "wall_s": 187,
        "scratch_peak_bytes": 3 * 2**30,
    }
    line = cost({"suite": "quick", "partition": "knl", "totals": totals})
    for words in ("suite: quick", "knl", "steps: 16", "3 min 07 s", "0.50", "3.0 GiB"):
        assert words in line


def test_provided_names_a_probe_each_and_the_prefixes_there_are() -> None:
    needs_of_plan = [{"package": "fio", "prefix": ""}, {"package": "imb", "prefix": "/p/impi"}]
    assert provided(needs_of_plan, "/probes", "system") == {
        "probe": ["/probes/fio.probe", "/probes/imb.probe"],
        "node": "/probes/node.facts",
        "prefix": ["imb=/p/impi"],
        "installed": False,
    }


def test_mistakes_reach_ansible_as_its_own_error() -> None:
    with pytest.raises(AnsibleFilterError, match="nothing on the package 'hpc'"):
        needs(["hpc"], f"{ROOT}/environments/local/system.yml", "/p")

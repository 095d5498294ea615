"""The Ansible plugins without a play; tests/roles tests them in plays."""

from __future__ import annotations

import ast
from typing import Any

import pytest
import yaml
from ansible.errors import AnsibleFilterError
from plugins.action.cli import _option_words
from plugins.filter.kit import cost, nodes, packages, provide_options, system_packages
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


def test_options_become_words_of_a_command_line() -> None:
    options = {
        "inventory": ["a", "b"],
        "limit": "local",
        "run-id": "",
        "fresh": False,
        "strict": True,
    }
    assert _option_words(options) == ["--inventory=a", "--inventory=b", "--limit=local", "--strict"]


def test_each_package_of_a_plan_is_listed_once() -> None:
    steps = [{"package": name} for name in ("hpcc", "fio", "hpcc")]
    plan = {"groups": [{"jobs": [{"steps": steps}]}, {"jobs": [{"steps": steps[:1]}]}]}
    assert packages(plan) == ["fio", "hpcc"]


def test_each_node_of_a_plan_is_counted_once() -> None:
    jobs = [{"nodes": ["knl[0001-0004]"]}, {"nodes": ["knl0003", "knl0009"]}]
    assert nodes({"groups": [{"jobs": jobs[:1]}, {"jobs": jobs}]}) == 5


def test_the_cost_of_a_plan_is_one_line() -> None:
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


def test_provide_options_have_a_probe_per_package_and_the_prefixes_of_pip() -> None:
    entries = [{"package": "fio", "prefix": ""}, {"package": "imb", "prefix": "/p/impi"}]
    assert provide_options(entries, "/probes", "system") == {
        "probe": ["/probes/fio.probe", "/probes/imb.probe"],
        "node": "/probes/node.facts",
        "prefix": ["imb=/p/impi"],
        "installed": False,
    }


def test_bad_input_becomes_an_error_of_ansible() -> None:
    with pytest.raises(AnsibleFilterError, match="no package 'hpc'"):
        system_packages(["hpc"], f"{ROOT}/environments/local/system.yml", "/p")

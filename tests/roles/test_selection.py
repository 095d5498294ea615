"""A stage without nodes, or with an option that leaves out tasks, fails in its first play."""

from __future__ import annotations

import re
import resource
import sys
from pathlib import Path

import pytest
import yaml
from tests.folders import ROOT
from tests.roles.kit import DECLARED, Kit

pytestmark = pytest.mark.slow

HERE = {"ansible_connection": "local"}
LOGIN = {
    "all": {
        "hosts": {"login": HERE},
        "children": {"compute": {"children": {"local": {"hosts": {"localhost": HERE}}}}},
    }
}
"""An inventory with a host outside the partitions."""


def site(kit: Kit, name: str, hosts: object) -> tuple[str, str]:
    """Write an inventory; return the arguments of ansible-playbook that use it."""
    folder = kit.folder / "inventory" / name
    folder.mkdir(parents=True)
    (folder / "hosts.yml").write_text(yaml.safe_dump(hosts), encoding="utf-8")
    facts = kit.folder / "inventory/local/group_vars"
    (folder / "group_vars").symlink_to(facts)
    return "-i", f"inventory/{name}"


def refused(kit: Kit, playbook: str, *arguments: str) -> str:
    """Run a playbook that must fail in its first plays and change nothing; return its output."""
    before = kit.files()
    played = kit.play(playbook, *arguments)
    assert played.code != 0, played.output
    assert kit.files() == before
    plays = re.findall(r"PLAY \[(\w+)\]", played.output)
    assert plays in ([], ["Start"], ["Start", "Selection"])
    return " ".join(played.output.split())


def test_a_limit_to_a_partition_and_a_check_pass_the_first_play(kit: Kit) -> None:
    """The control; the acceptance without other hosts is in test_acceptance."""
    selected = (*site(kit, "login", LOGIN), "-l", "local")
    for arguments in (selected, selected[:2]):
        played = kit.play("playbooks/validate.yml", *arguments, "--check")
        assert (played.code, played.recap["changed"]) == (0, 0), played.output
        assert "PLAY [Validate]" in played.output


@pytest.mark.fault("empty-acceptance")
@pytest.mark.parametrize(
    ("hosts", "found"),
    [
        ({"all": {"hosts": {"localhost": HERE}}}, "no such group"),
        ({"all": {"children": {"knl": {"hosts": {"k1": HERE}}}}}, "no such group"),
        (
            {"all": {"children": {"compute": {"children": {"knl": {"hosts": {}}}}}}},
            "no host of this group",
        ),
    ],
)
def test_no_host_in_the_group_compute(kit: Kit, hosts: object, found: str) -> None:
    output = refused(kit, "acceptance.yml", *site(kit, "other", hosts))
    assert f"other/hosts.yml: all.children.compute: found {found}; accepted: hosts.yml" in output


@pytest.mark.fault("empty-acceptance")
def test_a_limit_to_a_host_that_is_not_in_compute(kit: Kit) -> None:
    output = refused(kit, "acceptance.yml", *site(kit, "login", LOGIN), "-l", "login")
    assert "-l: found login, which selects no host of the group compute; accepted: hosts" in output
    assert "the inventory has compute, local" in output


@pytest.mark.fault("yaml-slip")
def test_a_slip_of_yaml_in_the_variables_of_a_group(kit: Kit) -> None:
    selected = site(kit, "slip", LOGIN)
    (kit.folder / "inventory/slip/group_vars").unlink()
    variables = kit.folder / "inventory/slip/group_vars/local/more.yml"
    variables.parent.mkdir(parents=True)
    variables.write_text("one: 1\n  two: 2\n", encoding="utf-8")
    output = refused(kit, "acceptance.yml", *selected)
    assert f"{variables}:2: found not YAML: mapping values are not allowed" in output


@pytest.mark.fault("empty-acceptance")
def test_a_limit_to_no_host(kit: Kit) -> None:
    """Ansible itself refuses it."""
    output = refused(kit, "acceptance.yml", "-i", "inventory/local", "-l", "knl")
    assert "Could not match supplied host pattern, ignoring: knl" in output
    assert "leaves us with no hosts to target" in output


@pytest.mark.fault("empty-acceptance")
@pytest.mark.parametrize(
    ("options", "found"),
    [
        (["--tags", "run,report"], "found --tags report,run, which leaves out collect"),
        (["--skip-tags", "all"], "found --skip-tags all, where 'all' is no stage"),
        (["--tags", "biuld"], "'biuld' is no stage of the playbook, did you mean 'build'?"),
        (["--tags", "plan", "--skip-tags", "plan"], "which selects no stage; accepted: stages"),
        (["--start-at-task", "Judge and report"], "--start-at-task: found Judge and report"),
    ],
)
def test_an_option_that_leaves_out_tasks(kit: Kit, options: list[str], found: str) -> None:
    assert found in refused(kit, "acceptance.yml", *options)


@pytest.mark.parametrize("option", ["--list-tags", "--list-tasks", "--syntax-check"])
def test_an_option_that_only_lists_is_accepted(kit: Kit, option: str) -> None:
    """Ansible sets tags of its own for some of them. --list-hosts is in test_any_start."""
    listed = kit.play("acceptance.yml", option)
    assert listed.code == 0, listed.output


@pytest.mark.fault("empty-acceptance")
def test_a_tag_of_another_stage_is_refused(kit: Kit) -> None:
    output = refused(kit, "playbooks/run.yml", "--tags", "report")
    assert "'report' is no stage of the playbook; accepted: stages without a gap, of run" in output


STAGES = sorted(
    path.name
    for path in (ROOT / "playbooks").glob("*.yml")
    if path.name not in ("nodes.yml", "selection.yml")
)


@pytest.mark.fault("empty-acceptance")
@pytest.mark.parametrize("stage", STAGES)
def test_each_stage_begins_with_the_check(stage: str) -> None:
    plays = yaml.safe_load((ROOT / "playbooks" / stage).read_text(encoding="utf-8"))
    first = plays[0]["ansible.builtin.import_playbook"]
    assert first == ("plan.yml" if stage == "acceptance.yml" else "selection.yml")


@pytest.mark.fault("empty-acceptance")
@pytest.mark.parametrize("stage", [name for name in STAGES if name != "acceptance.yml"])
def test_each_play_of_a_stage_has_its_tag(stage: str) -> None:
    first, *plays = yaml.safe_load((ROOT / "playbooks" / stage).read_text(encoding="utf-8"))
    name = stage.removesuffix(".yml")
    assert first["vars"] == {"selection_stages": [name]}
    assert [play["tags"] for play in plays] == [[name]] * len(plays)


def test_the_acceptance_has_its_stages_in_their_order() -> None:
    text = (ROOT / "playbooks/acceptance.yml").read_text(encoding="utf-8")
    *plays, marks = yaml.safe_load(text)
    files = [play["ansible.builtin.import_playbook"].removesuffix(".yml") for play in plays]
    assert all(play["vars"] == {"selection_stages": files} for play in plays)
    assert (marks["ansible.builtin.import_playbook"], marks["tags"]) == (
        "nodes.yml",
        ["run", "collect"],
    )


@pytest.mark.fault("empty-acceptance")
def test_a_stage_alone_without_a_host(kit: Kit, tmp_path: Path) -> None:
    empty = site(kit, "empty", {"all": {"hosts": {"localhost": HERE}}})
    output = refused(kit, "playbooks/report.yml", *empty, "-e", f"run_id={tmp_path.name}")
    assert "empty/hosts.yml: all.children.compute: found no such group" in output


LARGE = {**DECLARED, "scheduler": "slurm", "scratch": {"path": "/scratch"}}


def validated_s(kit: Kit, nodes: int) -> float:
    """Validate a site of `nodes` hosts; return the CPU time of the play in seconds."""
    hosts: dict[str, object] = {f"n[0001:{nodes:04}]": {}}
    groups = {"compute": {"children": {"p": {"hosts": hosts}}}}
    folder = kit.folder / f"inventory/of-{nodes}"
    (folder / "group_vars").mkdir(parents=True)
    (folder / "hosts.yml").write_text(yaml.safe_dump({"all": {"children": groups}}))
    (folder / "group_vars/p.yml").write_text(yaml.safe_dump({"partition": LARGE}))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    site = ("-i", f"inventory/of-{nodes}")
    # This starts Ansible: a fork of tests.forks is no child, so that its CPU time is not known.
    played = kit.play("playbooks/validate.yml", *site, command=(sys.executable,))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert played.code == 0, played.output
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_the_cost_of_a_stage_is_not_quadratic_in_the_nodes(kit: Kit) -> None:
    """The ratio is more than ten if each host is compared with each other host."""
    assert validated_s(kit, 4000) < 5 * validated_s(kit, 500)


def test_a_check_that_reaches_no_node_prints_the_preview(kit: Kit) -> None:
    """The nodes of this site do not exist. The control is the check in test_rolling."""
    nodes = {"hosts": {name: {"ansible_host": f"{name}.invalid"} for name in ("n1", "n2")}}
    hosts = {"all": {"children": {"compute": {"children": {"local": nodes}}}}}
    kit.partition(**DECLARED)
    selected = (*site(kit, "away", hosts), "-l", "local")
    played = kit.play("acceptance.yml", *selected, "--check")
    assert (played.code, played.recap["unreachable"]) == (0, 0), played.output
    assert played.printed("modes: only ")
    last = " ".join(played.output.rpartition("TASK [")[2].split())
    assert "--check used the preview of the stage plan, and checked no node." in last
    assert "among them n1: " in last

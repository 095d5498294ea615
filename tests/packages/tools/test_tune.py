"""`proofmark tune accept`: from the search of a run to the facts of the partition."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.fixtures.kit import Kit, make_kit, steps_of
from tests.fixtures.phi import NOBODY
from tests.folders import let_all_enter

from proofmark.cli.main import main
from proofmark.cli.parser import BAD_INPUT
from proofmark.common.rights import this_user
from proofmark.jobs.execute import execute
from proofmark.records.read import figures_of
from proofmark.runs.identity import write_identity
from proofmark.runs.run import Run
from proofmark.site.partition import Partition

PROGRAM = 'echo "size $1"; echo "rate $(($1 * 100))"; echo END'
FACTS = {"block": "{size}", "double": "{2 * size}"}
NODE = {
    "cpu_model": "a processor",
    "architecture": "k10",
    "topology": "pack:1 [numa] core:2 pu:1",
    "assumed": {"block": "not measured yet", "clock": "of a manual"},
}


@pytest.fixture
def kit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kit:
    made = make_kit(tmp_path)
    monkeypatch.setenv("PROOFMARK_KIT", f"{tmp_path}")
    search = {"metric": "rate", "axes": ["size"], "facts": FACTS}
    made.case(sweep={"size": [1, 3, 2]}, suites={"quick": {"search": search}})
    made.program(PROGRAM)
    partition = {
        "node": NODE,
        "environment": "local",
        "scheduler": "none",
        "provision_from": "preinstalled",
        "scratch": {"path": "/scratch"},
        "facts": {"block": 7, "other": 8},
    }
    folder = made.folder / "here" / "group_vars" / "local"
    folder.mkdir(parents=True)
    (folder / "partition.yml").write_text(yaml.safe_dump({"partition": partition}))
    hosts = {"hosts": {"localhost": {"ansible_connection": "local"}}}
    groups = {"all": {"children": {"compute": {"children": {"local": hosts}}}}}
    (made.folder / "here" / "hosts.yml").write_text(yaml.safe_dump(groups))
    return made


def ended(kit: Kit) -> Run:
    run = kit.run()
    execute(run, "none", lambda line: None, figures_of)
    return run


def accept(kit: Kit, run: Run, *options: str) -> int:
    inventory = f"{kit.folder / 'here'}"
    return main(["tune", "accept", f"{run.folder}", "-i", inventory, *options])


def file_of(kit: Kit) -> Path:
    return kit.folder / "here" / "group_vars" / "local" / "tuned.yml"


def partition_of(kit: Kit) -> Partition:
    """Return the partition as a new process reads it: Ansible caches the files of a process."""
    code = (
        "import sys; from pathlib import Path; from proofmark.site.inventory import load_site; "
        "print(load_site(Path(sys.argv[1]), 'local').partition.model_dump_json())"
    )
    command = [sys.executable, "-c", code, f"{kit.folder / 'here'}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return Partition.model_validate_json(done.stdout)


def test_the_best_values_become_facts_with_their_source(
    kit: Kit, capsys: pytest.CaptureFixture[str]
) -> None:
    run = ended(kit)
    assert accept(kit, run, "--check", "--diff") == 0
    assert not file_of(kit).exists()
    shown = capsys.readouterr().out
    assert "+      block: 3" in shown
    assert "would change: " in shown
    assert accept(kit, run) == 0
    partition = partition_of(kit)
    assert partition.facts == {"block": 3, "double": 6, "other": 8}
    assert partition.node.assumed == {"clock": "of a manual"}
    assert f"run {run.id}, " in partition.node.sources["block"]
    assert "rate 300 MB/s" in partition.node.sources["block"]
    before = file_of(kit).read_text()
    assert accept(kit, run, "--diff") == 0
    assert file_of(kit).read_text() == before
    assert "changed" in capsys.readouterr().out.split("unchanged")[0]


def test_facts_of_other_cases_stay(kit: Kit) -> None:
    other = {"partition_tuned": {"another": {"source": "a run", "facts": {"other": 9}}}}
    file_of(kit).write_text(yaml.safe_dump(other))
    assert accept(kit, ended(kit)) == 0
    assert partition_of(kit).facts == {"block": 3, "double": 6, "other": 9}


def unfinished(kit: Kit) -> Run:
    return kit.run()


def invalid(kit: Kit) -> Run:
    kit.program("exit 1")
    return ended(kit)


def invalid_meanwhile(kit: Kit) -> Run:
    """Return a run whose outputs were changed after the decision."""
    run = ended(kit)
    for step in steps_of(run):
        for path in step.glob("execution-1/stdout"):
            path.write_text("size 1\nrate 900\nEND\n")
    return run


def without_search(kit: Kit) -> Run:
    kit.case()
    return ended(kit)


@pytest.mark.fault("search-without-result")
@pytest.mark.parametrize(
    ("made", "found"),
    [
        (unfinished, "an unfinished search: 1 steps are missing"),
        (invalid, "no point has a valid figure"),
        (invalid_meanwhile, "no point has a valid figure"),
        (without_search, "no search with facts"),
    ],
)
def test_a_run_without_a_valid_best_point_is_refused(
    kit: Kit, capsys: pytest.CaptureFixture[str], made: Any, found: str
) -> None:
    assert accept(kit, made(kit)) == BAD_INPUT
    assert found in capsys.readouterr().err
    assert not file_of(kit).exists()


def test_a_mistake_in_the_file_names_its_place(
    kit: Kit, capsys: pytest.CaptureFixture[str]
) -> None:
    run = ended(kit)
    file_of(kit).write_text("partition_tuned: {fake: {facts: {block: 3}}}\n")
    assert accept(kit, run) == BAD_INPUT
    assert "tuned.yml:1" in (shown := capsys.readouterr().err)
    assert "source" in shown


def sealed(run: Run) -> Run:
    """Seal a run after its user wrote the digests of the changed inputs."""
    write_identity(run.folder, this_user().name)
    assert main(["stage", "collect", f"{run.folder}"]) == 0
    return run


@pytest.mark.root
def test_a_run_of_another_user_is_refused(kit: Kit, capsys: pytest.CaptureFixture[str]) -> None:
    run = sealed(ended(kit))
    let_all_enter(kit.folder)
    for path in (run.folder, *run.folder.rglob("*")):
        os.chown(path, NOBODY.pw_uid, NOBODY.pw_gid)
    assert accept(kit, run) == BAD_INPUT
    assert "a folder of the user nobody" in capsys.readouterr().err
    assert not file_of(kit).exists()


def test_the_facts_of_a_run_are_accepted(kit: Kit) -> None:
    """Control: no fault is injected."""
    assert accept(kit, sealed(ended(kit))) == 0
    assert partition_of(kit).facts == {"block": 3, "double": 6, "other": 8}


def evil_unit(plan: dict[str, Any], evil: str) -> None:
    plan["searches"][0]["unit"] = evil


def evil_fact(plan: dict[str, Any], evil: str) -> None:
    plan["searches"][0]["rule"]["facts"] = {"block": "$(id -u)"}  # a part of commands of root


def evil_name(plan: dict[str, Any], evil: str) -> None:
    plan["searches"][0]["rule"]["facts"] = {"other": 1}


@pytest.mark.root
@pytest.mark.fault("run-user-template")
def test_a_template_in_the_plan_of_the_run_user_is_not_written(
    kit: Kit, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The next command of Ansible as root executed the template."""
    run = ended(kit)
    proof = tmp_path / "executed"
    evil = f"{{{{ lookup('ansible.builtin.pipe', 'id -u >{proof}') }}}}"
    plan: dict[str, Any] = json.loads(run.files.plan.read_text())
    for change in (evil_fact, evil_name, evil_unit):
        changed = deepcopy(plan)
        change(changed, evil)
        run.files.plan.write_text(json.dumps(changed))
        assert accept(kit, sealed(run)) == BAD_INPUT, change
        said = capsys.readouterr().err
        assert re.search("accepted: numbers and words|accepted: block, double", said), change
        assert not file_of(kit).exists(), change
    shown = ["-m", "ansible.builtin.debug", "-a", "msg={{ partition_tuned | default('') }}"]
    program, inventory = Path(sys.executable).parent / "ansible", kit.folder / "here"
    command = [f"{program}", "-i", f"{inventory}", "all", *shown]
    subprocess.run(command, capture_output=True, check=True)
    assert not proof.exists()

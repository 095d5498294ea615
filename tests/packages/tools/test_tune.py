"""`proofmark tune show`: from the search of a run to the facts of the partition."""

from __future__ import annotations

import json
import os
import re
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
from proofmark.packages.tools.tune import Tuned
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
}


PARTITION = {
    "environment": "local",
    "scheduler": "none",
    "provision_from": "preinstalled",
    "scratch": {"path": "/scratch"},
}


@pytest.fixture
def kit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kit:
    made = make_kit(tmp_path)
    monkeypatch.setenv("PROOFMARK_KIT", f"{tmp_path}")
    search = {"metric": "rate", "axes": ["size"], "facts": FACTS}
    made.case(sweep={"size": [1, 3, 2]}, suites={"quick": {"search": search}})
    made.program(PROGRAM)
    return made


def ended(kit: Kit) -> Run:
    run = kit.run()
    execute(run, "none", lambda line: None, figures_of)
    return run


def shown(run: Run) -> int:
    return main(["tune", "show", f"{run.folder}"])


def test_the_best_values_are_facts_with_their_source(
    kit: Kit, capsys: pytest.CaptureFixture[str]
) -> None:
    run = ended(kit)
    assert shown(run) == 0
    found = yaml.safe_load(capsys.readouterr().out)
    assert found["facts"] == {"block": 3, "double": 6}
    source = found["node"]["sources"]["block"]
    assert source.startswith(f"run {run.id}, ") and source.endswith("rate 300 MB/s")
    Partition.model_validate({**PARTITION, **found, "node": {**NODE, **found["node"]}})


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
    assert shown(made(kit)) == BAD_INPUT
    said = capsys.readouterr()
    assert found in said.err and not said.out


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
    assert shown(run) == BAD_INPUT
    assert "a folder of the user nobody" in capsys.readouterr().err


def test_the_facts_of_a_sealed_run_are_printed(
    kit: Kit, capsys: pytest.CaptureFixture[str]
) -> None:
    """Control: no fault is injected."""
    assert shown(sealed(ended(kit))) == 0
    assert "block: 3" in capsys.readouterr().out


def evil_unit(plan: dict[str, Any], evil: str) -> None:
    plan["searches"][0]["unit"] = evil


def evil_fact(plan: dict[str, Any], evil: str) -> None:
    plan["searches"][0]["rule"]["facts"] = {"block": "$(id -u)"}  # a part of commands of root


def evil_name(plan: dict[str, Any], evil: str) -> None:
    plan["searches"][0]["rule"]["facts"] = {"other": 1}


@pytest.mark.fault("run-user-template")
def test_a_template_in_the_plan_of_the_run_user_is_not_printed(
    kit: Kit, capsys: pytest.CaptureFixture[str]
) -> None:
    """The next command of Ansible as root would execute the template."""
    run = ended(kit)
    plan: dict[str, Any] = json.loads(run.files.plan.read_text())
    for change in (evil_fact, evil_name, evil_unit):
        changed = deepcopy(plan)
        change(changed, "{{ lookup('ansible.builtin.pipe', 'id -u') }}")
        run.files.plan.write_text(json.dumps(changed))
        capsys.readouterr()
        assert shown(sealed(run)) == BAD_INPUT, change
        said = capsys.readouterr()
        accepted = "accepted: numbers and words|accepted: block, double"
        assert re.search(accepted, said.err) and "block:" not in said.out, change


@pytest.mark.parametrize(
    "changes",
    [
        {"source": "a run, {{ x }}"},
        {"source": "#jinja2: x"},
        {"source": "a\nb"},
        {"facts": {"block": "{{ x }}"}},
        {"facts": {"block": "$(id)"}},
        {"facts": {"block": "../x"}},
        {"facts": {"a b": 1}},
    ],
)
def test_a_tuned_fact_is_a_number_or_a_word(changes: dict[str, Any]) -> None:
    good = {"source": "run a, step b: 5 MB/s", "facts": {"block": 3, "size": "256k"}}
    assert Tuned.model_validate(good)
    with pytest.raises(ValueError, match=r"validation error"):
        Tuned.model_validate({**good, **changes})

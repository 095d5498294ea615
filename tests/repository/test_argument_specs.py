"""The argument specs and the defaults of roles agree: Ansible does not apply defaults of a spec."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.folders import ROOT

ROLES = sorted(path for path in (ROOT / "roles").iterdir() if path.is_dir())


def read(path: Path) -> dict[str, Any]:
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(content, dict)
    return content


def entry_points(role: Path) -> dict[str, dict[str, Any]]:
    specs = read(role / "meta/argument_specs.yml")["argument_specs"]
    return {name: entry.get("options", {}) for name, entry in specs.items()}


def disagreements(options: dict[str, dict[str, Any]], defaults: dict[str, Any]) -> list[str]:
    """Return the disagreements between a role's specs (by entry point) and its defaults."""
    every = {name: option for entry in options.values() for name, option in entry.items()}
    problems = [
        f"{name}: in the defaults, not in a spec" for name in defaults.keys() - every.keys()
    ]
    for name, option in every.items():
        if (name in defaults) == bool(option.get("required")):
            problems.append(f"{name}: neither required nor with a default, or both")
        if "default" in option:
            problems.append(f"{name}: a default that Ansible would not apply")
        if "type" not in option:
            problems.append(f"{name}: without a type, which accepts anything")
        if not option.get("description"):
            problems.append(f"{name}: without a description")
        if option.get("type") == "list" and "elements" not in option:
            problems.append(f"{name}: a list of anything")
    return sorted(problems)


@pytest.mark.lint
@pytest.mark.parametrize("role", ROLES, ids=lambda path: path.name)
def test_specs_and_defaults_agree(role: Path) -> None:
    assert disagreements(entry_points(role), read(role / "defaults/main.yml")) == []


@pytest.mark.lint
@pytest.mark.parametrize("role", ROLES, ids=lambda path: path.name)
def test_every_task_file_that_a_playbook_calls_has_a_spec(role: Path) -> None:
    called = {
        task["ansible.builtin.include_role"].get("tasks_from", "main")
        for path in (role.parents[1] / "playbooks").rglob("*.yml")
        for task in tasks(yaml.safe_load(path.read_text(encoding="utf-8")))
        if task["ansible.builtin.include_role"]["name"].endswith(f".{role.name}")
    }
    assert called and called <= entry_points(role).keys()


def tasks(plays: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return every task of a playbook or task file that calls a role, as an include_role."""
    words = ("ansible.builtin.include_role", "ansible.builtin.import_role")
    calls = [{words[0]: task[word]} for task in plays for word in words if word in task]
    lists = ("tasks", "block", "rescue", "always")
    inner = [task for play in plays for name in lists for task in play.get(name, [])]
    return calls + (tasks(inner) if inner else [])


CONNECTION = {"ansible_python_interpreter"}
"""Variables of Ansible that a task may set."""


def variables(role: Path) -> set[str]:
    """Return the names of the variables that the files of a role set."""
    names: set[str] = set()
    for folder in ("defaults", "vars"):
        for path in (role / folder).glob("*.yml"):
            names |= read(path).keys()
    waiting = [
        task
        for path in (role / "tasks").glob("*.yml")
        for task in yaml.safe_load(path.read_text(encoding="utf-8"))
    ]
    for task in waiting:
        names |= task.get("vars", {}).keys() | task.get("ansible.builtin.set_fact", {}).keys()
        names |= {task.get("register"), task.get("loop_control", {}).get("loop_var")} - {None}
        waiting += [each for word in ("block", "rescue", "always") for each in task.get(word, [])]
    return names


@pytest.mark.lint
@pytest.mark.parametrize("role", ROLES, ids=lambda path: path.name)
def test_variables_have_the_prefix_of_the_role(role: Path) -> None:
    names = variables(role)
    assert names
    assert {name for name in names - CONNECTION if not name.startswith(f"{role.name}_")} == set()


@pytest.mark.lint
@pytest.mark.parametrize("role", ROLES, ids=lambda path: path.name)
def test_readme_begins_with_the_changes_of_the_role(role: Path) -> None:
    title, blank, first, *_ = (role / "README.md").read_text(encoding="utf-8").splitlines()
    assert (title, blank) == (f"# {role.name}", "")
    assert first.startswith("Changes ")


@pytest.mark.parametrize(
    ("option", "defaults", "complaint"),
    [
        ({"type": "str", "description": "x"}, {"a": 1}, ""),
        ({"type": "str", "description": "x", "required": True}, {}, ""),
        ({"type": "str", "description": "x"}, {}, "neither required nor with a default"),
        ({"type": "str", "description": "x", "required": True}, {"a": 1}, "or both"),
        ({"type": "str", "description": "x", "default": 1}, {"a": 1}, "would not apply"),
        ({"description": "x"}, {"a": 1}, "without a type"),
        ({"type": "list", "description": "x"}, {"a": 1}, "a list of anything"),
        ({"type": "str"}, {"a": 1}, "without a description"),
        ({"type": "str", "description": "x"}, {"a": 1, "b": 2}, "b: in the defaults"),
    ],
)
def test_disagreements_are_reported(
    option: dict[str, Any], defaults: dict[str, Any], complaint: str
) -> None:
    problems = disagreements({"main": {"a": option}}, defaults)
    assert [complaint in text for text in problems] == [True] * bool(complaint)

"""The argument specs, the defaults and the README of each role agree.

Ansible applies the defaults of ``defaults/main.yml``, and shows those of the specs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.role_pages import ROLES, entry_points, example, page, read


def disagreements(options: dict[str, dict[str, Any]], defaults: dict[str, Any]) -> list[str]:
    """Return the disagreements between a role's specs (by entry point) and its defaults."""
    every = {name: option for entry in options.values() for name, option in entry.items()}
    given = [(name, option) for entry in options.values() for name, option in entry.items()]
    problems = [
        f"{name}: in the defaults, not in a spec" for name in defaults.keys() - every.keys()
    ]
    for name, option in every.items():
        if (name in defaults) == bool(option.get("required")):
            problems.append(f"{name}: neither required nor with a default, or both")
        shown = [other.get("default") for other_name, other in given if other_name == name]
        if name in defaults and any(_text(each) != _text(defaults[name]) for each in shown):
            problems.append(f"{name}: another default in the spec than the one that is applied")
        if "type" not in option:
            problems.append(f"{name}: without a type, which accepts anything")
        if not option.get("description"):
            problems.append(f"{name}: without a description")
        if option.get("type") == "list" and "elements" not in option:
            problems.append(f"{name}: a list of anything")
    return sorted(problems)


def _text(default: Any) -> Any:
    """Return a default; a text without its line breaks."""
    return " ".join(default.split()) if isinstance(default, str) else default


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
    calls = [
        {words[0]: task[word], "vars": task.get("vars", {})}
        for task in plays
        for word in words
        if word in task
    ]
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
def test_readme_has_the_changes_requirements_an_example_and_the_variables(role: Path) -> None:
    text = (role / "README.md").read_text(encoding="utf-8")
    title, blank, first, *_ = text.splitlines()
    assert (title, blank) == (f"# {role.name}", "")
    assert first.startswith("Changes ")
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert headings == ["## Requirements", "## Example", "## Variables"]
    assert text == page(role), "python -m tests.role_pages writes the variables"


@pytest.mark.lint
@pytest.mark.parametrize("role", ROLES, ids=lambda path: path.name)
def test_the_example_is_a_play_with_variables_of_the_role(role: Path) -> None:
    (play,) = yaml.safe_load(example(role))
    assert {"name", "hosts"} < play.keys()
    calls = [*play.get("roles", []), *tasks(play.get("tasks", []))]
    given = {name for call in calls for name in call.get("vars", {})}
    names = {call.get("role") or call["ansible.builtin.include_role"]["name"] for call in calls}
    assert f"proofmark.kit.{role.name}" in names
    known = {name for each in ROLES for name in variables(each)}
    assert given and given <= known
    assert any(name.startswith(f"{role.name}_") for name in given)


@pytest.mark.parametrize(
    ("option", "defaults", "complaint"),
    [
        ({"type": "str", "description": "x", "default": 1}, {"a": 1}, ""),
        ({"type": "str", "description": "x", "default": "{{ b\n}}"}, {"a": "{{ b }}"}, ""),
        ({"type": "str", "description": "x", "required": True}, {}, ""),
        ({"type": "str", "description": "x"}, {}, "neither required nor with a default"),
        ({"type": "str", "description": "x", "required": True, "default": 1}, {"a": 1}, "or both"),
        ({"type": "str", "description": "x", "default": 2}, {"a": 1}, "another default"),
        ({"type": "str", "description": "x"}, {"a": 1}, "another default"),
        ({"description": "x", "default": 1}, {"a": 1}, "without a type"),
        ({"type": "list", "description": "x", "default": 1}, {"a": 1}, "a list of anything"),
        ({"type": "str", "default": 1}, {"a": 1}, "without a description"),
        ({"type": "str", "description": "x", "default": 1}, {"a": 1, "b": 2}, "b: in the defaults"),
    ],
)
def test_disagreements_are_reported(
    option: dict[str, Any], defaults: dict[str, Any], complaint: str
) -> None:
    problems = disagreements({"main": {"a": option}}, defaults)
    assert [complaint in text for text in problems] == [True] * bool(complaint)

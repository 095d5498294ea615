"""An advice names a variable of a call in the words of the command in which it stands."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.folders import PACKAGE, ROOT

from proofmark.cli.main import main
from proofmark.site.extra_vars import call_variables

OF_PLAYBOOKS = {
    "judge/ending.py": "it stands behind a command of ansible-playbook",
    "packages/service/__init__.py": "a plan has it, which is sealed",
}
"""Files with a variable of ansible-playbook in a text, each with the reason."""
VARIABLE = re.compile(r"(?<![\w-])-e (" + "|".join(call_variables()) + r")\b")


def texts(tree: ast.AST) -> Iterator[str]:
    """Yield each text of a module that is no docstring."""
    parts: set[int] = set()
    for each in ast.walk(tree):
        if isinstance(each, ast.JoinedStr):
            parts |= {id(part) for part in each.values}
    for each in ast.walk(tree):
        if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant):
            parts.add(id(each.value))
        if isinstance(each, ast.JoinedStr):
            yield ast.unparse(each)
        if isinstance(each, ast.Constant) and isinstance(each.value, str) and id(each) not in parts:
            yield each.value


def test_no_text_names_a_variable_but_by_the_words_of_its_command() -> None:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = f"{path.relative_to(PACKAGE)}"
        code = path.read_text()
        if "-e " not in code:
            continue  # a syntax tree takes longer than all the rest
        for text in texts(ast.parse(code)):
            if VARIABLE.search(text) and "ansible-playbook" not in text:
                found.append((name, text))
    assert {name for name, _ in found} == {*OF_PLAYBOOKS}, found


@pytest.fixture(autouse=True)
def kit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


SITE = (
    "-i",
    "inventory/example-grace",
    "-l",
    "grace",
    "--suite",
    "p1",
    "--prefixes",
    "/opt/proofmark",
)
PLAN = ("plan", *SITE)


@pytest.mark.fault("advice-of-another-command")
def test_a_refused_plan_names_its_own_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*PLAN, "--create", "--runs", f"{tmp_path}"]) == 3
    said = capsys.readouterr().err
    assert "another suite, or --accept-unjudged\n" in said
    assert "-e accept" not in said


def test_a_plan_that_a_playbook_creates_names_the_variable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    number = os.open(tmp_path / "failed", os.O_WRONLY | os.O_CREAT)
    create = [*PLAN, "--create", "--runs", f"{tmp_path}"]
    assert main([f"--failed-nodes-fd={number}", *create]) == 3
    assert "another suite, or -e accept_unjudged=true\n" in capsys.readouterr().err


def test_a_command_without_the_option_names_the_program_of_the_variable(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`plan` without ``--create`` refuses ``--accept-unjudged``."""
    for words in (PLAN, ("check", *SITE)):
        assert main([*words]) == 0
        assert "without -e accept_unjudged=true of ansible-playbook" in capsys.readouterr().out


def test_a_wrong_option_of_a_playbook_is_named_as_its_variable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = ["check", "--nodes", "-i", "inventory/local", "--window-ends", "soon"]
    assert main(wrong) == 3
    assert capsys.readouterr().err.startswith("proofmark: --window-ends: found 'soon'")
    number = os.open(tmp_path / "failed", os.O_WRONLY | os.O_CREAT)
    assert main([f"--failed-nodes-fd={number}", *wrong]) == 3
    assert capsys.readouterr().err.startswith("proofmark: -e window_ends: found 'soon'")

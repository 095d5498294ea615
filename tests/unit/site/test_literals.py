"""What the kit writes into an inventory is read by Ansible as it was found."""

from __future__ import annotations

import ast
import base64
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from tests.folders import PACKAGE

from proofmark.packages.survey.answers import Entry, Fact, Question
from proofmark.packages.survey.inventory_files import _section
from proofmark.site.groups import UNSAFE, is_template, literal_yaml

TOUCH = "lookup('ansible.builtin.pipe', 'touch {file}')"
TEXTS = [
    "{{ " + TOUCH + " }}",
    "a {{ " + TOUCH + " }} b",
    "{% if " + TOUCH + " %}x{% endif %}",
    "{# a comment #}x",
    "#jinja2: variable_start_string:'[[', variable_end_string:']]'\n[[ " + TOUCH + " ]]",
    "!unsafe x",
    "{braces}",
    "'\"\\ \n\t",
]


def read_by_ansible(folder: Path, text: str, name: str = "found") -> Any:
    """Return an expression of the variables `text`, as a template of Ansible reads it."""
    (folder / "group_vars").mkdir(exist_ok=True)
    (folder / "hosts.yml").write_text("all: {hosts: {n1: {ansible_connection: local}}}\n")
    (folder / "group_vars/all.yml").write_text(text)
    program = Path(sys.executable).parent / "ansible"
    command = [f"{program}", "-i", f"{folder / 'hosts.yml'}", "n1", "-o"]
    shown = ["-m", "ansible.builtin.debug", "-a", f"msg={{{{ {name} | to_json | b64encode }}}}"]
    done = subprocess.run([*command, *shown], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (line,) = done.stdout.splitlines()
    return json.loads(base64.b64decode(json.loads(line.partition("=> ")[2])["msg"]))


@pytest.mark.fault("template-in-a-fact")
def test_ansible_evaluates_no_text(tmp_path: Path) -> None:
    proof = tmp_path / "executed"
    texts = [text.replace("{file}", f"{proof}") for text in TEXTS]
    value = {"list": texts, "map": {f"k{n}": text for n, text in enumerate(texts)}, "number": 1.5}
    written = literal_yaml({"block": value}) + f"flow: {literal_yaml(value, flow=True)}"
    assert read_by_ansible(tmp_path, written, "[block, flow]") == [value, value]
    assert not proof.exists()


@pytest.mark.fault("template-in-a-fact")
def test_sources_questions_and_assumptions_of_init_are_literals(tmp_path: Path) -> None:
    proof = tmp_path / "executed"
    evil = "{{ " + TOUCH.replace("{file}", f"{proof}") + " }}"
    entries: dict[str, Entry] = {
        "fact": Fact("x", evil),
        "question": Question(evil),
    }
    lines: list[str] = []
    for name, entry in entries.items():
        section = _section("node", {"node.cpu_model": entry})
        lines += [f"{name}:", *(f"  {line}" for line in section)]
    found = read_by_ansible(tmp_path, "\n".join(lines), f"[{', '.join(entries)}]")
    assert len(found) == len(entries) and all(evil in repr(each) for each in found)
    assert not proof.exists()


def test_a_text_without_a_template_has_no_tag() -> None:
    """Control: no fault is injected."""
    value = {"a": ["x y", "{z}", "", "# x", 1, None, True]}
    assert yaml.safe_load(literal_yaml(value)) == value
    assert UNSAFE not in literal_yaml(value).replace("'!unsafe", "")


@given(text=st.text() | st.text("a \x85\u2028\u2029\n\ufeff'\"#:-{%"))
@example(text="\x85")
@example(text="a\u2028 b")
def test_a_text_is_plain_or_tagged(text: str) -> None:
    written = literal_yaml({"a": text})
    assert (f"a: {UNSAFE} " in written) is is_template(text)
    assert yaml.safe_load(written.replace(f"a: {UNSAFE} ", "a: ")) == {"a": text}


def test_one_module_writes_yaml_of_inventories() -> None:
    """`yaml.dump` is called in no other module, except for files of Spack, EasyBuild and others."""
    found = {
        f"{path.relative_to(PACKAGE)}"
        for path in PACKAGE.rglob("*.py")
        if re.search(r"\byaml\.\w*dump", text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and node.attr in ("dump", "safe_dump", "dump_all")
        if isinstance(node.value, ast.Name) and node.value.id == "yaml"
    }
    assert found == {
        "site/groups.py",
        "software/spack/installation.py",
        "software/spack/site_choice.py",
    }

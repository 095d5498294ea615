"""The mutation test finds a condition that no test checks, and nothing else."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tests.bench import mutants
from tests.folders import ROOT

SOURCE = """
LIMIT = 3

def verdict(outcomes, limit=LIMIT):
    if not outcomes or len(outcomes) > limit:
        return ""
    return "FAIL" if any(each == "FAIL" for each in outcomes) else "PASS"
"""
TESTS = """
from proofmark.toy import verdict

def test_one():
    assert verdict(["FAIL"]) == "FAIL"
    assert verdict(["PASS"]) == "PASS"
    assert verdict([]) == ""
    assert verdict(["PASS"] * 4) == ""
    assert verdict(["PASS"] * 3) == "PASS"
"""
ANY = """
def test_any():
    assert verdict(["FAIL", "PASS"]) == "FAIL"
"""


def changes(source: str) -> set[str]:
    return {mutant.change for mutant in mutants.Mutator("toy.py", source).mutants()}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = a < 2", {"a < 2 -> a <= 2", "a < 2 -> a >= 2", "2 -> 3"}),
        ("x = a is None", {"a is None -> a is not None"}),
        ("x = a and b", {"a and b -> a", "a and b -> b", "a and b -> a or b"}),
        ("x = [a for a in b if c]", {"c -> True", "c -> not c"}),
        ("x = 1", {"1 -> 0", "1 -> 2"}),
        ("x = min(a)", {"min -> max"}),
        ("x: Literal[1] = a", set()),
        ("@f(1)\ndef g(): ...", set()),
        ("def g():\n    for a in b:\n        continue", {"continue -> pass"}),
        ("def g():\n    return a", {"return a -> return None"}),
        ("def g():\n    a.b = c\n    d(e)", {"a.b = c -> pass", "d(e) -> pass"}),
    ],
)
def test_the_changes_of_a_line(source: str, expected: set[str]) -> None:
    assert changes(source) == expected


def test_each_mutant_is_one_change_of_the_module() -> None:
    trees = [ast.unparse(each.tree) for each in mutants.Mutator("toy.py", SOURCE).mutants()]
    assert len(set(trees)) == len(trees) > 10
    assert ast.unparse(ast.parse(SOURCE)) not in trees


@pytest.mark.rest("a pytest of its own for each mutant")
@pytest.mark.parametrize("complete", [True, False])
def test_a_condition_that_no_test_checks_is_a_survivor(tmp_path: Path, complete: bool) -> None:
    package = tmp_path / "analysis" / "proofmark"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "toy.py").write_text(SOURCE)
    (tmp_path / "test_toy.py").write_text(TESTS + (ANY if complete else ""))
    command = [sys.executable, str(ROOT / "tests/bench/mutants.py"), "toy.py"]
    done = subprocess.run(
        [*command, "--tests", "test_toy.py"],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "mutants.jsonl").read_text().splitlines()
    results = [json.loads(line) for line in lines]
    survivors = {each["change"] for each in results if each["outcome"] == "survived"}
    assert survivors == (set() if complete else {"any -> all"})
    assert ("any -> all" in done.stdout) is not complete
    assert (package / "toy.py").read_text() == SOURCE


def test_the_list_of_equivalent_mutants_has_a_reason_for_each() -> None:
    entries = mutants.equivalent()
    assert entries
    for entry in entries:
        assert entry.keys() == {"module", "line", "change", "why"}
        assert entry["why"].endswith(".")


PLANTED = """
from importlib.machinery import SourceFileLoader

get_code = SourceFileLoader.get_code

def planted(loader, name):
    path = loader.get_filename(name)
    if not path.endswith("/proofmark/{module}"):
        return get_code(loader, name)
    text = loader.get_data(path).decode()
    assert text.count({line!r}) == 1, "the line is the place of the fault"
    return compile(text.replace({line!r}, {change!r}), path, "exec")

SourceFileLoader.get_code = planted
"""
NOTICED = yaml.safe_load((ROOT / mutants.EQUIVALENT).read_text(encoding="utf-8"))["noticed"]


@pytest.mark.rest("tests run until one fails, for each fault")
@pytest.mark.parametrize("fault", NOTICED, ids=lambda fault: f"{fault['module']}")
def test_make_test_notices_a_fault_of_a_verdict_and_of_what_was_signed(
    fault: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "planted.py").write_text(PLANTED.format_map(fault))
    options = ["-x", "-q", "-p", "planted", "-p", "no:cacheprovider", "--tier=test"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *fault["tests"].split()],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}", "TMPDIR": f"{tmp_path}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, f"{done.stdout}{done.stderr}"
    # A whole verdict is compared after its test: a difference is an error there.
    assert "1 failed" in done.stdout or " 1 error" in done.stdout


def test_each_equivalent_mutant_is_in_the_code() -> None:
    known = yaml.safe_load((ROOT / mutants.EQUIVALENT).read_text(encoding="utf-8"))["equivalent"]
    gone = []
    for entry in known:
        source = (ROOT / mutants.PACKAGE / entry["module"]).read_text(encoding="utf-8")
        if "".join(entry["line"].split()) not in "".join(source.split()):
            gone.append((entry["module"], entry["line"]))
    assert not gone

"""Rules for all files of the repository."""

from __future__ import annotations

import ast
import datetime
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml
from tests.folders import ROOT, repository_files

import proofmark

REQUIREMENTS = ROOT / "requirements"
LOCKS = sorted(REQUIREMENTS.glob("*.txt"), key=lambda path: path.name)
PYTHON_LOCKS = [path for path in LOCKS if path.with_suffix(".in").exists()]

# Written so that this file does not match its own patterns.
REGISTRY_HOST = re.compile(r"\b(pypi|pythonhosted|debian|npmjs|snapcraft|docker)\.(org|com|io)\b")
HOME_FOLDER = re.compile(
    r"/(?:home\d?|users|people)(?:/[a-z]|/\d+)?/(?!(?:user|all|eve|bench|someone)\b)[a-z][\w.-]*",
    re.IGNORECASE,
)
"""The home folder of a person, also below a folder of one letter or number."""
MACHINE_PATH = re.compile(r"(?<![\w.~>)}/-])/(work|root)(?![\w.-])")


def canonical(name: str) -> str:
    """Return a distribution's name as a lock spells it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(lock: Path) -> dict[str, str]:
    """Return version by distribution of a compiled lock."""
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", lock.read_text(), re.MULTILINE))


def sources(name: str) -> dict[str, tuple[str, str]]:
    """Return (version, reason) by distribution of requirements/`name`.in; reason may be empty."""
    text = (REQUIREMENTS / f"{name}.in").read_text()
    lines = re.findall(r"^([\w.-]+)==(\S+)(?:  # (.+))?$", text, re.MULTILINE)
    return {canonical(dist): (version, reason) for dist, version, reason in lines}


@cache
@cache
def imported(folder: str) -> set[str]:
    """Return the distributions outside the standard library that the code in `folder` imports."""
    modules: set[str] = set()
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                modules |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                modules.add(node.module.partition(".")[0])
    owners = packages_distributions()
    foreign = modules - sys.stdlib_module_names
    return {canonical(dist) for module in foreign for dist in owners.get(module, [])}


@pytest.mark.lint
@pytest.mark.parametrize("lock", PYTHON_LOCKS, ids=lambda path: path.stem)
def test_lock_is_pinned_hashed_and_without_address(lock: Path) -> None:
    text = lock.read_text()
    assert "://" not in text
    entries = re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", "").splitlines()
    assert entries
    for entry in entries:
        assert re.fullmatch(r"[a-z0-9-]+==\S+( +--hash=sha256:[0-9a-f]{64})+", entry.strip()), entry


@pytest.mark.lint
@pytest.mark.parametrize("name", ["run", "rehearsal", "dev", "impi", "bmc"])
def test_lock_agrees_with_its_source(name: str) -> None:
    source = {dist: version for dist, (version, _) in sources(name).items()}
    assert source
    assert source.items() <= pins(REQUIREMENTS / f"{name}.txt").items()


@pytest.mark.lint
def test_dev_lock_holds_the_run_lock() -> None:
    """Both are installed into one .venv."""
    dev, rehearsal = pins(REQUIREMENTS / "dev.txt"), pins(REQUIREMENTS / "rehearsal.txt")
    assert pins(REQUIREMENTS / "run.txt").items() <= dev.items()
    assert rehearsal.items() <= dev.items()


def test_every_requirement_is_imported_or_has_a_reason() -> None:
    named = sources("run") | sources("rehearsal") | sources("dev")
    unexplained = {dist for dist, (_, reason) in named.items() if not reason}
    used = imported("analysis") | imported("plugins") | imported("tests")
    assert unexplained - used == set()


def test_every_import_is_a_requirement() -> None:
    """An import that only another package requires fails after the next `make relock`."""
    known = {"proofmark", "pydantic-core"}  # pydantic documents the types of its core
    assert (imported("analysis") | imported("plugins")) - known <= sources("run").keys()
    assert (
        imported("tests") - known <= (sources("run") | sources("rehearsal") | sources("dev")).keys()
    )


@pytest.mark.lint
@pytest.mark.parametrize(
    "pattern",
    [REGISTRY_HOST, MACHINE_PATH, HOME_FOLDER],
    ids=["registry host", "path of one machine", "home folder of a person"],
)
def test_no_file_names_a_registry_or_a_path_of_one_machine(pattern: re.Pattern[str]) -> None:
    matches = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in repository_files()
        if not path.is_symlink()
        for match in pattern.finditer(path.read_text(encoding="utf-8", errors="replace"))
    ]
    assert matches == []


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        (REGISTRY_HOST, "https://" + "pypi" + ".org/simple", True),
        (REGISTRY_HOST, "PyPI, Debian", False),
        (MACHINE_PATH, "cd " + "/" + "work/x", True),
        (MACHINE_PATH, "'/" + "root'", True),
        (MACHINE_PATH, "tests/work/x, {scratch}/work, /rootfs", False),
        (HOME_FOLDER, "/home/" + "ada/bin", True),
        (HOME_FOLDER, "/users/" + "a/ada/bin", True),
        (HOME_FOLDER, "/home/user/bin, {home}/x", False),
    ],
)
def test_registries_and_paths_of_one_machine_are_recognised(
    pattern: re.Pattern[str], text: str, expected: bool
) -> None:
    assert bool(pattern.search(text)) is expected


@pytest.mark.lint
def test_one_version() -> None:
    galaxy = yaml.safe_load((ROOT / "galaxy.yml").read_text())
    assert galaxy["version"] == proofmark.__version__


TIERS = ("test", "rest", "soak")


@cache
def body_of(file: str) -> list[ast.stmt]:
    return ast.parse((ROOT / file).read_text(encoding="utf-8")).body


def marks_of(test: str) -> set[str]:
    """Return the names of the marks of a test or class, of its class and of its module.

    `test` is a node id of pytest.

    Raises:
        StopIteration: there is no such test.
    """
    file, *names = test.split("::")
    body = body_of(file)
    of_module = (
        ast.unparse(each.value)
        for each in body
        if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == "pytestmark"
    )
    marks = {mark for text in of_module for mark in re.findall(r"pytest\.mark\.(\w+)", text)}
    for name in names:
        kinds = ast.ClassDef | ast.FunctionDef
        node = next(each for each in body if isinstance(each, kinds) and each.name == name)
        body = node.body
        decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
        marks |= {mark for text in decorators for mark in re.findall(r"^pytest\.mark\.(\w+)", text)}
    return marks


def tier_of(test: str) -> str:
    """Return the first tier that runs the test `test`, a node id; see tests/conftest.py."""
    marks = marks_of(test)
    if "soak" in marks:
        return "soak"
    later = any(test.startswith(f"{folder}/") for folder in later_folders())
    return "test" if "core" in marks else "rest" if later or "rest" in marks else "test"


@cache
def later_folders() -> dict[str, str]:
    """Return the reason of each folder of tests/tiers.yml."""
    folders: dict[str, str] = yaml.safe_load((ROOT / "tests/tiers.yml").read_text())
    return folders


def fault_marks(node: ast.AST, test: str) -> Iterator[tuple[str, str]]:
    """Yield each id that a `pytest.mark.fault` names, with the node id of its test or file.

    Args:
        node: the tree of a file, of a class or of a test, or a part of these.
        test: the node id of `node`.
    """
    called = node.func if isinstance(node, ast.Call) else None
    if isinstance(called, ast.Attribute) and called.attr == "fault" and isinstance(node, ast.Call):
        yield ast.literal_eval(node.args[0]), test
    for each in ast.iter_child_nodes(node):
        inner = f"{test}::{each.name}" if isinstance(each, ast.ClassDef | ast.FunctionDef) else test
        yield from fault_marks(each, inner)


def first_tiers() -> dict[str, str]:
    """Return the first tier with a test of a fault, by the id of the fault; no test is run."""
    found: dict[str, str] = {}
    for path in (ROOT / "tests").rglob("test_*.py"):
        text = path.read_text(encoding="utf-8")
        if "@pytest.mark.fault" not in text and "marks=pytest.mark.fault" not in text:
            continue  # to read all trees takes seconds
        for fault, test in fault_marks(ast.parse(text), f"{path.relative_to(ROOT)}"):
            found[fault] = min(found.get(fault, TIERS[-1]), tier_of(test), key=TIERS.index)
    return found


def test_every_fault_has_a_test_and_a_control_in_its_tier() -> None:
    """tests/conftest.py refuses the test of a fault before its tier."""
    faults = yaml.safe_load((ROOT / "tests/faults.yml").read_text())
    first = first_tiers()
    assert sorted(faults.keys() - first.keys()) == []
    for fault, entry in faults.items():
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", fault)
        assert entry.keys() == {"tier", "control", "outcome"}
        assert isinstance(entry["outcome"], str) and entry["outcome"]
        assert entry["tier"] == first[fault], fault
        control = tier_of(entry["control"])
        assert control == entry["tier"] or (control, entry["tier"]) == ("test", "rest"), fault


def test_every_later_folder_has_its_reason_and_every_package_a_test_in_make_test() -> None:
    for folder, reason in later_folders().items():
        assert (ROOT / folder).is_dir()
        assert reason
    for package in (ROOT / "tests/packages").iterdir():
        texts = [path.read_text() for path in package.glob("test_*.py")]
        assert not texts or any("@pytest.mark.core(" in text for text in texts), package


@pytest.mark.parametrize("room", ["judge", "records", "report"])
def test_all_tests_of_a_verdict_and_of_its_page_are_in_make_test(room: str) -> None:
    """Only trials with many runs are not: they have the mark soak."""
    folder = ROOT / "tests/unit" / room
    assert folder.is_dir()
    assert not [path for path in folder.glob("test_*.py") if "mark.rest(" in path.read_text()]
    assert f"tests/unit/{room}" not in later_folders()


@pytest.mark.lint
def test_every_allowed_skip_is_complete_and_exists() -> None:
    for entry in tomllib.loads((ROOT / "tests/skips.toml").read_text()).get("skip", []):
        assert entry.keys() == {"test", "missing", "commit", "date"}
        assert isinstance(entry["date"], datetime.date)
        file, *_, function = entry["test"].split("::")
        assert f"def {function}(" in (ROOT / file).read_text(), entry["test"]

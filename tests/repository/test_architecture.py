"""The rooms of the package: their purposes, and the names that only one of them has."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fixtures.shipped import shipped_benchmarks
from tests.folders import PACKAGE, ROOT
from tests.key_pages import PAGES

from proofmark import api
from proofmark.cli.parser import OF_PERSONS
from proofmark.common.plugins import installed
from proofmark.common.shared_models import PACKAGE_KEYS
from proofmark.runs.run_files import JobFiles, QueueFiles, RunFiles, StepFiles, WorkFiles
from proofmark.site.extra_vars import call_variables

ROOMS = (
    *("cli", "report", "judge", "jobs", "records", "machine", "software"),
    *("runs", "plan", "site", "cases", "common"),
)
SOURCES = (".awk", ".css", ".html", ".json", ".py", ".sh", ".yml")
"""The files of the rooms that have code, data or texts."""
OPTIONAL = sorted(path.parent.name for path in (PACKAGE / "packages").glob("*/__init__.py"))


def folders() -> set[str]:
    return {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name[0] != "_"}


@pytest.mark.lint
def test_the_package_has_the_rooms_and_the_facade_and_no_module_at_its_root() -> None:
    assert folders() == {*ROOMS, "api", "packages"}
    assert [path.name for path in PACKAGE.glob("*.py")] == ["__init__.py"]


@pytest.mark.lint
@pytest.mark.parametrize("room", [*ROOMS, "api", *(f"packages/{name}" for name in OPTIONAL)])
def test_a_room_states_its_purpose_and_what_it_may_import(room: str) -> None:
    text = ast.get_docstring(ast.parse((PACKAGE / room / "__init__.py").read_text())) or ""
    assert text.split("\n")[0].endswith(".")
    assert "ay import: " in " ".join(text.split())


@pytest.mark.lint
def test_the_import_contract_has_the_same_rooms() -> None:
    contract = (ROOT / ".importlinter").read_text()
    layers = re.search(r"layers =\n((?:    .*\n)+)", contract)
    assert layers
    assert set(re.findall(r"\w+", layers[1])) == {*ROOMS, "api", "packages"}


@pytest.mark.lint
def test_the_unit_tests_have_a_folder_for_each_room() -> None:
    unit, packages = ROOT / "tests" / "unit", ROOT / "tests" / "packages"
    assert {path.relative_to(unit).parts[0] for path in unit.rglob("*.py")} == {
        *ROOMS,
        "conftest.py",
    }
    assert {path.relative_to(packages).parts[0] for path in packages.rglob("*.py")} == {*OPTIONAL}


@pytest.mark.lint
@pytest.mark.parametrize("name", OPTIONAL)
def test_a_package_has_a_page_of_one_screen(name: str) -> None:
    lines = (PACKAGE / "packages" / name / "README.md").read_text().splitlines()
    assert 5 < len(lines) <= 40


NO_WORDS = {"proofmark.judge.additions", "proofmark.report.additions"}
"""The groups in which the names are only those of the packages, or of figures of papers."""
IN_CORE = {"adopt", "export", "gate", "hpl", "imported", "telemetry", "trend"}
"""Names of packages that are words of the core too: what healthy hardware reaches, the matrix of
HPL, a module that is imported, a process that adopts others, samples of sensors, a variable of a
shell. As a command or an option they are words of a package."""
RECOMMENDED = {"init"}
"""Commands of packages that texts of the core recommend: each site begins with them."""
FURTHER = (
    "claims of papers",
    "outputs of others",
    "of_others",
    "simgrid",
    "docs/packages",
)
"""Words of packages that no table of plug-ins has."""
ALLOWED = {
    # One of the three phases of a contract. An item of it can also be a figure of a usual run.
    "site/contract_document.py": {"stability"},
    "report/sections/figure_tables.py": {"stability"},
    # `stability` was the name of the key `undisturbed` in runs of earlier releases.
    "cases/case.py": {"stability"},
    "jobs/launchers/resource_managers.py": {"export"},  # the option --export of srun
    # Its case is one of the kit. A reader of a package would be a hook that only one package uses.
    "cases/reader/programs/__init__.py": {"stability"},
    "cases/reader/programs/node_programs.py": {"stability", "docs/packages"},
}
"""The words of packages in the core, by file."""


def words_of_packages() -> dict[str, re.Pattern[str]]:
    """Return the words that packages add, each with the forms that the core must not have."""
    groups: set[str] = set()
    for package in OPTIONAL:
        table = importlib.import_module(f"proofmark.packages.{package}").PLUGINS
        groups |= {group for group in table if not group.startswith("proofmark.packages.")}
    words: set[str] = set()
    codes: set[str] = set()
    for group in groups - NO_WORDS:
        for name, point in installed(group).items():
            if group == "proofmark.common.message_table":
                codes |= {*point.load()}
            elif group == PACKAGE_KEYS:
                words |= point.load().model_fields.keys()
            elif group == "proofmark.site.extra_vars":
                words |= {*point.load()}
            else:
                words.add(name.split()[-1])
    found = {code: re.compile(f'"{code}"') for code in codes}
    for word in words - RECOMMENDED:
        option = word.replace("_", "-")
        forms = [rf"proofmark(?: |\", \"){word}\b", rf"--{option}\b", rf"options\.{word}\b"]
        forms += [] if word in IN_CORE else [rf"(?<![A-Za-z]){word}s?(?![a-z])"]
        found[word] = re.compile("|".join(forms), re.IGNORECASE)
    return found | {each: re.compile(each, re.IGNORECASE) for each in FURTHER}


@pytest.mark.lint
def test_the_core_has_no_word_of_a_package() -> None:
    """Neither a class, a key, a column, a branch nor a text has one.

    It would have found the links of twins and of adopted runs in an enumeration, the key
    ``stability`` of a case, and a code of a message of a package.
    """
    words = words_of_packages()
    assert {"twin", "adopted", "stability", "rolling", "model-source"} <= words.keys()
    uses = []
    for path in sorted(each for each in PACKAGE.rglob("*") if each.suffix in SOURCES):
        name = path.relative_to(PACKAGE).as_posix()
        if name.startswith("packages/"):
            continue
        text = path.read_text(encoding="utf-8")
        # A search of a word is faster than one of a pattern.
        plain = text.lower()
        here = {
            word: form
            for word, form in words.items()
            if (word.lower() in plain or word.lower().replace("_", "-") in plain)
            and form.search(text)
        }
        for number, line in enumerate(text.splitlines() if here else [], 1):
            found = {word for word, form in here.items() if form.search(line)}
            uses += [f"{name}:{number}: {word}" for word in found - ALLOWED.get(name, set())]
    assert uses == []


def file_names() -> set[str]:
    """Return the names of files and folders in the folder of a run."""
    found: set[str] = set()
    for table in (RunFiles, WorkFiles, QueueFiles, StepFiles, JobFiles):
        for file in table.table().values():
            found |= set(file.path.split("/"))
    return found


SAME_NAMES = {"probe.sh", "network.sh", "fit.awk", "job.sh", "lock", "software"}
"""Names that other files have too: scripts of the package, Spack's locks, EasyBuild's folder."""


@pytest.mark.lint
def test_only_runs_has_the_names_of_files_in_a_run() -> None:
    reserved = file_names() - SAME_NAMES
    assert {
        "plan.json",
        "when.json",
        "verdict.json",
        "run.sh",
        "ticket.json",
        "steps",
        "rc",
    } <= reserved
    uses = []
    for path in sorted(PACKAGE.rglob("*.py")):
        room = path.relative_to(PACKAGE).parts[0]
        if room in ("runs", "cli"):  # the help of commands has names of files
            continue
        text = path.read_text()
        if not any(f'/ "{word}"' in text or f'"{word}" /' in text for word in reserved):
            continue  # a syntax tree takes longer than all the rest
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
                parts = [node.left, node.right]
                words = {str(each.value) for each in parts if isinstance(each, ast.Constant)}
                uses += [f"{path}:{node.lineno}: {word}" for word in words & reserved]
    assert uses == []


@pytest.mark.parametrize("name", api.MODULES)
def test_the_facade_has_the_names_that_it_lists(name: str) -> None:
    assert getattr(api, name) is getattr(importlib.import_module(api.MODULES[name]), name)
    assert name in dir(api)


def test_the_facade_lists_the_names_for_type_checkers() -> None:
    tree = ast.parse(Path(str(api.__file__)).read_text())
    (checked,) = (node for node in tree.body if isinstance(node, ast.If))
    imported = {
        alias.asname: node.module
        for node in checked.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert imported == api.MODULES


def test_an_unknown_name_of_the_facade_is_an_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        getattr(api, "nothing")  # noqa: B009 (mypy refuses the attribute)


def test_the_facade_imports_a_module_only_when_it_is_used() -> None:
    """Ansible loads a filter in every process. The libraries of judge load in half a second."""
    code = "import sys; from proofmark.api import BadInput; print('polars' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


PAGE = (ROOT / "docs" / "architecture.md").read_text()


@pytest.mark.lint
def test_the_page_lists_the_rooms() -> None:
    listed = re.findall(r"^\| `(\w+)` \| [A-Z].*\.( Offline\.)? \|$", PAGE, re.MULTILINE)
    assert [name for name, _ in listed] != []
    assert {name for name, _ in listed} == {*ROOMS, "api", *OPTIONAL}
    picture = PAGE.split("```")[1]
    assert {*ROOMS, "api", "packages"} <= set(re.findall(r"\w+", picture))


@pytest.mark.lint
def test_the_files_that_the_page_names_exist() -> None:
    """In these paths `<name>` matches any name."""
    paths = re.findall(r"`((?:analysis|benchmarks|environments|inventory)/[\w/.<>]+)`", PAGE)
    assert len(paths) > 15
    patterns = [re.sub(r"<\w+>", "*", path) for path in paths]
    assert [pattern for pattern in patterns if not any(ROOT.glob(pattern))] == []


STEPS = re.findall(
    r"`(proofmark(?:\.\w+)+)`", PAGE.split("## The path")[1].split("## To change")[0]
)


@pytest.mark.lint
def test_the_path_of_a_number_goes_through_functions_that_exist() -> None:
    assert len(STEPS) > 12
    for step in STEPS:
        module, _, name = step.rpartition(".")
        assert callable(getattr(importlib.import_module(module), name)), step


def names_in(tree: ast.Module) -> Iterator[str]:
    """Yield the names and the attributes in a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr


@pytest.mark.lint
def test_the_path_of_a_number_is_that_of_the_product() -> None:
    """The page named functions that only tests call."""
    modules = {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path.read_text()
        for path in PACKAGE.rglob("*.py")
    }
    unused = []
    for step in STEPS:
        module, _, name = step.rpartition(".")
        trees = (
            ast.parse(text)
            for other, text in modules.items()
            if other != module and f"{name}(" in text
        )
        if not any(name in names_in(tree) for tree in trees):
            unused.append(step)
    assert unused == []


@pytest.mark.lint
def test_the_files_of_the_path_are_files_of_a_run() -> None:
    path = PAGE.split("## The path")[1]
    named = set(re.findall(r"`([\w<>/]+\.(?:json|sh|parquet|html))`", path))
    names = {path.rpartition("/")[2] for path in named} - {"<host>.json", "binding.json"}
    assert names <= file_names()


@pytest.mark.lint
def test_the_page_counts_the_public_surface() -> None:
    """A number that rises is a decision, which stands on the page."""
    keys = []
    for page in PAGES:
        sections = page.text().split("\n## ")[1:]
        rows = sum(len(re.findall(r"^\| `", section, re.MULTILINE)) for section in sections)
        keys.append(f"{rows} in {len(sections)} sections")
    pages = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs/design").glob("*.md")]
    suites = shipped_benchmarks().listed()
    counted = re.findall(r"^\| .+ \| (\d+[\w ]*) \| .+ \|$", rows_of("The public surface"), re.M)
    numbers = [len(OF_PERSONS), len(call_variables()), keys[1], keys[0], len(suites), len(pages)]
    assert counted == [f"{number}" for number in numbers]


@pytest.mark.lint
def test_the_page_gives_a_reason_for_each_variable() -> None:
    rows = re.findall(r"^\| (`.+`) \| .+ \|$", rows_of("The variables of a call"), re.MULTILINE)
    assert sorted(", ".join(rows).replace("`", "").split(", ")) == sorted(call_variables())


def rows_of(section: str) -> str:
    """Return a section of the page about the architecture."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    return text.split(f"\n## {section}\n")[1].split("\n## ")[0]


@pytest.mark.lint
def test_the_page_gives_a_reason_for_each_command() -> None:
    """The number may fall. A command that comes in takes the place of another one."""
    part = rows_of("The commands")
    rows = dict(re.findall(r"^\| `([a-z0-9]+)` \| (.+) \|$", part, re.MULTILINE))
    assert sorted(rows) == sorted(OF_PERSONS)


def test_all_exceptions_have_one_base_class() -> None:
    bases: dict[str, set[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text()
        if not re.search(r"^ *class \w+\([^)]*(?:Error|Exception)", text, re.MULTILINE):
            continue  # a syntax tree takes longer than all the rest
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                names = {each.id for each in node.bases if isinstance(each, ast.Name)}
                errors = {name for name in names if name.endswith(("Error", "Exception"))}
                bases[f"{path.name}: {node.name}"] = errors
    own = {name.rpartition(" ")[2] for name in bases}
    roots = [name for name, errors in bases.items() if errors - own]
    # Pydantic takes an error of a check only as a ValueError.
    assert roots == ["errors.py: ProofmarkError", "errors.py: KeyMistake"]


HELP = """
import sys
from proofmark.cli.main import main
try:
    main(["--help"])
except SystemExit:
    print(sorted(name for name in sys.modules if name.count(".") > 2 and ".packages." in name))
"""


def test_a_help_imports_no_module_of_a_package() -> None:
    """A package states its commands in its ``__init__.py``; a help must not wait for their code."""
    done = subprocess.run([sys.executable, "-c", HELP], capture_output=True, text=True, check=True)
    assert "telemetry" in done.stdout and done.stdout.endswith("\n[]\n")

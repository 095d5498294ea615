"""The kit without its optional packages: their folders are gone, and nothing else is changed.

A run is checked, planned, judged and reported alike. Only what the packages add is missing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.fixtures.fleet import fleet_run
from tests.folders import PACKAGE, ROOT

from proofmark import __version__
from proofmark.common import message_table
from proofmark.common.plugins import installed
from proofmark.runs.evidence import seal
from proofmark.runs.run import Run

PROGRAM = """\
import contextlib, importlib.util, io, json, sys
from proofmark.cli.main import main
from proofmark.common.message_table import added_messages
answers = []
for words in json.loads(sys.argv[1]):
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            code = main(words)
    except SystemExit as end:
        code = end.code or 0
    answers.append((code, printed.getvalue()))
names = json.loads(sys.argv[2])
found = [each for each in names if importlib.util.find_spec(f"proofmark.packages.{each}")]
loaded = [each for each in names if f"proofmark.packages.{each}" in sys.modules]
print(json.dumps([found, loaded, answers, [*added_messages()]]))
"""
"""Runs command lines; prints the packages that exist and are imported, exit codes and outputs, and
the codes of the messages of packages."""
SITE = ["-i", f"{ROOT / 'inventory/example-xeon'}", "-l", "xeon"]
BASIC = [
    ["--version"],
    ["check", *SITE],
    ["plan", *SITE, "--suite", "node"],
]
OPTIONAL = {
    "papers": ["verdict", "RUN", "--claims", "--json"],
    "twin": ["twin", *SITE, "--suite", "twin-p5", "--plan"],
    "foreign": ["adopt", f"{ROOT / 'benchmarks/samples'}"],
    "exports": ["export", "RUN", "--format", "junit", "-o", "NEW"],
    "tools": ["telemetry", "RUN", "--once", *SITE],
    "history": ["trend", "RUN"],
    "service": ["gate", "status", *SITE],
    "stability": ["plan", *SITE, "--suite", "stability", "--stability-days", "1"],
    "fabric": ["verdict", "RUN", "--json"],
    "survey": ["init", "--fabric", f"{ROOT / 'tests/data/schedulers/slurm-topology.txt'}"],
}
"""A command that needs the package, or of which the package makes a part."""
WORKS = {"fabric": 4}
"""The exit code of a command that works without the package, which makes only a part of it."""


def without(packages: Sequence[str], folder: Path) -> Path:
    """Install the kit without `packages` into `folder`, by links; return `folder`."""
    package = folder / "proofmark"
    (package / "packages").mkdir(parents=True)
    for path in PACKAGE.iterdir():
        if path.name not in ("packages", "__pycache__"):
            (package / path.name).symlink_to(path)
    for path in (PACKAGE / "packages").iterdir():
        if path.name not in (*packages, "__pycache__"):
            (package / "packages" / path.name).symlink_to(path)
    about = folder / f"proofmark-{__version__}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Name: proofmark\nVersion: {__version__}\n")
    return folder


def answers_of(
    folder: Path, lines: list[list[str]]
) -> tuple[list[str], list[str], list[tuple[int, str]], list[str]]:
    """Return what `PROGRAM` prints."""
    own = {"PYTHONPATH": f"{folder}", "PROOFMARK_KIT": f"{ROOT}", "SOURCE_DATE_EPOCH": "0"}
    call = [sys.executable, "-c", PROGRAM, json.dumps(lines), json.dumps([*OPTIONAL])]
    done = subprocess.run(call, env={**os.environ, **own}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found, loaded, answers, codes = json.loads(done.stdout)
    return found, loaded, [(code, text) for code, text in answers], codes


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    rates = {"n01": 100.0, "n02": 101.0, "n03": 99.0}
    run = fleet_run(tmp_path_factory.mktemp("fleet"), rates)
    seal(run.folder)
    return run


@pytest.fixture(scope="module")
def judged(run: Run) -> list[list[str]]:
    folder = f"{run.folder}"
    return [["verdict", folder, "--json"], ["report", folder]]


@pytest.fixture(scope="module")
def complete(judged: list[list[str]], run: Run) -> tuple[list[tuple[int, str]], str]:
    """Return the answers of the whole kit, and the page that it writes."""
    found, _, answers, _ = answers_of(PACKAGE.parent, [*BASIC, *judged])
    assert found == [*OPTIONAL]
    return answers, run.files.report.read_text()


@pytest.mark.parametrize(
    "removed",
    [
        [*OPTIONAL],
        # An import of one package by another has no effect in the case above.
        *(pytest.param([name], marks=pytest.mark.soak) for name in OPTIONAL),
    ],
    ids=",".join,
)
def test_the_kit_works_without_optional_packages(
    removed: list[str],
    tmp_path: Path,
    run: Run,
    judged: list[list[str]],
    complete: tuple[list[tuple[int, str]], str],
) -> None:
    names = {"RUN": f"{run.folder}", "NEW": f"{tmp_path / 'new'}"}
    needs = [[names.get(word, word) for word in OPTIONAL[name]] for name in removed]
    found, loaded, answers, codes = answers_of(
        without(removed, tmp_path / "installed"), [*BASIC, *judged, *needs]
    )
    assert found == [name for name in OPTIONAL if name not in removed]
    assert not {*removed} & {*loaded}
    for name, table in installed(message_table.__name__).items():
        assert ({*table.load()} <= {*codes}) is (name not in removed)
    alike = answers[: -len(needs)]
    assert alike == complete[0]
    assert [code for code, _ in alike[:3]] == [0, 0, 0]
    assert run.files.report.read_text() == complete[1]
    for name, (code, text) in zip(removed, answers[-len(needs) :], strict=True):
        assert (code, "Traceback" in text) == (WORKS.get(name, 3), False), text

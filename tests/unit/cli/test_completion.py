"""Completion of the command line in shells, as argcomplete's shell functions ask for it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from argparse import Action, ArgumentParser, HelpFormatter
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.folders import ROOT
from tests.forks import tool

from proofmark.cli import commands, modes, sign
from proofmark.cli.parser import COMMANDS, command_of
from proofmark.cli.sign import EXPORTED
from proofmark.runs.run_files import AcceptanceFiles
from proofmark.site.accepted_baseline import ACCEPTED, NONE
from proofmark.site.groups import COMPUTE
from proofmark.site.partition import Toolchain
from proofmark.software.spack.site_choice import KIT

SLOW = {"ansible", "matplotlib", "numpy", "polars", "pydantic", "yaml"}
PROGRAM = "import sys; from proofmark.cli.main import main; sys.exit(main())"
WATCHED = f"""
import os, sys
log = os.open(os.environ["LOG"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
sys.addaudithook(lambda event, values: os.write(log, f"{{event}} {{values}}\\n".encode()))
{PROGRAM}
"""
"""The program; a hook of Python logs what it imports, opens and starts (PEP 578)."""


def completed(
    line: str,
    folder: Path,
    program: str = "",
    environment: Mapping[str, str] = os.environ,
    shell: str = "bash",
) -> list[str]:
    """Return the words that complete `line` in `folder`, by the text of a `program` if it is given.

    Without it, a fork of the command completes.
    """
    words = folder / "completed"
    asked = {
        **environment,
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\v",
        "_ARGCOMPLETE_SHELL": shell,
        "_ARGCOMPLETE_STDOUT_FILENAME": str(words),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
    }
    command = [sys.executable, "-c", program] if program else [tool("proofmark")]
    subprocess.run(command, env=asked, cwd=folder, check=True)
    found = words.read_text()
    words.unlink()
    return [word.rstrip() for word in found.split("\v") if word]


def imports_in(log: Path) -> set[str]:
    """Return the packages that the process of a log has imported."""
    events = log.read_text().splitlines()
    names = {event.split("'")[1] for event in events if event.startswith("import ")}
    return {name.partition(".")[0] for name in names}


def imported(folder: Path, *words: str) -> set[str]:
    """Return the packages that a command imports."""
    log = folder / "log"
    log.unlink(missing_ok=True)
    command = [sys.executable, "-c", WATCHED, *words]
    asked = {**os.environ, "LOG": f"{log}"}
    subprocess.run(command, env=asked, check=False, capture_output=True)
    return imports_in(log)


@pytest.fixture
def kit(tmp_path: Path) -> Path:
    """A checkout with a site and three runs, one of which has a name for a shell."""
    for folder in ("runs/r1/steps", "runs/r2", "runs/$(touch x)", "inventory/lab/group_vars/knl"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "runs/latest-lab").symlink_to("r2")
    (tmp_path / "runs/notes.txt").touch()
    (tmp_path / "inventory/lab/group_vars/all.yml").touch()
    (tmp_path / "site").symlink_to("inventory/lab")
    (tmp_path / "benchmarks").symlink_to(ROOT / "benchmarks")
    (tmp_path / "galaxy.yml").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("proofmark verd", {"verdict"}),
        ("proofmark sta", {"status"}),  # and not the command of playbooks
        ("proofmark stage exe", {"execute"}),
        ("proofmark stage execute --f", {"--fail-fast"}),
        ("proofmark verdict --str", {"--strict"}),
        ("proofmark modes en", {"enter"}),
        ("proofmark plan -i inventory/l", {"inventory/lab/"}),
        ("proofmark report runs/r", {"runs/r1/", "runs/r2/"}),
        ("proofmark install bundle --pre", {"--prefixes"}),
        ("proofmark install --too", {"--toolchain"}),
        ("proofmark trend runs/r1 runs/l", {"runs/latest-lab/"}),
        ("proofmark sign runs/r1 --key gal", {"galaxy.yml"}),
    ],
)
def test_a_word_is_completed(kit: Path, line: str, expected: set[str]) -> None:
    words = completed(line, kit)
    options = {word for word in words if word.startswith("-") and not line.endswith(word)}
    assert {word.removeprefix("--suite=") for word in words} - (options - expected) == expected


def test_bash_completes_with_its_registration(kit: Path) -> None:
    tools = Path(sys.executable).parent
    line = "proofmark status runs/r"
    (kit / "bin").mkdir()
    command = kit / "bin/proofmark"
    command.write_text(f"#!/bin/sh\nexec {shlex.quote(sys.executable)} -c '{PROGRAM}' \"$@\"\n")
    command.chmod(0o755)
    script = f"""
    eval "$({shlex.quote(str(tools))}/register-python-argcomplete proofmark)"
    COMP_LINE='{line}' COMP_POINT={len(line)} COMP_TYPE=9
    _python_argcomplete proofmark
    printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    path = f"{kit / 'bin'}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=kit,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["runs/r1/", "runs/r2/"]


@pytest.mark.rest("a start of Python for each line")
@pytest.mark.parametrize("line", ["proofmark status ", "proofmark plan --"])
def test_a_key_does_not_wait_for_slow_libraries(kit: Path, line: str) -> None:
    log = kit / "log"
    completed(line, kit, WATCHED, {**os.environ, "LOG": f"{log}"})
    imports = imports_in(log)
    assert "argcomplete" in imports, "control: the hook works"
    assert imports & SLOW == set()


@pytest.mark.parametrize(
    ("named", "verbs"),
    [
        (commands.BASELINE_VERBS, sign.VERBS),
        (commands.MODES_VERBS, {**modes.MODES, "check": None}),
        (commands.SCRATCH_VERBS, modes.SCRATCH),
    ],
)
def test_the_verbs_of_a_help_are_those_of_the_command(
    named: Mapping[str, str], verbs: Mapping[str, object]
) -> None:
    assert named.keys() == verbs.keys()


def test_the_words_of_a_help_are_those_of_the_rooms() -> None:
    """The arguments name them themselves: the rooms import libraries that a help has no need of."""
    page = AcceptanceFiles.page.path
    words = (page, EXPORTED, f"default: {ACCEPTED}", f"or {NONE}", f"or {KIT}")
    texts = [HelpFormatter("")._expand_help(each) for each in all_actions() if each.help]
    for word in words:
        assert any(f"{word}" in text for text in texts), word
    (toolchain,) = (each for each in all_actions() if each.dest == "toolchain")
    assert toolchain.choices == tuple(map(str, Toolchain))
    assert {each.default for each in all_actions() if each.dest == "limit"} <= {None, COMPUTE}


def all_actions() -> list[Action]:
    """Return the arguments of all commands."""
    actions: list[Action] = []
    for name in COMMANDS:
        made = ArgumentParser()
        command_of(name).arguments(made)
        actions += made._actions
    return [each for each in actions if each.dest != "help"]


@pytest.mark.rest("a start of Python for each command")
@pytest.mark.parametrize("words", [["verdict", "--help"], ["help", "plan"], ["acceptance", "-h"]])
def test_a_help_does_not_wait_for_slow_libraries(tmp_path: Path, words: list[str]) -> None:
    """The control is the command itself."""
    assert imported(tmp_path, *words) & SLOW == set()
    assert imported(tmp_path, "verdict", f"{tmp_path}") & SLOW >= {"polars", "pydantic"}


@pytest.mark.rest("a start of Python for each command")
@pytest.mark.parametrize("command", ["check", "plan"])
def test_a_plan_needs_no_tables(tmp_path: Path, command: str) -> None:
    """Only what judges reads tables. The site is missing: the module of the command is imported."""
    found = imported(tmp_path, command, "-i", f"{tmp_path / 'missing'}", "-l", "x")
    assert "polars" not in found and "pydantic" in found


def test_the_module_of_the_command_has_argcompletes_mark() -> None:
    """Without the mark in its first 1024 bytes, a global completion does not run the program."""
    start = (ROOT / "analysis/proofmark/cli/main.py").read_bytes()[:1024]
    assert b"PYTHON_ARGCOMPLETE_OK" in start

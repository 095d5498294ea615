"""The options of a command, its function, and the options of ``proofmark`` have a place each."""

from __future__ import annotations

import os
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from pathlib import Path

import pytest

from proofmark.cli import parser as parsers
from proofmark.cli.command import SECRETS, Command
from proofmark.cli.main import main
from proofmark.cli.parser import COMMANDS, Called, command_of, parser

TAKEN = (
    *("run", "rights", "traced", "arguments", "example"),
    *("called", "command", "name", "options"),
    *("secrets", "verbose", "failed-nodes-fd", "version"),
)
"""Names of `Command`, of `Called` and of `proofmark` itself, as options of a command."""


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[Namespace]:
    """Add the command ``odd``, whose options have the names `TAKEN`; return what it gets."""
    got: list[Namespace] = []

    def add(to: ArgumentParser) -> None:
        for name in TAKEN:
            to.add_argument(f"--{name}")

    def run(options: Namespace) -> int:
        got.append(options)
        return 7

    for lines in (parsers.COMMANDS, parsers.OF_PERSONS):
        monkeypatch.setitem(lines, "odd", Command(run, "odd", add))
    return got


@pytest.mark.parametrize("before", [[], ["-v"]])
def test_an_option_of_any_name_replaces_nothing(
    given: list[Namespace], monkeypatch: pytest.MonkeyPatch, before: list[str]
) -> None:
    monkeypatch.setenv("PROOFMARK_BMC_PASSWORD", "calvin")
    words = [word for name in TAKEN for word in (f"--{name}", "5")]
    assert main([*before, "odd", *words]) == 7
    assert main([*before, "odd"]) == 7
    full, empty = given
    assert vars(full) == {name.replace("-", "_"): "5" for name in TAKEN}
    assert vars(empty) == dict.fromkeys(vars(full))
    assert SECRETS.get() == {}, "the first command took them"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_words_of_a_use_are_words_of_the_command(name: str) -> None:
    """A word that is written wrongly would refuse nothing."""
    made = ArgumentParser()
    command_of(name).arguments(made)
    known = {word for each in made._actions for word in each.option_strings}
    known |= {f"{each.metavar}" for each in made._actions if not each.option_strings}
    known |= {word for each in made._actions if each.dest == "verb" for word in each.choices or ()}
    for use in command_of(name).uses:
        assert {*f"{use.of} {use.beside} {use.without}".split()} <= known
        assert use.beside or use.without


@pytest.mark.parametrize(
    ("words", "mistake"),
    [
        (["init", "new", "--from-node", "n", "--levels", "a"], "--levels: found no --fabric"),
        (["init", "--fabric", "f", "-b"], "--become: found also --fabric"),
        (["adopt", "x", "--arguments", "1"], "--arguments: found no --print"),
        (["adopt", "x", "--format=table"], "--format: found no --print"),  # the default, given
        (["adopt", "x", "--print", "c", "--run-id", "a"], "--run-id: found also --print"),
        (["plan", "-l", "x", "--json", "--step", "1"], "--step: found also --json"),
        (["modes", "status", "r", "--mode", "flat"], "--mode: found no check or enter or verify"),
    ],
)
def test_an_option_that_would_be_ignored_is_refused(
    words: list[str], mistake: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 3
    assert f"proofmark: {mistake}; accepted: " in capsys.readouterr().err


@pytest.mark.parametrize("name", COMMANDS)
def test_no_two_arguments_of_a_command_have_one_place(name: str) -> None:
    made = ArgumentParser()
    command_of(name).arguments(made)
    twice = [
        dest for dest, count in Counter(each.dest for each in made._actions).items() if count > 1
    ]
    assert twice == []


def test_the_verbose_of_a_command_is_not_that_of_the_kit() -> None:
    for words in (["-v", "plan", "-l", "x"], ["plan", "-l", "x", "-v"]):
        line = parser().parse_args(words)
        called: Called = line.called
        assert (line.verbose, called.options.verbose) == (words[0] == "-v", words[0] != "-v")


SITE_COMMAND = """\
from proofmark.cli.command import AddedCommand, Command
LINE = AddedCommand("of the site", "site_command", "greet the site")
COMMANDS = {"greet": Command(lambda options: print("hello") or 7, "greet", lambda parser: None)}
"""


@pytest.mark.parametrize(
    ("value", "code", "line"),
    [
        ("site_command:LINE", 7, ""),
        (
            "nothing_there:LINE",
            3,
            "proofmark.cli.commands: nothing_there:LINE: ModuleNotFoundError",
        ),
        ("site_command:COMMANDS", 3, "site_command:COMMANDS: found no AddedCommand"),
    ],
)
def test_an_installed_package_adds_a_command(
    tmp_path: Path, value: str, code: int, line: str
) -> None:
    (tmp_path / "site_command.py").write_text(SITE_COMMAND)
    about = tmp_path / "site_command-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Name: site-command\nVersion: 1\n")
    (about / "entry_points.txt").write_text(f"[proofmark.cli.commands]\ngreet = {value}\n")
    program = "import sys; from proofmark.cli.main import main; sys.exit(main())"
    own = {**os.environ, "PYTHONPATH": f"{tmp_path}"}

    def answer(*words: str) -> subprocess.CompletedProcess[str]:
        call = [sys.executable, "-c", program, *words]
        return subprocess.run(call, env=own, capture_output=True, text=True)

    done = answer("greet")
    assert done.returncode == code
    assert line in done.stderr
    assert ("hello" in done.stdout) == ("greet the site" in answer("--help").stdout) == (code == 7)

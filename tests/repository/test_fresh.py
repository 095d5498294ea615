"""The variables of the host's environment that a minimal Debian gets, and who runs there."""

from __future__ import annotations

import os
import subprocess

import pytest
from tests.folders import ROOT
from tests.fresh import LOGIN, environment, options_of


def test_settings_of_the_registries_are_passed_on() -> None:
    given = {"PIP_INDEX_URL": "https://x", "https_proxy": "http://p", "NO_PROXY": "localhost"}
    assert environment(given) == LOGIN | given


@pytest.mark.parametrize("name", ["PROOFMARK_SITE", "PYTHONPATH", "HOME", "PATH", "VIRTUAL_ENV"])
def test_other_variables_are_not_passed_on(name: str) -> None:
    assert environment({name: "of the host"}) == LOGIN


@pytest.mark.parametrize(
    ("words", "refused"),
    [
        (["--user", "root"], "--user: found 'root'"),
        (["--user", "a b"], "--user: found 'a b'"),
        (["--clone", "kit"], "--clone: kit is relative"),
    ],
)
def test_other_users_and_folders_are_refused(
    words: list[str], refused: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        options_of(words)
    assert refused in capsys.readouterr().err
    assert options_of(["--user", "alice", "--clone", "/tmp/my kit"]).user == "alice"  # the control


@pytest.mark.parametrize(
    ("words", "passed"), [([], []), (["USER=alice"], ["--user=alice"])], ids=["none", "given"]
)
def test_only_the_command_line_of_make_names_the_user(words: list[str], passed: list[str]) -> None:
    """Most shells have USER in their environment."""
    done = subprocess.run(
        ["make", "--dry-run", "--no-print-directory", "fresh", *words],
        cwd=ROOT,
        env={**os.environ, "USER": "of-the-shell", "CLONE": "/of/the/shell"},
        capture_output=True,
        text=True,
        check=True,
    )
    command = done.stdout[done.stdout.index("python -m tests.fresh") :]
    assert [word for word in command.split() if word.startswith("--user")] == passed
    assert '--clone="/srv/my kit"' in command

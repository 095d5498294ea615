"""Completion of the command line in shells, as argcomplete's shell functions ask for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.folders import ROOT

PROGRAM = "import sys; from proofmark.cli.main import main; sys.exit(main())"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("proofmark verd", {"verdict"}),
        ("proofmark verdict --str", {"--strict"}),
        ("proofmark modes en", {"enter"}),
        ("proofmark plan --suite qui", {"quick"}),
        ("proofmark read imb-ping", {"imb-pingpong"}),
        ("proofmark provide", set()),
    ],
)
def test_a_word_is_completed(line: str, expected: set[str], tmp_path: Path) -> None:
    words = tmp_path / "words"
    environment = {
        **os.environ,
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(words),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
    }
    subprocess.run([sys.executable, "-c", PROGRAM], env=environment, cwd=ROOT, check=True)
    assert {word.strip() for word in words.read_text().split()} == expected


def test_the_module_of_the_command_has_argcompletes_mark() -> None:
    """Without the mark in its first 1024 bytes, a global completion does not run the program."""
    start = (ROOT / "analysis/proofmark/cli/main.py").read_bytes()[:1024]
    assert b"PYTHON_ARGCOMPLETE_OK" in start

"""The Python of requirements/bmc.txt: sushy and sushy-tools, which are not of this project."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.folders import ROOT

LONGEST_S = 600


def foreign_python(factory: pytest.TempPathFactory) -> Path:
    """Return the interpreter of an environment with these packages, made once for each process."""
    folder = factory.getbasetemp() / "foreign-bmc"
    python = folder / "bin/python"
    if not (folder / "ready").exists():
        packages = ["-r", str(ROOT / "requirements/bmc.txt"), "--require-hashes", "--no-deps"]
        for command in (
            [sys.executable, "-m", "venv", str(folder)],
            [str(python), "-m", "pip", "install", "-qq", "--no-input", *packages],
        ):
            subprocess.run(command, check=True, timeout=LONGEST_S)
        (folder / "ready").touch()
    return python

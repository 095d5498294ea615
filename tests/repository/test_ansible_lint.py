"""ansible-lint needs one processor for a minute: as a test it runs beside other tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.folders import ROOT


@pytest.mark.lint
@pytest.mark.slow
def test_playbooks_and_roles_have_no_finding() -> None:
    tools = Path(sys.executable).parent
    done = subprocess.run(
        [sys.executable, "-m", "ansiblelint", "--nocolor"],
        cwd=ROOT,
        env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr

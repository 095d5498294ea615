"""ansible-lint needs one processor for a minute: as a test it runs beside other tests."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.folders import ROOT
from tests.forks import script, tool, tools

pytestmark = pytest.mark.rest("a minute of processor time")


@pytest.mark.lint
@pytest.mark.slow
def test_playbooks_and_roles_have_no_finding(tmp_path: Path) -> None:
    # ansible-lint starts ansible-playbook many times with a PYTHONWARNINGS, which no fork has.
    script(
        tmp_path / "ansible-playbook",
        "/bin/sh",
        f'unset PYTHONWARNINGS\nexec {shlex.quote(tool("ansible-playbook"))} "$@"',
    )
    done = subprocess.run(
        [sys.executable, "-m", "ansiblelint", "--nocolor"],
        cwd=ROOT,
        env={
            **os.environ,
            "PATH": f"{tmp_path}:{tools()}:{os.environ['PATH']}",
            "LC_ALL": "C.UTF-8",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr

"""A checkout below the temporary folder, with a blank in its path."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.folders import ROOT
from tests.roles.kit import make_kit
from tests.roles.test_provision import PYTHON_SYSTEM, environment, wheel

COMMAND = "import sys; from proofmark.cli.main import main; sys.exit(main())"


@pytest.fixture
def top() -> Iterator[Path]:
    """Yield a folder in /tmp; virtual nodes have their own /tmp."""
    with tempfile.TemporaryDirectory(prefix="proofmark any ", dir="/tmp") as folder:
        yield Path(folder)


def python_in(folder: Path) -> Path:
    """Make a virtual environment that also has the packages of the running Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    installed = sysconfig.get_path("purelib")
    (packages / "installed.pth").write_text(f"import site; site.addsitedir({installed!r})\n")
    python, command = folder / "bin/python", folder / "bin/proofmark"
    command.write_text(f"#!/bin/sh\nexec '{python}' -c '{COMMAND}' \"$@\"\n")
    command.chmod(0o755)
    return python


@pytest.mark.slow
@pytest.mark.soak  # make fresh runs both commands of the README in such a folder
def test_an_acceptance_runs_if_every_path_has_a_blank(top: Path) -> None:
    kit = make_kit(top)
    environment(kit, PYTHON_SYSTEM)
    wheel(kit, "1.0")
    python = python_in(top / "its python")
    played = kit.play("acceptance.yml", command=(f"{python}",))
    assert played.code == 0, played.output
    assert (kit.folder / ".provision/tiny/lock.txt").exists()
    verdict = kit.verdict()
    assert verdict["coverage"]["measured"] == verdict["coverage"]["expected"] > 0
    assert verdict["counts"]["INVALID"] == 0
    (script, *_) = kit.run().glob("workdir/steps/*/run.sh")
    assert f"{kit.folder}/.provision/tiny/bin/tiny" in script.read_text()
    again = subprocess.run(["sh", script], capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert "rate: 100" in (script.parent / "execution-2/stdout").read_text()


@pytest.mark.root
def test_virtual_nodes_see_their_checkout_and_no_other_file_of_tmp(top: Path) -> None:
    checkout = top / "my kit"
    shutil.copytree(ROOT / "tests/emulators/vcluster", checkout / "tests/emulators/vcluster")
    shutil.copy(ROOT / "tests/folders.py", checkout / "tests")
    (checkout / "mark").write_text("seen by all\n")
    (top / "hidden").touch()
    looks = f"ssh knl0001 \"cat '{checkout}/mark'; test ! -e '{top}/hidden' && echo private\""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tests.emulators.vcluster", "--nodes=1", "--scheduler=none"),
            *(f"--folder={top}/cluster", "sh", "-c", looks),
        ],
        cwd=checkout,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.stdout == "seen by all\nprivate\n", done.stderr

"""Clones of Spack and its recipes, and the index of the recipes that locks and builds share."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest
import yaml
from tests.folders import ROOT

from proofmark.common import progress_lines
from proofmark.common.errors import BadInput
from proofmark.common.progress_lines import while_working
from proofmark.software.installed import Sources
from proofmark.software.spack.installation import (
    UNFINISHED,
    SpackInstallation,
    bootstrap,
    installation_in,
)
from proofmark.software.spack.lock_make import lock_variables

TAG = "v1"


def git(folder: Path, *words: str) -> str:
    command = ["git", "-C", f"{folder}", "-c", "user.name=n", "-c", "user.email=n@example.org"]
    done = subprocess.run([*command, *words], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """Return a folder with repositories of Spack and of its recipes, each with one tag."""
    for name in ("spack.git", "packages.git"):
        folder = tmp_path / "bundle" / name
        folder.mkdir(parents=True)
        git(folder, "init", "-q")
        (folder / "file").write_text(name)
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", "one")
        git(folder, "tag", TAG)
    return tmp_path / "bundle"


def pins(bundle: Path) -> dict[str, dict[str, str]]:
    found = {}
    for key, name in (("spack", "spack.git"), ("spack_packages", "packages.git")):
        commit = git(bundle / name, "rev-parse", "HEAD")
        found[key] = {"tag": TAG, "commit": commit, "git": f"file://{bundle / name}"}
    return found


def prepared(tmp_path: Path, sources: Sources) -> SpackInstallation:
    """Return an installation whose solver is installed, so that only clones are missing."""
    installation = installation_in(tmp_path / "prefixes", sources)
    (installation.root / "venv").mkdir(parents=True)
    lock = (ROOT / "requirements/spack.txt").read_bytes()
    (installation.root / "venv/lock.txt").write_bytes(lock)
    return installation


@pytest.mark.fault("clone-fails")
@pytest.mark.parametrize("key", ["tag", "commit"])
def test_a_failed_clone_leaves_no_folder_and_the_same_command_clones_again(
    bundle: Path, tmp_path: Path, key: str, capfd: pytest.CaptureFixture[str]
) -> None:
    sources = Sources(bundle=bundle)
    installation, right = prepared(tmp_path, sources), pins(bundle)
    wrong = {**right, "spack": {**right["spack"], key: "0" * 40}}
    with pytest.raises(BadInput):
        bootstrap(installation, ROOT, wrong, sources)
    assert [path.name for path in installation.root.iterdir()] == ["venv"]
    assert f"comparing {installation.spack} with its pin\n" in capfd.readouterr().err
    (installation.root / f"{UNFINISHED}1").mkdir()  # as after SIGKILL
    (installation.root / f"{UNFINISHED}1/half").touch()
    bootstrap(installation, ROOT, right, sources)
    assert sorted(path.name for path in installation.root.iterdir()) == [
        *("packages", "spack", "venv")
    ]


def test_a_lock_and_an_installation_use_one_index_of_the_recipes(tmp_path: Path) -> None:
    installation = SpackInstallation(tmp_path / "own", tmp_path / "spack", tmp_path / "packages")
    installation.configure(Sources())
    folder = tmp_path / "scratch"
    folder.mkdir()
    lock_variables(installation, folder)
    caches = {
        yaml.safe_load((user / "config.yaml").read_text())["config"]["misc_cache"]
        for user in (folder / "user", installation.root / "user")
    }
    assert caches == {f"{installation.index}"}


def test_work_that_prints_nothing_has_a_line_at_once_and_then_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(progress_lines, "IDLE_S", 0.05)
    lines: list[str] = []
    with pytest.raises(ValueError, match="x"), while_working("Spack solves", lines.append):
        assert lines == ["Spack solves"]
        deadline = time.monotonic() + 20
        while len(lines) < 3 and time.monotonic() < deadline:
            time.sleep(0.02)
        raise ValueError("x")
    assert lines[1:3] == ["Spack solves, for 0 s"] * 2
    count = len(lines)
    time.sleep(0.2)
    assert len(lines) == count, "it ends with the block"

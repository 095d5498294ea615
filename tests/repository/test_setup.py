"""The packages that `make` installs, and its message to a user who may not install them."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.folders import ROOT

REQUIREMENTS = ROOT / "requirements"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a checkout whose .venv is up to date."""
    shutil.copytree(REQUIREMENTS, tmp_path / "requirements")
    (tmp_path / "requirements/debian-run.txt").write_text("hwloc-nox|hwloc\npython3-venv\n")
    (tmp_path / "requirements/debian-rehearsal.txt").write_text("")
    (tmp_path / "requirements/debian-dev.txt").write_text("busybox|busybox-static # a shell\n")
    (tmp_path / "galaxy.yml").touch()
    (tmp_path / "pyproject.toml").touch()
    venv = tmp_path / ".venv"
    venv.mkdir()
    (venv / "pyvenv.cfg").write_text(f"command = python3 -m venv {venv}\n")
    for stamp, file in [
        ("run", "requirements/run.txt"),
        ("dev", "requirements/dev.txt"),
        ("project", "pyproject.toml"),
    ]:
        digest = hashlib.sha256((tmp_path / file).read_bytes()).hexdigest()
        (venv / f"{stamp}.sha256").write_text(f"{digest}  {file}\n")
    return tmp_path


def setup(checkout: Path, installed: str) -> subprocess.CompletedProcess[str]:
    """Run setup.sh as a user without root; dpkg lists the packages that match `installed`."""
    commands = checkout / "commands"
    commands.mkdir()
    for name, body in {
        "id": "echo 1000",
        "apt-get": f"touch {checkout}/apt-get-ran",
        "dpkg-query": f'for package; do :; done\ncase $package in {installed}) echo "installed";; '
        "*) exit 1;; esac",
    }.items():
        (commands / name).write_text(f"#!/bin/sh\n{body}\n")
        (commands / name).chmod(0o755)
    return subprocess.run(
        [checkout / "requirements/setup.sh", "dev"],
        env={"PATH": f"{commands}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.fault("not-root")
def test_the_missing_packages_are_printed(checkout: Path) -> None:
    result = setup(checkout, installed="python3-venv")
    assert result.returncode == 1
    *_, command = result.stderr.rstrip().splitlines()
    assert command.split("--yes ")[1] == "hwloc-nox busybox"
    assert {"  hwloc-nox", "  busybox"} <= set(result.stderr.splitlines())
    assert not (checkout / "apt-get-ran").exists()
    assert not (checkout / ".ansible").exists()


@pytest.mark.fault("not-root")
def test_nothing_is_printed_if_no_package_is_missing(checkout: Path) -> None:
    """The control: the second package of a choice is accepted too."""
    result = setup(checkout, installed="python3-venv|hwloc|busybox-static")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    link = checkout / ".ansible/collections/ansible_collections/proofmark/kit"
    assert link.resolve() == checkout


@pytest.mark.parametrize("name", ['a"b', "a'b", "a$b", "a%b", "a:b", "a[b", "a\\nb", "a\nb", "a#b"])
def test_a_folder_that_cannot_work_is_refused_by_name(tmp_path: Path, name: str) -> None:
    """The control: the test below."""
    done = run_in(tmp_path / name, "setup.sh", "run")
    assert done.returncode == 3
    assert done.stderr.startswith(
        f"the folder of this checkout: found '{tmp_path}/{name}'; accepted: "
    )


@pytest.mark.parametrize("name", ["a b", "naïve", "a~b+c@d=e(f)!g", "plain.v1-2_3"])
def test_other_folders_are_accepted(tmp_path: Path, name: str) -> None:
    done = run_in(tmp_path / name, "setup.sh", "nothing")
    assert done.stderr == "setup.sh: found 'nothing'; accepted: run, rehearsal, dev\n"


def run_in(
    folder: Path, script: str, *words: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    if not folder.exists():
        shutil.copytree(REQUIREMENTS, folder / "requirements")
    return subprocess.run(
        [folder / "requirements" / script, *words],
        env={"PATH": f"{folder}/commands:/usr/bin:/bin", **variables},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("checkout", ["my kit", "kit"])
@pytest.mark.parametrize(
    "given", ["its own", "missing", "not set", "another user's", "a blank", "of all users"]
)
def test_home_is_a_folder_in_which_this_user_can_write(
    tmp_path: Path, given: str, checkout: str
) -> None:
    """The control: a HOME that belongs to the user is kept."""
    folder = tmp_path / checkout
    shutil.copytree(REQUIREMENTS, folder / "requirements")
    (folder / "commands").mkdir()
    getent = folder / "commands/getent"
    getent.write_text("#!/bin/sh\necho nobody:x:65534:65534::/nonexistent:/bin/sh\n")
    getent.chmod(0o755)
    homes = {"its own": tmp_path / "own", "a blank": tmp_path / "its home"}
    homes["of all users"] = tmp_path / "shared"
    homes["another user's"] = tmp_path / "others" if os.geteuid() == 0 else Path("/")
    for home in homes.values():
        home.mkdir(exist_ok=True)
    homes["of all users"].chmod(0o1777)
    if os.geteuid() == 0:
        os.chown(homes["another user's"], 65534, 65534)
    variables = {"HOME": f"{homes.get(given, '/nonexistent')}"} if given != "not set" else {}
    done = run_in(folder, "home.sh", TMPDIR=f"{tmp_path}", **variables)
    assert (done.returncode, done.stderr) == (0, "")
    home = Path(done.stdout.removesuffix("\n"))
    substitute = folder / ".ansible/home"
    assert home == (homes[given] if given == "its own" else substitute.resolve())
    assert " " not in str(home)
    assert (home.stat().st_uid, home.stat().st_mode & 0o022) == (os.geteuid(), 0)
    again = run_in(folder, "home.sh", TMPDIR=f"{tmp_path}", **variables)
    assert again.stdout == done.stdout  # a second call creates no second folder

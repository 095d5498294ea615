"""The packages that `make` installs, and its message to a user who may not install them."""

from __future__ import annotations

import hashlib
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
    (tmp_path / "playbooks").mkdir()
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


def query_of(installed: str) -> str:
    """Return the body of a program that prints the state of its last argument, a package.

    Args:
        installed: the names of the installed packages, as a pattern of sh.
    """
    return f"for name; do :; done\ncase $name in {installed}) echo installed ;; *) exit 1 ;; esac"


def setup(checkout: Path, installed: str) -> subprocess.CompletedProcess[str]:
    """Run setup.sh as a user without root; dpkg lists the packages that match `installed`."""
    commands = checkout / "commands"
    commands.mkdir()
    for name, body in {
        "id": "echo 1000",
        "apt-get": f"touch {checkout}/apt-get-ran",
        "dpkg-query": query_of(f"dpkg|{installed}"),
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
    for beside in (checkout, checkout / "playbooks"):  # with any ansible.cfg
        found = beside / "collections/ansible_collections/proofmark/kit"
        assert found.resolve() == checkout


PYTHON = """#!/bin/sh
[ "$1" = -c ] && exit {}
echo "${{0##*/}}" >&2
exit 9
"""
"""A Python that is suitable (0) or not (1), and that makes no virtual environment."""
TOOLS = (
    *("chmod", "cut", "dirname", "env", "flock", "grep", "ln", "ls"),
    *("mkdir", "readlink", "rm", "sed", "sha256sum", "sh", "tail", "tr"),
)
MANAGERS = {
    "rhel": ("dnf", "rpm", "  dnf install --assumeyes hwloc python3.12"),
    "suse": (
        "zypper",
        "rpm",
        "  zypper --non-interactive install --no-recommends hwloc python311",
    ),
    "debian": (
        "apt-get",
        "dpkg-query",
        "  apt-get update && apt-get install --no-install-recommends --yes hwloc-nox python3-venv",
    ),
}


def system(folder: Path, family: str, installed: str, pythons: dict[str, str], user: int) -> Path:
    """Return a folder for PATH: the tools, the package manager and the Pythons of a system.

    Args:
        folder: the checkout, in which the manager writes its arguments to the file `called`.
        family: a key of MANAGERS.
        installed: the names of the installed packages, as a pattern of sh.
        pythons: the version of each program.
        user: the number of the user.
    """
    manager, query, _ = MANAGERS[family]
    path = folder / "path"
    path.mkdir()
    for tool in TOOLS:
        (path / tool).symlink_to(f"/usr/bin/{tool}")
    scripts = {
        "id": f"#!/bin/sh\necho {user}\n",
        query: f"#!/bin/sh\n{query_of(installed)}\n",
        manager: f'#!/bin/sh\necho "{manager} $*" >>{folder}/called\n',
    }
    for name, version in pythons.items():
        recent = tuple(map(int, version.split("."))) >= (3, 11)
        scripts[name] = PYTHON.format(0 if recent else 1)
    for name, text in scripts.items():
        (path / name).write_text(text)
        (path / name).chmod(0o755)
    return path


def run_setup(folder: Path, path: Path | str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [folder / "requirements/setup.sh", "run"],
        env={"PATH": f"{path}"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.fault("not-root")
@pytest.mark.parametrize("family", MANAGERS)
def test_each_system_has_its_own_packages(checkout: Path, family: str) -> None:
    """An old python3 is not enough; the package of a newer one is named."""
    path = system(checkout, family, "dpkg", {"python3": "3.9"}, user=1000)
    done = run_setup(checkout, path)
    assert done.returncode == 1
    *_, command = done.stderr.rstrip("\n").splitlines()
    assert command == MANAGERS[family][2]
    assert not (checkout / "called").exists()


@pytest.mark.fault("not-root")
@pytest.mark.parametrize("family", MANAGERS)
def test_a_user_needs_no_root_if_the_packages_are_installed(checkout: Path, family: str) -> None:
    """The control. No package of Python is needed beside a new one of another name."""
    pythons = {"python3": "3.6", "python3.10": "3.10", "python3.12": "3.12"}
    path = system(checkout, family, "dpkg|hwloc", pythons, user=1000)
    done = run_setup(checkout, path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not (checkout / "called").exists()


@pytest.mark.parametrize("family", MANAGERS)
def test_root_installs_only_the_missing_packages(checkout: Path, family: str) -> None:
    path = system(checkout, family, "dpkg|hwloc", {"python3": "3.9"}, user=0)
    done = run_setup(checkout, path)
    assert (done.returncode, done.stderr) == (0, "")
    called = (checkout / "called").read_text()
    name = {"rhel": "python3.12", "suse": "python311", "debian": "python3-venv"}[family]
    assert called.endswith(f" {name}\n")
    assert "hwloc" not in called


@pytest.mark.parametrize(
    ("pythons", "chosen"),
    [
        ({"python3": "3.11", "python3.13": "3.13"}, "python3"),
        ({"python3": "3.6", "python3.11": "3.11", "python3.12": "3.12"}, "python3.11"),
        ({"python3": "3.10", "python3.9": "3.9"}, ""),
        ({}, ""),
    ],
)
def test_python_is_found_under_any_name(
    checkout: Path, pythons: dict[str, str], chosen: str
) -> None:
    path = system(checkout, "debian", "dpkg|hwloc|python3-venv", pythons, user=1000)
    (checkout / ".venv/run.sha256").unlink()
    done = run_setup(checkout, path)
    if chosen:
        assert (done.returncode, done.stderr) == (9, f"{chosen}\n")
        return
    assert done.returncode == 1
    assert "accepted: Python 3.11 or newer with the modules venv and ensurepip" in done.stderr


@pytest.mark.parametrize("alias", [False, True])
def test_the_python_of_the_virtual_environment_is_not_chosen(checkout: Path, alias: bool) -> None:
    """It is removed before the new one is made; PATH may have it by another name of the folder."""
    path = system(checkout, "debian", "dpkg|hwloc|python3-venv", {"python3.12": "3.12"}, user=1000)
    bin_folder = checkout / ".venv/bin"
    bin_folder.mkdir()
    shutil.copy(path / "python3.12", bin_folder / "python3")
    link = checkout / "link"
    link.symlink_to(checkout)
    (checkout / ".venv/run.sha256").unlink()
    done = run_setup(checkout, f"{(link if alias else checkout) / '.venv/bin'}:{path}")
    assert (done.returncode, done.stderr) == (9, "python3.12\n")


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
    assert done.stderr == "setup.sh: found 'nothing'; accepted: run, spack, rehearsal, dev\n"


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


@pytest.mark.parametrize("family", MANAGERS)
def test_each_system_has_all_packages_of_the_kit(family: str) -> None:
    """The names differ between systems: only their number can be compared."""
    numbers = []
    for name in (family, "debian"):
        text = (REQUIREMENTS / f"{name}-run.txt").read_text()
        numbers.append(len([line for line in text.splitlines() if line.split("#")[0].strip()]))
    assert numbers[0] == numbers[1]
